# SPDX-License-Identifier: Apache-2.0
"""The numbers of dist/types.h as enums. Functions take an enum's member, or its number."""

from __future__ import annotations

from enum import IntEnum

from . import _cdist


class Status(IntEnum):
    """What a call came to; the numbers are those of Abseil and gRPC. Every failure is an exception: see DistError."""

    OK = _cdist.DIST_OK
    CANCELLED = _cdist.DIST_CANCELLED
    UNKNOWN = _cdist.DIST_UNKNOWN
    INVALID_ARGUMENT = _cdist.DIST_INVALID_ARGUMENT
    DEADLINE_EXCEEDED = _cdist.DIST_DEADLINE_EXCEEDED
    NOT_FOUND = _cdist.DIST_NOT_FOUND
    ALREADY_EXISTS = _cdist.DIST_ALREADY_EXISTS
    PERMISSION_DENIED = _cdist.DIST_PERMISSION_DENIED
    RESOURCE_EXHAUSTED = _cdist.DIST_RESOURCE_EXHAUSTED
    FAILED_PRECONDITION = _cdist.DIST_FAILED_PRECONDITION
    ABORTED = _cdist.DIST_ABORTED
    OUT_OF_RANGE = _cdist.DIST_OUT_OF_RANGE
    UNIMPLEMENTED = _cdist.DIST_UNIMPLEMENTED
    INTERNAL = _cdist.DIST_INTERNAL
    UNAVAILABLE = _cdist.DIST_UNAVAILABLE
    DATA_LOSS = _cdist.DIST_DATA_LOSS


class DType(IntEnum):
    """The type of a tensor's elements."""

    F16 = _cdist.DIST_F16
    BF16 = _cdist.DIST_BF16
    F32 = _cdist.DIST_F32
    F64 = _cdist.DIST_F64
    I8 = _cdist.DIST_I8
    U8 = _cdist.DIST_U8
    I16 = _cdist.DIST_I16
    U16 = _cdist.DIST_U16
    I32 = _cdist.DIST_I32
    U32 = _cdist.DIST_U32
    I64 = _cdist.DIST_I64
    U64 = _cdist.DIST_U64
    COMPLEX64 = _cdist.DIST_COMPLEX64
    BOOL = _cdist.DIST_BOOL


class ReduceOp(IntEnum):
    """How contributions become one."""

    SUM = _cdist.DIST_REDUCE_SUM
    MEAN = _cdist.DIST_REDUCE_MEAN
    MIN = _cdist.DIST_REDUCE_MIN
    MAX = _cdist.DIST_REDUCE_MAX
    PROD = _cdist.DIST_REDUCE_PROD
    USER = _cdist.DIST_REDUCE_USER


class Collective(IntEnum):
    """Which collective an error or a straggler's row speaks of."""

    NONE = _cdist.DIST_COLLECTIVE_NONE
    ALL_REDUCE = _cdist.DIST_COLLECTIVE_ALL_REDUCE
    BROADCAST = _cdist.DIST_COLLECTIVE_BROADCAST
    BARRIER = _cdist.DIST_COLLECTIVE_BARRIER
    MERGE_CALL = _cdist.DIST_COLLECTIVE_MERGE_CALL
    RETURN = _cdist.DIST_COLLECTIVE_RETURN
    REDUCE = _cdist.DIST_COLLECTIVE_REDUCE
    REDUCE_SCATTER = _cdist.DIST_COLLECTIVE_REDUCE_SCATTER
    ALL_GATHER = _cdist.DIST_COLLECTIVE_ALL_GATHER
    GATHER = _cdist.DIST_COLLECTIVE_GATHER
    SCATTER = _cdist.DIST_COLLECTIVE_SCATTER
    ALL_TO_ALL = _cdist.DIST_COLLECTIVE_ALL_TO_ALL
    SCAN = _cdist.DIST_COLLECTIVE_SCAN
    PERMUTE = _cdist.DIST_COLLECTIVE_PERMUTE
    REDUCE_APPLY = _cdist.DIST_COLLECTIVE_REDUCE_APPLY
    HALO_EXCHANGE = _cdist.DIST_COLLECTIVE_HALO_EXCHANGE
    RESHARD = _cdist.DIST_COLLECTIVE_RESHARD


