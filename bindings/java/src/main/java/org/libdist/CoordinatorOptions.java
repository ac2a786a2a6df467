// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import org.libdist.internal.dist_coordinator_options;

/** Options of a {@link Coordinator}. Immutable: each method returns a new set of options. */
public final class CoordinatorOptions {
    /** The default options. */
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

    /**
     * Sets the maximum number of unfinished closures; at this limit {@link Coordinator#schedule} waits. 0
     * selects the default (262,144).
     */
    public CoordinatorOptions maxQueued(int maxQueued) {
        CoordinatorOptions copy = copy();
        copy.maxQueued = maxQueued;
        return copy;
    }

    /** Sets how many closures a worker has at a time; 0 selects the default (1). */
    public CoordinatorOptions closuresPerWorker(int closuresPerWorker) {
        CoordinatorOptions copy = copy();
        copy.closuresPerWorker = closuresPerWorker;
        return copy;
    }

    /** Sets how often one closure may be lost with its worker; 0 selects the default (16). */
    public CoordinatorOptions maxLosses(int maxLosses) {
        CoordinatorOptions copy = copy();
        copy.maxLosses = maxLosses;
        return copy;
    }

    /**
     * Sets the timeout of calls without their own; zero selects the strategy's, and a negative value means no
     * limit.
     */
    public CoordinatorOptions timeout(Duration timeout) {
        CoordinatorOptions copy = copy();
        copy.timeoutNanos = Durations.nanos(timeout, "timeout");
        return copy;
    }

    /** Sets the maximum size of a message; 0 selects the default (1 GiB). */
    public CoordinatorOptions maxMessageBytes(long maxMessageBytes) {
        CoordinatorOptions copy = copy();
        copy.maxMessageBytes = maxMessageBytes;
        return copy;
    }

    /**
     * Sets a function that divides variables without partitions of their own. Without it, they are not
     * divided.
     */
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
