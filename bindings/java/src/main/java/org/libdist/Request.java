// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.BooleanSupplier;
import org.libdist.internal.DistModule;

/**
 * The future result of a function that one replica runs; see {@link Strategy#submit}. It completes when the
 * request has completed: with the result of the function, or exceptionally with the exception that it threw,
 * unchanged, or with a DistException of libdist.
 *
 * <p>Completing the future earlier cancels the request: {@link #cancel}, {@link #orTimeout}, {@link
 * #complete}. A queued request ends at once. If the function is running, {@link Replica#check} throws there,
 * and the replica is free when the function has returned. Cancelling a dependent future has no effect on the
 * request, as usual with CompletableFuture.
 *
 * @param <T> the type of the function's result
 */
public class Request<T> extends CompletableFuture<T> {
    private final Call<T> call;

    Request(Strategy strategy, ReplicaFunction<T> function, SubmitOptions options) {
        this(new Call<>(strategy, function, options.executor) {
            @Override
            void submit(Uses now, long token, long queue, long[] out) {
                options.call(now, now.of(strategy), token, queue, out);
            }
        });
    }

    Request(Call<T> call) {
        this.call = call;
        call.future = this;
        whenComplete((value, failure) -> call.cancel(null)); // no effect if it has completed
    }

    /** Passes the request to libdist. */
    Request<T> begin() {
        call.begin();
        return this;
    }

    /** The native request and its function, which complete the future. */
    abstract static class Call<T> extends RunCall {
        private final ReplicaFunction<T> function;
        private final Executor executor; // null: libdist's own thread
        private Request<T> future;
        private final Uses uses = new Uses(); // until its end
        private long token;
        private long work; // 0: it is not there, or has ended
        private boolean settled; // nothing of it is left
        private T value;
        private Throwable thrown;

        Call(Strategy strategy, ReplicaFunction<T> function, Executor executor) {
            super(strategy);
            this.function = function;
            this.executor = executor;
        }

        /** Makes the native call, which stores a handle in {@code out}. */
        abstract void submit(Uses now, long token, long queue, long[] out);

        final long work() {
            return work;
        }

        final void thrown(Throwable t) {
            thrown = t;
        }

        final synchronized void begin() { // it may end before its handle is here
            token = Upcalls.register(this);
            try (Uses now = new Uses()) {
                long queue = Completions.queue();
                long[] out = new long[1];
                uses.ofRun(strategy);
                submit(now, token, queue, out);
                work = out[0];
            } finally {
                if (work == 0) {
                    Upcalls.unregister(token);
                    uses.close();
                    settled = true; // for callers that have found it and wait for it
                }
            }
        }

        @Override
        void replica(long handle, int id, int numReplicas) throws Exception {
            try {
                value = asReplica(new Replica(strategy, handle, this, id, numReplicas), function::call);
            } catch (Throwable t) {
                thrown = t;
                throw t;
            }
        }

        @Override
        public synchronized void cancel(String reason) {
            if (work != 0) {
                DistModule.dist_request_cancel(work);
            }
        }

        final boolean hasEnded() {
            int[] out = new int[1];
            try {
                DistModule.dist_request_test(work, out);
            } catch (DistException e) { // how it has failed
                return true;
            }
            return out[0] != 0;
        }

        /**
         * If the request has completed, as far as this thread can see, waits until its arrival has been
         * processed, after which nothing of it remains.
         */
        final void await() {
            await(() -> work == 0 || hasEnded());
        }

        /** Same as {@link #await()}, for a request that libdist has reported as completed. */
        final void awaitArrival() {
            await(() -> true);
        }

        private void await(BooleanSupplier ends) {
            boolean interrupted = false;
            boolean taker = Completions.isTaker();
            while (true) {
                synchronized (this) {
                    if (settled || !ends.getAsBoolean()) {
                        break;
                    }
                    if (!taker) {
                        try {
                            wait();
                        } catch (InterruptedException e) {
                            interrupted = true;
                        }
                    }
                }
                if (taker) {
                    Completions.takeOne(0);
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }

        /** Processes the arrival of the completed request; {@code arrived} is a handle of its own. */
        void arrived(long arrived) {
            Throwable failure;
            synchronized (this) {
                failure = failureOf(arrived);
                DistModule.dist_request_destroy(arrived);
                DistModule.dist_request_destroy(work);
                work = 0;
            }
            settle();
            uses.close();
            Upcalls.unregister(token); // last, because closing the strategy must find it until then
            synchronized (this) {
                settled = true;
                notifyAll();
            }
            if (executor == null) {
                complete(failure);
                return;
            }
            try {
                executor.execute(() -> complete(failure));
            } catch (RuntimeException e) { // it is shut down, or full
                if (failure != null) {
                    e.addSuppressed(failure);
                }
                complete(e);
            }
        }

        private Throwable failureOf(long arrived) {
            try {
                DistModule.dist_request_wait(arrived, 0);
                return null;
            } catch (DistException report) {
                return thrown != null && !isTold(thrown) ? thrown : explained(cause(report));
            }
        }

        private void complete(Throwable failure) {
            if (failure == null) {
                future.complete(value);
            } else {
                future.completeExceptionally(failure);
            }
        }
    }
}
