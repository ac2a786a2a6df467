// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.util.Arrays;
import java.util.Map;
import java.util.stream.LongStream;
import org.libdist.DeviceAssignment;
import org.libdist.DeviceOrder;
import org.libdist.Partition;
import org.libdist.PartitionKind;
import org.libdist.Replica;
import org.libdist.Topology;
import org.libdist.Value;

/** The calls about topologies, device assignments, partitions, and values over logical devices. */
final class MeshCalls {
    private MeshCalls() {}

    static void addTo(Map<String, Calls.Call> all) {
        topologies(all);
        assignments(all);
        partitions(all);
        values(all);
    }

    private static Topology topology(Player p, Line l) {
        return p.object(Topology.class, l, "topology");
    }

    private static DeviceAssignment assignment(Player p, Line l) {
        return p.object(DeviceAssignment.class, l, "assignment");
    }

    /** The numbers of an array that is given; null where it is not. */
    private static int[] ints(Line l, String key) {
        return l.has(key) ? Arrays.stream(l.integers(key)).mapToInt(n -> (int) n).toArray() : null;
    }

    /** Flat coordinates as tables of rows. */
    private static int[][][] tables(Line l, String key, int count, int height) {
        int[] flat = l.has(key) ? ints(l, key) : new int[0];
        int width = l.number("ndim");
        int[][][] tables = new int[count][height][];
        for (int i = 0; i < count * height; i++) {
            tables[i / height][i % height] = Arrays.copyOfRange(flat, i * width, (i + 1) * width);
        }
        return tables;
    }

    private static String array(LongStream numbers) {
        return Literals.array(numbers.boxed().toList(), Object::toString);
    }

    private static String array(long[] numbers) {
        return array(Arrays.stream(numbers));
    }

    private static String array(int[] numbers) {
        return array(Arrays.stream(numbers).asLongStream());
    }

    private static String array(int[][] rows) {
        return array(Arrays.stream(rows).flatMapToInt(Arrays::stream).asLongStream());
    }

    private static String array(int[][][] tables) {
        return array(Arrays.stream(tables).flatMap(Arrays::stream).toArray(int[][] ::new));
    }

    private static void array(Map<String, Calls.Call> all, String name, Calls.ObjectCall call) {
        all.put(name, (p, l, came) -> came.put("out", (String) call.perform(p, l)));
    }

    private static void topologies(Map<String, Calls.Call> all) {
        Calls.object("topology_create",
                (p, l) -> Topology.create(ints(l, "mesh_shape"),
                                tables(l, "device_coordinates", l.number("num_tasks"),
                                        l.number("num_devices_per_task"))));
        Calls.act("topology_destroy", (p, l) -> topology(p, l).close());
        Calls.number("topology_mesh_rank", (p, l) -> topology(p, l).meshRank());
        Calls.number("topology_num_tasks", (p, l) -> topology(p, l).numTasks());
        Calls.number("topology_num_devices_per_task", (p, l) -> topology(p, l).numDevicesPerTask());
        Calls.number("topology_num_missing_devices", (p, l) -> topology(p, l).numMissingDevices());
        array(all, "topology_mesh_shape", (p, l) -> array(topology(p, l).meshShape()));
        array(all, "topology_device_coordinates", (p, l) -> array(topology(p, l).deviceCoordinates()));
        array(all, "topology_missing_devices", (p, l) -> array(topology(p, l).missingDevices()));
        Calls.number("topology_task_at", (p, l) -> topology(p, l).taskAt(ints(l, "coordinates")));
        Calls.number("topology_device_at", (p, l) -> topology(p, l).deviceAt(ints(l, "coordinates")));
        Calls.text("topology_device_name_at",
                (p, l) -> topology(p, l).deviceNameAt(ints(l, "coordinates"), l.text("job")));
        Calls.text("topology_host_name_at",
                (p, l) -> topology(p, l).hostNameAt(ints(l, "coordinates"), l.text("job")));
    }

