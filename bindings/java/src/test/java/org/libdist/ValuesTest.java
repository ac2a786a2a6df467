// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.floats;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;
import static org.libdist.Tensors.scalar;

import java.io.IOException;
import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;

/** Tensors, values and variables, from outside and inside replicas. */
final class ValuesTest {
    private static final CollectiveOptions NONE = CollectiveOptions.DEFAULT;

    private ValuesTest() {}

    static void addTo(Tap tap) {
        tap.add("tensors: views and copies", ValuesTest::tensors);
        tap.add("values of every kind", ValuesTest::kinds);
        tap.add("views outlive what they are of", ValuesTest::viewsOutlive);
        tap.add("runs on values", ValuesTest::runsOnValues);
        tap.add("merge calls", ValuesTest::mergeCalls);
        tap.add("variables", ValuesTest::variables);
        tap.add("variables inside replicas", ValuesTest::replicaVariables);
    }

    static Value perReplica(Strategy strategy, float... values) {
        List<Value> items = new ArrayList<>();
        for (float value : values) {
            items.add(Value.createTensor(strategy, scalar(value)));
        }
        return Value.createPerReplica(strategy, items);
    }

    private static void tensors() {
        FloatBuffer buffer = DirectBuffers.of(0f, 1f, 2f, 3f, 4f, 5f, 6f);
        Tensor view = Tensor.of(buffer.position(1), 2, 3);
        buffer.put(1, 10f);
        floats(view, 10, 2, 3, 4, 5, 6);
        floats(view.rows(1, 2), 4, 5, 6);
        floats(view.reshaped(3, 2).strided(1, 3), 10, 4, 2, 5, 3, 6);
        equal("f32[2, 3]", view.toString());
        equal(2.5, scalar(2.5).item());
        thrown(IllegalArgumentException.class, () -> Tensor.of(buffer, 2, 4));
        thrown(IllegalArgumentException.class, () -> Tensor.of(buffer, -1, 2));
        thrown(IllegalArgumentException.class, () -> Tensor.of(FloatBuffer.allocate(2)));
        thrown(IllegalArgumentException.class, () -> view.strided(3, 2));
        thrown(IllegalArgumentException.class, () -> view.strided(3, -1));
        thrown(IllegalArgumentException.class, () -> Tensor.of(DType.F64, buffer));
        thrown(IllegalStateException.class, () -> view.doubles());
        thrown(IllegalArgumentException.class, () -> Tensor.zeros(DType.F32, Long.MAX_VALUE, 2));
        for (short bits : new short[] {0, 0x3c00, (short) 0xc000, 0x7bff, 1, 0x0400, 0x7c00}) {
            equal(bits, Half.fromDouble(Half.toFloat(bits)));
        }
        equal((short) 0x3c01, Half.fromDouble(1 + 0x1.8p-11));
        equal((short) 0x3f80, Half.bfloat(1 + 0x1p-8f));
        equal(0x1p63 * 2 - 2048, Half.unsigned(-2048));
    }

    private static void kinds() {
        try (Strategy strategy = Strategy.create(2)) {
            Value one = Value.createTensor(strategy, copyOf(new float[] {1, 2}));
            Value list = Value.createList(
                    strategy, List.of(one, Value.createText(strategy, "zwölf \uD83D\uDCA5")));
            equal(ValueKind.LIST, list.kind());
            equal(2, list.size());
            equal("zwölf \uD83D\uDCA5", list.item(1).text());
            check(list.item(0).equals(one) && !list.equals(one));
            thrown(IndexOutOfBoundsException.class, () -> list.item(2));
            Value dict = Value.createDict(strategy, Map.of("b", one, "a", list));
            equal("a", dict.key(0));
            equal(one, dict.get("b"));
            equal(null, dict.get("c"));
            Object object = new Object();
            Value wrapped = Value.wrapObject(strategy, object);
            check(wrapped.object() == object && one.object() == null && one.text() == null);
            equal(ValueKind.NONE, Value.createNone(strategy).kind());
            Value slices = Value.createComposite(strategy, ValueKind.INDEXED_SLICES,
                    List.of(Value.createTensor(strategy, Tensor.zeros(DType.F32, 2, 3)),
                            Value.createTensor(strategy, copyOf(new int[] {0, 4})),
                            Value.createNone(strategy)));
            equal(3, slices.size());
            equal("PerReplica: 0: f32 1, 1: f32 2", perReplica(strategy, 1, 2).describe());
            Value mirrored = Value.createMirrored(strategy, List.of(one, one));
            equal(2, strategy.localResults(mirrored).size());
            Value made = Value.fromFunction(
                    strategy, (replica, n) -> Value.createTensor(strategy, scalar(replica * n)));
            equal("PerReplica: 0: i32 0, 1: i32 2", made.toString());
            IOException own = new IOException("no such row");
            check(thrown(IOException.class, () -> Value.fromFunction(strategy, (replica, n) -> {
                throw own;
            })) == own);
            thrown(DistException.class, () -> Value.createPerReplica(strategy, List.of(one)));
            thrown(NullPointerException.class, () -> Value.createText(strategy, null));
            one.close();
            equal(Status.FAILED_PRECONDITION, thrown(DistException.class, one::kind).status());
            floats(list.item(0).tensor(), 1, 2); // the list has a hold of its own
            equal("closed", one.toString());
        }
    }

