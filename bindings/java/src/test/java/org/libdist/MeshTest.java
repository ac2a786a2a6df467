// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.floats;
import static org.libdist.Tap.thrown;
import static org.libdist.TopologyTest.failure;
import static org.libdist.TopologyTest.full;
import static org.libdist.TopologyTest.longs;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;

/** Replicas made of logical devices: what is divided over them, what runs on them, how that fails. */
final class MeshTest {
    private static final CollectiveOptions NONE = CollectiveOptions.DEFAULT;

    private MeshTest() {}

    static void addTo(Tap tap) {
        tap.add("values over logical devices", MeshTest::shardedValues);
        tap.add("functions on devices, whose results are joined", MeshTest::runOnDevices);
        tap.add("results as they are told to be", MeshTest::toldResults);
        tap.add("devices meet, along axes too", MeshTest::axes);
        tap.add("halo exchange", MeshTest::halo);
        tap.add("resharding", MeshTest::reshard);
        tap.add("work that devices leave under way", MeshTest::workLeft);
        tap.add("a device's exception comes back as itself", MeshTest::deviceThrows);
        tap.add("the culprit's logical device", MeshTest::culprit);
        tap.add("what is refused on devices and on replicas", MeshTest::refused);
        tap.add("a device that does not end in time", MeshTest::lateDevice);
        tap.add("devices that are cancelled", MeshTest::cancelled);
    }

    /** Replicas of so many logical devices. */
    private static Strategy mesh(int replicas, int devices, MeshAxis... axes) {
        try (Topology topology = full(replicas, devices, 1, 1);
                DeviceAssignment assignment = DeviceAssignment.create(
                        topology, new int[] {1, devices, 1, 1}, null, replicas, DeviceOrder.MESH)) {
            return Strategy.create(StrategyOptions.DEFAULT.kind(StrategyKind.MESH)
                                        .deviceAssignment(assignment)
                                        .axes(axes));
        }
    }

    private static Value tensor(Strategy strategy, int... values) {
        return Value.createTensor(strategy, Tensors.copyOf(values));
    }

    private static Value matrix(Strategy strategy, int rows, int columns) {
        return Value.createTensor(strategy,
                Tensors.copyOf(IntStream.range(0, rows * columns).toArray(), rows, columns));
    }

    private static void ints(Tensor actual, int... expected) {
        equal(Arrays.toString(expected), Arrays.toString(Tensors.toInts(actual)));
    }

    // ---- On a replica ----

    private static void shardedValues() {
        Value kept;
        try (Strategy strategy = mesh(1, 4)) {
            AtomicReference<Value> out = new AtomicReference<>();
            strategy.run(replica -> {
                Value whole = matrix(strategy, 4, 6);
                Value split = replica.splitToLogicalDevices(whole, 2, 2);
                equal(ValueKind.SHARDED, split.kind());
                equal(4, split.size());
                equal(Partition.split(4, new long[] {4, 6}, new long[] {2, 2}), split.partition());
                ints(split.tensor(), Tensors.toInts(whole.tensor()));
                Value.Shard last = split.shard(3);
                longs(last.begin(), 2, 3);
                ints(last.tensor(), 15, 16, 17, 21, 22, 23);
                ints(split.item(3).tensor(), 15, 16, 17, 21, 22, 23);
                thrown(DistException.class, () -> split.shard(4));
                equal(Status.INVALID_ARGUMENT,
                        failure(() -> replica.splitToLogicalDevices(whole, 1, 4)));
                Value uneven = replica.splitToLogicalDevices(split, new long[] {1, 4}, true);
                check(uneven.partition().isUneven());
                ints(uneven.shard(0).tensor(), 0, 1, 6, 7, 12, 13, 18, 19);
                Value assigned = replica.assignToLogicalDevice(whole, 2);
                equal(2, assigned.partition().logicalDevice());
                equal(PartitionKind.ASSIGN, assigned.partition().kind());
                equal(Status.NOT_FOUND, failure(() -> assigned.shard(0)));
                equal(24L, assigned.shard(2).tensor().size());
                Value everywhere = replica.replicateToLogicalDevices(whole);
                equal(PartitionKind.REPLICATE, everywhere.partition().kind());
                equal(24L, everywhere.shard(1).tensor().size());
                equal(Status.INVALID_ARGUMENT, failure(whole::partition));
                equal(Status.INVALID_ARGUMENT, failure(() -> replica.assignToLogicalDevice(whole, 4)));
                thrown(NullPointerException.class, () -> replica.replicateToLogicalDevices(null));
                thrown(NullPointerException.class,
                        () -> replica.splitToLogicalDevices(whole, (long[]) null));
                out.set(split);
            });
            kept = out.get();
        }
        Tensor view;
        try (kept) { // outlives its strategy, and the view the value
            view = kept.shard(1).tensor();
        }
        ints(view, 3, 4, 5, 9, 10, 11);
        equal(Status.FAILED_PRECONDITION, failure(() -> kept.shard(1)));
    }

