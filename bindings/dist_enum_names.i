/* SPDX-License-Identifier: Apache-2.0 */
/* Written by bindings/enums.py from the headers: do not edit. C's constants in messages, as Go, Java and Python call
   them, and the options with names of one word; dist_names.i reads the tables. */
%{
static const char dist_swig_enum_names[] = R"(
DIST_OK | - | Status.OK | Status.OK
DIST_CANCELLED | - | Status.CANCELLED | Status.CANCELLED
DIST_UNKNOWN | - | Status.UNKNOWN | Status.UNKNOWN
DIST_INVALID_ARGUMENT | - | Status.INVALID_ARGUMENT | Status.INVALID_ARGUMENT
DIST_DEADLINE_EXCEEDED | - | Status.DEADLINE_EXCEEDED | Status.DEADLINE_EXCEEDED
DIST_NOT_FOUND | - | Status.NOT_FOUND | Status.NOT_FOUND
DIST_ALREADY_EXISTS | - | Status.ALREADY_EXISTS | Status.ALREADY_EXISTS
DIST_PERMISSION_DENIED | - | Status.PERMISSION_DENIED | Status.PERMISSION_DENIED
DIST_RESOURCE_EXHAUSTED | - | Status.RESOURCE_EXHAUSTED | Status.RESOURCE_EXHAUSTED
DIST_FAILED_PRECONDITION | - | Status.FAILED_PRECONDITION | Status.FAILED_PRECONDITION
DIST_ABORTED | - | Status.ABORTED | Status.ABORTED
DIST_OUT_OF_RANGE | - | Status.OUT_OF_RANGE | Status.OUT_OF_RANGE
DIST_UNIMPLEMENTED | - | Status.UNIMPLEMENTED | Status.UNIMPLEMENTED
DIST_INTERNAL | - | Status.INTERNAL | Status.INTERNAL
DIST_UNAVAILABLE | - | Status.UNAVAILABLE | Status.UNAVAILABLE
DIST_DATA_LOSS | - | Status.DATA_LOSS | Status.DATA_LOSS
DIST_... | dist.DType | DType | DType
DIST_F16 | dist.F16 | DType.F16 | DType.F16
DIST_BF16 | dist.BF16 | DType.BF16 | DType.BF16
DIST_F32 | dist.F32 | DType.F32 | DType.F32
DIST_F64 | dist.F64 | DType.F64 | DType.F64
DIST_I8 | dist.I8 | DType.I8 | DType.I8
DIST_U8 | dist.U8 | DType.U8 | DType.U8
DIST_I16 | dist.I16 | DType.I16 | DType.I16
DIST_U16 | dist.U16 | DType.U16 | DType.U16
DIST_I32 | dist.I32 | DType.I32 | DType.I32
DIST_U32 | dist.U32 | DType.U32 | DType.U32
DIST_I64 | dist.I64 | DType.I64 | DType.I64
DIST_U64 | dist.U64 | DType.U64 | DType.U64
DIST_COMPLEX64 | dist.Complex64 | DType.COMPLEX64 | DType.COMPLEX64
DIST_BOOL | dist.Bool | DType.BOOL | DType.BOOL
DIST_REDUCE_... | dist.ReduceOp | ReduceOp | ReduceOp
DIST_REDUCE_SUM | dist.Sum | ReduceOp.SUM | ReduceOp.SUM
257 | dist.Sum | ReduceOp.SUM | ReduceOp.SUM
DIST_REDUCE_MEAN | dist.Mean | ReduceOp.MEAN | ReduceOp.MEAN
258 | dist.Mean | ReduceOp.MEAN | ReduceOp.MEAN
DIST_REDUCE_MIN | dist.Min | ReduceOp.MIN | ReduceOp.MIN
259 | dist.Min | ReduceOp.MIN | ReduceOp.MIN
DIST_REDUCE_MAX | dist.Max | ReduceOp.MAX | ReduceOp.MAX
260 | dist.Max | ReduceOp.MAX | ReduceOp.MAX
DIST_REDUCE_PROD | dist.Prod | ReduceOp.PROD | ReduceOp.PROD
261 | dist.Prod | ReduceOp.PROD | ReduceOp.PROD
DIST_REDUCE_USER | dist.ReduceUser | ReduceOp.USER | ReduceOp.USER
262 | dist.ReduceUser | ReduceOp.USER | ReduceOp.USER
DIST_COLLECTIVE_... | dist.Collective | Collective | Collective
DIST_COLLECTIVE_NONE | dist.CollectiveNone | Collective.NONE | Collective.NONE
DIST_COLLECTIVE_ALL_REDUCE | dist.CollectiveAllReduce | Collective.ALL_REDUCE | Collective.ALL_REDUCE
513 | dist.CollectiveAllReduce | Collective.ALL_REDUCE | Collective.ALL_REDUCE
DIST_COLLECTIVE_BROADCAST | dist.CollectiveBroadcast | Collective.BROADCAST | Collective.BROADCAST
514 | dist.CollectiveBroadcast | Collective.BROADCAST | Collective.BROADCAST
DIST_COLLECTIVE_BARRIER | dist.CollectiveBarrier | Collective.BARRIER | Collective.BARRIER
515 | dist.CollectiveBarrier | Collective.BARRIER | Collective.BARRIER
DIST_COLLECTIVE_MERGE_CALL | dist.CollectiveMergeCall | Collective.MERGE_CALL | Collective.MERGE_CALL
516 | dist.CollectiveMergeCall | Collective.MERGE_CALL | Collective.MERGE_CALL
DIST_COLLECTIVE_RETURN | dist.CollectiveReturn | Collective.RETURN | Collective.RETURN
517 | dist.CollectiveReturn | Collective.RETURN | Collective.RETURN
DIST_COLLECTIVE_REDUCE | dist.CollectiveReduce | Collective.REDUCE | Collective.REDUCE
518 | dist.CollectiveReduce | Collective.REDUCE | Collective.REDUCE
DIST_COLLECTIVE_REDUCE_SCATTER | dist.CollectiveReduceScatter | Collective.REDUCE_SCATTER | Collective.REDUCE_SCATTER
519 | dist.CollectiveReduceScatter | Collective.REDUCE_SCATTER | Collective.REDUCE_SCATTER
DIST_COLLECTIVE_ALL_GATHER | dist.CollectiveAllGather | Collective.ALL_GATHER | Collective.ALL_GATHER
520 | dist.CollectiveAllGather | Collective.ALL_GATHER | Collective.ALL_GATHER
DIST_COLLECTIVE_GATHER | dist.CollectiveGather | Collective.GATHER | Collective.GATHER
521 | dist.CollectiveGather | Collective.GATHER | Collective.GATHER
DIST_COLLECTIVE_SCATTER | dist.CollectiveScatter | Collective.SCATTER | Collective.SCATTER
522 | dist.CollectiveScatter | Collective.SCATTER | Collective.SCATTER
DIST_COLLECTIVE_ALL_TO_ALL | dist.CollectiveAllToAll | Collective.ALL_TO_ALL | Collective.ALL_TO_ALL
523 | dist.CollectiveAllToAll | Collective.ALL_TO_ALL | Collective.ALL_TO_ALL
DIST_COLLECTIVE_SCAN | dist.CollectiveScan | Collective.SCAN | Collective.SCAN
524 | dist.CollectiveScan | Collective.SCAN | Collective.SCAN
DIST_COLLECTIVE_PERMUTE | dist.CollectivePermute | Collective.PERMUTE | Collective.PERMUTE
525 | dist.CollectivePermute | Collective.PERMUTE | Collective.PERMUTE
DIST_COLLECTIVE_REDUCE_APPLY | dist.CollectiveReduceApply | Collective.REDUCE_APPLY | Collective.REDUCE_APPLY
526 | dist.CollectiveReduceApply | Collective.REDUCE_APPLY | Collective.REDUCE_APPLY
DIST_COLLECTIVE_HALO_EXCHANGE | dist.CollectiveHaloExchange | Collective.HALO_EXCHANGE | Collective.HALO_EXCHANGE
527 | dist.CollectiveHaloExchange | Collective.HALO_EXCHANGE | Collective.HALO_EXCHANGE
DIST_COLLECTIVE_RESHARD | dist.CollectiveReshard | Collective.RESHARD | Collective.RESHARD
528 | dist.CollectiveReshard | Collective.RESHARD | Collective.RESHARD
DIST_NUMERICS_... | dist.Numerics | Numerics | Numerics
DIST_NUMERICS_DEFAULT | - | - | -
768 | - | - | -
DIST_NUMERICS_ORDERED | dist.Ordered | Numerics.ORDERED | Numerics.ORDERED
769 | dist.Ordered | Numerics.ORDERED | Numerics.ORDERED
DIST_NUMERICS_REPRODUCIBLE | dist.Reproducible | Numerics.REPRODUCIBLE | Numerics.REPRODUCIBLE
770 | dist.Reproducible | Numerics.REPRODUCIBLE | Numerics.REPRODUCIBLE
DIST_NUMERICS_TREE | dist.Tree | Numerics.TREE | Numerics.TREE
771 | dist.Tree | Numerics.TREE | Numerics.TREE
DIST_SCAN_... | dist.ScanKind | ScanKind | ScanKind
DIST_SCAN_INCLUSIVE | dist.Inclusive | ScanKind.INCLUSIVE | ScanKind.INCLUSIVE
1024 | dist.Inclusive | ScanKind.INCLUSIVE | ScanKind.INCLUSIVE
DIST_SCAN_EXCLUSIVE | dist.Exclusive | ScanKind.EXCLUSIVE | ScanKind.EXCLUSIVE
1025 | dist.Exclusive | ScanKind.EXCLUSIVE | ScanKind.EXCLUSIVE
DIST_STRATEGY_... | dist.Kind | StrategyKind | StrategyKind
DIST_STRATEGY_MIRRORED | dist.Mirrored | StrategyKind.MIRRORED | StrategyKind.MIRRORED
1280 | dist.Mirrored | StrategyKind.MIRRORED | StrategyKind.MIRRORED
DIST_STRATEGY_ONE_DEVICE | dist.OneDevice | StrategyKind.ONE_DEVICE | StrategyKind.ONE_DEVICE
1281 | dist.OneDevice | StrategyKind.ONE_DEVICE | StrategyKind.ONE_DEVICE
DIST_STRATEGY_DEFAULT | dist.Default | StrategyKind.DEFAULT | StrategyKind.DEFAULT
1282 | dist.Default | StrategyKind.DEFAULT | StrategyKind.DEFAULT
DIST_STRATEGY_CENTRAL_STORAGE | dist.CentralStorage | StrategyKind.CENTRAL_STORAGE | StrategyKind.CENTRAL_STORAGE
1283 | dist.CentralStorage | StrategyKind.CENTRAL_STORAGE | StrategyKind.CENTRAL_STORAGE
DIST_STRATEGY_MESH | dist.Mesh | StrategyKind.MESH | StrategyKind.MESH
1284 | dist.Mesh | StrategyKind.MESH | StrategyKind.MESH
DIST_STRATEGY_MULTI_WORKER_MIRRORED | dist.MultiWorkerMirrored | StrategyKind.MULTI_WORKER_MIRRORED | StrategyKind.MULTI_WORKER_MIRRORED
1285 | dist.MultiWorkerMirrored | StrategyKind.MULTI_WORKER_MIRRORED | StrategyKind.MULTI_WORKER_MIRRORED
DIST_STRATEGY_PARAMETER_SERVER | dist.ParameterServer | StrategyKind.PARAMETER_SERVER | StrategyKind.PARAMETER_SERVER
1286 | dist.ParameterServer | StrategyKind.PARAMETER_SERVER | StrategyKind.PARAMETER_SERVER
DIST_THREADS_... | dist.Threads | ReplicaThreads | Threads
DIST_THREADS_CALLER | dist.CallerThread | ReplicaThreads.CALLER | Threads.CALLER
1536 | dist.CallerThread | ReplicaThreads.CALLER | Threads.CALLER
DIST_THREADS_LIBRARY | dist.LibraryThreads | ReplicaThreads.LIBRARY | Threads.LIBRARY
1537 | dist.LibraryThreads | ReplicaThreads.LIBRARY | Threads.LIBRARY
DIST_THREADS_HOST | dist.Goroutines | ReplicaThreads.HOST | Threads.HOST
1538 | dist.Goroutines | ReplicaThreads.HOST | Threads.HOST
DIST_TRANSPORT_... | dist.Transport | Transport | Transport
DIST_TRANSPORT_AUTO | dist.AutoTransport | Transport.AUTO | Transport.AUTO
1792 | dist.AutoTransport | Transport.AUTO | Transport.AUTO
DIST_TRANSPORT_NONE | dist.NoneTransport | Transport.NONE | Transport.NONE
1793 | dist.NoneTransport | Transport.NONE | Transport.NONE
DIST_TRANSPORT_GRPC | dist.GrpcTransport | Transport.GRPC | Transport.GRPC
1794 | dist.GrpcTransport | Transport.GRPC | Transport.GRPC
DIST_TRANSPORT_GLOO | dist.GlooTransport | Transport.GLOO | Transport.GLOO
1795 | dist.GlooTransport | Transport.GLOO | Transport.GLOO
DIST_REFORM_... | dist.Reform | Reform | Reform
DIST_REFORM_EXPLICIT | dist.ReformExplicit | Reform.EXPLICIT | Reform.EXPLICIT
2048 | dist.ReformExplicit | Reform.EXPLICIT | Reform.EXPLICIT
DIST_REFORM_AT_NEXT_RUN | dist.ReformAtNextRun | Reform.AT_NEXT_RUN | Reform.AT_NEXT_RUN
2049 | dist.ReformAtNextRun | Reform.AT_NEXT_RUN | Reform.AT_NEXT_RUN
DIST_PLACEMENT_... | dist.Placement | Placement | Placement
DIST_PLACEMENT_FREE | dist.Free | Placement.FREE | Placement.FREE
2304 | dist.Free | Placement.FREE | Placement.FREE
DIST_PLACEMENT_CORES | dist.Cores | Placement.CORES | Placement.CORES
2305 | dist.Cores | Placement.CORES | Placement.CORES
DIST_VALUE_... | dist.ValueKind | ValueKind | ValueKind
DIST_VALUE_TENSOR | dist.TensorValue | ValueKind.TENSOR | ValueKind.TENSOR
2561 | dist.TensorValue | ValueKind.TENSOR | ValueKind.TENSOR
DIST_VALUE_PER_REPLICA | dist.PerReplicaValue | ValueKind.PER_REPLICA | ValueKind.PER_REPLICA
2562 | dist.PerReplicaValue | ValueKind.PER_REPLICA | ValueKind.PER_REPLICA
DIST_VALUE_MIRRORED | dist.MirroredValue | ValueKind.MIRRORED | ValueKind.MIRRORED
2563 | dist.MirroredValue | ValueKind.MIRRORED | ValueKind.MIRRORED
DIST_VALUE_LIST | dist.ListValue | ValueKind.LIST | ValueKind.LIST
2564 | dist.ListValue | ValueKind.LIST | ValueKind.LIST
DIST_VALUE_DICT | dist.DictValue | ValueKind.DICT | ValueKind.DICT
2565 | dist.DictValue | ValueKind.DICT | ValueKind.DICT
DIST_VALUE_VARIABLE | dist.VariableValue | ValueKind.VARIABLE | ValueKind.VARIABLE
2566 | dist.VariableValue | ValueKind.VARIABLE | ValueKind.VARIABLE
DIST_VALUE_NONE | dist.NoneValue | ValueKind.NONE | ValueKind.NONE
2567 | dist.NoneValue | ValueKind.NONE | ValueKind.NONE
DIST_VALUE_TUPLE | dist.TupleValue | ValueKind.TUPLE | ValueKind.TUPLE
2568 | dist.TupleValue | ValueKind.TUPLE | ValueKind.TUPLE
DIST_VALUE_TEXT | dist.TextValue | ValueKind.TEXT | ValueKind.TEXT
2569 | dist.TextValue | ValueKind.TEXT | ValueKind.TEXT
DIST_VALUE_OBJECT | dist.ObjectValue | ValueKind.OBJECT | ValueKind.OBJECT
2570 | dist.ObjectValue | ValueKind.OBJECT | ValueKind.OBJECT
DIST_VALUE_INDEXED_SLICES | dist.IndexedSlicesValue | ValueKind.INDEXED_SLICES | ValueKind.INDEXED_SLICES
2571 | dist.IndexedSlicesValue | ValueKind.INDEXED_SLICES | ValueKind.INDEXED_SLICES
DIST_VALUE_RAGGED | dist.RaggedValue | ValueKind.RAGGED | ValueKind.RAGGED
2572 | dist.RaggedValue | ValueKind.RAGGED | ValueKind.RAGGED
DIST_VALUE_SPARSE | dist.SparseValue | ValueKind.SPARSE | ValueKind.SPARSE
2573 | dist.SparseValue | ValueKind.SPARSE | ValueKind.SPARSE
DIST_VALUE_SHARDED | dist.ShardedValue | ValueKind.SHARDED | ValueKind.SHARDED
2574 | dist.ShardedValue | ValueKind.SHARDED | ValueKind.SHARDED
DIST_SYNCHRONIZATION_... | dist.Synchronization | Synchronization | Synchronization
DIST_SYNCHRONIZATION_AUTO | dist.SynchronizationAuto | Synchronization.AUTO | Synchronization.AUTO
2816 | dist.SynchronizationAuto | Synchronization.AUTO | Synchronization.AUTO
DIST_SYNCHRONIZATION_NONE | dist.SynchronizationNone | Synchronization.NONE | Synchronization.NONE
2817 | dist.SynchronizationNone | Synchronization.NONE | Synchronization.NONE
DIST_SYNCHRONIZATION_ON_WRITE | dist.SynchronizationOnWrite | Synchronization.ON_WRITE | Synchronization.ON_WRITE
2818 | dist.SynchronizationOnWrite | Synchronization.ON_WRITE | Synchronization.ON_WRITE
DIST_SYNCHRONIZATION_ON_READ | dist.SynchronizationOnRead | Synchronization.ON_READ | Synchronization.ON_READ
2819 | dist.SynchronizationOnRead | Synchronization.ON_READ | Synchronization.ON_READ
DIST_AGGREGATION_... | dist.Aggregation | Aggregation | Aggregation
DIST_AGGREGATION_NONE | dist.AggregationNone | Aggregation.NONE | Aggregation.NONE
3072 | dist.AggregationNone | Aggregation.NONE | Aggregation.NONE
DIST_AGGREGATION_SUM | dist.AggregationSum | Aggregation.SUM | Aggregation.SUM
3073 | dist.AggregationSum | Aggregation.SUM | Aggregation.SUM
DIST_AGGREGATION_MEAN | dist.AggregationMean | Aggregation.MEAN | Aggregation.MEAN
3074 | dist.AggregationMean | Aggregation.MEAN | Aggregation.MEAN
DIST_AGGREGATION_ONLY_FIRST_REPLICA | dist.AggregationOnlyFirstReplica | Aggregation.ONLY_FIRST_REPLICA | Aggregation.ONLY_FIRST_REPLICA
3075 | dist.AggregationOnlyFirstReplica | Aggregation.ONLY_FIRST_REPLICA | Aggregation.ONLY_FIRST_REPLICA
DIST_ASSIGN_... | dist.Assign | Assign | Assign
DIST_ASSIGN | dist.AssignSet | Assign.SET | Assign.SET
3329 | dist.AssignSet | Assign.SET | Assign.SET
DIST_ASSIGN_ADD | dist.AssignAdd | Assign.ADD | Assign.ADD
3330 | dist.AssignAdd | Assign.ADD | Assign.ADD
DIST_ASSIGN_SUB | dist.AssignSub | Assign.SUB | Assign.SUB
3331 | dist.AssignSub | Assign.SUB | Assign.SUB
DIST_INPUT_... | dist.InputMode | InputMode | InputMode
DIST_INPUT_PER_WORKER | dist.PerWorker | InputMode.PER_WORKER | InputMode.PER_WORKER
4352 | dist.PerWorker | InputMode.PER_WORKER | InputMode.PER_WORKER
DIST_INPUT_PER_REPLICA | dist.PerReplica | InputMode.PER_REPLICA | InputMode.PER_REPLICA
4353 | dist.PerReplica | InputMode.PER_REPLICA | InputMode.PER_REPLICA
DIST_SHARD_... | dist.ShardPolicy | ShardPolicy | ShardPolicy
DIST_SHARD_AUTO | dist.ShardAuto | ShardPolicy.AUTO | ShardPolicy.AUTO
4608 | dist.ShardAuto | ShardPolicy.AUTO | ShardPolicy.AUTO
DIST_SHARD_FILE | dist.ShardFile | ShardPolicy.FILE | ShardPolicy.FILE
4609 | dist.ShardFile | ShardPolicy.FILE | ShardPolicy.FILE
DIST_SHARD_DATA | dist.ShardData | ShardPolicy.DATA | ShardPolicy.DATA
4610 | dist.ShardData | ShardPolicy.DATA | ShardPolicy.DATA
DIST_SHARD_HINT | dist.ShardHint | ShardPolicy.HINT | ShardPolicy.HINT
4611 | dist.ShardHint | ShardPolicy.HINT | ShardPolicy.HINT
DIST_SHARD_OFF | dist.ShardOff | ShardPolicy.OFF | ShardPolicy.OFF
4612 | dist.ShardOff | ShardPolicy.OFF | ShardPolicy.OFF
DIST_DEVICE_ORDER_... | dist.DeviceOrder | DeviceOrder | DeviceOrder
DIST_DEVICE_ORDER_AUTO | dist.DeviceOrderAuto | DeviceOrder.AUTO | DeviceOrder.AUTO
4864 | dist.DeviceOrderAuto | DeviceOrder.AUTO | DeviceOrder.AUTO
DIST_DEVICE_ORDER_RING | dist.DeviceOrderRing | DeviceOrder.RING | DeviceOrder.RING
4865 | dist.DeviceOrderRing | DeviceOrder.RING | DeviceOrder.RING
DIST_DEVICE_ORDER_MESH | dist.DeviceOrderMesh | DeviceOrder.MESH | DeviceOrder.MESH
4866 | dist.DeviceOrderMesh | DeviceOrder.MESH | DeviceOrder.MESH
DIST_NO_TIMEOUT | - | - | -
DIST_MAX_NDIM | dist.MaxNDim | - | MAX_NDIM
DIST_MAX_TAG_BYTES | dist.MaxTagBytes | - | MAX_TAG_BYTES
DIST_MAX_MESH_POSITIONS | dist.MaxMeshPositions | - | MAX_MESH_POSITIONS
DIST_LOG_... | dist.LogLevel | LogLevel | LogLevel
DIST_LOG_ERROR | dist.LogError | LogLevel.ERROR | LogLevel.ERROR
5121 | dist.LogError | LogLevel.ERROR | LogLevel.ERROR
DIST_LOG_WARNING | dist.LogWarning | LogLevel.WARNING | LogLevel.WARNING
5122 | dist.LogWarning | LogLevel.WARNING | LogLevel.WARNING
DIST_LOG_INFO | dist.LogInfo | LogLevel.INFO | LogLevel.INFO
5123 | dist.LogInfo | LogLevel.INFO | LogLevel.INFO
DIST_SCATTER_... | dist.Scatter | Scatter | Scatter
DIST_SCATTER_ADD | dist.ScatterAdd | Scatter.ADD | Scatter.ADD
3585 | dist.ScatterAdd | Scatter.ADD | Scatter.ADD
DIST_SCATTER_SUB | dist.ScatterSub | Scatter.SUB | Scatter.SUB
3586 | dist.ScatterSub | Scatter.SUB | Scatter.SUB
DIST_SCATTER_UPDATE | dist.ScatterUpdate | Scatter.UPDATE | Scatter.UPDATE
3587 | dist.ScatterUpdate | Scatter.UPDATE | Scatter.UPDATE
DIST_SCATTER_MUL | dist.ScatterMul | Scatter.MUL | Scatter.MUL
3588 | dist.ScatterMul | Scatter.MUL | Scatter.MUL
DIST_SCATTER_DIV | dist.ScatterDiv | Scatter.DIV | Scatter.DIV
3589 | dist.ScatterDiv | Scatter.DIV | Scatter.DIV
DIST_SCATTER_MIN | dist.ScatterMin | Scatter.MIN | Scatter.MIN
3590 | dist.ScatterMin | Scatter.MIN | Scatter.MIN
DIST_SCATTER_MAX | dist.ScatterMax | Scatter.MAX | Scatter.MAX
3591 | dist.ScatterMax | Scatter.MAX | Scatter.MAX
DIST_SCATTER_BATCH_UPDATE | dist.ScatterBatchUpdate | Scatter.BATCH_UPDATE | Scatter.BATCH_UPDATE
3592 | dist.ScatterBatchUpdate | Scatter.BATCH_UPDATE | Scatter.BATCH_UPDATE
DIST_CROSS_DEVICE_... | dist.CrossDeviceKind | CrossDeviceKind | CrossDeviceKind
DIST_CROSS_DEVICE_DEFAULT | dist.CrossDeviceDefault | CrossDeviceKind.DEFAULT | CrossDeviceKind.DEFAULT
4096 | dist.CrossDeviceDefault | CrossDeviceKind.DEFAULT | CrossDeviceKind.DEFAULT
DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE | dist.CrossDeviceReductionToOneDevice | CrossDeviceKind.REDUCTION_TO_ONE_DEVICE | CrossDeviceKind.REDUCTION_TO_ONE_DEVICE
4097 | dist.CrossDeviceReductionToOneDevice | CrossDeviceKind.REDUCTION_TO_ONE_DEVICE | CrossDeviceKind.REDUCTION_TO_ONE_DEVICE
DIST_CROSS_DEVICE_HOST | dist.CrossDeviceHost | CrossDeviceKind.HOST | CrossDeviceKind.HOST
4098 | dist.CrossDeviceHost | CrossDeviceKind.HOST | CrossDeviceKind.HOST
DIST_METRIC_... | dist.MetricKind | MetricKind | MetricKind
DIST_METRIC_SUM | dist.MetricSum | MetricKind.SUM | MetricKind.SUM
5377 | dist.MetricSum | MetricKind.SUM | MetricKind.SUM
DIST_METRIC_MEAN | dist.MetricMean | MetricKind.MEAN | MetricKind.MEAN
5378 | dist.MetricMean | MetricKind.MEAN | MetricKind.MEAN
DIST_METRIC_ACCURACY | dist.MetricAccuracy | MetricKind.ACCURACY | MetricKind.ACCURACY
5379 | dist.MetricAccuracy | MetricKind.ACCURACY | MetricKind.ACCURACY
DIST_APPLY_SGD | - | - | Apply.SGD
5633 | - | - | Apply.SGD
DIST_APPLY_CALLBACK | - | - | Apply.CALLBACK
5634 | - | - | Apply.CALLBACK
DIST_PARTITION_... | dist.PartitionKind | PartitionKind | PartitionKind
DIST_PARTITION_SPLIT | dist.PartitionSplit | PartitionKind.SPLIT | PartitionKind.SPLIT
5888 | dist.PartitionSplit | PartitionKind.SPLIT | PartitionKind.SPLIT
DIST_PARTITION_ASSIGN | dist.PartitionAssign | PartitionKind.ASSIGN | PartitionKind.ASSIGN
5889 | dist.PartitionAssign | PartitionKind.ASSIGN | PartitionKind.ASSIGN
DIST_PARTITION_REPLICATE | dist.PartitionReplicate | PartitionKind.REPLICATE | PartitionKind.REPLICATE
5890 | dist.PartitionReplicate | PartitionKind.REPLICATE | PartitionKind.REPLICATE
DIST_EDGE_... | dist.Edge | Edge | Edge
DIST_EDGE_ZERO | dist.EdgeZero | Edge.ZERO | Edge.ZERO
6144 | dist.EdgeZero | Edge.ZERO | Edge.ZERO
DIST_EDGE_WRAP | dist.EdgeWrap | Edge.WRAP | Edge.WRAP
6145 | dist.EdgeWrap | Edge.WRAP | Edge.WRAP
DIST_EDGE_CLAMP | dist.EdgeClamp | Edge.CLAMP | Edge.CLAMP
6146 | dist.EdgeClamp | Edge.CLAMP | Edge.CLAMP
DIST_EDGE_REFLECT | dist.EdgeReflect | Edge.REFLECT | Edge.REFLECT
6147 | dist.EdgeReflect | Edge.REFLECT | Edge.REFLECT
DIST_EDGE_NONE | dist.EdgeNone | Edge.NONE | Edge.NONE
6148 | dist.EdgeNone | Edge.NONE | Edge.NONE
DIST_ENUM_STATUS | - | - | -
6401 | - | - | -
DIST_ENUM_DTYPE | - | - | -
6402 | - | - | -
DIST_ENUM_REDUCE_OP | - | - | -
6403 | - | - | -
DIST_ENUM_VALUE_REDUCTION | - | - | -
6404 | - | - | -
DIST_ENUM_COLLECTIVE | - | - | -
6405 | - | - | -
DIST_ENUM_SYNCHRONIZATION | - | - | -
6406 | - | - | -
DIST_ENUM_AGGREGATION | - | - | -
6407 | - | - | -
DIST_ENUM_CROSS_DEVICE | - | - | -
6408 | - | - | -
DIST_ENUM_INPUT_MODE | - | - | -
6409 | - | - | -
DIST_ENUM_SHARD_POLICY | - | - | -
6410 | - | - | -
DIST_TASK_UNSET | dist.TaskUnset | - | -
DIST_MAX_CLUSTER_TEXT_BYTES | dist.MaxClusterTextBytes | - | MAX_CLUSTER_TEXT_BYTES
DIST_MAX_CLUSTER_DEPTH | dist.MaxClusterDepth | - | MAX_CLUSTER_DEPTH
DIST_MAX_CLUSTER_JOBS | dist.MaxClusterJobs | - | MAX_CLUSTER_JOBS
DIST_MAX_CLUSTER_TASKS | dist.MaxClusterTasks | - | MAX_CLUSTER_TASKS
DIST_MAX_CLUSTER_MEMBERS | dist.MaxClusterMembers | - | MAX_CLUSTER_MEMBERS
DIST_MAX_JOB_NAME_BYTES | dist.MaxJobNameBytes | - | MAX_JOB_NAME_BYTES
DIST_MAX_ADDRESS_BYTES | dist.MaxAddressBytes | - | MAX_ADDRESS_BYTES
DIST_PRIORITY_MIN | dist.PriorityMin | - | PRIORITY_MIN
DIST_PRIORITY_MAX | dist.PriorityMax | - | PRIORITY_MAX
DIST_PARTITIONER_MIN_SHARD_BYTES | dist.PartitionerMinShardBytes | - | -
DIST_PARTITIONER_MAX_SHARDS | dist.PartitionerMaxShards | - | -
DIST_PARTITIONER_BYTES_PER_TEXT | dist.PartitionerBytesPerText | - | -
DIST_PREEMPTION_... | dist.PreemptionState | PreemptionState | PreemptionState
DIST_PREEMPTION_NONE | dist.PreemptionNone | PreemptionState.NONE | PreemptionState.NONE
6656 | dist.PreemptionNone | PreemptionState.NONE | PreemptionState.NONE
DIST_PREEMPTION_SAVED | dist.PreemptionSaved | PreemptionState.SAVED | PreemptionState.SAVED
6657 | dist.PreemptionSaved | PreemptionState.SAVED | PreemptionState.SAVED
DIST_PREEMPTION_OVER | dist.PreemptionOver | PreemptionState.OVER | PreemptionState.OVER
6658 | dist.PreemptionOver | PreemptionState.OVER | PreemptionState.OVER
)";

