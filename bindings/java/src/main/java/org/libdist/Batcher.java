// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.libdist.internal.DistModule;

/**
 * Collects requests, called items, and processes several of them together in steps.
 *
 * @param <Q> the type of submitted requests
 * @param <R> the type of partial results
 */
public final class Batcher<Q, R> extends NativeObject {
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final Strategy strategy;

    private Batcher(Native owner, Strategy strategy) {
        super(owner);
        this.strategy = strategy;
    }

    /**
     * Creates a batcher whose steps run on the strategy's instances. If the instances have never been opened,
     * it opens them like {@link Strategy#openInstances}. Close the batcher before the strategy.
     *
     * @param <Q> the type of submitted requests
     * @param <R> the type of partial results
     */
    public static <Q, R> Batcher<Q, R> create(
            Strategy strategy, StepFunction<Q, R> step, BatcherOptions options) {
        Objects.requireNonNull(step, "step");
        Objects.requireNonNull(options, "options");
        Steps<Q, R> steps = new Steps<>(step);
        long token = Upcalls.register(steps);
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            DistModule.dist_batcher_create(uses.of(strategy, "strategy"), token, options.toNative(uses), out);
        } finally {
            if (out[0] == 0) {
                Upcalls.unregister(token);
            }
        }
        return new Batcher<>(new Native("batcher", out[0], handle -> {
            DistModule.dist_batcher_destroy(handle);
            Upcalls.unregister(token);
        }), strategy);
    }

    /** The functions of a batcher, which libdist knows by a token. */
    private static final class Steps<Q, R> extends Target {
        private final StepFunction<Q, R> function;

        Steps(StepFunction<Q, R> function) {
            this.function = function;
        }

        @Override
        void step(long handle, long members) throws Exception {
            Replica replica = new Replica(Strategy.known(DistModule.dist_replica_strategy(handle)), handle, null);
            Batch<Q, R> batch = new Batch<>(members);
            Replica outer = replica.begin();
            try {
                function.call(replica, batch);
            } catch (Throwable t) {
                for (int i = 0; i < batch.size(); i++) {
                    if (!batch.item(i).ends()) {
                        batch.item(i).thrown(t);
                    }
                }
                throw t;
            } finally {
                replica.end(outer);
                batch.end();
            }
        }

        @Override
        void keep(Throwable t) {} // its items have it
    }

    Strategy strategy() {
        return strategy;
    }

    /** Same as {@link #submit(Object, ItemOptions)}, with priority 0 and no deadline. */
    public Item<R> submit(Q input) {
        return submit(input, ItemOptions.DEFAULT);
    }

    /**
     * Enqueues an item and returns immediately. Fails as {@link Strategy#submit} does.
     *
     * @param input returned by {@link Batch#input}
     */
    public Item<R> submit(Q input, ItemOptions options) {
        Objects.requireNonNull(input, "input");
        return Item.begin(this, input, Objects.requireNonNull(options, "options"));
    }

    private long count(int which) {
        return ask(handle -> {
            long[][] out = {new long[1], new long[1]};
            DistModule.dist_batcher_count(handle, out[0], out[1]);
            return out[which][0];
        });
    }

    /** Returns the number of waiting items. */
    public long numWaiting() {
        return count(0);
    }

    /** Returns the number of items on instances. */
    public long numActive() {
        return count(1);
    }

    /**
     * Closes a batcher that has no items. Close it before its strategy.
     *
     * @throws DistException FAILED_PRECONDITION items have not completed; the batcher remains usable
     */
    @Override
    public void close() {
        long begun = System.nanoTime();
        while (true) {
            try {
                super.close();
                return;
            } catch (DistException e) {
                if (numWaiting() + numActive() > 0 || System.nanoTime() - begun > PATIENCE_NANOS) {
                    throw e;
                }
                awaitArrivals();
            }
        }
    }

    /** Waits, after all items have completed, until their last arrivals have been processed. */
    private static void awaitArrivals() {
        if (Completions.isTaker()) {
            Completions.takeOne(0);
        } else {
            Thread.yield();
        }
    }
}
