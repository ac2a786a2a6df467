# SPDX-License-Identifier: Apache-2.0
# Written by bindings/enums.py from the headers: do not edit.
"""The numbers of dist/types.h as enums. Functions take an enum's member, or its number."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """What a call came to; the numbers are those of Abseil and gRPC. Every failure is an exception: see DistError."""

    OK = 0  # no failure
    CANCELLED = 1  # Strategy.cancel() or the like ended it
    UNKNOWN = 2  # a function of the program's own failed
    INVALID_ARGUMENT = 3  # the arguments are wrong whatever the state
    DEADLINE_EXCEEDED = 4  # a peer did not arrive, or the run did not end, in time
    NOT_FOUND = 5  # no such key, name or file
    ALREADY_EXISTS = 6  # a name is taken
    PERMISSION_DENIED = 7  # the system refuses
    RESOURCE_EXHAUSTED = 8  # no memory, or no thread could be made
    FAILED_PRECONDITION = 9  # right arguments, wrong moment: closed, its run has ended, or in the other context
    ABORTED = 10  # a peer failed first; the report names it
    OUT_OF_RANGE = 11  # past the end: a dataset has no further batch
    UNIMPLEMENTED = 12  # not offered by this strategy, dtype or build
    INTERNAL = 13  # a defect of libdist: please report it
    UNAVAILABLE = 14  # a worker or service cannot be reached
    DATA_LOSS = 15  # a file or message is cut short or corrupt


class DType(IntEnum):
    """The type of a tensor's elements."""

    F16 = 1  # IEEE 754 binary16
    BF16 = 2  # bfloat16: the upper half of a binary32
    F32 = 3
    F64 = 4
    I8 = 5
    U8 = 6
    I16 = 7
    U16 = 8
    I32 = 9
    U32 = 10
    I64 = 11
    U64 = 12
    COMPLEX64 = 13  # two F32: real, imaginary
    BOOL = 14  # one byte: 0 is false, all else true; written as 0 or 1


class ReduceOp(IntEnum):
    """How contributions become one."""

    SUM = 1  # added, left to right by replica id
    MEAN = 2  # the sum, divided by how many there are, or by the weights
    MIN = 3  # the smallest; of booleans: and
    MAX = 4  # the largest; of booleans: or
    PROD = 5  # multiplied
    USER = 6  # by a function of the program's own


class Collective(IntEnum):
    """Which collective an error or a straggler's row speaks of."""

    NONE = 0
    ALL_REDUCE = 1
    BROADCAST = 2
    BARRIER = 3
    MERGE_CALL = 4
    RETURN = 5  # the end of the replica function, where all meet too
    REDUCE = 6
    REDUCE_SCATTER = 7
    ALL_GATHER = 8
    GATHER = 9
    SCATTER = 10
    ALL_TO_ALL = 11
    SCAN = 12
    PERMUTE = 13
    REDUCE_APPLY = 14
    HALO_EXCHANGE = 15
    RESHARD = 16


class Numerics(IntEnum):
    """What the bits of a sum depend on."""

    ORDERED = 0  # the contributions in the order of replica ids
    REPRODUCIBLE = 1  # the contributions alone, whoever brings them: added exactly, rounded once
    TREE = 2  # as ORDERED, but in pairs, pairs of pairs and so on: what costs least over many workers


class ScanKind(IntEnum):
    """Where a scan begins."""

    INCLUSIVE = 0  # replica r's own contribution is in its result
    EXCLUSIVE = 1  # only those of replicas 0 .. r-1 are


class StrategyKind(IntEnum):
    """How values and variables are placed."""

    MIRRORED = 0  # R replicas; every variable has R equal copies
    ONE_DEVICE = 1  # one replica, for programs that run on one or many
    DEFAULT = 2  # one replica: what a program has that never chose a strategy
    CENTRAL_STORAGE = 3  # R replicas; every variable has one copy, which all of them read
    MESH = 4  # as MIRRORED, of replicas made of logical devices (TPUStrategy)
    MULTI_WORKER_MIRRORED = 5  # as MIRRORED, with replicas in all workers of a cluster
    PARAMETER_SERVER = 6  # variables and closures of a coordinator are on servers


class Threads(IntEnum):
    """On which threads the replicas run."""

    CALLER = 0  # run()'s caller is replica 0; the others are library threads
    LIBRARY = 1  # all are library threads; run()'s caller waits
    HOST = 2  # none: the program's own threads come in by Strategy.enter()


class Transport(IntEnum):
    """How a worker reaches those that are other processes; workers.h says what the environment has to do with it."""

    AUTO = 0  # as DIST_TRANSPORT in the environment says, else GRPC; or NONE where that cannot be had
    NONE = 1  # nothing leads to them: the first call that needs one is UNAVAILABLE
    GRPC = 2  # gRPC, between the addresses of the cluster
    GLOO = 3  # the same, with data over Gloo: plain text, on further ports


