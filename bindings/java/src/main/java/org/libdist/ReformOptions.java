// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import org.libdist.internal.dist_reform_options;

/** The rare choices of {@link Strategy#reform(ReformOptions)}. Immutable: each method gives another set of options. */
public final class ReformOptions {
    /** Those of libdist. */
    public static final ReformOptions DEFAULT = new ReformOptions(0, 0, 0);

    private final int minWorkers;
    private final long windowNanos;
    private final long timeoutNanos;

    private ReformOptions(int minWorkers, long windowNanos, long timeoutNanos) {
        this.minWorkers = minWorkers;
        this.windowNanos = windowNanos;
        this.timeoutNanos = timeoutNanos;
    }

    /** Fewer workers do not go on, and wait for more; 0: 1. */
    public ReformOptions minWorkers(int minWorkers) {
        return new ReformOptions(minWorkers, windowNanos, timeoutNanos);
    }

    /** Of worker 0: how long it waits for workers that are not known to be lost; zero: a lease. */
    public ReformOptions window(Duration window) {
        return new ReformOptions(minWorkers, Durations.nanos(window, "window"), timeoutNanos);
    }

    /** How long to wait in all; zero: the strategy's timeout, negative: no limit. */
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
