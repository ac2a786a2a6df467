// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.io.IOException;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;

/** Functions that throw, interrupts, collectors: nothing is lost, and the strategy goes on to work. */
final class FailureTest {
    private static final CollectiveOptions NONE = CollectiveOptions.NONE;

    private FailureTest() {}

    static void addTo(Tap tap) {
        tap.add("exceptions and stack overflows in every kind of function", FailureTest::everyFunctionThrows);
        tap.add("all replicas throw", FailureTest::allThrow);
        tap.add("64 replicas", FailureTest::manyReplicas);
        tap.add("an interrupt cancels a run", FailureTest::interrupt);
        tap.add("an interrupt of one run does not reach the next", FailureTest::interruptsStay);
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
        try (Strategy strategy = new Strategy(2)) {
            Variable variable = Variable.create(strategy, "w", Tensors.scalar(1f));
            Value args = Value.createTuple(strategy);
            Tap.Test[] overflows = {
                    () -> strategy.runValues((replica, a, b) -> overflow(), args),
                    () -> strategy.run(replica -> replica.mergeCall((s, a) -> overflow(), null, NONE)),
                    () -> strategy.update(variable, (copy, a) -> overflow(), args),
                    () -> strategy.updateValues(
                                    variable, (place, a, b) -> overflow(), args, null, false),
                    () -> strategy.updateNonSlot((place, a, b) -> overflow(), args, null, false),
                    () -> strategy.run(replica -> replica.update(
                                            variable, (place, a, b) -> overflow(), null, null, false)),
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
        try (Strategy strategy = new Strategy(4)) {
            IOException seen = thrown(IOException.class, () -> strategy.run(replica -> {
                replica.barrier();
                throw new IOException("replica " + replica.id());
            }));
            equal(3, seen.getSuppressed().length);
            BindingTest.usable(strategy);
        }
    }

    private static void manyReplicas() {
        try (Strategy strategy = new Strategy(64)) {
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
                        () -> strategy.runValues(
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
        try (Strategy strategy = new Strategy(4)) {
            collector.start();
            Value args =
                    Value.createTuple(strategy, Value.createTensor(strategy, copyOf(new float[] {1, 2, 3})));
            for (int i = 0; i < 100; i++) {
                Value result = strategy.runValues((replica, given, kwargs) -> {
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
        int before = Upcalls.size();
        for (int i = 0; i < 20; i++) {
            Strategy strategy = new Strategy(StrategyOptions.DEFAULT.replicas(2).log((level, line) -> {}));
            Group group = Group.create(strategy, 0, 1);
            strategy.run(replica -> replica.planned().allReduce(
                            ReduceOp.SUM, List.of(copyOf(new float[] {1})), NONE.group(group)));
            Dataset.fromSource(strategy, index -> null, DatasetOptions.DEFAULT).iterator();
            Value.wrapTensor(strategy, copyOf(new float[] {1}));
        }
        List<byte[]> garbage = new ArrayList<>();
        for (int i = 0; i < 2000 && Upcalls.size() > before; i++) { // the cleaner's thread has its own pace
            System.gc();
            garbage.add(new byte[1000]);
            Thread.sleep(1);
        }
        equal(before, Upcalls.size()); // what they were given has been released: all of them have ended
    }
}