class Reform(IntEnum):
    """When a strategy's workers re-form, where some are lost or have come: Strategy.reform()."""

    EXPLICIT = 0  # when Strategy.reform() is called
    AT_NEXT_RUN = 1  # also at the begin of a run, where it is due


class Placement(IntEnum):
    """Where library threads run."""

    FREE = 0  # wherever the system puts them
    CORES = 1  # each on one core of its own


class ValueKind(IntEnum):
    """What a value is."""

    TENSOR = 1
    PER_REPLICA = 2  # one value for each replica
    MIRRORED = 3  # the same, known to be equal
    LIST = 4
    DICT = 5  # a dictionary: keys are text, in order of their bytes
    VARIABLE = 6  # a variable, to be passed to a run
    NONE = 7  # nothing: all of them count as the same value
    TUPLE = 8  # a list of another kind: the two never merge with each other
    TEXT = 9
    OBJECT = 10  # anything of the program's own, passed through
    INDEXED_SLICES = 11  # rows of a larger tensor: values, indices, dense shape
    RAGGED = 12  # rows of different lengths: values, row splits (one or several)
    SPARSE = 13  # single elements of a tensor: indices, values, dense shape
    SHARDED = 14  # a tensor, and which logical device of a replica has which part of it


class Synchronization(IntEnum):
    """When the copies of a variable are brought together (TensorFlow: VariableSynchronization)."""

    AUTO = 0  # the strategy's choice: on writing
    NONE = 1  # never; mirrored strategies refuse it
    ON_WRITE = 2  # an assignment inside replicas is aggregated, and all copies stay equal
    ON_READ = 3  # each replica writes its own copy; a read from outside aggregates them


class Aggregation(IntEnum):
    """What an assignment inside replicas does with R given values (TensorFlow: VariableAggregation)."""

    NONE = 0  # each replica writes its own copy
    SUM = 1  # every copy gets their sum
    MEAN = 2  # every copy gets their mean
    ONLY_FIRST_REPLICA = 3  # replica 0's value goes to all


class Assign(IntEnum):
    """How an assignment changes the variable."""

    SET = 1  # it becomes the value
    ADD = 2  # the value is added
    SUB = 3  # the value is subtracted


class Communication(IntEnum):
    """Which implementation a program asks for (TensorFlow: CommunicationImplementation). The bits are the same."""

    AUTO = 0  # libdist's choice
    RING = 1  # accepted, and of no consequence
    NCCL = 2  # accepted; libdist's own, since its devices are host CPUs


class InputMode(IntEnum):
    """How many pipelines make the batches (TensorFlow: InputReplicationMode)."""

    PER_WORKER = 0  # one; its elements are dealt to the replicas
    PER_REPLICA = 1  # one for each replica


class ShardPolicy(IntEnum):
    """How a dataset is divided between workers (TensorFlow: AutoShardPolicy)."""

    OFF = -1  # every worker sees all
    AUTO = 0  # FILE where the source reads files, else DATA
    FILE = 1  # file i goes to worker i mod W
    DATA = 2  # element i goes to worker i mod W
    HINT = 3  # where the source says that it is to be done


class DeviceOrder(IntEnum):
    """In which order replicas and their logical devices lie in a mesh (TensorFlow: DeviceOrderMode)."""

    AUTO = 0  # rings where they fit, else blocks
    RING = 1  # each a neighbour of the next; an error where they do not fit
    MESH = 2  # blocks


MAX_REPLICAS: int = 256  # of one strategy in one process
MAX_CONTRIBUTIONS: int = 1024  # tensors in one sum, those of all replicas together
MAX_NDIM: int = 16  # dimensions of a tensor
MAX_TAG_BYTES: int = 48  # of a tag, its end included; a longer one is cut
MAX_MESH_POSITIONS: int = 1048576  # of a topology's mesh; also devices of a topology, or of an assignment


class LogLevel(IntEnum):
    """How much a log line matters."""

    ERROR = 1  # something failed
    WARNING = 2  # something may fail
    INFO = 3  # for who looks


class Scatter(IntEnum):
    """How rows change a variable: row indices[k] of the variable becomes op(that row, values[k])."""

    ADD = 1  # added
    SUB = 2  # subtracted
    UPDATE = 3  # the row is replaced; of an index that comes twice the last counts
    MUL = 4  # multiplied
    DIV = 5  # divided
    MIN = 6  # the smaller one
    MAX = 7  # the larger one
    BATCH_UPDATE = 8  # UPDATE under leading dimensions that indices, values and variable share


