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
 * A collective that is under way; its tensors are libdist's until it has ended. On the thread of the replica
 * that began it get(), join() and isDone() do their part of the work and see its end; on other threads they
 * wait for that. Stages (thenRun() and its like) run when the replica's thread has seen the end, at the
 * latest when its function returns. A work that failed completes with the DistException, which is also the
 * replica's failure.
 */
public final class Work extends CompletableFuture<Void> {
    private final Replica replica;
    private final Object used; // tensors and functions, until the end
    private final Target reducer; // null: none
    private long handle; // 0: ended

    Work(Replica replica, long handle, Object used, Target reducer) {
        this.replica = replica;
        this.handle = handle;
        this.used = used;
        this.reducer = reducer;
    }

    private boolean isMine() {
        return handle != 0 && replica.isHere();
    }

    private void await(long timeoutNanos) {
        try {
            DistModule.dist_work_wait(handle, timeoutNanos);
            end(null);
        } catch (DistException e) {
            end(e);
        }
    }

    private void end(DistException failure) {
        drop();
        Throwable cause = failure;
        if (reducer != null) {
            try {
                reducer.check();
            } catch (Throwable t) {
                cause = t;
            }
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

    /** After the replica's function, when libdist has brought to its end what was left. */
    void settle() {
        try {
            int[] done = new int[1];
            DistModule.dist_work_test(handle, done);
            end(null);
        } catch (DistException e) {
            end(e);
        }
    }

    /** Asks whether it has ended. */
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
            await(0);
        }
        return super.join();
    }

    @Override
    public Void get() throws InterruptedException, ExecutionException {
        if (isMine()) {
            await(0);
        }
        return super.get();
    }

    /**
     * As {@link #get()}. On the replica's thread a peer that does not come in time ends the work, and the
     * group's rounds of this run with it: that is an ExecutionException with DEADLINE_EXCEEDED.
     */
    @Override
    public Void get(long timeout, TimeUnit unit)
            throws InterruptedException, ExecutionException, TimeoutException {
        if (isMine()) {
            await(Math.max(unit.toNanos(timeout), 1));
        }
        return super.get(timeout, unit);
    }

    /**
     * Ends it, and with it all rounds of its group in this run, on every member. Only on the replica's
     * thread.
     *
     * @return false: it had ended, or this is another thread
     */
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        if (!isMine()) {
            return false;
        }
        DistModule.dist_work_cancel(handle);
        try {
            DistModule.dist_work_wait(handle, 0);
        } catch (DistException e) {
            // CANCELLED: that is what was wanted
        }
        drop();
        return super.cancel(mayInterruptIfRunning);
    }

    /**
     * Waits until one of several works of this replica has ended, and gives it.
     *
     * @throws CompletionException as that work's join()
     * @throws CancellationException as that work's join()
     */
    public static Work any(List<Work> works) {
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
            DistModule.dist_work_wait_any(handles, handles.length, 0, index);
        } catch (DistException e) {
            failure = e;
        }
        Work ended = works.get((int) index[0]);
        ended.end(failure);
        return ended;
    }
}
