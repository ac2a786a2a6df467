# SPDX-License-Identifier: Apache-2.0
# Written by bindings/enums.py from the headers: do not edit.
"""The numbers of dist/types.h as enums. Functions take an enum's member, or its number."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """The result of a call. The numbers are those of Abseil and gRPC. Every failure raises a DistError."""

    OK = 0  # no failure
    CANCELLED = 1  # it was cancelled, for example with Strategy.cancel()
    UNKNOWN = 2  # a function of your own failed
    INVALID_ARGUMENT = 3  # an argument is invalid, whatever the state of the object
    DEADLINE_EXCEEDED = 4  # a peer did not arrive, or the run did not end, in time
    NOT_FOUND = 5  # no such key, name or file
    ALREADY_EXISTS = 6  # the name is already in use
    PERMISSION_DENIED = 7  # the operating system denied access
    RESOURCE_EXHAUSTED = 8  # out of memory, or a thread could not be created
    FAILED_PRECONDITION = 9  # not allowed now: closed, its run has ended, or in the other context
    ABORTED = 10  # a peer failed first; the report names it
    OUT_OF_RANGE = 11  # past the end: a source or a file has no more elements
    UNIMPLEMENTED = 12  # not supported by this strategy, dtype or build
    INTERNAL = 13  # a bug in libdist: please report it
    UNAVAILABLE = 14  # a worker or service cannot be reached
    DATA_LOSS = 15  # a file or message is truncated or corrupt


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
    BOOL = 14  # one byte: 0 is false, anything else is true; libdist writes 0 or 1


class ReduceOp(IntEnum):
    """The operator of a reduction."""

    SUM = 0x101  # added, left to right by replica id
    MEAN = 0x102  # the sum, divided by the number of terms or by the sum of the weights
    MIN = 0x103  # the smallest; for booleans: and
    MAX = 0x104  # the largest; for booleans: or
    PROD = 0x105  # multiplied
    USER = 0x106  # combined by a function of your own


class Collective(IntEnum):
    """The collective of an error, or of a row of Strategy.stragglers()."""

    NONE = 0
    ALL_REDUCE = 0x201
    BROADCAST = 0x202
    BARRIER = 0x203
    MERGE_CALL = 0x204
    RETURN = 0x205  # the end of the replica function, where all replicas also wait for each other
    REDUCE = 0x206
    REDUCE_SCATTER = 0x207
    ALL_GATHER = 0x208
    GATHER = 0x209
    SCATTER = 0x20A
    ALL_TO_ALL = 0x20B
    SCAN = 0x20C
    PERMUTE = 0x20D
    REDUCE_APPLY = 0x20E
    HALO_EXCHANGE = 0x20F
    RESHARD = 0x210


class Numerics(IntEnum):
    """The order of additions in a sum, which determines its bits."""

    ORDERED = 0x301  # added in the order of replica ids
    REPRODUCIBLE = 0x302  # added exactly and rounded once: independent of the order and of how replicas share the terms
    TREE = 0x303  # added in pairs, pairs of pairs and so on, by replica id: cheapest over many workers


class ScanKind(IntEnum):
    """The first term of a scan."""

    INCLUSIVE = 0x400  # the result of replica r includes its own contribution
    EXCLUSIVE = 0x401  # the result of replica r covers replicas 0 .. r-1 only


class StrategyKind(IntEnum):
    """The kind of a strategy, which determines where values and variables are placed."""

    MIRRORED = 0x500  # R replicas; every variable has R equal copies
    ONE_DEVICE = 0x501  # one replica, for programs that run on one or on many
    DEFAULT = 0x502  # one replica; used by programs that do not choose a strategy
    CENTRAL_STORAGE = 0x503  # R replicas; every variable has one copy, which all replicas read
    MESH = 0x504  # like MIRRORED; replicas consist of logical devices (TPUStrategy)
    MULTI_WORKER_MIRRORED = 0x505  # like MIRRORED, with replicas in all workers of a cluster
    PARAMETER_SERVER = 0x506  # variables on servers; a coordinator runs closures on workers


class Threads(IntEnum):
    """The threads that run the replicas."""

    CALLER = 0x600  # run()'s caller is replica 0; the others are library threads
    LIBRARY = 0x601  # all are library threads; run()'s caller waits
    HOST = 0x602  # your own threads enter with Strategy.enter()


class Transport(IntEnum):
    """The transport between workers that are separate processes; workers.h lists the environment variables for it.
    Link modules have further values: dist/experimental/links.h."""

    AUTO = 0x700  # the one named by DIST_TRANSPORT; else GRPC, or NONE for host names without TLS and DIST_PLAINTEXT. If none is named, workers of one machine and user exchange data through shared memory
    NONE = 0x701  # no transport: the first call that needs another worker fails with UNAVAILABLE
    GRPC = 0x702  # over gRPC, between the addresses in the cluster, also within one machine
    GLOO = 0x703  # control over gRPC, data over Gloo: not encrypted, on additional ports


class Reform(IntEnum):
    """The time at which workers re-form if some are lost or want to join; see Strategy.reform()."""

    EXPLICIT = 0x800  # when Strategy.reform() is called
    AT_NEXT_RUN = 0x801  # also at the start of a run, if it is due


class Placement(IntEnum):
    """The placement of library threads on CPUs."""

    FREE = 0x900  # the operating system decides
    CORES = 0x901  # each thread on a core of its own


class ValueKind(IntEnum):
    """The kind of a value."""

    TENSOR = 0xA01
    PER_REPLICA = 0xA02  # one value for each replica
    MIRRORED = 0xA03  # one value for each replica, all known to be equal
    LIST = 0xA04
    DICT = 0xA05  # a dictionary: keys are text, in order of their bytes
    VARIABLE = 0xA06  # a variable, to be passed to a run
    NONE = 0xA07  # nothing; all such values count as the same value
    TUPLE = 0xA08  # like a list, but the two kinds do not merge with each other
    TEXT = 0xA09
    OBJECT = 0xA0A  # anything of the program's own, passed through
    INDEXED_SLICES = 0xA0B  # rows of a larger tensor: values, indices, dense shape
    RAGGED = 0xA0C  # rows of different lengths: values, and one or more row splits
    SPARSE = 0xA0D  # single elements of a tensor: indices, values, dense shape
    SHARDED = 0xA0E  # a tensor, with the part of it that each logical device of a replica holds


class Synchronization(IntEnum):
    """The time at which the copies of a variable are combined (TensorFlow: VariableSynchronization)."""

    AUTO = 0xB00  # the strategy decides: on writing
    NONE = 0xB01  # never; mirrored strategies refuse it
    ON_WRITE = 0xB02  # an assignment inside replicas is aggregated, and all copies stay equal
    ON_READ = 0xB03  # each replica writes its own copy; a read from outside aggregates the copies


class Aggregation(IntEnum):
    """The aggregation of the R values that replicas assign to a variable (TensorFlow: VariableAggregation)."""

    NONE = 0xC00  # not combined: each replica writes its own copy
    SUM = 0xC01  # every copy gets their sum
    MEAN = 0xC02  # every copy gets their mean
    ONLY_FIRST_REPLICA = 0xC03  # all copies get replica 0's value


class Assign(IntEnum):
    """The way in which an assignment changes a variable."""

    SET = 0xD01  # it becomes the value
    ADD = 0xD02  # the value is added
    SUB = 0xD03  # the value is subtracted


class InputMode(IntEnum):
    """The number of pipelines that produce batches (TensorFlow: InputReplicationMode)."""

    PER_WORKER = 0x1100  # one pipeline; its elements are divided among the replicas
    PER_REPLICA = 0x1101  # one pipeline per replica


class ShardPolicy(IntEnum):
    """The way in which a dataset is divided among workers (TensorFlow: AutoShardPolicy)."""

    AUTO = 0x1200  # FILE if the source reads files, else DATA
    FILE = 0x1201  # file i goes to worker i mod W
    DATA = 0x1202  # element i goes to worker i mod W
    HINT = 0x1203  # as the source requests with its shard_hint option
    OFF = 0x1204  # every worker sees all elements


class DeviceOrder(IntEnum):
    """The order of replicas and their logical devices in a mesh (TensorFlow: DeviceOrderMode)."""

    AUTO = 0x1300  # rings if they fit, else blocks
    RING = 0x1301  # each is a neighbour of the next; an error if that is impossible
    MESH = 0x1302  # blocks


MAX_NDIM: int = 16  # dimensions of a tensor
MAX_TAG_BYTES: int = 48  # bytes of a tag, including its NUL; longer tags are truncated
MAX_MESH_POSITIONS: int = 1048576  # positions in a topology's mesh, and devices of a topology or an assignment


class LogLevel(IntEnum):
    """The severity of a log line."""

    ERROR = 0x1401  # something failed
    WARNING = 0x1402  # something may fail
    INFO = 0x1403  # information for diagnosis


class Scatter(IntEnum):
    """The operator of a scatter: row indices[k] of the variable becomes op(that row, values[k])."""

    ADD = 0xE01  # added
    SUB = 0xE02  # subtracted
    UPDATE = 0xE03  # the row is replaced; if an index occurs twice, the last one wins
    MUL = 0xE04  # multiplied
    DIV = 0xE05  # divided
    MIN = 0xE06  # the smaller one
    MAX = 0xE07  # the larger one
    BATCH_UPDATE = 0xE08  # UPDATE below leading dimensions that indices, values and the variable share


class CrossDeviceKind(IntEnum):
    """The implementation that reduces values outside runs (TensorFlow: CrossDeviceOps)."""

    DEFAULT = 0x1000  # the strategy's own
    REDUCTION_TO_ONE_DEVICE = 0x1001  # on one device, optionally with an operator of your own
    HOST = 0x1002  # functions of your own


class MetricKind(IntEnum):
    """The number that a metric computes over all updates of all replicas."""

    SUM = 0x1501  # the sum of w * x
    MEAN = 0x1502  # the sum of w * x, divided by the sum of w
    ACCURACY = 0x1503  # the fraction of predictions that equal their labels


class Apply(IntEnum):
    """The way in which reduce_apply() uses a reduced gradient."""

    SGD = 0x1601  # the built-in gradient descent, with momentum
    CALLBACK = 0x1602  # a function of your own


class PartitionKind(IntEnum):
    """The way in which a tensor is distributed over the logical devices of a replica."""

    SPLIT = 0x1700  # each device has one tile
    ASSIGN = 0x1701  # one device has the whole tensor, the others have nothing
    REPLICATE = 0x1702  # each device has the whole tensor


class Edge(IntEnum):
    """The content of a halo beyond the edge of the whole tensor; the elements of that dimension are 0 .. n-1."""

    ZERO = 0x1800  # zeros
    WRAP = 0x1801  # from the other end: -1 is n-1
    CLAMP = 0x1802  # the last element, repeated: -1 is 0
    REFLECT = 0x1803  # mirrored at the last element: -1 is 1
    NONE = 0x1804  # nothing: the result ends at the edge


MAX_CLUSTER_TEXT_BYTES: int = 1048576  # a JSON text, or a list of hosts
MAX_CLUSTER_DEPTH: int = 32  # nesting depth of objects and lists
MAX_CLUSTER_JOBS: int = 64
MAX_CLUSTER_TASKS: int = 65536  # tasks of all jobs together
MAX_CLUSTER_MEMBERS: int = 64  # resolvers or specs of a union, and nesting depth of unions
MAX_JOB_NAME_BYTES: int = 128
MAX_ADDRESS_BYTES: int = 512  # an address, and the other texts that resolvers return


PRIORITY_MIN: int = -7
PRIORITY_MAX: int = 7


class PreemptionState(IntEnum):
    """The state of a preemption; see PreemptionHandler.save_if_preempted()."""

    NONE = 0x1A00  # no notice has been given
    SAVED = 0x1A01  # the checkpoint is saved; the job continues until the grace period ends
    OVER = 0x1A02  # the checkpoint is saved for the last time: the job should end