class Numerics(IntEnum):
    """What the bits of a sum depend on: the order of replica ids, or the contributions alone."""

    ORDERED = _cdist.DIST_NUMERICS_ORDERED
    REPRODUCIBLE = _cdist.DIST_NUMERICS_REPRODUCIBLE


class ScanKind(IntEnum):
    """Whether replica r's own contribution is in its result of a scan."""

    INCLUSIVE = _cdist.DIST_SCAN_INCLUSIVE
    EXCLUSIVE = _cdist.DIST_SCAN_EXCLUSIVE


class StrategyKind(IntEnum):
    """How values and variables are placed."""

    MIRRORED = _cdist.DIST_STRATEGY_MIRRORED
    ONE_DEVICE = _cdist.DIST_STRATEGY_ONE_DEVICE
    DEFAULT = _cdist.DIST_STRATEGY_DEFAULT
    CENTRAL_STORAGE = _cdist.DIST_STRATEGY_CENTRAL_STORAGE
    MESH = _cdist.DIST_STRATEGY_MESH


class Threads(IntEnum):
    """On which threads the replicas run."""

    CALLER = _cdist.DIST_THREADS_CALLER
    LIBRARY = _cdist.DIST_THREADS_LIBRARY
    HOST = _cdist.DIST_THREADS_HOST


class Placement(IntEnum):
    """Where library threads run."""

    FREE = _cdist.DIST_PLACEMENT_FREE
    CORES = _cdist.DIST_PLACEMENT_CORES


class ValueKind(IntEnum):
    """What a value is."""

    TENSOR = _cdist.DIST_VALUE_TENSOR
    PER_REPLICA = _cdist.DIST_VALUE_PER_REPLICA
    MIRRORED = _cdist.DIST_VALUE_MIRRORED
    LIST = _cdist.DIST_VALUE_LIST
    DICT = _cdist.DIST_VALUE_DICT
    VARIABLE = _cdist.DIST_VALUE_VARIABLE
    NONE = _cdist.DIST_VALUE_NONE
    TUPLE = _cdist.DIST_VALUE_TUPLE
    TEXT = _cdist.DIST_VALUE_TEXT
    OBJECT = _cdist.DIST_VALUE_OBJECT
    INDEXED_SLICES = _cdist.DIST_VALUE_INDEXED_SLICES
    RAGGED = _cdist.DIST_VALUE_RAGGED
    SPARSE = _cdist.DIST_VALUE_SPARSE
    SHARDED = _cdist.DIST_VALUE_SHARDED


class Synchronization(IntEnum):
    """When the copies of a variable are brought together."""

    AUTO = _cdist.DIST_SYNCHRONIZATION_AUTO
    NONE = _cdist.DIST_SYNCHRONIZATION_NONE
    ON_WRITE = _cdist.DIST_SYNCHRONIZATION_ON_WRITE
    ON_READ = _cdist.DIST_SYNCHRONIZATION_ON_READ


class Aggregation(IntEnum):
    """What an assignment inside replicas does with the values that they give."""

    NONE = _cdist.DIST_AGGREGATION_NONE
    SUM = _cdist.DIST_AGGREGATION_SUM
    MEAN = _cdist.DIST_AGGREGATION_MEAN
    ONLY_FIRST_REPLICA = _cdist.DIST_AGGREGATION_ONLY_FIRST_REPLICA


class Assign(IntEnum):
    """How an assignment changes a variable."""

    SET = _cdist.DIST_ASSIGN
    ADD = _cdist.DIST_ASSIGN_ADD
    SUB = _cdist.DIST_ASSIGN_SUB


