// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;

import java.util.Arrays;
import java.util.Optional;

/** Topologies, device assignments, partitions: where devices are, whose they are, who has what. */
final class TopologyTest {
    private TopologyTest() {}

    static void addTo(Tap tap) {
        tap.add("topologies", TopologyTest::topologies);
        tap.add("the host's topology", TopologyTest::hostTopology);
        tap.add("device assignments", TopologyTest::assignments);
        tap.add("an assignment and its topology end after what they were made with", TopologyTest::lifetimes);
        tap.add("coordinates that do not fit are refused", TopologyTest::badCoordinates);
        tap.add("partitions", TopologyTest::partitions);
        tap.add("bytes of resharding", TopologyTest::reshardBytes);
    }

    /** Every position of a mesh has a device, of one task, in row-major order. */
    static Topology full(int... mesh) {
        int n = Arrays.stream(mesh).reduce(1, (a, b) -> a * b);
        int[][] devices = new int[n][mesh.length];
        for (int d = 0; d < n; d++) {
            for (int axis = mesh.length - 1, rest = d; axis >= 0; rest /= mesh[axis--]) {
                devices[d][axis] = rest % mesh[axis];
            }
        }
        return Topology.create(mesh, new int[][][] {devices});
    }

    static Status failure(Tap.Test test) {
        return thrown(DistException.class, test).status();
    }

    static void longs(long[] actual, long... expected) {
        equal(Arrays.toString(expected), Arrays.toString(actual));
    }

    // ---- Where devices are, and whose ----

    private static void topologies() {
        int[][][] tasks = {{{0, 0, 0, 0}, {0, 0, 0, 1}}, {{1, 0, 0, 1}, {1, 0, 0, 0}}};
        try (Topology topology = Topology.create(new int[] {2, 2, 1, 2}, tasks)) {
            equal(4, topology.meshRank());
            check(Arrays.equals(new int[] {2, 2, 1, 2}, topology.meshShape()));
            equal(2, topology.numTasks());
            equal(2, topology.numDevicesPerTask());
            check(Arrays.deepEquals(tasks, topology.deviceCoordinates()));
            equal(4, topology.numMissingDevices());
            int[][] missing = {{0, 1, 0, 0}, {0, 1, 0, 1}, {1, 1, 0, 0}, {1, 1, 0, 1}};
            check(Arrays.deepEquals(missing, topology.missingDevices()));
            equal(1, topology.taskAt(1, 0, 0, 0));
            equal(1, topology.deviceAt(-1, 0, 0, 0));
            equal(-1, topology.taskAt(0, 1, 0, 0));
            int[] place = {1, 0, 0, 1};
            equal("/job:worker/task:1/device:TPU:0", topology.deviceNameAt(place, "worker"));
            equal("/task:1/device:TPU:0", topology.deviceNameAt(place, null));
            equal("/job:" + "w".repeat(5000) + "/task:1/device:CPU:0",
                    topology.hostNameAt(place, "w".repeat(5000)));
            check(!topology.explain().isEmpty());
            equal(Status.FAILED_PRECONDITION, failure(() -> topology.cpuAt(place)));
            try (Topology again = Topology.create(topology.meshShape(), topology.deviceCoordinates())) {
                check(Arrays.deepEquals(tasks, again.deviceCoordinates()));
                check(!topology.equals(again));
            }
        }
    }

    private static void hostTopology() {
        try (Topology host = Topology.fromHost()) {
            equal(1, host.numTasks());
            int[][] devices = host.deviceCoordinates()[0];
            check(devices.length >= 1);
            for (int[] device : devices) {
                check(host.cpuAt(device) >= 0);
            }
            check(host.explain().contains(":"), host.explain());
        }
    }

