// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.dist_batcher_options;

/** Choices for {@link Strategy#batcher}. Immutable: each method gives another set of options. */
public final class BatcherOptions {
    /** Steps of 32 items at most, which wait for nobody. */
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

    /** Of a step, and of an instance; 0: 32. */
    public BatcherOptions maxItems(int maxItems) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.maxItems = maxItems;
        return changed;
    }

    /** How long an item waits for others while an instance is free; zero: not at all. */
    public BatcherOptions maxDelay(Duration maxDelay) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.maxDelayNanos = Durations.nanos(maxDelay, "maxDelay");
        return changed;
    }

    /** Items that no step has had; one more is refused; 0: 1024. */
    public BatcherOptions maxWaiting(long maxWaiting) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.maxWaiting = maxWaiting;
        return changed;
    }

    /** Of the items that an instance has, as {@link ItemOptions#bytes} says; 0: any number. */
    public BatcherOptions maxBytes(long maxBytes) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.maxBytes = maxBytes;
        return changed;
    }

    /** Lengths, ascending, from 1; none: all items are of one bucket. */
    public BatcherOptions buckets(long... buckets) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.buckets = Objects.requireNonNull(buckets, "buckets").clone();
        return changed;
    }

    /** An item stays until {@link Batch#end}; otherwise it is in one step. */
    public BatcherOptions continuous(boolean continuous) {
        BatcherOptions changed = new BatcherOptions(this);
        changed.continuous = continuous;
        return changed;
    }

    /** Partial results of an item that nobody has taken; one with as many is in no step; 0: 16. */
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