class CrossDeviceKind(IntEnum):
    """Who reduces values from outside runs (TensorFlow: CrossDeviceOps). The bits are the same, but for HOST's."""

    DEFAULT = 0  # the strategy's own
    REDUCTION_TO_ONE_DEVICE = 1  # with an operator of the program's, where it gives one
    HIERARCHICAL_COPY = 2  # TensorFlow's name for what libdist does anyway
    NCCL = 3  # TensorFlow's name for what libdist does anyway
    HOST = 5  # functions of the program's


class MetricKind(IntEnum):
    """What a metric computes over all updates of all replicas."""

    SUM = 1  # the sum of w * x
    MEAN = 2  # that, divided by the sum of w
    ACCURACY = 3  # the share of updates whose label is the prediction


class Apply(IntEnum):
    """How reduce_apply() uses a reduced gradient."""

    SGD = 1  # the built-in gradient descent, with momentum
    CALLBACK = 2  # a function of the program's


class PartitionKind(IntEnum):
    """What the logical devices of a replica have of a tensor."""

    SPLIT = 0  # each a tile of it
    ASSIGN = 1  # one has it all, the others nothing
    REPLICATE = 2  # each has all of it


class Edge(IntEnum):
    """What a halo has beyond the edge of the whole tensor, of elements 0 .. n-1 in that dimension."""

    ZERO = 0  # zeros
    WRAP = 1  # from the other end: -1 is n-1
    CLAMP = 2  # the last element, again and again: -1 is 0
    REFLECT = 3  # mirrored at the last element: -1 is 1
    NONE = 4  # nothing: there the result ends


MAX_CLUSTER_TEXT_BYTES: int = 1048576  # of a JSON text, or a list of hosts
MAX_CLUSTER_DEPTH: int = 32  # of objects and lists in each other
MAX_CLUSTER_JOBS: int = 64
MAX_CLUSTER_TASKS: int = 65536  # of all jobs together
MAX_CLUSTER_MEMBERS: int = 64  # resolvers of a union, and unions in each other; specs of a union
MAX_JOB_NAME_BYTES: int = 128
MAX_ADDRESS_BYTES: int = 512  # of an address; also of the other texts that resolvers give


PRIORITY_MIN: int = -7
PRIORITY_MAX: int = 7


class PreemptionState(IntEnum):
    """What a look at the notice came to: PreemptionHandler.save_if_preempted()."""

    NONE = 0  # nobody has given one
    SAVED = 1  # the checkpoint is saved; the job goes on until its grace is over
    OVER = 2  # the checkpoint is saved for the last time: the job is to end


# Enums by the beginnings of their constants in C.
ENUMS: dict[str, str] = {
    "REDUCE": "ReduceOp",
    "COLLECTIVE": "Collective",
    "NUMERICS": "Numerics",
    "SCAN": "ScanKind",
    "STRATEGY": "StrategyKind",
    "THREADS": "Threads",
    "TRANSPORT": "Transport",
    "REFORM": "Reform",
    "PLACEMENT": "Placement",
    "VALUE": "ValueKind",
    "SYNCHRONIZATION": "Synchronization",
    "AGGREGATION": "Aggregation",
    "ASSIGN": "Assign",
    "COMMUNICATION": "Communication",
    "INPUT": "InputMode",
    "SHARD": "ShardPolicy",
    "DEVICE_ORDER": "DeviceOrder",
    "LOG": "LogLevel",
    "SCATTER": "Scatter",
    "CROSS_DEVICE": "CrossDeviceKind",
    "METRIC": "MetricKind",
    "APPLY": "Apply",
    "PARTITION": "PartitionKind",
    "EDGE": "Edge",
    "PREEMPTION": "PreemptionState",
}

# C's functions on a replica, without dist_.
OF_REPLICAS: tuple[str, ...] = (
    "all_reduce",
    "reduce_to_root",
    "reduce_scatter",
    "all_gather",
    "gather_to_root",
    "broadcast",
    "scatter_from_root",
    "all_to_all",
    "scan",
    "permute",
    "barrier",
    "all_reduce_value",
    "all_gather_value",
    "reduce_apply",
    "parallel_for",
    "merge_call",
    "replica_leave",
    "replica_detach",
    "replica_attach",
    "replica_check",
    "replica_version",
    "replica_read",
    "replica_assign",
    "replica_variable",
    "replica_assign_value",
    "replica_scatter",
    "replica_update",
    "metric_update",
    "average_loss",
    "scale_regularization_loss",
    "split_to_logical_devices",
    "assign_to_logical_device",
    "replicate_to_logical_devices",
    "run_on_devices",
    "device_coordinates",
    "device_axis",
    "device_axis_group",
    "halo_exchange",
    "reshard",
)
