# SPDX-License-Identifier: Apache-2.0
"""libdist: replicas as threads, and collectives between them (tf.distribute for host CPUs).

import numpy as np
import libdist

def step(replica):
    gradient = np.array([1.0, 2.0, 3.0], np.float32)
    return replica.all_reduce(libdist.ReduceOp.SUM, gradient, out=gradient)

with libdist.Strategy(4) as strategy:
    print(strategy.run(step)[0])
"""

from ._collectives import Collectives, Op, Operator
from ._input import DatasetOptions, batch_sizes_for_worker
from ._inspection import Straggler
from ._options import Options
from ._outside import Destination, Properties, ValueContext
from ._tensors import Array, Tensor, TensorLike, dtype_of, numpy_dtype
from ._updates import UpdatePlace
from .batch import Batch, Batcher, Item
from .budget import Budget
from .cancel import Cancel
from .checkpoint import Checkpoint
from .cluster import ClusterSpec
from .cluster_resolver import (
    ClusterResolver,
    ClusterResolverOptions,
    KubernetesOptions,
    RendezvousOptions,
    ResolverFunctions,
    SlurmOptions,
    slurm_hosts,
    slurm_tasks_per_node,
)
from .communication import CommunicationOptions
from .constants import (
    MAX_ADDRESS_BYTES,
    MAX_CLUSTER_DEPTH,
    MAX_CLUSTER_JOBS,
    MAX_CLUSTER_MEMBERS,
    MAX_CLUSTER_TASKS,
    MAX_CLUSTER_TEXT_BYTES,
    MAX_JOB_NAME_BYTES,
    MAX_MESH_POSITIONS,
    MAX_NDIM,
    MAX_TAG_BYTES,
    PRIORITY_MAX,
    PRIORITY_MIN,
    Aggregation,
    Apply,
    Assign,
    Collective,
    CrossDeviceKind,
    DeviceOrder,
    DType,
    Edge,
    InputMode,
    LogLevel,
    MetricKind,
    Numerics,
    PartitionKind,
    Placement,
    PreemptionState,
    ReduceOp,
    Reform,
    ScanKind,
    Scatter,
    ShardPolicy,
    Status,
    StrategyKind,
    Synchronization,
    Threads,
    Transport,
    ValueKind,
)
from .context import get_replica, get_strategy, has_strategy, in_cross_replica_context, set_strategy
from .coordinator import Coordinator, CoordinatorOptions, CoordinatorStats, VariablePart, VariableSpec
from .cross_device import CrossDevice, HostFunctions
from .dataset import Dataset, DatasetIterator, InputContext, Position
from .errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    DistError,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
    Unknown,
    error_of,
    status_name,
)
from .group import Group
from .metric import Metric, average_loss, scale_regularization_loss
from .names import (
    aggregation_from_name,
    aggregation_name,
    canonical_device,
    cross_device_from_name,
    cross_device_name,
    has_feature,
    input_mode_from_name,
    input_mode_name,
    reduce_op_from_aggregation,
    reduce_op_from_name,
    reduce_op_name,
    shard_policy_from_name,
    shard_policy_name,
    synchronization_from_name,
    synchronization_name,
    version,
)
from .network import Network
from .partition import Partition, Shard, reshard_bytes
from .partitioner import RowPlace, Rows, fixed_shards, max_size_shards, min_size_shards, part_of_row, rows_of_part
from .preemption import PreemptionHandler
from .replica import Block, Replica
from .rpc import RemoteValue, RpcCall, RpcClient, RpcServer
from .serve import Instances, Request
from .server import Closure, Server
from .strategy import Strategy
from .topology import DeviceAssignment, Topology
from .values import Value
from .variables import Drift, Variable
from .versions import Versions
from .work import Begin, Plan, Work