    /** Twice a device's part. */
    private static Value twice(Replica device, Value args, Value kwargs) {
        Tensor part = args.item(0).tensor();
        int[] values = Arrays.stream(Tensors.toInts(part)).map(value -> 2 * value).toArray();
        return Value.createTensor(device.strategy(), Tensors.copyOf(values, part.shape()));
    }

    private static void runOnDevices() {
        for (ReplicaThreads threads : new ReplicaThreads[] {ReplicaThreads.CALLER, ReplicaThreads.LIBRARY}) {
            try (Topology topology = full(2, 4, 1, 1);
                    DeviceAssignment assignment =
                            DeviceAssignment.create(topology, new int[] {1, 4, 1, 1}, 2);
                    Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.kind(StrategyKind.MESH)
                                                             .threads(threads)
                                                             .deviceAssignment(assignment))) {
                Value result = strategy.run((replica, args, kwargs) -> {
                    equal(-1, replica.deviceReplica());
                    Value split = replica.splitToLogicalDevices(args.item(0), 4);
                    Value joined =
                            replica.runOnDevices(MeshTest::twice, Value.createList(strategy, List.of(split)));
                    equal(split.partition(), joined.partition());
                    equal(null, replica.runOnDevices((device, none, keys) -> {
                        check(none == null && keys == null && Replica.current() == device);
                        equal(replica.id(), device.deviceReplica());
                        equal(4, device.numReplicas());
                        check(strategy == device.strategy());
                        int[] place = device.deviceCoordinates();
                        check(Arrays.equals(new int[] {replica.id(), device.id(), 0, 0}, place));
                        return null;
                    }, null));
                    check(Replica.current() == replica);
                    return joined;
                }, Value.createTuple(strategy, tensor(strategy, 1, 2, 3, 4)));
                ints(result.item(1).tensor(), 2, 4, 6, 8);
                BindingTest.usable(strategy);
            }
        }
    }

    private static void toldResults() {
        try (Strategy strategy = mesh(1, 2)) {
            strategy.run(replica -> {
                ValuesFunction<RuntimeException> id = (device, args, kwargs) -> tensor(strategy, device.id());
                DevicesOptions tiles =
                        DevicesOptions.DEFAULT.results(Partition.split(2, new long[1], new long[] {2}));
                ints(replica.runOnDevices(id, null, null, tiles).tensor(), 0, 1);
                DevicesOptions second =
                        DevicesOptions.DEFAULT.results(Partition.assign(2, new long[1], 1));
                ints(replica.runOnDevices(id, null, null, second).tensor(), 1);
                DevicesOptions equal =
                        DevicesOptions.DEFAULT.results(Partition.replicate(2, new long[1]));
                equal(Status.INVALID_ARGUMENT,
                        failure(() -> replica.runOnDevices(id, null, null, equal)));
                Value kwargs = Value.createDict(strategy, Map.of("x", tensor(strategy, 7)));
                Value same = replica.runOnDevices(
                        (device, args, keys) -> keys.get("x").retain(), null, kwargs, DevicesOptions.DEFAULT);
                ints(same.tensor(), 7);
                thrown(NullPointerException.class, () -> replica.runOnDevices(null, null));
                equal(Status.INVALID_ARGUMENT, failure(() -> replica.runOnDevices(id, same)));
            });
        }
    }

    // ---- On devices ----

    @FunctionalInterface
    private interface DeviceBody {
        void run(Replica device) throws IOException;
    }

    private static void onDevices(Strategy strategy, DeviceBody body) throws IOException {
        strategy.<IOException>run(replica -> replica.<IOException>runOnDevices((device, args, kwargs) -> {
            body.run(device);
            return null;
        }, null));
    }

    private static void axes() throws IOException {
        try (Strategy strategy = mesh(2, 6, new MeshAxis("row", 2), new MeshAxis("column", 3))) {
            onDevices(strategy, device -> {
                int me = device.id();
                Tensor all = Tensors.copyOf(new int[] {me});
                device.allReduce(ReduceOp.SUM, all);
                ints(all, 15);
                equal(new AxisPlace(me / 3, 2), device.deviceAxis("row"));
                equal(new AxisPlace(me % 3, 3), device.deviceAxis("column"));
                Group group = device.deviceAxisGroup("column");
                equal(3, group.size());
                equal(me % 3, group.rank(me));
                group.close(); // the strategy's
                Tensor row = Tensors.copyOf(new int[] {me});
                device.allReduce(ReduceOp.SUM, List.of(row), NONE.group(group));
                ints(row, 9 * (me / 3) + 3);
                DistException none = thrown(DistException.class, () -> device.deviceAxis("z"));
                check(none.getMessage().contains("The axes are \"row\", \"column\""), none.getMessage());
                thrown(NullPointerException.class, () -> device.deviceAxisGroup(null));
                long[] sum = new long[1];
                device.parallelFor(0, 100, 10, (begin, end) -> {
                    synchronized (sum) {
                        sum[0] += end - begin;
                    }
                });
                equal(100L, sum[0]);
            });
        }
        try (Topology topology = full(1, 2, 1, 1);
                DeviceAssignment assignment = DeviceAssignment.create(topology, null, 2)) {
            StrategyOptions options =
                    StrategyOptions.DEFAULT.kind(StrategyKind.MESH).deviceAssignment(assignment);
            equal(Status.INVALID_ARGUMENT,
                    failure(() -> Strategy.create(options.axes(new MeshAxis("a", 5)))));
            try (Strategy strategy = Strategy.create(options.axes(new MeshAxis("ä", 1)))) {
                onDevices(strategy, device -> equal(new AxisPlace(0, 1), device.deviceAxis("ä")));
            }
        }
    }

    private static void halo() throws IOException {
        try (Strategy strategy = mesh(1, 3)) {
            onDevices(strategy, device -> {
                int me = device.id();
                Tensor tile = Tensors.copyOf(new float[] {2 * me, 2 * me + 1});
                Tensor out = Tensor.zeros(DType.F32, 4);
                Halo one = Halo.of(3).low(1).high(1);
                device.haloExchange(tile, one, out, NONE);
                floats(out, me == 0 ? 0 : 2 * me - 1, 2 * me, 2 * me + 1, me == 2 ? 0 : 2 * me + 2);
                device.haloExchange(tile, one.edges(Edge.WRAP), out, CollectiveOptions.DEFAULT.tag("ring"));
                floats(out, (2 * me + 5) % 6, 2 * me, 2 * me + 1, (2 * me + 2) % 6);
                Tensor inside = Tensor.zeros(DType.F32, me == 1 ? 4 : 3);
                device.haloExchange(tile, one.edges(Edge.NONE), inside, NONE);
                equal(me == 0 ? 2.0f : 2 * me + 1, inside.floats().get(2));
                thrown(IllegalArgumentException.class, () -> one.low(1, 1));
                thrown(IllegalArgumentException.class, () -> one.edges());
                thrown(NullPointerException.class, () -> device.haloExchange(tile, null, out, NONE));
            });
        }
    }

    private static void reshard() throws IOException {
        long[] shape = {2, 2};
        Partition rows = Partition.split(2, shape, new long[] {2, 1});
        Partition columns = Partition.split(2, shape, new long[] {1, 2});
        Partition second = Partition.assign(2, shape, 1);
        try (Strategy strategy = mesh(2, 2)) {
            onDevices(strategy, device -> {
                int me = device.id();
                Tensor row = Tensors.copyOf(new int[] {2 * me, 2 * me + 1}, 1, 2);
                Tensor column = Tensor.zeros(DType.I32, 2, 1);
                device.reshard(rows, columns, row, column, NONE);
                ints(column, me, me + 2);
                Tensor whole = me == 1 ? Tensor.zeros(DType.I32, 2, 2) : null;
                device.reshard(columns, second, column, whole, NONE);
                Tensor back = Tensor.zeros(DType.I32, 1, 2);
                device.reshard(second, rows, whole, back, NONE);
                ints(back, 2 * me, 2 * me + 1);
                thrown(NullPointerException.class, () -> device.reshard(null, rows, row, back, NONE));
            });
        }
    }

    private static void workLeft() {
        try (Strategy strategy = mesh(2, 2)) {
            strategy.run(replica -> {
                Work[] works = new Work[2];
                Tensor[] data = new Tensor[2];
                replica.runOnDevices((device, args, kwargs) -> {
                    int me = device.id();
                    data[me] = Tensors.copyOf(new int[] {me + 1});
                    works[me] = device.async().allReduce(ReduceOp.SUM, List.of(data[me]), NONE);
                    return null;
                }, null);
                for (int d = 0; d < 2; d++) {
                    check(works[d].isDone() && !works[d].isCompletedExceptionally());
                    ints(data[d], 3);
                }
            });
            BindingTest.usable(strategy);
        }
    }

    // ---- Failures ----

    private static void deviceThrows() {
        IOException broken = new IOException("pixel 3 is broken");
        try (Strategy strategy = mesh(2, 3)) {
            IOException out = thrown(IOException.class, () -> onDevices(strategy, device -> {
                if (device.deviceReplica() == 1 && device.id() == 2) {
                    throw broken;
                }
                device.barrier(NONE);
            }));
            check(out == broken, out);
            BindingTest.usable(strategy);
            strategy.run(replica -> { // no failure of the replica's, which catches it
                StackOverflowError deep = thrown(StackOverflowError.class,
                        () -> replica.runOnDevices((device, args, kwargs) -> endless(device), null));
                check(deep != null);
                DistException own = new DistException(Status.DATA_LOSS, "none left", null);
                ValuesFunction<RuntimeException> fails = (device, args, kwargs) -> {
                    throw own;
                };
                check(own == thrown(DistException.class, () -> replica.runOnDevices(fails, null)));
            });
            BindingTest.usable(strategy);
        }
    }

    private static Value endless(Replica device) {
        Value value = endless(device);
        return value == null ? null : value.retain();
    }

    private static void culprit() throws IOException {
        try (Strategy strategy = mesh(2, 3)) {
            DistException mismatch = thrown(DistException.class, () -> onDevices(strategy, device -> {
                if (device.deviceReplica() == 1) {
                    device.allReduce(device.id() == 2 ? ReduceOp.MAX : ReduceOp.SUM,
                            Tensors.copyOf(new int[] {1}));
                }
            }));
            equal(1, mismatch.replica());
            equal(2, mismatch.logicalDevice());
            equal(Collective.ALL_REDUCE, mismatch.collective());
            DistException halo = thrown(DistException.class, () -> onDevices(strategy, device -> {
                Tensor tile = Tensors.copyOf(new int[] {1});
                Edge edge = device.id() == 0 ? Edge.WRAP : Edge.CLAMP;
                device.haloExchange(tile, Halo.of(3).low(1).edges(edge), Tensor.zeros(DType.I32, 2), NONE);
            }));
            equal(Collective.HALO_EXCHANGE, halo.collective());
            DistException whole = thrown(DistException.class,
                    () -> strategy.run(replica -> replica.allReduce(
                                       replica.id() == 0 ? ReduceOp.MAX : ReduceOp.SUM,
                                       Tensors.copyOf(new int[] {1}))));
            equal(-1, whole.logicalDevice());
            equal(-1, new DistException(Status.UNKNOWN, "own", null).logicalDevice());
            BindingTest.usable(strategy);
        }
    }

    private static void refused() throws IOException {
        try (Strategy mirrored = Strategy.create(2)) {
            mirrored.run(replica -> {
                equal(Status.FAILED_PRECONDITION,
                        failure(() -> replica.runOnDevices((device, args, kwargs) -> null, null)));
                equal(Status.FAILED_PRECONDITION, failure(() -> replica.deviceAxis("x")));
                equal(Status.FAILED_PRECONDITION, failure(replica::deviceCoordinates));
            });
        }
        try (Strategy strategy = mesh(1, 2)) {
            AtomicReference<Replica> kept = new AtomicReference<>();
            strategy.run(replica -> {
                Value value = tensor(strategy, 1, 2);
                replica.runOnDevices((device, args, kwargs) -> {
                    kept.set(device);
                    equal(Status.FAILED_PRECONDITION, failure(() -> device.splitToLogicalDevices(value, 2)));
                    equal(Status.FAILED_PRECONDITION, failure(() -> device.assignToLogicalDevice(value, 0)));
                    equal(Status.FAILED_PRECONDITION,
                            failure(() -> replica.runOnDevices((d, a, k) -> null, null)));
                    equal(Status.FAILED_PRECONDITION,
                            failure(() -> device.mergeCall((outer, merged, named) -> null, null, null, NONE)));
                    return null;
                }, null);
                equal(Status.FAILED_PRECONDITION, failure(() -> kept.get().deviceAxis("device")));
                equal(Status.FAILED_PRECONDITION, failure(() -> kept.get().barrier(NONE)));
            });
            equal(Status.FAILED_PRECONDITION, failure(kept.get()::deviceReplica));
            BindingTest.usable(strategy);
        }
        try (Topology topology = full(1, 2, 1, 1);
                DeviceAssignment assignment = DeviceAssignment.create(topology, new int[] {1, 2, 1, 1}, 1);
                Strategy spmd = Strategy.create(StrategyOptions.DEFAULT.kind(StrategyKind.MESH)
                                                     .deviceAssignment(assignment)
                                                     .useSpmdPartitioning(true))) {
            spmd.run(replica -> equal(Status.INVALID_ARGUMENT,
                             failure(() -> replica.assignToLogicalDevice(tensor(spmd, 1), 0))));
        }
    }

    private static void lateDevice() {
        CountDownLatch inside = new CountDownLatch(1);
        CountDownLatch over = new CountDownLatch(1);
        ValuesFunction<InterruptedException> stay = (device, args, kwargs) -> {
            if (device.id() == 1) {
                inside.countDown();
                over.await();
            } else {
                inside.await();
                device.barrier(NONE);
            }
            return null;
        };
        Strategy strategy = mesh(1, 2);
        strategy.run(replica -> {
            DevicesOptions soon = DevicesOptions.DEFAULT.timeout(Duration.ofMillis(1));
            equal(Status.DEADLINE_EXCEEDED, failure(() -> replica.runOnDevices(stay, null, null, soon)));
            equal(Status.FAILED_PRECONDITION, failure(() -> replica.runOnDevices(stay, null)));
        });
        BindingTest.usable(strategy);
        equal(Status.FAILED_PRECONDITION, failure(strategy::close));
        over.countDown();
        while (true) { // refused until the device is out
            try {
                strategy.close();
                return;
            } catch (DistException e) {
                equal(Status.FAILED_PRECONDITION, e.status());
                Thread.onSpinWait();
            }
        }
    }

    private static void cancelled() {
        try (Strategy strategy = mesh(1, 2)) {
            DistException cancelled = thrown(DistException.class,
                    () -> strategy.run(replica -> replica.runOnDevices((device, args, kwargs) -> {
                        if (device.id() == 1) {
                            strategy.cancel();
                        }
                        device.barrier(NONE.timeout(Duration.ofSeconds(-1)));
                        return null;
                    }, null)));
            equal(Status.CANCELLED, cancelled.status());
            BindingTest.usable(strategy);
        }
    }
}