    private static void assignments() {
        try (Topology topology = full(2, 2, 1, 2)) {
            int[] block = {1, 2, 1, 2};
            try (DeviceAssignment built =
                            DeviceAssignment.create(topology, block, null, 2, DeviceOrder.MESH)) {
                equal(2, built.numReplicas());
                equal(4, built.numLogicalDevices());
                equal(topology, built.topology());
                equal(topology.hashCode(), built.topology().hashCode());
                int[][][] all = built.coreAssignment();
                check(Arrays.equals(new int[] {0, 0, 0, 1}, all[0][1]), Arrays.deepToString(all));
                check(Arrays.equals(all[1][3], built.coordinates(1, 3)));
                check(Arrays.equals(all[1][3], built.coordinates(-1, -1)));
                equal(topology.deviceAt(all[1][2]), built.device(1, 2));
                equal(topology.deviceNameAt(all[1][2], "w"), built.deviceName(1, 2, "w"));
                equal(topology.hostNameAt(all[1][2], null), built.hostName(1, 2, null));
                check(Arrays.equals(new int[] {0, 1}, built.lookupReplicas(0, 3)));
                equal(Status.INVALID_ARGUMENT, failure(() -> built.lookupReplicas(1, 3)));
                equal(Status.INVALID_ARGUMENT, failure(() -> built.coordinates(2, 0)));
                try (DeviceAssignment again = DeviceAssignment.fromCoreAssignment(topology, all)) {
                    check(Arrays.deepEquals(all, again.coreAssignment()));
                }
            }
            try (DeviceAssignment single = DeviceAssignment.create(topology);
                    DeviceAssignment each = DeviceAssignment.create(topology, null, 8);
                    DeviceAssignment none = DeviceAssignment.fromCoreAssignment(topology, new int[0][][]);
                    DeviceAssignment flat = DeviceAssignment.fromCoreAssignment(topology, new int[8], 1, 2);
                    DeviceAssignment empty = DeviceAssignment.fromCoreAssignment(topology, new int[0], 0, 3)) {
                equal(2, flat.numLogicalDevices());
                equal(3, empty.numLogicalDevices());
                check(Arrays.equals(new int[4], single.coordinates(0, 0)));
                equal(8, each.numReplicas());
                equal(0, none.numReplicas());
                equal(0, none.coreAssignment().length);
            }
            equal(Status.INVALID_ARGUMENT,
                    failure(() -> DeviceAssignment.create(topology, new int[] {3, 1, 1, 1}, 1)));
        }
    }

    private static void lifetimes() {
        Topology topology = full(2, 2, 1, 1);
        DeviceAssignment assignment = DeviceAssignment.create(topology, new int[] {1, 2, 1, 1}, 2);
        topology.close();
        topology.close();
        equal(Status.FAILED_PRECONDITION, failure(topology::meshRank));
        equal("the topology is closed", thrown(DistException.class, topology::meshShape).getMessage());
        Topology held = assignment.topology();
        held.close(); // not its own
        equal(4, held.meshRank());
        StrategyOptions options =
                StrategyOptions.DEFAULT.kind(StrategyKind.MESH).deviceAssignment(assignment);
        DeviceAssignment ofStrategy;
        try (Strategy strategy = Strategy.create(options)) {
            ofStrategy = strategy.deviceAssignment().orElseThrow();
            equal(assignment, ofStrategy);
            assignment.close();
            equal(Status.FAILED_PRECONDITION, failure(held::meshRank));
            equal(2, strategy.numReplicas());
            equal(2, strategy.numLogicalDevices());
            equal(StrategyKind.MESH, strategy.kind());
            ofStrategy.close(); // not its own
            equal(2, ofStrategy.topology().meshShape()[0]);
        }
        equal(Status.FAILED_PRECONDITION, failure(ofStrategy::numReplicas));
        equal(Status.FAILED_PRECONDITION, failure(() -> Strategy.create(options)));
        try (Strategy mirrored = Strategy.create(2)) {
            equal(1, mirrored.numLogicalDevices());
            equal(Optional.empty(), mirrored.deviceAssignment());
        }
    }

