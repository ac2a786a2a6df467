// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import org.libdist.internal.dist_reform_options;

/**
 * Options of {@link Strategy#reform(ReformOptions)}. Immutable: each method returns a new set of options.
 *
 * <p>Re-forming renumbers the replicas in the order of the workers. Each worker keeps its number of replicas
 * and the content of its variables. Because a failed run may have changed the variables of some replicas
 * only, and a worker that joins has no content, load a checkpoint that was saved between runs. Plans and
 * datasets are not kept; create them again. After an error, the strategy has no connection to the other
 * workers, and {@link Strategy#reform(ReformOptions)} can be called again.
 */
public final class ReformOptions {
    /** The default options. */
    public static final ReformOptions DEFAULT = new ReformOptions(0, 0, 0);

    private final int minWorkers;
    private final long windowNanos;
    private final long timeoutNanos;

    private ReformOptions(int minWorkers, long windowNanos, long timeoutNanos) {
        this.minWorkers = minWorkers;
        this.windowNanos = windowNanos;
        this.timeoutNanos = timeoutNanos;
    }

    /**
     * Sets the minimum number of workers that continue; with fewer, worker 0 waits for more. 0 selects the
     * default (1).
     */
    public ReformOptions minWorkers(int minWorkers) {
        return new ReformOptions(minWorkers, windowNanos, timeoutNanos);
    }

    /**
     * Sets, on worker 0, how long to wait for workers that are not known to be lost; zero selects one lease.
     */
    public ReformOptions window(Duration window) {
        return new ReformOptions(minWorkers, Durations.nanos(window, "window"), timeoutNanos);
    }

    /**
     * Sets the limit on the whole wait; zero selects the strategy's timeout, and a negative value means no
     * limit.
     */
    public ReformOptions timeout(Duration timeout) {
        return new ReformOptions(minWorkers, windowNanos, Durations.nanos(timeout, "timeout"));
    }

    dist_reform_options toNative(Uses uses) {
        dist_reform_options options = new dist_reform_options();
        uses.defer(options::delete);
        options.setMin_workers(minWorkers);
        options.setWindow_ns(windowNanos);
        options.setTimeout_ns(timeoutNanos);
        return options;
    }
}
