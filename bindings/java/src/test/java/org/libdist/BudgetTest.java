// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;

/** Budgets that strategies share, and loops on an executor's threads. */
final class BudgetTest {
    private static final int LENGTH = 1 << 13;

    private BudgetTest() {}

    static void addTo(Tap tap) {
        tap.add("a budget of one lets one in", withPool(BudgetTest::one));
        tap.add("who waits for a budget has a deadline", withPool(BudgetTest::deadline));
        tap.add("wrong budgets", BudgetTest::wrongBudgets);
        tap.add("loops on an executor's threads", withPool(BudgetTest::shared));
        tap.add("what a loop throws on an executor's thread", withPool(BudgetTest::failure));
        tap.add("executors that refuse tasks", withPool(BudgetTest::refusals));
        tap.add("tasks that come when all is over", BudgetTest::late);
        tap.add("wrong executors", BudgetTest::wrongExecutors);
        tap.add("threads of the program's that are helped", BudgetTest::helped);
    }

    private interface Test {
        void run(ExecutorService pool) throws Exception;
    }

    private static Tap.Test withPool(Test test) {
        return () -> {
            ExecutorService pool = Executors.newCachedThreadPool();
            try {
                test.run(pool);
            } finally {
                pool.shutdownNow();
                check(pool.awaitTermination(60, TimeUnit.SECONDS));
            }
        };
    }

    private static StrategyOptions replicas(int replicas) {
        return StrategyOptions.DEFAULT.numReplicas(replicas);
    }

    private static void one(ExecutorService pool) throws Exception {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        AtomicInteger runs = new AtomicInteger();
        List<Strategy> strategies = new ArrayList<>();
        try (Budget budget = Budget.create(1)) { // the strategies keep it
            strategies.add(Strategy.create(replicas(1).budget(budget)));
            strategies.add(Strategy.create(replicas(1).budget(budget)));
        }
        List<Future<?>> callers = new ArrayList<>();
        for (Strategy strategy : strategies) {
            callers.add(pool.submit(() -> {
                for (int i = 0; i < 200; i++) {
                    strategy.run(replica -> {
                        most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                        Thread.yield();
                        runs.incrementAndGet();
                        inside.decrementAndGet();
                    });
                }
            }));
        }
        for (Future<?> caller : callers) {
            caller.get();
        }
        equal(1, most.get());
        equal(400, runs.get());
        strategies.forEach(Strategy::close);
    }

    private static void deadline(ExecutorService pool) throws Exception {
        CountDownLatch inside = new CountDownLatch(1);
        CountDownLatch over = new CountDownLatch(1);
        try (Budget budget = Budget.create(1); Strategy first = Strategy.create(replicas(1).budget(budget));
                Strategy second = Strategy.create(replicas(1).budget(budget))) {
            Future<?> holder = pool.submit(() -> {
                first.run(replica -> {
                    inside.countDown();
                    over.await();
                });
                return null;
            });
            inside.await();
            DistException late = thrown(DistException.class,
                    () -> second.run(replica -> {}, RunOptions.DEFAULT.timeout(Duration.ofMillis(1))));
            equal(Status.DEADLINE_EXCEEDED, late.status());
            check(late.getMessage().contains("of the budget's 1 threads"), late);
            over.countDown();
            holder.get();
            second.run(replica -> {});
        }
    }

