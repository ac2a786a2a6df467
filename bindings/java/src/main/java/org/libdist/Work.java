// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Reference;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.libdist.internal.DistModule;

/**
 * An asynchronous collective in progress. Its tensors belong to libdist until it has completed. On the thread
 * of the replica that started it, get(), join() and isDone() do their part of the work and detect its
 * completion; on other threads they wait for that. Dependent stages, such as those of thenRun(), run when the
 * replica's thread has detected the completion, at the latest when its function returns. If the work fails,
 * it completes with a DistException, which is also the replica's failure.
 */
public final class Work extends CompletableFuture<Void> {
    private final Replica replica;
    private final Object used; // tensors and functions, until the end
    private final Tokens functions; // of its options
    private long handle; // 0: ended

    Work(Replica replica, long handle, Object used, Tokens functions) {
        this.replica = replica;
        this.handle = handle;
        this.used = used;
        this.functions = functions;
    }

    private boolean isMine() {
        return handle != 0 && replica.isHere();
    }

    /** Returns false if the timeout expired while the work is in progress. */
    private boolean await(long timeoutNanos) {
        try {
            DistModule.dist_work_wait(handle, timeoutNanos);
            end(null);
        } catch (DistException e) {
            if (e.status() == Status.DEADLINE_EXCEEDED && timeoutNanos >= 0 && isInProgress()) {
                return false;
            }
            end(e);
        }
        return true;
    }

    private boolean isInProgress() {
        try {
            int[] done = new int[1];
            DistModule.dist_work_test(handle, done);
            return done[0] == 0;
        } catch (DistException e) {
            return false;
        }
    }

    private void end(DistException failure) {
        drop();
        Throwable cause = failure;
        try {
            functions.check();
        } catch (Throwable t) {
            cause = t;
        }
        if (cause == null) {
            complete(null);
        } else {
            completeExceptionally(cause);
        }
    }

    private void drop() {
        DistModule.dist_work_destroy(handle);
        handle = 0;
        replica.forget(this);
        Reference.reachabilityFence(used);
    }

    /** Called after the replica's function, when libdist has completed works that were left in progress. */
    void settle() {
        try {
            int[] done = new int[1];
            DistModule.dist_work_test(handle, done);
            end(null);
        } catch (DistException e) {
            end(e);
        }
    }

    /**
     * Returns whether the work has completed. On the replica's thread, it also does a part of the work if
     * there is one to do.
     */
    @Override
    public boolean isDone() {
        if (isMine()) {
            try {
                int[] done = new int[1];
                DistModule.dist_work_test(handle, done);
                if (done[0] != 0) {
                    end(null);
                }
            } catch (DistException e) {
                end(e);
            }
        }
        return super.isDone();
    }

    @Override
    public Void join() {
        if (isMine()) {
            await(Durations.NO_TIMEOUT_NANOS);
        }
        return super.join();
    }

    @Override
    public Void get() throws InterruptedException, ExecutionException {
        if (isMine()) {
            await(Durations.NO_TIMEOUT_NANOS);
        }
        return super.get();
    }

    /**
     * Same as {@link #get()}, with a timeout.
     *
     * @throws TimeoutException the timeout expired; the work continues, and you can wait for it again
     */
    @Override
    public Void get(long timeout, TimeUnit unit)
            throws InterruptedException, ExecutionException, TimeoutException {
        if (isMine()) {
            if (!await(Math.max(unit.toNanos(timeout), 0))) {
                throw new TimeoutException("the work is still in progress");
            }
        }
        return super.get(timeout, unit);
    }

    /**
     * Cancels the work, and with it all rounds of its group in this run, on every member. Only possible on
     * the replica's thread.
     *
     * @return false if it had completed, or this is another thread
     */
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        if (!isMine()) {
            return false;
        }
        DistModule.dist_work_cancel(handle);
        try {
            DistModule.dist_work_wait(handle, Durations.NO_TIMEOUT_NANOS);
        } catch (DistException e) {
            // CANCELLED: that is what was wanted
        }
        drop();
        return super.cancel(mayInterruptIfRunning);
    }

    /**
     * Waits until one of several works of this replica has completed, and returns it.
     *
     * @throws CompletionException as the join() method of that work
     * @throws CancellationException as the join() method of that work
     */
    public static Work anyOf(List<Work> works) {
        for (Work work : works) {
            if (work.isDone()) {
                return work;
            }
        }
        long[] handles = works.stream().mapToLong(work -> work.handle).toArray();
        long[] index = new long[1];
        DistException failure = null;
        works.get(0).replica.active("dist_work_wait_any");
        try {
            DistModule.dist_work_wait_any(handles, handles.length, Durations.NO_TIMEOUT_NANOS, index);
        } catch (DistException e) {
            failure = e;
        }
        Work ended = works.get((int) index[0]);
        ended.end(failure);
        return ended;
    }
}
