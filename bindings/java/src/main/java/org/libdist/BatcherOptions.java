// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.dist_batcher_options;

/** Options of {@link Batcher#create}. Immutable: each method returns a new set of options. */
public final class BatcherOptions {
    /** The default options: steps of at most 32 items, which do not wait for further items. */
    public static final BatcherOptions DEFAULT = new BatcherOptions();

    private int maxItems;
    private long maxDelayNanos;
    private long maxWaiting;
    private long maxBytes;
    private long[] buckets = {};
    private boolean continuous;
    private int maxResults;

    private BatcherOptions() {}

    private BatcherOptions(BatcherOptions other) {
        maxItems = other.maxItems;
        maxDelayNanos = other.maxDelayNanos;
        maxWaiting = other.maxWaiting;
        maxBytes = other.maxBytes;
        buckets = other.buckets;
        continuous = other.continuous;
        maxResults = other.maxResults;
    }

    /**
     * Sets the maximum number of items per step and per instance, at most 4096; 0 selects the default (32).
     */
    public BatcherOptions maxItems(int maxItems) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.maxItems = maxItems;
        return changed;
    }

    /** Sets how long an item waits for others although an instance is idle; zero means not at all. */
    public BatcherOptions maxDelay(Duration maxDelay) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.maxDelayNanos = Durations.nanos(maxDelay, "maxDelay");
        return changed;
    }

    /** Sets the maximum number of waiting items; 0 selects the default (1024). */
    public BatcherOptions maxWaiting(long maxWaiting) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.maxWaiting = maxWaiting;
        return changed;
    }

    /** Sets the maximum sum of {@link ItemOptions#bytes} per instance; 0 means no limit. */
    public BatcherOptions maxBytes(long maxBytes) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.maxBytes = maxBytes;
        return changed;
    }

    /**
     * Sets the buckets: lengths in ascending order, from 1. Without lengths, all items belong to one bucket.
     */
    public BatcherOptions buckets(long... buckets) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.buckets = Objects.requireNonNull(buckets, "buckets").clone();
        return changed;
    }

    /** Sets whether an item stays until {@link Batch#end}; otherwise it takes part in one step. */
    public BatcherOptions continuous(boolean continuous) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.continuous = continuous;
        return changed;
    }

    /**
     * Sets the maximum number of partial results of an item that have not been taken; 0 selects the default
     * (16). An item with that many results takes part in no further step until one is taken.
     */
    public BatcherOptions maxResults(int maxResults) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.maxResults = maxResults;
        return changed;
    }

    dist_batcher_options toNative(Uses uses) {
        dist_batcher_options options = new dist_batcher_options();
        uses.defer(options::delete);
        options.setMax_items(maxItems);
        options.setMax_delay_ns(maxDelayNanos);
        options.setMax_waiting(maxWaiting);
        options.setMax_bytes(maxBytes);
        options.set_buckets(buckets, buckets.length);
        options.setContinuous(continuous ? 1 : 0);
        options.setMax_results(maxResults);
        options.set_tokens();
        return options;
    }
}
