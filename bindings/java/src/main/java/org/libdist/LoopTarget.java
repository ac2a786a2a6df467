// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.libdist.internal.DistModule;

/** Calls a strategy's executor for loops on behalf of libdist. */
final class LoopTarget extends Target {
    private final Executor executor;
    private final int numThreads;

    LoopTarget(Executor executor, int numThreads) {
        this.executor = Objects.requireNonNull(executor, "executor");
        this.numThreads = numThreads;
    }

    int numThreads() {
        return numThreads;
    }

    /**
     * One helper's part of a loop: a libdist function that is either called once or refused. It does not use
     * the strategy.
     */
    private static final class Task implements Runnable {
        private final long function;
        private final long data;
        private final AtomicBoolean taken = new AtomicBoolean();

        Task(long function, long data) {
            this.function = function;
            this.data = data;
        }

        @Override
        public void run() {
            if (!taken.getAndSet(true)) {
                DistModule.run_task(function, data);
            }
        }
    }

    /** Returns whether the task has been called or will be. */
    @Override
    boolean execute(long function, long data) {
        Task task = new Task(function, data);
        try {
            executor.execute(task);
            return true;
        } catch (Throwable t) { // no caller could receive it; the loop runs without this helper
            return task.taken.getAndSet(true); // unless it has been called all the same
        }
    }
}
