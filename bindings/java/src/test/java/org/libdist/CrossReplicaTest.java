// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.floats;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;
import static org.libdist.Tensors.scalar;
import static org.libdist.ValuesTest.perReplica;

import java.io.IOException;
import java.nio.FloatBuffer;
import java.util.List;

/** What is done with values and variables from outside runs, by libdist and by functions of the program's. */
final class CrossReplicaTest {
    private CrossReplicaTest() {}

    static void addTo(Tap tap) {
        tap.add("reductions from outside", CrossReplicaTest::reductions);
        tap.add("updates", CrossReplicaTest::updates);
        tap.add("cross-device objects, functions of the program's", CrossReplicaTest::crossDevice);
        tap.add("a strategy of the program's own", CrossReplicaTest::ownStrategy);
    }

    private static void reductions() {
        try (Strategy strategy = Strategy.create(2)) {
            Value values = perReplica(strategy, 1, 4);
            equal("f32 5", strategy.reduce(ReduceOp.SUM, values).describe());
            equal("f32 2.5", strategy.reduce(ReduceOp.MEAN, values).describe());
            equal("Mirrored: 0: f32 5, 1: f32 5", strategy.reduceTo(ReduceOp.SUM, values, null).describe());
            equal("f32 5", strategy.reduceTo(ReduceOp.SUM, values, Destination.device("CPU:1")).describe());
            List<Value> both = strategy.batchReduceTo(ReduceOp.SUM, List.of(values, values), null);
            equal(2, both.size());
            Value rows = Value.createPerReplica(strategy,
                    List.of(Value.createTensor(strategy, copyOf(new float[] {1, 2})),
                            Value.createTensor(strategy, copyOf(new float[] {3}))));
            equal("f32[3] [1, 2, 3]", strategy.gather(rows, 0).describe());
            equal("f32 6", strategy.reduce(ReduceOp.SUM, rows, 0).describe());
            Value one = Value.createTensor(strategy, scalar(1f));
            equal(ValueKind.MIRRORED, strategy.broadcastTo(one, null).kind());
            check(strategy.destinationDevice(Destination.device("replica:1")).endsWith("CPU:1"));
            thrown(DistException.class, () -> strategy.reduce(ReduceOp.MAX, values));
            thrown(NullPointerException.class, () -> strategy.reduce(ReduceOp.SUM, null));
            thrown(IllegalArgumentException.class,
                    () -> strategy.batchReduceTo(ReduceOp.SUM, List.of(values), List.of()));
        }
    }

    private static void updates() {
        try (Strategy strategy = Strategy.create(3)) {
            Variable w = Variable.create(strategy, "w", copyOf(new float[] {1}));
            Value args = Value.createTuple(strategy, perReplica(strategy, 1, 2, 3));
            Tensor[] kept = new Tensor[1];
            UpdateFunction<RuntimeException> add = (place, given, named) -> {
                FloatBuffer x = place.copy().floats();
                x.put(0, x.get(0) + given.item(0).tensor().floats().get(0));
                kept[0] = place.copy();
                return null;
            };
            equal(null, w.update(strategy, add, args, null, UpdateOptions.DEFAULT.parallel(true)));
            for (int r = 0; r < 3; r++) {
                floats(w.component(r), 2 + r);
            }
            IOException own = new IOException("copy 1");
            check(thrown(IOException.class, () -> w.update(strategy, (place, given, named) -> {
                if (given.item(0).tensor().item() == 2) {
                    throw own;
                }
                return null;
            }, args)) == own);
            Value names = w.update(strategy,
                    (place, given, named) -> Value.createTensor(strategy, scalar(place.replica())), args);
            equal("Mirrored: 0: i32 0, 1: i32 1, 2: i32 2", names.describe());
            Value devices = strategy.updateNonSlot((place, given, named) -> {
                check(place.copy() == null);
                return Value.createText(strategy, place.device());
            }, null, null, UpdateOptions.DEFAULT.ungrouped(true));
            equal(ValueKind.TUPLE, devices.kind());
            w.close();
            check(kept[0].item() > 0); // views keep the memory
        }
    }

    private static void crossDevice() {
        try (Strategy strategy = Strategy.create(2)) {
            Value values = perReplica(strategy, 3, 5);
            Destination first = Destination.device("CPU:0");
            try (CrossDevice copy = CrossDevice.create(CrossDeviceKind.DEFAULT)) {
                equal(CrossDeviceKind.DEFAULT, copy.kind());
                equal("f32 8", copy.reduce(ReduceOp.SUM, values, first).describe());
                equal(1, copy.batchReduce(ReduceOp.SUM, List.of(values), List.of(first)).size());
                equal("f32 1", copy.broadcast(Value.createTensor(strategy, scalar(1f)), first).describe());
                thrown(DistException.class, () -> copy.gather(values, 0));
            }
            try (CrossDevice product = CrossDevice.createReductionToOneDevice("CPU:1", (acc, in) -> {
                for (int i = 0; i < acc.size(); i++) {
                    acc.set(i, acc.get(i) * in.get(i));
                }
            })) {
                check(product.device().endsWith("CPU:1"));
                equal("f32 15", product.reduce(ReduceOp.SUM, values, first).describe());
            }
            IOException own = new IOException("cannot gather");
            try (CrossDevice host = CrossDevice.fromFunctions(new CrossDeviceFunctions() {
                @Override
                public void reduce(ReduceOp op, List<Elements> components, Elements out) {
                    out.set(0, components.get(0).get(0) - components.get(1).get(0));
                }

                @Override
                public void gather(List<Elements> components, int axis, Elements out) throws IOException {
                    throw own;
                }
            })) {
                equal("f32 -2", host.reduce(ReduceOp.SUM, values, first).describe());
                Value rows = Value.createPerReplica(strategy,
                        List.of(Value.createTensor(strategy, copyOf(new float[] {1})),
                                Value.createTensor(strategy, copyOf(new float[] {2}))));
                check(thrown(IOException.class, () -> host.gather(rows, 0)) == own);
            }
        }
    }

    private static void ownStrategy() {
        StrategyFunctions functions = new StrategyFunctions() {
            @Override
            public void reduce(ReduceOp op, List<Elements> components, Elements out) {
                double largest = Double.NEGATIVE_INFINITY;
                for (Elements component : components) {
                    largest = Math.max(largest, component.get(0));
                }
                out.set(0, largest);
            }

            @Override
            public boolean sharesOneCopy() {
                return true;
            }
        };
        long before = Upcalls.lastToken();
        try (Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.numReplicas(2).functions(functions))) {
            equal("f32 7", strategy.reduce(ReduceOp.SUM, perReplica(strategy, 7, 5)).describe());
            equal(1, Variable.create(strategy, "w", scalar(1f)).numCopies());
        }
        equal(0, Upcalls.sizeSince(before));
    }
}
