// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.io.IOException;
import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;

/** Functions that throw, interrupts, collectors: nothing is lost, and the strategy goes on to work. */
final class FailureTest {
    private static final CollectiveOptions NONE = CollectiveOptions.DEFAULT;

    private FailureTest() {}

    static void addTo(Tap tap) {
        tap.add("exceptions and stack overflows in every kind of function", FailureTest::everyFunctionThrows);
        tap.add("all replicas throw", FailureTest::allThrow);
        tap.add("64 replicas", FailureTest::manyReplicas);
        tap.add("an interrupt cancels a run", FailureTest::interrupt);
        tap.add("an interrupt of one run does not reach the next", FailureTest::interruptsStay);
        tap.add("an interrupt ends a run that waits for another, at once", FailureTest::queuedInterrupt);
        tap.add("a cancel object ends what was begun with it alone", FailureTest::cancelObject);
        tap.add("a timed close ends a strategy whose replica is stuck", FailureTest::shutDown);
        tap.add("a peer's report has what was thrown as its cause", FailureTest::causes);
        tap.add("garbage collection under load", FailureTest::collectUnderLoad);
        tap.add("strategies, groups and plans that are only dropped", FailureTest::dropped);
    }

    private static int descend(int depth) {
        return descend(depth + 1) + 1;
    }

    private static Value overflow() {
        descend(0);
        return null;
    }

    private static void everyFunctionThrows() {
        try (Strategy strategy = Strategy.create(2)) {
            Variable variable = Variable.create(strategy, "w", Tensors.scalar(1f));
            Value args = Value.createTuple(strategy);
            Tap.Test[] overflows = {
                    () -> strategy.run((replica, a, b) -> overflow(), args),
                    () -> strategy.run(replica -> replica.mergeCall((s, a, k) -> overflow(), null, null, NONE)),
                    () -> variable.update(strategy, (place, a, b) -> overflow(), args),
                    () -> variable.update(strategy, (place, a, b) -> overflow(), args, null,
                                    UpdateOptions.DEFAULT.parallel(true)),
                    () -> strategy.updateNonSlot((place, a, b) -> overflow(), args, null, UpdateOptions.DEFAULT),
                    () -> strategy.run(replica -> variable.update(replica, (place, a, b) -> overflow(), null)),
                    () -> Value.fromFunction(strategy, (replica, n) -> overflow()),
                    () -> Variable.create(strategy, () -> overflow(), VariableOptions.DEFAULT),
                    () -> Dataset.fromSource(strategy, index -> overflow(), DatasetOptions.DEFAULT)
                                       .iterator()
                                       .next(),
                    () -> Dataset.fromFiles(strategy, List.of("a"),
                                              (f, n, i) -> overflow(), DatasetOptions.DEFAULT)
                                       .iterator()
                                       .hasNext(),
                    () -> Dataset.fromFunction(strategy,
                                    context -> {
                                        overflow();
                                        return null;
                                    },
                                    DatasetOptions.DEFAULT),
                    () -> strategy.run(replica -> replica.parallelFor(0, 100, 1, (begin, end) -> overflow())),
            };
            for (Tap.Test call : overflows) {
                thrown(StackOverflowError.class, call);
                BindingTest.usable(strategy);
            }
            IOException bad = new IOException() {
                private static final long serialVersionUID = 1;

                @Override
                public String toString() {
                    throw new IllegalStateException("not even its text");
                }
            };
            check(thrown(IOException.class, () -> strategy.run(replica -> { throw bad; })) == bad);
            AssertionError own = new AssertionError("an Error too");
            check(thrown(AssertionError.class, () -> strategy.run(replica -> {
                if (replica.id() == 1) {
                    throw own;
                }
                replica.barrier();
            })) == own);
            DistException chosen = new DistException(Status.DATA_LOSS, "chosen", null);
            check(thrown(DistException.class, () -> strategy.run(replica -> { throw chosen; })) == chosen);
            BindingTest.usable(strategy);
        }
    }

