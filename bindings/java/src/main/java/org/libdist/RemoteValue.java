// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.libdist.internal.DistModule;

/**
 * What a call comes to, later: see {@link RpcClient#begin(String, Value...)}; or a closure, see {@link
 * Coordinator#schedule(String, Value)}. Any thread may ask, and again. A call that nobody has any more is given up; a
 * closure goes on.
 */
public final class RemoteValue extends NativeObject {
    /** How soon a thread that waits sees that it was interrupted. */
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

    /** Of a closure. */
    RemoteValue(long handle, Coordinator coordinator) {
        this(handle, coordinator, false);
    }

    /** Waits for what the call comes to: its value, the caller's, or its error. */
    public Value get() {
        return ask(handle -> await(handle, Long.MAX_VALUE));
    }

    /**
     * As {@link #get()}, for so long: zero is not at all, negative is without limit. An interrupt ends the wait, with
     * CANCELLED; the call goes on.
     *
     * @throws DistException DEADLINE_EXCEEDED not within the time, and the call goes on; or not within the call's own
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
                String what = "the thread that waits was interrupted; the call goes on";
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

    /** Whether get() would not wait. */
    public boolean ready() {
        return askInt(DistModule::dist_remote_value_ready) != 0;
    }

    /**
     * Ends the call with CANCELLED, unless it has ended, and tells the method. A closure is taken back where no worker has
     * it; one that runs has its effects, and CANCELLED is what get() says of it.
     */
    public void cancel() {
        ask(handle -> {
            DistModule.dist_remote_value_cancel(handle);
            return null;
        });
    }

    /**
     * The same as a future, whose stages run in the common pool. Its value is the program's to close. Cancelling it is
     * {@link #cancel}; a call ends when this object is closed, or the client, too.
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

        /** Completes it where the call has ended. */
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
                DistModule.dist_remote_value_cancel(handle); // nothing where it has ended
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

    /** Gives it up, and with it a call that is under way: who waits for that gets CANCELLED. A closure goes on. */
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
