// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.floats;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Every collective on lists of tensors: blocking, under way, planned; groups and options. */
final class CollectivesTest {
    private static final CollectiveOptions NONE = CollectiveOptions.DEFAULT;

    private CollectivesTest() {}

    static void addTo(Tap tap) {
        tap.add("an operator on elements of several numbers", CollectivesTest::wideElements);
        tap.add("lists, strided and out of place", CollectivesTest::lists);
        tap.add("every collective", CollectivesTest::everyCollective);
        tap.add("weights, contributions, numerics", CollectivesTest::weighted);
        tap.add("numerics of the strategy", CollectivesTest::numericsOfTheStrategy);
        tap.add("an operator of the program's", CollectivesTest::ownOperator);
        tap.add("groups", CollectivesTest::groups);
        tap.add("work under way is a CompletableFuture", CollectivesTest::async);
        tap.add("work that fails, is cancelled, is left", CollectivesTest::asyncFailures);
        tap.add("plans over several runs", CollectivesTest::plans);
        tap.add("reduceApply: SGD, momentum, clip, own function", CollectivesTest::reduceApply);
        tap.add("parallelFor", CollectivesTest::parallelFor);
    }

    /** Complex products: pairs that no piece may cut. */
    private static void wideElements() {
        CollectiveOptions product =
                CollectiveOptions.DEFAULT.reduceElementBytes(2 * Float.BYTES).reducer((acc, in) -> {
                    for (int i = 0; i < acc.size(); i += 2) {
                        double real = acc.get(i) * in.get(i) - acc.get(i + 1) * in.get(i + 1);
                        acc.set(i + 1, acc.get(i) * in.get(i + 1) + acc.get(i + 1) * in.get(i));
                        acc.set(i, real);
                    }
                });
        try (Strategy strategy = Strategy.create(3)) {
            strategy.run(replica -> {
                Tensor numbers = Tensors.copyOf(new float[] {2, 0, 1, 1});
                replica.allReduce(ReduceOp.USER, List.of(numbers), product);
                floats(numbers, 8, 0, -2, 2); // 2^3 and (1 + i)^3
            });
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class,
                            () -> strategy.run(replica -> replica.allReduce(ReduceOp.USER,
                                                    List.of(Tensors.copyOf(new float[3])), product)))
                            .status());
        }
    }

    private static void lists() {
        try (Strategy strategy = Strategy.create(2)) {
            strategy.run(replica -> {
                int id = replica.id();
                Tensor first = copyOf(new float[] {1 + id, 2, 3, 4}, 2, 2).strided(1, 2); // transposed
                Tensor second = copyOf(new int[] {id, 10});
                Tensor out = Tensor.zeros(DType.F32, 2, 2);
                replica.allReduce(ReduceOp.SUM, List.of(first, second), List.of(out, second), NONE);
                floats(out, 3, 6, 4, 8);
                equal(1, second.ints().get(0));
                equal(20, second.ints().get(1));
                Tensor mean = Tensor.zeros(DType.F64, 2);
                replica.allReduce(ReduceOp.MEAN, List.of(copyOf(new long[] {id, 4})), List.of(mean), NONE);
                equal(0.5, mean.doubles().get(0));
                replica.allReduce(ReduceOp.SUM, List.of(), NONE);
            });
        }
    }

    private static void everyCollective() {
        try (Strategy strategy = Strategy.create(3)) {
            strategy.run(replica -> {
                int id = replica.id();
                List<Tensor> mine = List.of(copyOf(new float[] {id, id + 1, id + 2}));
                List<Tensor> three = List.of(Tensor.zeros(DType.F32, 3));
                replica.reduceToRoot(ReduceOp.SUM, 1, mine, id == 1 ? three : null, NONE);
                if (id == 1) {
                    floats(three.get(0), 3, 6, 9);
                }
                List<Tensor> one = List.of(Tensor.zeros(DType.F32, 1));
                replica.reduceScatter(ReduceOp.MAX, mine, one, NONE);
                floats(one.get(0), id + 2);
                List<Tensor> nine = List.of(Tensor.zeros(DType.F32, 9));
                replica.allGather(mine, nine, NONE);
                floats(nine.get(0), 0, 1, 2, 1, 2, 3, 2, 3, 4);
                replica.gatherToRoot(0, mine, id == 0 ? nine : null, NONE.axis(-1));
                replica.broadcast(2, id == 2 ? mine : null, three, NONE);
                floats(three.get(0), 2, 3, 4);
                replica.scatterFromRoot(0, id == 0 ? mine : null, one, NONE);
                floats(one.get(0), id);
                replica.allToAll(mine, three, NONE);
                floats(three.get(0), id, id + 1, id + 2);
                List<Tensor> uneven = List.of(Tensor.zeros(DType.F32, id == 2 ? 6 : id == 1 ? 3 : 0));
                replica.allToAll(mine, uneven, NONE.splits(0, 1, 2));
                List<Tensor> before = List.of(Tensor.zeros(DType.F32, 1));
                replica.scan(ReduceOp.SUM, ScanKind.EXCLUSIVE, one, before, NONE);
                floats(before.get(0), id == 2 ? 1 : 0);
                replica.permute((id + 1) % 3, (id + 2) % 3, mine, three, NONE);
                floats(three.get(0), (id + 2) % 3, (id + 2) % 3 + 1, (id + 2) % 3 + 2);
                replica.barrier(NONE.numerics(Numerics.ORDERED));
                thrown(IllegalArgumentException.class, () -> replica.allGather(mine, List.of(), NONE));
            });
        }
    }

    private static void weighted() {
        try (Strategy strategy = Strategy.create(2)) {
            strategy.run(replica -> {
                int id = replica.id();
                Tensor value = copyOf(new double[] {id == 0 ? 1 : 4});
                replica.allReduce(ReduceOp.MEAN, List.of(value), NONE.weights(id == 0 ? 1 : 2));
                equal(3.0, value.item());
                List<Tensor> parts = new ArrayList<>();
                for (int i = 0; i <= id; i++) {
                    parts.add(copyOf(new float[] {0.1f}));
                }
                Tensor sum = Tensor.zeros(DType.F32, 1);
                replica.allReduce(ReduceOp.SUM, parts, List.of(sum),
                        NONE.contributions(id + 1).numerics(Numerics.REPRODUCIBLE));
                equal(0.3f, sum.floats().get(0));
            });
        }
    }

    private static void numericsOfTheStrategy() {
        float[] numbers = {1e8f, 1, -1e8f, 1, 1};
        Map<Numerics, Float> sums = Map.of(Numerics.ORDERED, 2f, Numerics.REPRODUCIBLE, 3f, Numerics.TREE, 1f);
        for (Numerics numerics : Numerics.values()) {
            try (Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.numReplicas(numbers.length).numerics(numerics))) {
                strategy.run(replica -> {
                    Tensor sum = copyOf(new float[] {numbers[replica.id()]});
                    replica.allReduce(ReduceOp.SUM, sum);
                    equal(sums.get(numerics), sum.floats().get(0));
                    Tensor tree = copyOf(new float[] {numbers[replica.id()]});
                    replica.allReduce(ReduceOp.SUM, List.of(tree), NONE.numerics(Numerics.TREE));
                    equal(1f, tree.floats().get(0));
                });
            }
        }
    }

    private static void ownOperator() {
        try (Strategy strategy = Strategy.create(3)) {
            CollectiveOptions or = NONE.reducer((acc, in) -> {
                for (int i = 0; i < acc.size(); i++) {
                    acc.set(i, (int) acc.get(i) | (int) in.get(i));
                }
            });
            Elements[] kept = new Elements[1];
            CollectiveOptions keeping = NONE.reducer((acc, in) -> kept[0] = acc);
            strategy.run(replica -> {
                Tensor bits = copyOf(new int[] {1 << replica.id(), 8});
                replica.allReduce(ReduceOp.USER, List.of(bits), or);
                equal(7, bits.ints().get(0));
                equal(8, bits.ints().get(1));
                replica.allReduce(ReduceOp.USER, List.of(bits), keeping);
            });
            equal(Status.FAILED_PRECONDITION, thrown(DistException.class, () -> kept[0].get(0)).status());
            CollectiveOptions broken =
                    NONE.reducer((acc, in) -> { throw new ArithmeticException("no such operator"); });
            thrown(ArithmeticException.class,
                    () -> strategy.run(replica -> replica.allReduce(
                                            ReduceOp.USER, List.of(copyOf(new float[1000])), broken)));
            BindingTest.usable(strategy);
        }
    }

    private static void groups() {
        Strategy strategy = Strategy.create(4);
        Group even = Group.create(strategy, 0, 2);
        equal(2, even.size());
        equal(1, even.rank(2));
        equal(-1, even.rank(1));
        strategy.run(replica -> {
            Tensor one = copyOf(new float[] {replica.id() + 1});
            if (replica.id() % 2 == 0) {
                replica.allReduce(ReduceOp.SUM, List.of(one), NONE.group(even));
                floats(one, 4);
            }
            equal(Status.FAILED_PRECONDITION, thrown(DistException.class, even::close).status());
        });
        DistException left = thrown(DistException.class, strategy::close);
        equal(Status.FAILED_PRECONDITION, left.status());
        check(left.told(), left); // libdist's own words
        even.close();
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, even::size).status());
        strategy.close();
    }

    private static void async() throws Exception {
        try (Strategy strategy = Strategy.create(3)) {
            AtomicInteger stages = new AtomicInteger();
            strategy.run(replica -> {
                Tensor a = copyOf(new float[] {1});
                Tensor b = copyOf(new float[] {2});
                Work first = replica.async().allReduce(ReduceOp.SUM, List.of(a), NONE);
                Work second = replica.async().allReduce(ReduceOp.SUM, List.of(b), NONE);
                first.thenRun(stages::incrementAndGet);
                second.join();
                floats(b, 6);
                while (!first.isDone()) {
                    Thread.onSpinWait();
                }
                floats(a, 3);
                Work third = replica.async().broadcast(0, List.of(a), NONE);
                Work fourth = replica.async().barrier(NONE);
                Work ended = Work.anyOf(List.of(third, fourth));
                check(ended.isDone());
                third.get(1, TimeUnit.MINUTES);
                fourth.get();
            });
            equal(3, stages.get());
        }
    }

    private static void asyncFailures() {
        try (Strategy strategy = Strategy.create(2)) {
            Throwable[] seen = new Throwable[2];
            thrown(DistException.class, () -> strategy.run(replica -> {
                Work work = replica.async().allReduce(
                        ReduceOp.SUM, List.of(Tensor.zeros(DType.F32, replica.id() + 1)), NONE);
                try {
                    work.join();
                } catch (CompletionException e) {
                    seen[replica.id()] = e.getCause();
                    throw(DistException) e.getCause();
                }
            }));
            for (Throwable t : seen) {
                equal(Collective.ALL_REDUCE, ((DistException) t).collective());
            }
            Work[] left = new Work[2];
            strategy.run(replica -> { // left under way: it ends before run() returns
                Tensor data = copyOf(new float[] {1});
                left[replica.id()] = replica.async().allReduce(ReduceOp.SUM, List.of(data), NONE);
                left[replica.id()].thenRun(() -> floats(data, 2));
            });
            for (Work work : left) {
                check(work.isDone() && !work.isCompletedExceptionally(), work);
            }
            Work[] lost = new Work[2];
            thrown(IllegalStateException.class, () -> strategy.run(replica -> {
                if (replica.id() == 1) {
                    throw new IllegalStateException("before the work");
                }
                lost[0] = replica.async().barrier(NONE);
            }));
            if (lost[0] != null) { // else replica 1 had failed before it began
                thrown(ExecutionException.class, () -> lost[0].get());
            }
            thrown(DistException.class, () -> strategy.run(replica -> {
                if (replica.id() == 0) {
                    Work work = replica.async().barrier(NONE);
                    check(work.cancel(true));
                    check(work.isCancelled() && !work.cancel(true));
                }
                replica.barrier();
            }));
            BindingTest.usable(strategy);
        }
    }

    private static void plans() {
        Strategy strategy = Strategy.create(2);
        Plan[] plans = new Plan[2];
        Tensor[][] data = {{copyOf(new float[] {1, 1}), copyOf(new float[] {2})},
                {copyOf(new float[] {1, 1}), copyOf(new float[] {2})}};
        strategy.run(replica -> plans[replica.id()] = replica.planned().allReduce(
                           ReduceOp.SUM, List.of(data[replica.id()]), NONE.bytesPerPack(4)));
        for (int round = 0; round < 3; round++) {
            strategy.run(replica -> {
                Plan plan = plans[replica.id()];
                plan.markReady(1);
                plan.markReady(0);
                equal(Status.FAILED_PRECONDITION, thrown(DistException.class, () -> plan.markReady(0)).status());
                plan.await();
                check(plan.isDone());
                plan.start();
                plan.await();
            });
        }
        floats(data[0][0], 64, 64);
        floats(data[1][1], 128);
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, plans[0] ::start).status());
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, strategy::close).status());
        plans[0].close();
        plans[1].close();
        strategy.close();
    }

    private static void reduceApply() {
        try (Strategy strategy = Strategy.create(2)) {
            strategy.run(replica -> {
                Tensor p = copyOf(new float[] {1, 2});
                Tensor state = Tensor.zeros(DType.F32, 2);
                replica.reduceApply(ReduceOp.SUM, List.of(copyOf(new float[] {1, 2})), List.of(p),
                        Optimizer.sgd(0.5), NONE);
                floats(p, 0, 0);
                replica.reduceApply(ReduceOp.MEAN, List.of(copyOf(new float[] {1, 2})), List.of(p),
                        Optimizer.sgd(0.5, 0.5, List.of(state)), NONE);
                floats(state, -0.5f, -1);
                double norm = replica.reduceApply(ReduceOp.MEAN, List.of(copyOf(new float[] {3, 4})),
                        List.of(p), Optimizer.sgd(1).clipNorm(1), NONE);
                equal(5.0, norm);
                Tensor q = copyOf(new float[] {1, 1, 1});
                Tensor count = Tensor.zeros(DType.F32, 3);
                replica.reduceApply(ReduceOp.SUM, List.of(copyOf(new float[] {1, 2, 3})), List.of(q),
                        Optimizer.function(block -> {
                            for (int i = 0; i < block.gradient().size(); i++) {
                                block.parameter().set(i, block.parameter().get(i) + block.gradient().get(i));
                                block.state(0).set(i, block.tensor() + block.first() + i);
                            }
                        }, List.of(List.of(count))), NONE);
                floats(q, 3, 5, 7);
                floats(count, 0, 1, 2);
            });
        }
    }

    private static void parallelFor() {
        try (Strategy strategy = Strategy.create(2)) {
            AtomicLong sum = new AtomicLong();
            strategy.run(replica -> replica.parallelFor(0, 1000, 10, (begin, end) -> {
                for (long i = begin; i < end; i++) {
                    sum.addAndGet(i);
                }
            }));
            equal(2 * 499500L, sum.get());
            thrown(ArithmeticException.class,
                    () -> strategy.run(replica -> replica.parallelFor(0, 10, 1, (b, e) -> {
                        throw new ArithmeticException("in a loop");
                    })));
            BindingTest.usable(strategy);
        }
    }
}
