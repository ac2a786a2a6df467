// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.time.Duration;
import java.util.List;
import org.libdist.Aggregation;
import org.libdist.ClusterResolver;
import org.libdist.CrossDevice;
import org.libdist.DatasetOptions;
import org.libdist.DeviceAssignment;
import org.libdist.InputMode;
import org.libdist.Network;
import org.libdist.RunOptions;
import org.libdist.ShardPolicy;
import org.libdist.StrategyKind;
import org.libdist.StrategyOptions;
import org.libdist.Synchronization;
import org.libdist.VariableOptions;

/** Structs of options, of a line's fields. */
final class Options {
    private Options() {}

    static StrategyOptions strategy(Player player, Line line) {
        StrategyOptions options =
                StrategyOptions.DEFAULT.kind(Codes.get(StrategyKind.class, line.number("options.kind")))
                        .numReplicas(line.number("options.num_replicas"))
                        .timeout(Duration.ofNanos(line.integer("options.timeout_ns")));
        List<String> devices = line.items("options.devices");
        if (!devices.isEmpty()) {
            options = options.devices(devices.stream().map(Literals::text).toList());
        }
        return options.crossDevice(player.object(CrossDevice.class, line, "options.cross_device"))
                .deviceAssignment(
                        player.object(DeviceAssignment.class, line, "options.device_assignment"))
                .clusterResolver(player.object(ClusterResolver.class, line, "options.cluster_resolver"))
                .network(player.object(Network.class, line, "options.network"))
                .stagingBytes(line.integer("options.staging_bytes"))
                .useSpmdPartitioning(line.number("options.use_spmd_partitioning") != 0);
    }

    static RunOptions run(Line line) {
        RunOptions options = RunOptions.DEFAULT;
        if (line.has("options.enable_dynamic_batch_size")) {
            options = options.enableDynamicBatchSize(line.number("options.enable_dynamic_batch_size") > 0);
        }
        return line.has("options.bucketizing_dynamic_shape")
                ? options.bucketizingDynamicShape(line.number("options.bucketizing_dynamic_shape") != 0)
                : options;
    }

    static VariableOptions variable(Line line) {
        VariableOptions options =
                VariableOptions.DEFAULT.aggregation(Codes.get(Aggregation.class, line.number("options.aggregation")))
                        .synchronization(Codes.get(Synchronization.class, line.number("options.synchronization")));
        if (line.has("options.name")) {
            options = options.name(line.text("options.name"));
        }
        return options;
    }

    static DatasetOptions dataset(Line line) {
        DatasetOptions options =
                DatasetOptions.DEFAULT.globalBatchSize(line.integer("options.global_batch_size"))
                        .dropRemainder(line.number("options.drop_remainder") != 0)
                        .prefetch(line.number("options.prefetch"))
                        .shardPolicy(Codes.get(ShardPolicy.class, line.number("options.shard_policy")))
                        .numWorkers(line.number("options.num_workers"))
                        .workerIndex(line.number("options.worker_index"))
                        .workerBatches(line.number("options.worker_batches") != 0)
                        .asOneProcess(line.number("options.as_one_process") != 0)
                        .shardHint(line.number("options.shard_hint") != 0)
                        .interleave(line.number("options.interleave"))
                        .replicationMode(Codes.get(InputMode.class, line.number("options.replication_mode")))
                        .seed(line.integer("options.seed"));
        if (line.number("options.shuffle") != 0) {
            options = options.shuffle(line.integer("options.seed"));
        }
        if (line.has("options.static_shapes")) {
            options = options.staticShapes(line.number("options.static_shapes") > 0);
        }
        return line.has("options.batch_sizes") ? options.batchSizes(line.integers("options.batch_sizes"))
                                               : options;
    }
}
