// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.libdist.internal.DistModule;

/**
 * The future result of a call, see {@link RpcClient#begin(String, Value...)}, or of a closure, see {@link
 * Coordinator#schedule(String, Value)}. Any thread may ask for it, repeatedly. Closing the last reference to
 * a call cancels it; a closure continues.
 */
public final class RemoteValue extends NativeObject {
    /** How often a waiting thread checks whether it was interrupted. */
    private static final long GLANCE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final Object from; // a client or a coordinator: its end would be that of the call
    private final boolean isCall;

    private RemoteValue(long handle, Object from, boolean isCall) {
        super(new Native("remote value", handle, DistModule::dist_remote_value_release));
        this.from = from;
        this.isCall = isCall;
    }

    RemoteValue(long handle, RpcClient client) {
        this(handle, client, true);
    }

    /** Creates the remote value of a closure. */
    RemoteValue(long handle, Coordinator coordinator) {
        this(handle, coordinator, false);
    }

    /** Waits until the call has completed. Returns its value, which the caller owns, or throws its error. */
    public Value get() {
        return ask(handle -> await(handle, Long.MAX_VALUE));
    }

    /**
     * Same as {@link #get()}, with a timeout: zero means not to wait, and a negative value means no limit. An
     * interrupt ends the wait with CANCELLED; the call continues.
     *
     * @throws DistException DEADLINE_EXCEEDED not completed within the timeout (the call continues), or
     *         within the call's own timeout
     */
    public Value get(Duration timeout) {
        long given = Durations.nanos(timeout, "timeout");
        long nanos = given < 0 ? Long.MAX_VALUE : given;
        return ask(handle -> await(handle, nanos));
    }

    private static Value await(long handle, long nanos) {
        long begun = System.nanoTime();
        long[] out = new long[1];
        for (long left = nanos;; left = nanos - (System.nanoTime() - begun)) {
            boolean ready = DistModule.dist_remote_value_ready(handle) != 0;
            if (!ready && left > 0 && Thread.currentThread().isInterrupted()) {
                String what = "the waiting thread was interrupted. The call continues to run.";
                throw new DistException(Status.CANCELLED, what, new InterruptedException(what));
            }
            try {
                DistModule.dist_remote_value_get(handle, Math.max(Math.min(left, GLANCE_NANOS), 0), out);
                return Value.taken(out[0]);
            } catch (DistException e) {
                if (ready || left <= GLANCE_NANOS || e.status() != Status.DEADLINE_EXCEEDED) {
                    throw e;
                }
            }
        }
    }

    /** Returns whether get() would return without waiting. */
    public boolean isDone() {
        return askInt(DistModule::dist_remote_value_ready) != 0;
    }

    /**
     * Cancels the call, unless it has completed, and notifies the method; get() then fails with CANCELLED. A
     * closure is cancelled if no worker has it yet. A running closure continues and has its effects, but
     * get() fails with CANCELLED.
     */
    public void cancel() {
        ask(handle -> {
            DistModule.dist_remote_value_cancel(handle);
            return null;
        });
    }

    /**
     * Returns the result as a future, whose stages run in the common pool. The program must close its value.
     * Cancelling the future is like {@link #cancel}. A call is also cancelled when this object or the client
     * is closed.
     */
    public CompletableFuture<Value> future() {
        return ask(handle -> {
            Future future = new Future(DistModule.dist_remote_value_retain(handle), from);
            Polls.add(future::isOver);
            return future;
        });
    }

    private static final class Future extends CompletableFuture<Value> {
        private final Object from; // as above
        private long handle; // 0: over

        Future(long handle, Object from) {
            this.handle = handle;
            this.from = from;
        }

        /** Completes the future if the call has completed. */
        private synchronized boolean isOver() {
            if (isDone()) {
                drop();
            } else if (DistModule.dist_remote_value_ready(handle) != 0) {
                defaultExecutor().execute(this::complete);
            } else {
                return false;
            }
            return true;
        }

        private void complete() {
            long[] out = new long[1];
            try {
                DistModule.dist_remote_value_get(handle, 0, out);
                Value value = Value.taken(out[0]);
                if (!complete(value)) {
                    value.close();
                }
            } catch (Throwable t) {
                completeExceptionally(t);
            }
            drop();
        }

        private synchronized void drop() {
            if (isCancelled()) {
                DistModule.dist_remote_value_cancel(handle); // no effect if it has completed
            }
            DistModule.dist_remote_value_release(handle);
            handle = 0;
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            // The future first: the call's end would complete it.
            boolean cancelled = super.cancel(mayInterruptIfRunning);
            synchronized (this) {
                if (cancelled && handle != 0) {
                    DistModule.dist_remote_value_cancel(handle);
                }
            }
            return cancelled;
        }
    }

    /**
     * Closes the remote value. It cancels a call in progress: threads that wait for it get CANCELLED. A
     * closure continues.
     */
    @Override
    public void close() {
        if (isCall && !owner.isClosed()) {
            try {
                cancel();
            } catch (DistException e) {
                // another thread has closed it
            }
        }
        super.close();
    }
}