    private static void allThrow() {
        try (Strategy strategy = Strategy.create(4)) {
            IOException seen = thrown(IOException.class, () -> strategy.run(replica -> {
                replica.barrier();
                throw new IOException("replica " + replica.id());
            }));
            equal(3, seen.getSuppressed().length);
            BindingTest.usable(strategy);
        }
    }

    private static void manyReplicas() {
        try (Strategy strategy = Strategy.create(64)) {
            for (int round = 0; round < 3; round++) {
                strategy.run(replica -> {
                    Tensor one = copyOf(new int[] {1});
                    replica.allReduce(ReduceOp.SUM, one);
                    equal(64, one.ints().get(0));
                });
                thrown(IOException.class, () -> strategy.run(replica -> {
                    if (replica.id() == 63) {
                        throw new IOException();
                    }
                    replica.barrier();
                }));
            }
        }
    }

    private static void interrupt() throws InterruptedException {
        for (boolean caller : new boolean[] {true, false}) {
            try (Strategy strategy = BindingTest.strategy(3, caller)) {
                CountDownLatch waiting = new CountDownLatch(2);
                CountDownLatch ended = new CountDownLatch(2);
                Throwable[] seen = new Throwable[1];
                AtomicBoolean still = new AtomicBoolean();
                Thread runner = new Thread(() -> {
                    seen[0] = thrown(DistException.class, () -> strategy.run(replica -> {
                        if (replica.id() == 2) {
                            ended.await(); // never joins the barrier that the others are in
                            return;
                        }
                        waiting.countDown();
                        try {
                            replica.barrier();
                        } finally {
                            ended.countDown();
                        }
                    }));
                    still.set(Thread.interrupted());
                });
                runner.start();
                waiting.await();
                runner.interrupt();
                runner.join();
                equal(Status.CANCELLED, ((DistException) seen[0]).status());
                check(still.get());
                BindingTest.usable(strategy);
                Thread.currentThread().interrupt();
                equal(Status.CANCELLED,
                        thrown(DistException.class, () -> strategy.run(replica -> {})).status());
                check(Thread.interrupted());
            }
        }
    }

    private static void interruptsStay() {
        for (boolean caller : new boolean[] {true, false}) {
            try (Strategy strategy = BindingTest.strategy(3, caller)) {
                Tap.Test[] interrupting = {
                        () -> strategy.run(replica -> interruptSelf(replica.id() > 0)),
                        () -> strategy.run(
                                        (replica, args, kwargs) -> {
                                            interruptSelf(replica.id() > 0);
                                            return null;
                                        },
                                        null),
                        () -> strategy.run(replica -> {
                            if (replica.id() == 2) {
                                replica.parallelFor(0, 1, 1, (begin, end) -> interruptSelf(true));
                                check(Thread.currentThread().isInterrupted()); // within the function it stays
                            }
                        }),
                };
                for (Tap.Test run : interrupting) {
                    try {
                        run.run();
                    } catch (Exception e) {
                        throw new AssertionError(e);
                    }
                    BindingTest.usable(strategy);
                    check(!Thread.interrupted());
                }
                thrown(IllegalStateException.class, () -> strategy.run(replica -> {
                    interruptSelf(replica.id() == 1);
                    throw new IllegalStateException();
                }));
                BindingTest.usable(strategy);
            }
        }
    }

    /** Runs `calls` while another thread's run is under way, which must end well. */
    private static void behind(Strategy strategy, Tap.Test calls) throws Exception {
        CountDownLatch entered = new CountDownLatch(strategy.numReplicas());
        CountDownLatch go = new CountDownLatch(1);
        FutureTask<Void> first = new FutureTask<>(() -> {
            strategy.run(replica -> {
                entered.countDown();
                go.await();
                replica.barrier();
            });
            return null;
        });
        new Thread(first).start();
        entered.await();
        try {
            calls.run();
            check(!first.isDone());
        } finally {
            go.countDown();
            first.get();
        }
        BindingTest.usable(strategy);
    }

