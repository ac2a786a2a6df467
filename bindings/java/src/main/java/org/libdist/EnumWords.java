// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

import java.util.Map;

/** For {@link Words}. */
final class EnumWords {
    /** Enums by the beginnings of their constants. */
    static final Map<String, String> ENUMS = Map.ofEntries(
            Map.entry("REDUCE", "ReduceOp"),
            Map.entry("COLLECTIVE", "Collective"),
            Map.entry("NUMERICS", "Numerics"),
            Map.entry("SCAN", "ScanKind"),
            Map.entry("STRATEGY", "StrategyKind"),
            Map.entry("THREADS", "ReplicaThreads"),
            Map.entry("TRANSPORT", "Transport"),
            Map.entry("REFORM", "Reform"),
            Map.entry("VALUE", "ValueKind"),
            Map.entry("SYNCHRONIZATION", "Synchronization"),
            Map.entry("AGGREGATION", "Aggregation"),
            Map.entry("ASSIGN", "Assign"),
            Map.entry("INPUT", "InputMode"),
            Map.entry("SHARD", "ShardPolicy"),
            Map.entry("DEVICE_ORDER", "DeviceOrder"),
            Map.entry("LOG", "LogLevel"),
            Map.entry("SCATTER", "Scatter"),
            Map.entry("CROSS_DEVICE", "CrossDeviceKind"),
            Map.entry("METRIC", "MetricKind"),
            Map.entry("PARTITION", "PartitionKind"),
            Map.entry("EDGE", "Edge"),
            Map.entry("PREEMPTION", "PreemptionState"));

    private EnumWords() {}
}