    private static void assignments(Map<String, Calls.Call> all) {
        Calls.object("device_assignment_build",
                (p, l) -> DeviceAssignment.create(topology(p, l), ints(l, "computation_shape"),
                                ints(l, "computation_stride"), l.number("num_replicas"),
                                Codes.get(DeviceOrder.class, l.number("device_order"))));
        Calls.object("device_assignment_create",
                (p, l) -> l.number("num_replicas") == 0
                        ? DeviceAssignment.fromCoreAssignment(
                                topology(p, l), new int[0], 0, l.number("num_logical_devices"))
                        : DeviceAssignment.fromCoreAssignment(topology(p, l),
                                tables(l, "core_assignment", l.number("num_replicas"),
                                        l.number("num_logical_devices"))));
        Calls.object("device_assignment_create_single",
                (p, l) -> DeviceAssignment.create(topology(p, l)));
        Calls.act("device_assignment_destroy", (p, l) -> assignment(p, l).close());
        Calls.number("device_assignment_num_replicas", (p, l) -> assignment(p, l).numReplicas());
        Calls.number("device_assignment_num_logical_devices", (p, l) -> assignment(p, l).numLogicalDevices());
        array(all, "device_assignment_core_assignment", (p, l) -> array(assignment(p, l).coreAssignment()));
        array(all, "device_assignment_coordinates",
                (p, l) -> array(assignment(p, l).coordinates(
                                l.number("replica"), l.number("logical_device"))));
        Calls.number("device_assignment_device",
                (p, l) -> assignment(p, l).device(l.number("replica"), l.number("logical_device")));
        Calls.text("device_assignment_device_name",
                (p, l) -> assignment(p, l).deviceName(
                                l.number("replica"), l.number("logical_device"), l.text("job")));
        Calls.text("device_assignment_host_name",
                (p, l) -> assignment(p, l).hostName(
                                l.number("replica"), l.number("logical_device"), l.text("job")));
        array(all, "device_assignment_lookup_replicas",
                (p, l) -> array(assignment(p, l).lookupReplicas(
                                l.number("task"), l.number("logical_device"))));
    }

    private static Partition partition(Line l) {
        PartitionKind kind = Codes.get(PartitionKind.class, l.number("partition.kind"));
        int devices = l.number("partition.num_logical_devices");
        long[] shape = l.integers("partition.shape");
        Partition partition = kind == PartitionKind.SPLIT
                ? Partition.split(devices, shape, l.integers("partition.dimensions"))
                : kind == PartitionKind.ASSIGN
                ? Partition.assign(devices, shape, l.number("partition.logical_device"))
                : Partition.replicate(devices, shape);
        return partition.uneven(l.number("partition.uneven") != 0).spmd(l.number("partition.spmd") != 0);
    }

    private static void partitions(Map<String, Calls.Call> all) {
        Calls.act("partition_check", (p, l) -> partition(l).check());
        all.put("partition_shard", (p, l, came) -> {
            Partition.Shard shard = partition(l).shard(l.number("logical_device"));
            came.put("out.tile", array(shard.tile()));
            came.put("out.begin", array(shard.begin()));
            came.put("out.size", array(shard.size()));
            came.put("out.elements", Long.toString(shard.elements()));
        });
    }

    private static Replica replica(Player p, Line l) {
        return p.object(Replica.class, l, "replica");
    }

    private static Value value(Player p, Line l) {
        return p.object(Value.class, l, "value");
    }

    private static void values(Map<String, Calls.Call> all) {
        Calls.value("split_to_logical_devices",
                (p, l) -> replica(p, l).splitToLogicalDevices(value(p, l),
                                l.integers("partition_dimensions"), l.number("options.uneven") != 0));
        Calls.value("assign_to_logical_device",
                (p, l) -> replica(p, l).assignToLogicalDevice(value(p, l), l.number("logical_device")));
        Calls.value("replicate_to_logical_devices",
                (p, l) -> replica(p, l).replicateToLogicalDevices(value(p, l)));
        all.put("value_shard", (p, l, came) -> {
            Value.Shard shard = value(p, l).shard(l.number("logical_device"));
            came.put("out.begin", array(shard.begin()));
            came.put("out", Literals.of(shard.tensor()));
        });
    }
}
