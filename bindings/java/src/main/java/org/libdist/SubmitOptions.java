// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;

/** Options of {@link Strategy#submit}. Immutable: each method returns a new set of options. */
public final class SubmitOptions {
    /** The lowest priority of a request; runs have priority 0. */
    public static final int PRIORITY_MIN = -7;
    /** The highest priority of a request. */
    public static final int PRIORITY_MAX = 7;
    /** The default options: priority 0 and no deadline. */
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

    /** Sets the priority, {@link #PRIORITY_MIN} to {@link #PRIORITY_MAX}. Higher priorities run first. */
    public SubmitOptions priority(int priority) {
        return new SubmitOptions(priority, timeoutNanos, cancel, executor, requestId);
    }

    /** Sets the time limit from now to completion; zero means none. */
    public SubmitOptions timeout(Duration timeout) {
        return new SubmitOptions(priority, Durations.nanos(timeout, "timeout"), cancel, executor, requestId);
    }

    /** Sets an object that cancels this request. */
    public SubmitOptions cancel(Cancel cancel) {
        return new SubmitOptions(priority, timeoutNanos, Objects.requireNonNull(cancel, "cancel"), executor, requestId);
    }

    /**
     * Sets the executor that completes the future and so runs its dependents. Without it, they run on one
     * thread that all requests of the program share, so a slow dependent delays the others.
     */
    public SubmitOptions executor(Executor executor) {
        return new SubmitOptions(priority, timeoutNanos, cancel, Objects.requireNonNull(executor, "executor"),
                requestId);
    }

    /** Sets the id in traces ({@link Strategy#traceJson}); 0 means that libdist assigns 1, 2, 3, ... */
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