    private static void queuedInterrupt() throws Exception {
        for (boolean caller : new boolean[] {true, false}) {
            try (Strategy strategy = BindingTest.strategy(2, caller)) {
                behind(strategy, () -> {
                    ExecutorService pool = Executors.newSingleThreadExecutor();
                    for (int i = 0; i < 2; i++) {
                        FutureTask<DistException> seen = new FutureTask<>(() -> {
                            DistException e = thrown(DistException.class, () -> strategy.run(replica -> {}));
                            check(Thread.interrupted());
                            return e;
                        });
                        CountDownLatch begun = new CountDownLatch(1);
                        Future<?> task = pool.submit(() -> {
                            begun.countDown();
                            seen.run();
                        });
                        begun.await(); // whether the interrupt comes before or while it waits does not matter
                        task.cancel(true);
                        DistException e = seen.get(); // at once: the first run goes on
                        equal(Status.CANCELLED, e.status());
                        check(e.getCause() instanceof InterruptedException, e.getCause());
                    }
                    pool.shutdown();
                    DistException late = thrown(DistException.class,
                            () -> strategy.run(
                                            replica -> {}, RunOptions.DEFAULT.timeout(Duration.ofMillis(1))));
                    equal(Status.DEADLINE_EXCEEDED, late.status());
                });
            }
        }
    }

    private static void cancelObject() throws Exception {
        try (Strategy strategy = Strategy.create(2); Cancel cancel = Cancel.create()) {
            RunOptions with = RunOptions.DEFAULT.cancel(cancel);
            behind(strategy, () -> {
                FutureTask<DistException> seen = new FutureTask<>(
                        () -> thrown(DistException.class, () -> strategy.run(replica -> {}, with)));
                new Thread(seen).start();
                cancel.signal("the server shuts down");
                DistException e = seen.get();
                equal(Status.CANCELLED, e.status());
                check(e.getMessage().contains("the server shuts down"), e);
            });
            check(cancel.isSignalled());
            cancel.signal("a second time");
            DistException again = thrown(DistException.class,
                    () -> strategy.run((replica, args, kwargs) -> null, null, null, with));
            equal(Status.CANCELLED, again.status());
            check(again.getMessage().contains("the server shuts down"), again);
            try (Cancel inside = Cancel.create()) {
                equal(Status.CANCELLED, thrown(DistException.class, () -> strategy.run(replica -> {
                    if (replica.id() == 0) {
                        inside.signal();
                    }
                    replica.barrier();
                    replica.barrier();
                }, RunOptions.DEFAULT.cancel(inside))).status());
            }
            BindingTest.usable(strategy);
            try (Cancel ofRounds = Cancel.create()) {
                CollectiveOptions meeting = NONE.cancel(ofRounds);
                equal(Status.CANCELLED, thrown(DistException.class, () -> strategy.run(replica -> {
                    if (replica.id() == 1) {
                        ofRounds.signal("of one collective");
                    }
                    replica.barrier(meeting);
                })).status());
            }
            BindingTest.usable(strategy);
        }
    }

