// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What is wrong is refused with Java's own kind of error, nothing is lost, and the strategy goes on to work.
 */
final class BadInputTest {
    private static final CollectiveOptions NONE = CollectiveOptions.DEFAULT;

    private BadInputTest() {}

    static void addTo(Tap tap) {
        tap.add("null arguments", BadInputTest::nulls);
        tap.add("texts with a NUL inside", BadInputTest::textsWithNul);
        tap.add("durations of centuries", BadInputTest::centuries);
        tap.add("tensors that cannot be used", BadInputTest::badTensors);
        tap.add("wrong types and enums of the wrong place", BadInputTest::wrongTypes);
        tap.add("use after close", BadInputTest::afterClose);
        tap.add("close while it is used", BadInputTest::closeDuring);
        tap.add("a replica that is kept, or lent to another thread", BadInputTest::keptReplica);
    }

    /** They are as good as without limit, for every method that takes one. */
    private static void centuries() throws Exception {
        Duration centuries = Duration.ofSeconds(Long.MAX_VALUE);
        List<Object> options = List.of(CollectiveOptions.DEFAULT, CommunicationOptions.DEFAULT, CoordinatorOptions.DEFAULT,
                DevicesOptions.DEFAULT, PreemptionOptions.DEFAULT, ReformOptions.DEFAULT, RpcCallOptions.DEFAULT,
                RpcClientOptions.DEFAULT, RunOptions.DEFAULT, ScheduleOptions.DEFAULT, ServerOptions.DEFAULT,
                StrategyOptions.DEFAULT);
        int methods = 0;
        for (Object each : options) {
            for (Method method : each.getClass().getMethods()) {
                if (List.of(method.getParameterTypes()).contains(Duration.class)) {
                    method.invoke(each, centuries);
                    method.invoke(each, centuries.negated());
                    methods++;
                }
            }
        }
        equal(13, methods);
        try (Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.numReplicas(2).timeout(centuries))) {
            CommunicationOptions communication = CommunicationOptions.DEFAULT.timeout(centuries);
            equal(Optional.of(Durations.nanos(centuries, "")),
                    communication.merge(null).timeout().map(timeout -> timeout.toNanos()));
            strategy.run(replica -> replica.allReduce(ReduceOp.SUM, DirectBuffers.of(1f), NONE.timeout(centuries)),
                    RunOptions.DEFAULT.timeout(centuries));
            strategy.close(centuries);
        }
    }

    /** C would read the part before it: refused, but for what functions throw, where it is shown. */
    private static void textsWithNul() {
        String bad = "CPU:0\0x";
        Cancel cancel = Cancel.create();
        try (Strategy strategy = Strategy.create(2)) {
            Tap.Test[] calls = {
                    () -> Dist.canonicalDevice(bad),
                    () -> Dist.hasFeature(bad),
                    () -> ReduceOp.fromName("SUM\0"),
                    () -> Strategy.create(StrategyOptions.DEFAULT.numReplicas(1).devices(List.of(bad))).close(),
                    () -> Strategy.create(StrategyOptions.DEFAULT.parameterDevice(bad)).close(),
                    () -> CrossDevice.createReductionToOneDevice(bad, null).close(),
                    () -> strategy.destinationDevice(Destination.device(bad)),
                    () -> strategy.metricsText(bad),
                    () -> Metric.create(strategy, MetricKind.SUM, bad),
                    () -> Variable.create(strategy, bad, Tensors.scalar(1f)),
                    () -> Value.createText(strategy, bad),
                    () -> Value.createDict(strategy, Map.of(bad, Value.createNone(strategy))),
                    () -> CollectiveOptions.DEFAULT.tag(bad),
                    () -> cancel.signal(bad),
            };
            for (Tap.Test call : calls) {
                thrown(IllegalArgumentException.class, call);
            }
            equal(false, cancel.isSignalled());
            List<String> told = Collections.synchronizedList(new ArrayList<>());
            IllegalStateException mine = new IllegalStateException("mine\0rest");
            equal(mine, thrown(IllegalStateException.class, () -> strategy.run(replica -> {
                if (replica.id() == 0) {
                    throw mine;
                }
                told.add(thrown(DistException.class, () -> replica.barrier(NONE)).getMessage());
            })));
            Tap.check(told.size() == 1 && told.get(0).contains("mine\\0rest"), told);
        }
    }

    private static void nulls() {
        try (Strategy strategy = Strategy.create(2)) {
            Value value = Value.createNone(strategy);
            Variable variable = Variable.create(strategy, "w", Tensors.scalar(1f));
            Tap.Test[] calls = {
                    () -> strategy.run(null),
                    () -> strategy.run((RunFunction<RuntimeException>) null, RunOptions.DEFAULT),
                    () -> strategy.run((ValuesFunction<RuntimeException>) null, null),
                    () -> strategy.reduce(null, value),
                    () -> strategy.reduce(ReduceOp.SUM, null),
                    () -> strategy.batchReduceTo(ReduceOp.SUM, null, null),
                    () -> strategy.batchReduceTo(ReduceOp.SUM, Arrays.asList((Value) null), null),
                    () -> variable.update(strategy, null, null),
                    () -> variable.update((Strategy) null, (place, args, kwargs) -> null, null),
                    () -> variable.update(strategy, (place, args, kwargs) -> null, null, null, null),
                    () -> strategy.colocate(null),
                    () -> Strategy.create(null),
                    () -> StrategyOptions.DEFAULT.kind(null),
                    () -> Tensor.of((FloatBuffer) null),
                    () -> Tensor.of(null, ByteBuffer.allocateDirect(4), 4),
                    () -> Value.createTensor(strategy, null),
                    () -> Value.createTensor(null, Tensors.scalar(1f)),
                    () -> Value.createText(strategy, null),
                    () -> Value.wrapObject(strategy, null),
                    () -> Value.fromFunction(strategy, null),
                    () -> Variable.create(strategy, (Tensor) null, VariableOptions.DEFAULT),
                    () -> variable.assign(strategy, null, value),
                    () -> Dataset.fromTensors(strategy, null, DatasetOptions.DEFAULT),
                    () -> Dataset.fromSource(strategy, null, DatasetOptions.DEFAULT),
                    () -> Group.create(strategy, (int[]) null),
                    () -> Metric.create(strategy, null, "x"),
                    () -> Checkpoint.open(strategy, null),
                    () -> CollectiveOptions.DEFAULT.tag(null),
                    () -> Destination.of((Value) null),
                    () -> ReduceOp.fromName(null),
                    () -> CrossDevice.fromFunctions(null),
            };
            for (int i = 0; i < calls.length; i++) {
                int number = i;
                try {
                    calls[i].run();
                } catch (NullPointerException e) {
                    continue;
                } catch (Exception e) {
                    throw new AssertionError("call " + number, e);
                }
                throw new AssertionError("call " + number + " took null");
            }
            strategy.run(replica -> {
                thrown(NullPointerException.class, () -> replica.allReduce(ReduceOp.SUM, (Tensor) null));
                thrown(NullPointerException.class, () -> replica.allReduce(ReduceOp.SUM, List.of(), null));
                thrown(NullPointerException.class, () -> replica.mergeCall(null, null, null, NONE));
                thrown(NullPointerException.class, () -> variable.read((Replica) null));
                thrown(NullPointerException.class, () -> replica.async().allReduce(ReduceOp.SUM, null, NONE));
            });
            BindingTest.usable(strategy);
        }
    }

    private static void badTensors() {
        ByteOrder foreign = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN
                                                                            : ByteOrder.BIG_ENDIAN;
        thrown(IllegalArgumentException.class, () -> Tensor.of(FloatBuffer.wrap(new float[4])));
        thrown(IllegalArgumentException.class,
                () -> Tensor.of(ByteBuffer.allocateDirect(16).order(foreign).asFloatBuffer()));
        thrown(IllegalArgumentException.class, () -> Tensor.of(DirectBuffers.floats(3), 4));
        thrown(IllegalArgumentException.class, () -> Tensor.of(DirectBuffers.floats(3).position(2), 2));
        thrown(IllegalArgumentException.class, () -> Tensor.of(DirectBuffers.floats(3).limit(2), 3));
        thrown(IllegalArgumentException.class,
                () -> Tensor.of(DirectBuffers.floats(3), Long.MAX_VALUE, Long.MAX_VALUE));
        thrown(IllegalArgumentException.class, () -> Tensor.zeros(DType.F32, 1L << 40));
        thrown(IllegalArgumentException.class, () -> Tensor.zeros(DType.F32, new long[17]));
        thrown(IllegalArgumentException.class, () -> copyOf(new float[3], 2, 2));
        Tensor readOnly = Tensor.of(DirectBuffers.of(1f, 2f).asReadOnlyBuffer());
        try (Strategy strategy = Strategy.create(2)) {
            strategy.run(replica -> {
                thrown(ReadOnlyBufferException.class, () -> replica.allReduce(ReduceOp.SUM, readOnly));
                Tensor out = Tensor.zeros(DType.F32, 2);
                replica.allReduce(ReduceOp.SUM, List.of(readOnly), List.of(out), NONE); // reading is fine
                equal(2f, out.floats().get(0));
            });
            Tensor twice = copyOf(new float[] {1, 2, 3});
            equal(Status.INVALID_ARGUMENT, thrown(DistException.class, () -> strategy.run(replica -> {
                replica.allReduce(
                        ReduceOp.SUM, List.of(twice.rows(0, 2)), List.of(twice.rows(1, 3)), NONE); // overlap
            })).status());
            BindingTest.usable(strategy);
        }
    }

    private static void wrongTypes() {
        try (Strategy strategy = Strategy.create(2)) {
            Value text = Value.createText(strategy, "no number");
            equal(Status.INVALID_ARGUMENT, thrown(DistException.class, text::tensor).status());
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class, () -> strategy.reduce(ReduceOp.SUM, text)).status());
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class,
                            () -> strategy.run(
                                            (replica, args, kwargs) -> null, null, text, RunOptions.DEFAULT))
                            .status());
            Variable variable = Variable.create(strategy, "w", copyOf(new float[] {1, 2}));
            Value other = Value.createTensor(strategy, copyOf(new int[] {1, 2}));
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class, () -> variable.assign(strategy, Assign.SET, other)).status());
            equal(Status.FAILED_PRECONDITION, thrown(DistException.class, () -> {
                try (Strategy stranger = Strategy.create(1)) {
                    variable.assign(stranger, Assign.SET, other);
                }
            }).status());
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class,
                            () -> strategy.run(replica
                                            -> replica.allReduce(ReduceOp.SUM, Tensor.zeros(DType.BOOL, 2))))
                            .status());
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class,
                            () -> strategy.run(replica
                                            -> replica.allReduce(ReduceOp.USER, Tensor.zeros(DType.F32, 2))))
                            .status());
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class, () -> Group.create(strategy, 1, 0)).status());
            equal(Status.INVALID_ARGUMENT,
                    thrown(DistException.class, () -> Group.create(strategy)).status());
            BindingTest.usable(strategy);
        }
    }

    private static void refused(Tap.Test call) {
        equal(Status.FAILED_PRECONDITION, thrown(DistException.class, call).status());
    }

    private static void afterClose() {
        Strategy strategy = Strategy.create(2);
        Value value = Value.createNone(strategy);
        Variable variable = Variable.create(strategy, "w", Tensors.scalar(1f));
        Dataset dataset = Dataset.fromTensors(
                strategy, List.of(copyOf(new float[] {1, 2})), DatasetOptions.DEFAULT.globalBatchSize(2));
        BatchIterator pass = dataset.iterator();
        Metric metric = Metric.create(strategy, MetricKind.SUM, null);
        CrossDevice crossDevice = CrossDevice.create(CrossDeviceKind.DEFAULT);
        for (AutoCloseable each : List.of(value, variable, dataset, pass, metric, crossDevice)) {
            try {
                each.close();
                each.close();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }
        refused(value::kind);
        refused(() -> strategy.reduce(ReduceOp.MEAN, value));
        refused(() -> variable.component(0));
        refused(dataset::iterator);
        refused(pass::next);
        refused(pass::hasNext);
        refused(() -> metric.result(strategy));
        refused(crossDevice::kind);
        BindingTest.usable(strategy);
        strategy.close();
        refused(() -> strategy.run(replica -> {}));
        refused(() -> Value.createNone(strategy));
        refused(strategy::explain);
        refused(() -> strategy.scope().close());
        refused(() -> Strategy.create(StrategyOptions.DEFAULT.crossDevice(crossDevice)));
    }

    private static void closeDuring() {
        Strategy strategy = Strategy.create(3);
        Variable variable = Variable.create(strategy, "w", copyOf(new float[1000]));
        Value shared = Value.createTensor(strategy, copyOf(new float[] {1}));
        strategy.run(replica -> {
            refused(strategy::close);
            for (int i = 0; i < 200; i++) { // closed by one of them somewhere on the way
                if (i == 50 * (replica.id() + 1)) {
                    shared.close();
                    variable.close();
                }
                try {
                    shared.tensor().floats().get(0);
                    variable.component(replica.id()).floats().put(0, i);
                } catch (DistException e) {
                    equal(Status.FAILED_PRECONDITION, e.status());
                }
            }
        });
        BindingTest.usable(strategy);
        strategy.close();
    }

    private static void keptReplica() {
        try (Strategy strategy = Strategy.create(2)) {
            Replica[] kept = new Replica[2];
            Thread[] threads = new Thread[2];
            Throwable[] elsewhere = new Throwable[2];
            strategy.run(replica -> {
                kept[replica.id()] = replica;
                threads[replica.id()] = new Thread(
                        () -> elsewhere[replica.id()] = thrown(DistException.class, replica::barrier));
                threads[replica.id()].start();
                threads[replica.id()].join();
            });
            for (int r = 0; r < 2; r++) {
                Replica replica = kept[r];
                equal(Status.FAILED_PRECONDITION, ((DistException) elsewhere[r]).status());
                equal(r, replica.id()); // plain numbers stay
                refused(() -> replica.allReduce(ReduceOp.SUM, DirectBuffers.of(1f)));
                refused(() -> replica.async().barrier(NONE));
                refused(() -> replica.mergeCall((s, args, kwargs) -> null, null, null, NONE));
                refused(() -> replica.parallelFor(0, 1, 1, (begin, end) -> {}));
                refused(replica::leave);
            }
            strategy.run(replica -> refused(kept[0] ::barrier)); // nor in the next run
            BindingTest.usable(strategy);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