__version__ = "{}.{}.{}".format(version() // 10000, version() // 100 % 100, version() % 100)

__all__ = [
    "Aborted",
    "Aggregation",
    "AlreadyExists",
    "Apply",
    "Array",
    "Assign",
    "Batch",
    "Batcher",
    "Begin",
    "Block",
    "Budget",
    "Cancel",
    "Cancelled",
    "Checkpoint",
    "Closure",
    "ClusterResolver",
    "ClusterResolverOptions",
    "ClusterSpec",
    "Collective",
    "Collectives",
    "CommunicationOptions",
    "Coordinator",
    "CoordinatorOptions",
    "CoordinatorStats",
    "CrossDevice",
    "CrossDeviceKind",
    "DType",
    "DataLoss",
    "Dataset",
    "DatasetIterator",
    "DatasetOptions",
    "DeadlineExceeded",
    "Destination",
    "DeviceAssignment",
    "DeviceOrder",
    "DistError",
    "Drift",
    "Edge",
    "FailedPrecondition",
    "Group",
    "HostFunctions",
    "InputContext",
    "InputMode",
    "Instances",
    "Internal",
    "InvalidArgument",
    "Item",
    "KubernetesOptions",
    "LogLevel",
    "MAX_ADDRESS_BYTES",
    "MAX_CLUSTER_DEPTH",
    "MAX_CLUSTER_JOBS",
    "MAX_CLUSTER_MEMBERS",
    "MAX_CLUSTER_TASKS",
    "MAX_CLUSTER_TEXT_BYTES",
    "MAX_JOB_NAME_BYTES",
    "MAX_MESH_POSITIONS",
    "MAX_NDIM",
    "MAX_TAG_BYTES",
    "Metric",
    "MetricKind",
    "Network",
    "NotFound",
    "Numerics",
    "Op",
    "Operator",
    "Options",
    "OutOfRange",
    "PRIORITY_MAX",
    "PRIORITY_MIN",
    "Partition",
    "PartitionKind",
    "PermissionDenied",
    "Placement",
    "Plan",
    "Position",
    "PreemptionHandler",
    "PreemptionState",
    "Properties",
    "ReduceOp",
    "Reform",
    "RemoteValue",
    "RendezvousOptions",
    "Replica",
    "Request",
    "ResolverFunctions",
    "ResourceExhausted",
    "RowPlace",
    "Rows",
    "RpcCall",
    "RpcClient",
    "RpcServer",
    "ScanKind",
    "Scatter",
    "Server",
    "Shard",
    "ShardPolicy",
    "SlurmOptions",
    "Status",
    "Straggler",
    "Strategy",
    "StrategyKind",
    "Synchronization",
    "Tensor",
    "TensorLike",
    "Threads",
    "Topology",
    "Transport",
    "Unavailable",
    "Unimplemented",
    "Unknown",
    "UpdatePlace",
    "Value",
    "ValueContext",
    "ValueKind",
    "Variable",
    "VariablePart",
    "VariableSpec",
    "Versions",
    "Work",
    "aggregation_from_name",
    "aggregation_name",
    "average_loss",
    "batch_sizes_for_worker",
    "canonical_device",
    "cross_device_from_name",
    "cross_device_name",
    "dtype_of",
    "error_of",
    "fixed_shards",
    "get_replica",
    "get_strategy",
    "has_feature",
    "has_strategy",
    "in_cross_replica_context",
    "input_mode_from_name",
    "input_mode_name",
    "max_size_shards",
    "min_size_shards",
    "numpy_dtype",
    "part_of_row",
    "reduce_op_from_aggregation",
    "reduce_op_from_name",
    "reduce_op_name",
    "reshard_bytes",
    "rows_of_part",
    "scale_regularization_loss",
    "set_strategy",
    "shard_policy_from_name",
    "shard_policy_name",
    "slurm_hosts",
    "slurm_tasks_per_node",
    "status_name",
    "synchronization_from_name",
    "synchronization_name",
    "version",
]