static const char dist_swig_options[] = R"(
accumulate
address dist_rpc_server_create dist_rpc_client_create
aggregation dist_reduce_op_from_aggregation
allocator dist_cancel_create dist_completions_create dist_budget_create dist_versions_create
axes dist_reduce
axis dist_gather dist_partitions_fixed_shards dist_partitions_min_size dist_partitions_max_size dist_cross_device_gather
buckets
budget dist_budget_destroy
bytes
callbacks
cancel dist_cancel_signal dist_cancel_signalled dist_cancel_destroy dist_coordinator_join dist_preemption_save_if_preempted dist_server_join
clock
communication
completions dist_completions_next dist_completions_descriptor dist_completions_destroy
continuous
contributions
copy dist_variable_copy_name dist_variable_device
cpu
cpus
devices
domain dist_enum_name dist_enum_from_name
done
environment
executor dist_executor_init
fn dist_run dist_run_values dist_replica_parallel_for dist_merge_call dist_submit dist_values_from_function dist_update dist_update_non_slot dist_replica_update dist_dataset_create_from_callback dist_dataset_create_from_function dist_dataset_create_from_files dist_dataset_reduce dist_strategy_explain dist_strategy_write_trace dist_strategy_write_metrics dist_dataset_explain dist_value_describe dist_variable_describe dist_topology_explain dist_run_on_devices dist_slurm_expand_host_list dist_cluster_explain dist_rpc_server_register dist_coordinator_write_trace dist_preemption_run dist_server_register dist_server_register_update dist_server_write_trace
functions dist_strategy_functions_init dist_cluster_resolver_functions_init dist_cluster_resolver_create_host dist_cross_device_functions_init dist_link_register
group dist_group_destroy dist_group_size dist_group_rank
host
index dist_strategy_parameter_device dist_value_item dist_value_key dist_checkpoint_name dist_checkpoint_metadata_key dist_cluster_spec_job dist_coordinator_variable_name dist_server_create
initiates
interleave
jobs dist_cluster_spec_create
kind dist_scan dist_value_create_composite dist_metric_create
length
link
log
mesh
momentum
name dist_has_feature dist_enum_from_name dist_canonical_device dist_replica_variable dist_strategy_write_metrics dist_metric_create dist_checkpoint_spec dist_checkpoint_read dist_checkpoint_map dist_device_axis dist_device_axis_group dist_coordinator_create_variable dist_coordinator_variable_spec dist_coordinator_variable_part dist_coordinator_read_rows dist_coordinator_assign dist_coordinator_scatter dist_coordinator_create_per_worker dist_server_register dist_server_register_update dist_closure_read_rows dist_closure_assign dist_closure_scatter dist_closure_per_worker
names dist_dataset_create_from_files dist_coordinator_read dist_coordinator_update dist_closure_read dist_closure_update
network dist_network_destroy
numerics
parallel
partitioner
partitions
path dist_checkpoint_save dist_checkpoint_load dist_checkpoint_open dist_coordinator_save dist_coordinator_restore
placement
planned
port
position dist_iterator_create_at
prefetch
priority
rank
reform
results
seed
service
sharded
shuffle
size
splits
states
synchronization
tag
threads dist_budget_create
transport
uneven
ungrouped
variables dist_checkpoint_save dist_checkpoint_load
verify
weights dist_metric_update
worker dist_batch_sizes_for_worker
)";
%}
