// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;

/** Rare choices for a request: {@link Strategy#submit}. Immutable: each method gives another set of options. */
public final class SubmitOptions {
    /** The least priority of a request; runs have 0. */
    public static final int PRIORITY_MIN = -7;
    /** The greatest. */
    public static final int PRIORITY_MAX = 7;
    /** Priority 0, without a deadline. */
    public static final SubmitOptions DEFAULT = new SubmitOptions(0, 0, null, null, 0);

    private final int priority;
    private final long timeoutNanos;
    private final Cancel cancel; // null: none
    private final Executor executor; // null: libdist's own thread
    private final long requestId;

    private SubmitOptions(int priority, long timeoutNanos, Cancel cancel, Executor executor, long requestId) {
        this.priority = priority;
        this.timeoutNanos = timeoutNanos;
        this.cancel = cancel;
        this.executor = executor;
        this.requestId = requestId;
    }

    /** {@link #PRIORITY_MIN} to {@link #PRIORITY_MAX}: the greater comes first. */
    public SubmitOptions priority(int priority) {
        return new SubmitOptions(priority, timeoutNanos, cancel, executor, requestId);
    }

    /** Until the request's end, from now; zero: none. */
    public SubmitOptions timeout(Duration timeout) {
        return new SubmitOptions(priority, Durations.nanos(timeout, "timeout"), cancel, executor, requestId);
    }

    /** What ends this request, with CANCELLED. */
    public SubmitOptions cancel(Cancel cancel) {
        return new SubmitOptions(priority, timeoutNanos, Objects.requireNonNull(cancel, "cancel"), executor, requestId);
    }

    /**
     * Where the future is completed, and so its dependents run; otherwise on one thread that all requests of
     * the program share, which a slow dependent holds up.
     */
    public SubmitOptions executor(Executor executor) {
        return new SubmitOptions(priority, timeoutNanos, cancel, Objects.requireNonNull(executor, "executor"),
                requestId);
    }

    /** In traces ({@link Strategy#writeTrace}), to find it there; 0: libdist numbers them from 1 on. */
    public SubmitOptions requestId(long requestId) {
        return new SubmitOptions(priority, timeoutNanos, cancel, executor, requestId);
    }

    int priority() {
        return priority;
    }

    long timeoutNanos() {
        return timeoutNanos;
    }

    Cancel cancel() {
        return cancel;
    }

    long requestId() {
        return requestId;
    }

    Executor executor() {
        return executor;
    }
}