class Scatter(IntEnum):
    """How rows change a variable."""

    ADD = _cdist.DIST_SCATTER_ADD
    SUB = _cdist.DIST_SCATTER_SUB
    UPDATE = _cdist.DIST_SCATTER_UPDATE
    MUL = _cdist.DIST_SCATTER_MUL
    DIV = _cdist.DIST_SCATTER_DIV
    MIN = _cdist.DIST_SCATTER_MIN
    MAX = _cdist.DIST_SCATTER_MAX
    BATCH_UPDATE = _cdist.DIST_SCATTER_BATCH_UPDATE


class Communication(IntEnum):
    """Which implementation a program asks for; the bits are the same."""

    AUTO = _cdist.DIST_COMMUNICATION_AUTO
    RING = _cdist.DIST_COMMUNICATION_RING
    NCCL = _cdist.DIST_COMMUNICATION_NCCL


class CrossDeviceKind(IntEnum):
    """Who reduces values from outside runs."""

    DEFAULT = _cdist.DIST_CROSS_DEVICE_DEFAULT
    REDUCTION_TO_ONE_DEVICE = _cdist.DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE
    HIERARCHICAL_COPY = _cdist.DIST_CROSS_DEVICE_HIERARCHICAL_COPY
    NCCL = _cdist.DIST_CROSS_DEVICE_NCCL
    COLLECTIVE = _cdist.DIST_CROSS_DEVICE_COLLECTIVE
    HOST = _cdist.DIST_CROSS_DEVICE_HOST


class InputMode(IntEnum):
    """How many pipelines make the batches."""

    PER_WORKER = _cdist.DIST_INPUT_PER_WORKER
    PER_REPLICA = _cdist.DIST_INPUT_PER_REPLICA


class ShardPolicy(IntEnum):
    """How a dataset is divided between workers."""

    OFF = _cdist.DIST_SHARD_OFF
    AUTO = _cdist.DIST_SHARD_AUTO
    FILE = _cdist.DIST_SHARD_FILE
    DATA = _cdist.DIST_SHARD_DATA
    HINT = _cdist.DIST_SHARD_HINT


class MetricKind(IntEnum):
    """What a metric computes over all updates of all replicas."""

    SUM = _cdist.DIST_METRIC_SUM
    MEAN = _cdist.DIST_METRIC_MEAN
    ACCURACY = _cdist.DIST_METRIC_ACCURACY


class Apply(IntEnum):
    """How reduce_apply() uses a reduced gradient."""

    SGD = _cdist.DIST_APPLY_SGD
    CALLBACK = _cdist.DIST_APPLY_CALLBACK


class DeviceOrder(IntEnum):
    """In which order DeviceAssignment.build() lays replicas out."""

    AUTO = _cdist.DIST_DEVICE_ORDER_AUTO
    RING = _cdist.DIST_DEVICE_ORDER_RING
    MESH = _cdist.DIST_DEVICE_ORDER_MESH


class PartitionKind(IntEnum):
    """What a replica's logical devices have of a tensor."""

    SPLIT = _cdist.DIST_PARTITION_SPLIT
    ASSIGN = _cdist.DIST_PARTITION_ASSIGN
    REPLICATE = _cdist.DIST_PARTITION_REPLICATE


class Edge(IntEnum):
    """What is beyond the edges of a tensor, for halo_exchange()."""

    ZERO = _cdist.DIST_EDGE_ZERO
    WRAP = _cdist.DIST_EDGE_WRAP
    CLAMP = _cdist.DIST_EDGE_CLAMP
    REFLECT = _cdist.DIST_EDGE_REFLECT
    NONE = _cdist.DIST_EDGE_NONE


class LogLevel(IntEnum):
    """How much a log line matters."""

    ERROR = _cdist.DIST_LOG_ERROR
    WARNING = _cdist.DIST_LOG_WARNING
    INFO = _cdist.DIST_LOG_INFO


MAX_REPLICAS: int = _cdist.DIST_MAX_REPLICAS
MAX_CONTRIBUTIONS: int = _cdist.DIST_MAX_CONTRIBUTIONS
MAX_NDIM: int = _cdist.DIST_MAX_NDIM
MAX_TAG_BYTES: int = _cdist.DIST_MAX_TAG_BYTES
MAX_MESH_POSITIONS: int = _cdist.DIST_MAX_MESH_POSITIONS
