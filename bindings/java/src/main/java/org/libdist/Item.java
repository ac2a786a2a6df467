// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import org.libdist.internal.DistModule;

/**
 * A request in a {@link Batcher}: a future of its completion, and a source of partial results.
 *
 * @param <R> the type of partial results
 */
public final class Item<R> extends Request<Void> {
    private final ItemCall<?, R> call;

    private Item(ItemCall<?, R> call) {
        super(call);
        this.call = call;
    }

    static <Q, R> Item<R> begin(Batcher<Q, R> batcher, Q input, ItemOptions options) {
        ItemCall<Q, R> call = new ItemCall<>(batcher, input, options);
        Item<R> item = new Item<>(call);
        call.begin();
        return item;
    }

    /** Waits for the next partial result; empty if there are no more. */
    public Optional<R> take() throws InterruptedException {
        return take(Duration.ofNanos(-1));
    }

    /**
     * Same as {@link #take()}, but also empty if there is no result in time.
     *
     * @param timeout zero means not to wait; a negative value means no limit
     */
    public Optional<R> take(Duration timeout) throws InterruptedException {
        return call.take(Durations.nanos(timeout, "timeout"));
    }

    /** A partial result or a state, which libdist knows by a token. */
    static final class Held extends Target {
        private final Object object;

        Held(Object object) {
            this.object = object;
        }

        static Object of(long token) {
            return token == 0 ? null : ((Held) Upcalls.target(token)).object;
        }
    }

    /** The native item, which completes the future and keeps its untaken results. */
    static final class ItemCall<Q, R> extends Request.Call<Void> {
        private final Batcher<Q, R> batcher;
        private final Q input;
        private final ItemOptions options;
        private final Queue<Object> left = new ArrayDeque<>(); // results that had not been taken on completion
        private boolean ends; // by Batch.end()

        ItemCall(Batcher<Q, R> batcher, Q input, ItemOptions options) {
            super(batcher.strategy(), null, options.executor);
            this.batcher = batcher;
            this.input = input;
            this.options = options;
        }

        Q input() {
            return input;
        }

        boolean ends() {
            return ends;
        }

        /** @param why null: well */
        void ends(Throwable why) {
            ends = true;
            thrown(why);
        }

        @Override
        void submit(Uses now, long token, long queue, long[] out) {
            options.call(now, now.of(batcher), token, queue, out);
        }

        private Object takeNative() {
            long[] out = new long[1];
            DistModule.dist_request_take(work(), 0, out);
            Object result = Held.of(out[0]);
            Upcalls.unregister(out[0]);
            return result;
        }

        @Override
        void arrived(long arrived) {
            boolean over;
            synchronized (this) {
                over = work() != 0 && hasEnded();
                if (over) {
                    for (Object result = takeNative(); result != null; result = takeNative()) {
                        left.add(result);
                    }
                } else { // results, or another arrival after completion
                    DistModule.dist_request_destroy(arrived);
                    notifyAll();
                }
            }
            if (over) {
                super.arrived(arrived);
            }
        }

        @SuppressWarnings("unchecked")
        synchronized Optional<R> take(long timeoutNanos) throws InterruptedException {
            long deadline = System.nanoTime() + timeoutNanos;
            while (true) {
                Object result = work() != 0 ? takeNative() : left.poll();
                if (result != null) {
                    return Optional.of((R) result);
                }
                long rest = timeoutNanos < 0 ? TimeUnit.SECONDS.toNanos(1) : deadline - System.nanoTime();
                if (work() == 0 || rest <= 0) {
                    return Optional.empty();
                }
                TimeUnit.NANOSECONDS.timedWait(this, Math.max(rest, TimeUnit.MILLISECONDS.toNanos(1)));
            }
        }
    }
}