    private static void badCoordinates() {
        int[][] one = {{0, 0, 0, 0}};
        equal(Status.INVALID_ARGUMENT, failure(() -> Topology.create(new int[] {1}, new int[][][] {{{0}}})));
        thrown(IllegalArgumentException.class,
                () -> Topology.create(new int[] {1, 1, 1, 1}, new int[][][] {one, {}}));
        thrown(IllegalArgumentException.class,
                () -> Topology.create(new int[] {1, 1, 1, 1}, new int[][][] {{{0, 0}}}));
        thrown(NullPointerException.class, () -> Topology.create(null, new int[][][] {one}));
        thrown(NullPointerException.class, () -> Topology.create(new int[4], null));
        try (Topology topology = full(1, 1, 1, 1)) {
            thrown(IllegalArgumentException.class, () -> topology.taskAt(0, 0));
            thrown(IllegalArgumentException.class, () -> topology.hostNameAt(new int[5], "w"));
            equal(Status.INVALID_ARGUMENT, failure(() -> topology.taskAt(1, 0, 0, 0)));
            thrown(IllegalArgumentException.class,
                    () -> DeviceAssignment.create(topology, new int[4], new int[3], 1, DeviceOrder.AUTO));
            equal(Status.INVALID_ARGUMENT,
                    failure(() -> DeviceAssignment.create(topology, new int[] {1}, 1)));
            equal(Status.INVALID_ARGUMENT,
                    failure(() -> DeviceAssignment.fromCoreAssignment(topology, new int[][][] {{{0, 0}}})));
            thrown(IllegalArgumentException.class,
                    () -> DeviceAssignment.fromCoreAssignment(topology, new int[4], 1, 2));
            equal(Status.INVALID_ARGUMENT,
                    failure(() -> DeviceAssignment.fromCoreAssignment(topology, new int[4], -1, -1)));
            thrown(NullPointerException.class, () -> DeviceAssignment.create(null));
            thrown(NullPointerException.class,
                    () -> DeviceAssignment.create(topology, null, null, 1, null));
        }
    }

    // ---- Partitions ----

    private static void partitions() {
        Partition split = Partition.split(6, new long[] {4, 9}, new long[] {2, 3});
        split.check();
        Partition.Shard shard = split.shard(5);
        longs(shard.tile(), 1, 2);
        longs(shard.begin(), 2, 6);
        longs(shard.size(), 2, 3);
        equal(6L, shard.elements());
        equal("SPLIT[2, 3] of [4, 9]", split.toString());
        Partition uneven = Partition.split(2, new long[] {3}, new long[] {2}).uneven(true);
        longs(uneven.shard(0).size(), 2);
        equal(-1L, Partition.split(2, new long[] {-1}, new long[] {2}).shard(1).elements());
        DistException refused = thrown(DistException.class, uneven.uneven(false)::check);
        equal(Status.INVALID_ARGUMENT, refused.status());
        equal(Status.INVALID_ARGUMENT, failure(() -> split.shard(6)));
        Partition assign = Partition.assign(2, new long[] {3}, 1);
        longs(assign.shard(1).size(), 3);
        equal(0L, assign.shard(0).elements());
        equal(Status.INVALID_ARGUMENT, failure(assign.spmd(true)::check));
        Partition everywhere = Partition.replicate(2, new long[0]);
        equal(1L, everywhere.shard(1).elements());
        equal(Partition.replicate(2, new long[0]), everywhere);
        check(!everywhere.equals(assign) && !uneven.equals(uneven.uneven(false)));
        equal(Status.INVALID_ARGUMENT,
                failure(Partition.split(1, new long[0], new long[0])::check));
        equal(Status.INVALID_ARGUMENT, failure(Partition.replicate(1, new long[100])::check));
        thrown(NullPointerException.class, () -> Partition.split(1, null, new long[0]));
    }

    private static void reshardBytes() {
        long[] shape = {4, 4};
        Partition rows = Partition.split(2, shape, new long[] {2, 1});
        Partition columns = Partition.split(2, shape, new long[] {1, 2});
        equal(16L, rows.reshardBytes(columns, DType.F32, 0));
        equal(32L, rows.reshardBytes(columns, DType.F32, -1));
        equal(0L, rows.reshardBytes(rows, DType.F64, -1));
        equal(Status.INVALID_ARGUMENT, failure(() -> rows.reshardBytes(columns, DType.F32, 2)));
    }
}