    private static void viewsOutlive() {
        Strategy strategy = Strategy.create(1);
        FloatBuffer kept;
        try (Value value = Value.createTensor(strategy, copyOf(new float[] {7, 8}))) {
            kept = value.tensor().floats();
        }
        Variable variable = Variable.create(strategy, "w", copyOf(new float[] {5}));
        Tensor component = variable.component(0);
        variable.close();
        strategy.close();
        for (int i = 0; i < 20; i++) {
            System.gc();
            ValuesTest.litter();
        }
        equal(7f, kept.get(0));
        floats(component, 5);
        long before = Upcalls.lastToken();
        try (Strategy other = Strategy.create(1)) {
            Value.wrapTensor(other, copyOf(new float[] {1})).close();
            equal(0, Upcalls.sizeSince(before)); // the release has come
            Value item = Value.createList(other, List.of(Value.createNone(other))).item(0);
            Value own = item.retain();
            item.close(); // its list's
            equal(ValueKind.NONE, item.kind());
            own.close();
        }
    }

    private static void litter() {
        byte[][] garbage = new byte[64][];
        for (int i = 0; i < garbage.length; i++) {
            garbage[i] = new byte[1 << 12];
        }
        check(garbage[63] != null);
    }

    private static void runsOnValues() {
        try (Strategy strategy = Strategy.create(2)) {
            Value args = Value.createTuple(strategy, perReplica(strategy, 1, 2));
            Value kwargs =
                    Value.createDict(strategy, Map.of("scale", Value.createTensor(strategy, scalar(10f))));
            Value[] kept = new Value[1];
            Value result = strategy.run((replica, given, named) -> {
                kept[0] = given;
                float x =
                        given.item(0).tensor().floats().get(0) * named.get("scale").tensor().floats().get(0);
                return Value.createTensor(replica.strategy(), scalar(x));
            }, args, kwargs, RunOptions.DEFAULT);
            equal("PerReplica: 0: f32 10, 1: f32 20", result.describe());
            equal(Status.FAILED_PRECONDITION, thrown(DistException.class, () -> kept[0].size()).status());
            equal(null, strategy.run((replica, given, named) -> null, null));
            Value passed = strategy.run((replica, given, named) -> given.item(0), args);
            equal("PerReplica: 0: f32 1, 1: f32 2", passed.describe());
            DistException e = thrown(DistException.class,
                    () -> strategy.run((replica, given, named) -> replica.id() == 0
                                            ? Value.createText(strategy, "a")
                                            : Value.createList(strategy, List.of()),
                                    null));
            equal(Status.INVALID_ARGUMENT, e.status());
            lateReplica();
            BindingTest.usable(strategy);
        }
    }

