// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.dist_coordinator_options;

/** The rare choices of a {@link Coordinator}. Immutable: each method gives another set of options. */
public final class CoordinatorOptions {
    /** Those of libdist. */
    public static final CoordinatorOptions DEFAULT = new CoordinatorOptions();

    private int maxQueued;
    private int closuresPerWorker;
    private int maxLosses;
    private long timeoutNanos;
    private long maxMessageBytes;
    private PartitionFunction partitioner; // null: none

    private CoordinatorOptions() {}

    private CoordinatorOptions copy() {
        CoordinatorOptions copy = new CoordinatorOptions();
        copy.maxQueued = maxQueued;
        copy.closuresPerWorker = closuresPerWorker;
        copy.maxLosses = maxLosses;
        copy.timeoutNanos = timeoutNanos;
        copy.maxMessageBytes = maxMessageBytes;
        copy.partitioner = partitioner;
        return copy;
    }

    /** How many closures may have no end; beyond it {@link Coordinator#schedule} waits; 0: 262,144. */
    public CoordinatorOptions maxQueued(int maxQueued) {
        CoordinatorOptions copy = copy();
        copy.maxQueued = maxQueued;
        return copy;
    }

    /** How many closures a worker has at a time; 0: 1. */
    public CoordinatorOptions closuresPerWorker(int closuresPerWorker) {
        CoordinatorOptions copy = copy();
        copy.closuresPerWorker = closuresPerWorker;
        return copy;
    }

    /** How often one closure may be lost with its worker; 0: 16. */
    public CoordinatorOptions maxLosses(int maxLosses) {
        CoordinatorOptions copy = copy();
        copy.maxLosses = maxLosses;
        return copy;
    }

    /** Of calls that have none of their own; zero: the strategy's; negative: no limit. */
    public CoordinatorOptions timeout(Duration timeout) {
        CoordinatorOptions copy = copy();
        copy.timeoutNanos = Durations.nanos(timeout, "timeout");
        return copy;
    }

    /** Most of one message; 0: 1 GiB. */
    public CoordinatorOptions maxMessageBytes(long maxMessageBytes) {
        CoordinatorOptions copy = copy();
        copy.maxMessageBytes = maxMessageBytes;
        return copy;
    }

    /** Divides variables that do not say it themselves; without it they stay whole. */
    public CoordinatorOptions partitioner(PartitionFunction partitioner) {
        CoordinatorOptions copy = copy();
        copy.partitioner = Objects.requireNonNull(partitioner, "partitioner");
        return copy;
    }

    PartitionFunction partitioner() {
        return partitioner;
    }

    dist_coordinator_options toNative(Uses uses) {
        dist_coordinator_options options = new dist_coordinator_options();
        uses.defer(options::delete);
        options.setMax_queued(maxQueued);
        options.setClosures_per_worker(closuresPerWorker);
        options.setMax_losses(maxLosses);
        options.setTimeout_ns(timeoutNanos);
        options.setMax_message_bytes(maxMessageBytes);
        return options;
    }
}
