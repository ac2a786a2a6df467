// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.libdist.Aggregation;
import org.libdist.DeviceOrder;
import org.libdist.PartitionKind;
import org.libdist.ReduceOp;
import org.libdist.Synchronization;

/**
 * Calls that Java does not let a program make, or takes well. Each of them only fails in C, or names
 * nothing.
 */
final class LeftOut {
    private static final Set<String> ONE_DESTINATION = Set.of("reduce_to", "broadcast_to",
            "destination_device", "cross_device_reduce", "cross_device_broadcast");
    private static final Set<String> REPLICAS_OWN = Set.of("replica_id", "replica_num_replicas",
            "replica_strategy", "replica_leave", "replica_read", "replica_assign", "replica_assign_value",
            "replica_scatter", "replica_update", "replica_variable", "split_to_logical_devices",
            "assign_to_logical_device", "replicate_to_logical_devices", "all_reduce", "all_reduce_value",
            "all_gather_value", "merge_call");

    private static final Map<String, Class<? extends Enum<?>>> ENUMS = Map.of("op", ReduceOp.class, "aggregation",
            Aggregation.class, "options.aggregation", Aggregation.class, "options.synchronization",
            Synchronization.class, "device_order", DeviceOrder.class, "partition.kind", PartitionKind.class);

    private LeftOut() {}

    /** Why a call cannot be made; null: it can. */
    static String reason(Line line) {
        String number = number(line);
        if (number != null) {
            return "no enumerator has the number of " + number;
        }
        if (line.name.equals("run_values") && !line.has("fn")) {
            return "run() without a function is a NullPointerException";
        }
        if (line.answered.getOrDefault("error", "").startsWith("t:args%20is%20")) {
            return "a value that is no list or tuple is the only argument";
        }
        if (line.name.equals("update") && !line.has("variable")) {
            return "update() without a variable is a NullPointerException";
        }
        if (REPLICAS_OWN.contains(line.name) && !line.has("replica")) {
            return "there is no method without a replica";
        }
        if (line.name.equals("topology_create") && isWithoutArray(line)) {
            return "Topology.create() without an array is a NullPointerException";
        }
        if (!destinationsSayOneThing(line)) {
            return "a Destination says one thing";
        }
        return isNoDataset(line) ? "a value is no Dataset" : null;
    }

    private static boolean isWithoutArray(Line line) {
        boolean hasDevices = line.integer("num_tasks") * line.integer("num_devices_per_task") != 0;
        return !line.has("mesh_shape") || (hasDevices && !line.has("device_coordinates"));
    }

    private static String number(Line line) {
        for (Map.Entry<String, Class<? extends Enum<?>>> key : ENUMS.entrySet()) {
            String name = key.getKey();
            boolean isOption = name.contains("."); // whose default is 0
            if (line.given.containsKey(name) && !(isOption && line.integer(name) == 0)
                    && Stream.of(key.getValue().getEnumConstants()).noneMatch(one -> Codes.of(one) == line.integer(name))) {
                return name;
            }
        }
        // A value that has no name is none of the enum's, or (an operator) none that TensorFlow has.
        return line.name.equals("enum_name") && "-".equals(line.answered.get("out")) ? "value" : null;
    }

    private static boolean destinationsSayOneThing(Line line) {
        if (ONE_DESTINATION.contains(line.name)) {
            return line.given.containsKey("destination") || said(line, "destination.") == 1;
        }
        if (line.name.endsWith("batch_reduce_to") || line.name.equals("cross_device_batch_reduce")) {
            int n = line.given.containsKey("destinations") ? 0 : line.items("values").size();
            for (int i = 0; i < n; i++) {
                if (said(line, "destinations" + i + ".") != 1) {
                    return false;
                }
            }
        }
        return true;
    }

    private static long said(Line line, String prefix) {
        return line.given.keySet().stream().filter(key -> key.startsWith(prefix)).count();
    }

    private static boolean isNoDataset(Line line) {
        if (line.given.getOrDefault("dataset", "d").charAt(0) != 'd') {
            return true;
        }
        return line.below.stream().anyMatch(function -> function.name.equals("dataset")
                        && function.answered.getOrDefault("result", "-").charAt(0) == 'v');
    }
}
