// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.floats;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Replicas on an executor's threads. */
final class ExecutorTest {
    private static final int REPLICAS = 3;

    private ExecutorTest() {}

    static void addTo(Tap tap) {
        tap.add("runs on an executor's threads", on(ExecutorTest::run));
        tap.add("runs on values on an executor's threads", on(ExecutorTest::run));
        tap.add("failures on an executor's threads", on(ExecutorTest::failures));
        tap.add("an executor that takes no more", on(ExecutorTest::rejected));
        tap.add("interrupts and deadlines on an executor", on(ExecutorTest::interrupted));
        tap.add("callers of an executor's runs take turns", on(ExecutorTest::turns));
    }

    private interface Test {
        void run(Strategy strategy, ExecutorService pool) throws Exception;
    }

    private static Tap.Test on(Test test) {
        return () -> {
            ExecutorService pool = Executors.newCachedThreadPool();
            try (Strategy strategy =
                            Strategy.create(StrategyOptions.DEFAULT.numReplicas(REPLICAS).executor(pool))) {
                test.run(strategy, pool);
                if (!pool.isShutdown()) {
                    BindingTest.usable(strategy);
                }
            } finally {
                pool.shutdownNow();
                check(pool.awaitTermination(60, TimeUnit.SECONDS));
            }
        };
    }

    private static void run(Strategy strategy, ExecutorService pool) {
        AtomicInteger calls = new AtomicInteger();
        for (int i = 0; i < 20; i++) {
            strategy.run(replica -> {
                check(Thread.currentThread().getName().startsWith("pool-"), Thread.currentThread());
                calls.incrementAndGet();
                Tensor one = copyOf(new float[] {1});
                Work work = replica.async().allReduce(ReduceOp.SUM, List.of(one), CollectiveOptions.DEFAULT);
                if (replica.id() == 0) {
                    work.join(); // the others leave it to the run's end
                }
            });
        }
        equal(20 * REPLICAS, calls.get());
        equal(Status.FAILED_PRECONDITION,
                thrown(DistException.class, () -> strategy.run(replica -> strategy.run(inner -> {})))
                        .status());
        equal(Status.FAILED_PRECONDITION,
                thrown(DistException.class, () -> strategy.run(replica -> strategy.close())).status());
    }

    private static void values(Strategy strategy, ExecutorService pool) throws IOException {
        Value per =
                Value.fromFunction(strategy, (r, n) -> Value.createTensor(strategy, copyOf(new float[] {r})));
        Value both = Value.createTensor(strategy, copyOf(new float[] {10}));
        Value named = Value.createDict(strategy, Map.of("x", Value.createList(strategy, List.of(per, both))));
        Value result = strategy.run((replica, args, kwargs) -> {
            equal(2, args.size());
            floats(args.item(0).tensor(), replica.id()); // its own component, at any depth
            floats(kwargs.get("x").item(0).tensor(), replica.id());
            Tensor sum = copyOf(new float[] {args.item(0).tensor().floats().get(0)});
            replica.allReduce(ReduceOp.SUM, sum);
            floats(sum, 3);
            return Value.createTuple(strategy, args.item(0), args.item(1), Value.createTensor(strategy, sum));
        }, Value.createTuple(strategy, per, both), named, RunOptions.DEFAULT);
        equal(ValueKind.TUPLE, result.kind());
        equal(ValueKind.PER_REPLICA, result.item(0).kind());
        floats(result.item(0).item(2).tensor(), 2);
        equal(both, result.item(1)); // the same on all replicas: as it is
        equal(null, strategy.run((replica, args, kwargs) -> {
            check(args == null && kwargs == null, args, kwargs);
            return null;
        }, null));
        Value some = strategy.run(
                (replica, args, kwargs) -> replica.id() == 1 ? args.item(0).retain() : null, both);
        equal(ValueKind.NONE, some.item(0).kind());
        equal(Status.INVALID_ARGUMENT,
                thrown(DistException.class,
                        () -> strategy.run(
                                        (replica, args, kwargs)
                                                -> replica.id() == 1 ? args.item(0).retain() : named,
                                        both))
                        .status());
        IOException own = new IOException("row 7");
        check(own == thrown(IOException.class, () -> strategy.run((replica, args, kwargs) -> {
            if (replica.id() == 2) {
                throw own;
            }
            return args.item(0).retain();
        }, both)));
        int rows = 0;
        Dataset dataset = Dataset.fromTensors(
                strategy, List.of(copyOf(new float[12])), DatasetOptions.DEFAULT.globalBatchSize(6));
        for (Value batch : dataset) {
            rows += Tensors.toInts(
                    strategy.reduce(ReduceOp.SUM,
                                    strategy.run((replica, args, kwargs) -> Value.createTensor(strategy,
                                                                       copyOf(new int[] {(int) args.item(0)
                                                                                                 .tensor()
                                                                                                 .size()},
                                                                               1)),
                                            batch))
                            .tensor())[0];
        }
        equal(12, rows);
    }