    private static void shutDown() throws Exception {
        for (boolean caller : new boolean[] {true, false}) {
            Strategy strategy = BindingTest.strategy(2, caller);
            CountDownLatch stuck = new CountDownLatch(1);
            CountDownLatch go = new CountDownLatch(1);
            FutureTask<DistException> first =
                    new FutureTask<>(() -> thrown(DistException.class, () -> strategy.run(replica -> {
                        if (replica.id() == 1) {
                            stuck.countDown();
                            go.await();
                        }
                        replica.barrier();
                    })));
            new Thread(first).start();
            stuck.await();
            DistException e = thrown(DistException.class, () -> strategy.close(Duration.ofMillis(20)));
            equal(Status.DEADLINE_EXCEEDED, e.status());
            check(e.getMessage().matches("(?s).*replicas? 1.*"), e); // who is inside
            equal(Status.FAILED_PRECONDITION,
                    thrown(DistException.class, () -> strategy.run(replica -> {})).status());
            strategy.close();
            strategy.close(Duration.ZERO);
            go.countDown();
            equal(Status.CANCELLED, first.get().status());
        }
        Strategy idle = Strategy.create(2);
        Group group = Group.create(idle, 0, 1);
        idle.run(replica -> {
            replica.planned().allReduce(ReduceOp.SUM, List.of(copyOf(new float[] {1})), NONE.group(group));
            equal(Status.FAILED_PRECONDITION,
                    thrown(DistException.class, () -> idle.close(Duration.ZERO)).status());
        });
        idle.close(Duration.ofMinutes(1)); // groups and plans end with it
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, group::size).status());
        group.close();
    }

    private static void causes() {
        try (Strategy strategy = Strategy.create(3)) {
            IOException own = new IOException("row 7");
            Throwable[] seen = new Throwable[3];
            thrown(IOException.class, () -> strategy.run(replica -> {
                if (replica.id() == 1) {
                    throw own;
                }
                seen[replica.id()] = thrown(DistException.class, replica::barrier);
            }));
            check(seen[0].getCause() == own && seen[2].getCause() == own, (Object[]) seen);
            DistException late = thrown(DistException.class, () -> strategy.run(replica -> {
                if (replica.id() > 0) {
                    replica.allReduce(ReduceOp.SUM, copyOf(new float[replica.id()]));
                }
            }));
            check(!late.hint().isEmpty() && late.getMessage().contains(late.hint()), late);
            check(!late.coreMessage().contains("Hint"), late.coreMessage());
        }
    }

    private static void interruptSelf(boolean really) {
        if (really) {
            Thread.currentThread().interrupt();
        }
    }

    private static void collectUnderLoad() throws InterruptedException {
        AtomicBoolean over = new AtomicBoolean();
        Thread collector = new Thread(() -> {
            while (!over.get()) {
                System.gc();
            }
        });
        try (Strategy strategy = Strategy.create(4)) {
            collector.start();
            Value args =
                    Value.createTuple(strategy, Value.createTensor(strategy, copyOf(new float[] {1, 2, 3})));
            for (int i = 0; i < 100; i++) {
                Value result = strategy.run((replica, given, kwargs) -> {
                    FloatBuffer view = given.item(0).tensor().floats();
                    Tensor sum = Tensors.copyOf(new float[] {view.get(0), view.get(1), view.get(2)});
                    replica.allReduce(ReduceOp.SUM, sum);
                    Work work =
                            replica.async().allReduce(ReduceOp.SUM, List.of(copyOf(new float[] {1})), NONE);
                    work.join();
                    return Value.createTensor(replica.strategy(), sum);
                }, args);
                equal(12f, result.item(3).tensor().floats().get(2));
            }
        } finally {
            over.set(true);
            collector.join();
        }
    }

    private static void dropped() throws InterruptedException {
        long before = Upcalls.lastToken();
        for (int i = 0; i < 20; i++) {
            Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.numReplicas(2).log((level, line) -> {}));
            Group group = Group.create(strategy, 0, 1);
            strategy.run(replica -> replica.planned().allReduce(
                            ReduceOp.SUM, List.of(copyOf(new float[] {1})), NONE.group(group)));
            Dataset.fromSource(strategy, index -> null, DatasetOptions.DEFAULT).iterator();
            Value.wrapTensor(strategy, copyOf(new float[] {1}));
        }
        List<byte[]> garbage = new ArrayList<>();
        for (int i = 0; i < 2000 && Upcalls.sizeSince(before) > 0; i++) { // the cleaner's thread has its own pace
            System.gc();
            garbage.add(new byte[1000]);
            Thread.sleep(1);
        }
        equal(0, Upcalls.sizeSince(before)); // what they were given has been released: all of them have ended
    }
}