    /** A replica that is still inside when the run's deadline is over. */
    private static void lateReplica() {
        try (Strategy strategy = BindingTest.strategy(2, false)) {
            CountDownLatch over = new CountDownLatch(1);
            CountDownLatch out = new CountDownLatch(1);
            DistException e =
                    thrown(DistException.class, () -> strategy.run((replica, args, kwargs) -> {
                        if (replica.id() == 1) {
                            over.await();
                            out.countDown();
                        }
                        return null;
                    }, null, null, RunOptions.DEFAULT.timeout(Duration.ofMillis(20))));
            equal(Status.DEADLINE_EXCEEDED, e.status());
            over.countDown();
            out.await();
            while (true) { // refused until the replica is out
                try {
                    strategy.run(replica -> {});
                    return;
                } catch (DistException busy) {
                    check(busy.status() == Status.FAILED_PRECONDITION
                                    || busy.status() == Status.DEADLINE_EXCEEDED,
                            busy);
                }
            }
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void mergeCalls() {
        try (Strategy strategy = Strategy.create(2)) {
            strategy.run(replica -> {
                Value args =
                        Value.createTuple(strategy, Value.createTensor(strategy, scalar(replica.id() + 1f)));
                Value sum = replica.mergeCall((outer, merged, named) -> {
                    check(outer == strategy && Strategy.current() == strategy && Replica.current() == null);
                    return outer.reduceTo(ReduceOp.SUM, merged.item(0), null);
                }, args, null, NONE);
                equal("f32 3", sum.describe());
            });
            IOException own = new IOException("in merge");
            Throwable[] peer = new Throwable[1];
            IOException seen = thrown(IOException.class, () -> strategy.run(replica -> {
                try {
                    replica.mergeCall((outer, merged, named) -> { throw own; }, null, null, NONE);
                } catch (DistException e) {
                    peer[0] = e;
                    throw e;
                }
            }));
            check(seen == own && seen.getSuppressed().length == 0, seen);
            check(peer[0].getMessage().contains("in merge"), peer[0]);
            BindingTest.usable(strategy);
        }
    }

    @SuppressWarnings("try") // a scope is there to be closed
    private static void variables() {
        try (Strategy strategy = Strategy.create(2)) {
            VariableOptions options =
                    VariableOptions.DEFAULT.name("w").aggregation(Aggregation.SUM);
            Variable w = Variable.create(strategy, copyOf(new float[] {1, 2}), options);
            equal("w", w.name());
            equal("MirroredVariable", w.variableClass());
            equal(Synchronization.ON_WRITE, w.synchronization());
            equal(Aggregation.SUM, w.aggregation());
            equal(2, w.numCopies());
            equal("w/replica_1", w.copyName(1));
            equal("/job:localhost/replica:0/task:0/device:CPU:1", w.device(strategy, 1));
            floats(w.read(strategy).tensor(), 1, 2);
            w.assign(strategy, Assign.ADD, Value.createTensor(strategy, copyOf(new float[] {1, 1})));
            floats(w.component(1), 2, 3);
            Value slices = Value.createComposite(strategy, ValueKind.INDEXED_SLICES,
                    List.of(Value.createTensor(strategy, copyOf(new float[] {5})),
                            Value.createTensor(strategy, copyOf(new long[] {1})),
                            Value.createNone(strategy)));
            w.scatter(strategy, Scatter.SUB, slices);
            floats(w.component(0), 2, -2);
            check(w.checkDrift(strategy).isNone());
            w.component(1).floats().put(0, 9f);
            DistException drift = thrown(DistException.class, () -> w.checkDrift(strategy));
            equal(Status.DATA_LOSS, drift.status());
            equal(1, drift.replica());
            Value value = Value.createVariable(w);
            check(value.variable().get() == w && Variable.isCreatedInScope(strategy, value));
            check(strategy.localResults(value).item(1).container().get() == w);
            equal(Optional.empty(), Value.createNone(strategy).variable());
            Variable made =
                    Variable.create(strategy, () -> Value.createTensor(strategy, scalar(3f)), options);
            check(made.toString().startsWith("MirroredVariable: 0: \"w\" f32 3"), made);
            thrown(IOException.class,
                    () -> Variable.create(strategy, () -> { throw new IOException(); }, options));
            try (Scope scope = strategy.scope(); Scope near = strategy.colocate(value)) {
                check(Strategy.current() == strategy);
            }
            w.close();
            equal(Status.FAILED_PRECONDITION, thrown(DistException.class, w::name).status());
            check(value.variable().get() != w);
        }
    }

    private static void replicaVariables() {
        Variable[] found = new Variable[2];
        Strategy strategy = Strategy.create(2);
        strategy.run(replica -> {
            VariableOptions options = VariableOptions.DEFAULT.aggregation(Aggregation.MEAN);
            Variable v = replica.variable("v", copyOf(new float[] {replica.id()}), options);
            found[replica.id()] = v;
            floats(v.read(replica).tensor(), 0);
            v.assign(replica, Assign.ADD, copyOf(new float[] {replica.id() + 1}));
            floats(v.component(replica.id()), 1.5f);
            v.assign(replica, Assign.SET, Value.createTensor(strategy, copyOf(new float[] {4})), NONE);
            floats(v.component(replica.id()), 4);
            Value slices = Value.createComposite(strategy, ValueKind.INDEXED_SLICES,
                    List.of(Value.createTensor(strategy, copyOf(new float[] {2})),
                            Value.createTensor(strategy, copyOf(new int[] {0})), Value.createNone(strategy)));
            v.scatter(replica, Scatter.ADD, slices, NONE);
            floats(v.component(replica.id()), 6);
            Value updated = v.update(replica, (place, args, kwargs) -> {
                place.copy().floats().put(0, 8f);
                return Value.createText(strategy, place.device());
            }, null);
            check(updated.text().endsWith("CPU:" + replica.id()), updated);
            Variable function =
                    replica.variable("f", () -> Value.createTensor(strategy, scalar(1f)), options);
            equal("f", function.name());
        });
        check(found[0] == found[1]);
        floats(found[0].component(1), 8);
        strategy.close();
        floats(found[0].component(1), 8);
    }
}