    private static void wrongBudgets() {
        for (int threads : new int[] {0, -1, 65537}) {
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class, () -> Budget.create(threads)).status());
        }
        Budget budget = Budget.create(1);
        budget.close();
        budget.close();
        equal(Status.FAILED_PRECONDITION,
                thrown(DistException.class, () -> Strategy.create(replicas(1).budget(budget))).status());
    }

    /** Each index of a loop once, on each replica. */
    private static void loop(Strategy strategy) {
        strategy.run(replica -> {
            AtomicIntegerArray marks = new AtomicIntegerArray(LENGTH);
            replica.parallelFor(0, LENGTH, 64, (begin, end) -> {
                for (long i = begin; i < end; i++) {
                    marks.incrementAndGet((int) i);
                }
            });
            for (int i = 0; i < LENGTH; i++) {
                equal(1, marks.get(i));
            }
        });
    }

    private static void meet(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (InterruptedException | BrokenBarrierException e) {
            throw new AssertionError(e);
        }
    }

    private static void shared(ExecutorService pool) {
        try (Strategy strategy = Strategy.create(replicas(2).loopExecutor(pool, 3))) {
            for (int i = 0; i < 20; i++) {
                loop(strategy);
            }
        }
        CyclicBarrier both = new CyclicBarrier(2);
        AtomicInteger helped = new AtomicInteger();
        try (Strategy strategy = Strategy.create(replicas(1).loopExecutor(pool, 1))) {
            strategy.run(replica -> replica.parallelFor(0, 2, 1, (begin, end) -> {
                if (Thread.currentThread().getName().startsWith("pool-")) {
                    helped.incrementAndGet();
                }
                meet(both); // each part waits for the other: on two threads
            }));
        }
        equal(1, helped.get());
    }

    private static void failure(ExecutorService pool) {
        CyclicBarrier both = new CyclicBarrier(2);
        try (Strategy strategy = Strategy.create(replicas(1).loopExecutor(pool, 1))) {
            ArithmeticException thrown = thrown(ArithmeticException.class,
                    () -> strategy.run(replica -> replica.parallelFor(0, 2, 1, (begin, end) -> {
                        meet(both);
                        throw new ArithmeticException("a part");
                    })));
            equal("a part", thrown.getMessage());
            loop(strategy);
        }
    }

    private static void refusals(ExecutorService pool) {
        Queue<Runnable> kept = new ConcurrentLinkedQueue<>();
        List<Executor> executors = List.of(
                task -> { throw new RejectedExecutionException(); },
                task -> { throw new StackOverflowError(); },
                Runnable::run,
                task -> {
                    task.run();
                    task.run();
                    throw new IllegalStateException();
                },
                task -> { // a mistake, which does no harm
                    kept.add(task);
                    throw new RejectedExecutionException();
                });
        for (Executor executor : executors) {
            AtomicInteger asked = new AtomicInteger();
            try (Strategy strategy = Strategy.create(replicas(2).loopExecutor(task -> {
                asked.incrementAndGet();
                executor.execute(task);
            }, 5))) {
                loop(strategy);
            }
            check(asked.get() > 0);
        }
        check(!kept.isEmpty());
        kept.forEach(Runnable::run);
        try (Strategy strategy = Strategy.create(replicas(2).loopExecutor(pool, 5))) {
            pool.shutdown();
            loop(strategy);
        }
    }

    private static void late() {
        Queue<Runnable> kept = new ConcurrentLinkedQueue<>();
        long before = Upcalls.lastToken();
        try (Strategy strategy = Strategy.create(replicas(2).loopExecutor(kept::add, 2))) {
            loop(strategy);
        }
        equal(0, Upcalls.sizeSince(before));
        check(!kept.isEmpty());
        kept.forEach(Runnable::run);
    }

    private static void wrongExecutors() {
        for (int threads : new int[] {0, -1, 65536}) {
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class,
                            () -> Strategy.create(replicas(1).loopExecutor(Runnable::run, threads)))
                            .status());
        }
        thrown(NullPointerException.class, () -> StrategyOptions.DEFAULT.loopExecutor(null, 1));
    }

    private static void helped() {
        try (Strategy strategy =
                        Strategy.create(replicas(1).threads(ReplicaThreads.HOST).helperThreads(true))) {
            strategy.enter(0, replica -> {
                AtomicInteger sum = new AtomicInteger();
                replica.parallelFor(0, LENGTH, 64, (begin, end) -> sum.addAndGet((int) (end - begin)));
                equal(LENGTH, sum.get());
            });
        }
    }
}