    private static void failures(Strategy strategy, ExecutorService pool) {
        IOException own = new IOException("replica 1's");
        IOException seen = thrown(IOException.class, () -> strategy.run(replica -> {
            if (replica.id() == 1) {
                throw own;
            }
            replica.barrier();
        }));
        check(own == seen, seen);
        BindingTest.usable(strategy);
        thrown(AssertionError.class, () -> strategy.run(replica -> { throw new AssertionError(); }));
    }

    private static void rejected(Strategy strategy, ExecutorService pool) {
        pool.shutdown();
        thrown(RejectedExecutionException.class, () -> strategy.run(replica -> replica.barrier()));
        AtomicInteger taken = new AtomicInteger();
        StrategyOptions half = StrategyOptions.DEFAULT.numReplicas(REPLICAS).executor(task -> {
            if (taken.getAndIncrement() == 1) {
                throw new RejectedExecutionException("the second");
            }
            new Thread(task).start();
        });
        try (Strategy other = Strategy.create(half)) {
            equal("the second",
                    thrown(RejectedExecutionException.class, () -> other.run(Replica::barrier)).getMessage());
            BindingTest.usable(other);
        }
    }

    private static void interrupted(Strategy strategy, ExecutorService pool) throws Exception {
        CountDownLatch waiting = new CountDownLatch(REPLICAS - 1);
        Throwable[] seen = new Throwable[1];
        Thread runner = new Thread(() -> {
            seen[0] = thrown(DistException.class, () -> strategy.run(replica -> {
                if (replica.id() == 0) {
                    waiting.await();
                    Thread.currentThread().interrupt(); // as an executor does that is shut down
                }
                waiting.countDown();
                replica.barrier();
                replica.barrier();
            }));
        });
        runner.start();
        runner.join();
        equal(Status.CANCELLED, ((DistException) seen[0]).status());
        check(seen[0].getCause() instanceof InterruptedException, seen[0].getCause());
        BindingTest.usable(strategy);
        CountDownLatch late = new CountDownLatch(1);
        DistException over = thrown(DistException.class, () -> strategy.run(replica -> {
            if (replica.id() == 1) {
                late.await();
            }
        }, RunOptions.DEFAULT.timeout(Duration.ofMillis(20))));
        equal(Status.DEADLINE_EXCEEDED, over.status());
        check(over.getMessage().contains("replicas 1") || over.getMessage().contains(", 1"), over);
        late.countDown();
    }

    private static void turns(Strategy strategy, ExecutorService pool) throws Exception {
        CountDownLatch entered = new CountDownLatch(REPLICAS);
        CountDownLatch go = new CountDownLatch(1);
        Future<?> first = pool.submit(() -> {
            strategy.run(replica -> {
                entered.countDown();
                go.await();
            });
            return null;
        });
        entered.await();
        DistException over = thrown(DistException.class,
                () -> strategy.run(replica -> {}, RunOptions.DEFAULT.timeout(Duration.ofMillis(10))));
        equal(Status.DEADLINE_EXCEEDED, over.status());
        Throwable[] seen = new Throwable[1];
        Thread queued =
                new Thread(() -> seen[0] = thrown(DistException.class, () -> strategy.run(replica -> {})));
        queued.start();
        queued.interrupt();
        queued.join(); // though the first is still under way
        equal(Status.CANCELLED, ((DistException) seen[0]).status());
        go.countDown();
        first.get();
    }
}
