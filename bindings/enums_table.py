# SPDX-License-Identifier: Apache-2.0
"""The table of enums.py: what each language calls the enums of the C headers, and their constants.

A row begins with the enum's first constant and with what the names of its constants begin with. Then come the type's
names: `go`, `java` where that differs, `python` where that differs from Java's; None is no type, but plain numbers. All
else has a default:

    go_name, go_names  how Go makes its name of a constant, {} being what is behind the prefix, in Camel; the exceptions
    shorts             constants whose name is not what is behind the prefix
    doc, docs          what the type means, and a constant, where the header does not say it or not for all languages:
                       a text, or a dict of "go", "java" and "python" in which a language may be missing
    names, from_doc    NAMES of DIST_ENUM_NAMES, by which C gives TensorFlow's names; how the comment goes on after "TensorFlow's name"
    from_names         the domain of those that are taken, where that is another
    others             Java's member that stands for numbers of later versions; without one those are an exception
    java_body          methods of Java's that only this enum has
    go_words           whether Go's messages have these constants by their Go names
    left_out           (language, constant or "all") -> why it does not offer that
"""
import re
from dataclasses import dataclass, field

# What does not become Camel by itself.
CAMEL = {"BF16": "BF16", "NCCL": "NCCL", "SGD": "SGD", "NDIM": "NDim"}
ANY_CASE = ". Upper and lower case are equal. Use it for settings from files and command lines."
AS_BEFORE = "the name that the language before it has"


class Error(Exception):
    """The headers and the table do not fit together."""


def comment_of(declared):
    """Returns the comment in the header on one line; "" if there is none."""
    return " ".join((declared["comment"] or {"text": ""})["text"].split())


class Constant:
    """A constant of a row, as the headers declare it."""

    def __init__(self, row, declared):
        self.name, self.value = declared["name"], declared["value"]
        self.hexadecimal = declared["hexadecimal"]
        self.comment = comment_of(declared)
        self.short = row.shorts.get(self.name, self.name[len(row.prefix) :])
        camel = "".join(CAMEL.get(word, word.capitalize()) for word in self.short.split("_"))
        self.go = row.go_names.get(self.short, row.go_name.format(camel))
        if not self.name.startswith(row.prefix) and self.name not in row.shorts:
            raise Error(f"{self.name} does not start with {row.prefix}: its row in enums_table.py needs `shorts`")


@dataclass
class Enum:
    """A row of the table."""

    first: str
    prefix: str
    go: str | None = None
    java: str | None = AS_BEFORE
    python: str | None = AS_BEFORE
    go_name: str = "{}"
    go_names: dict = field(default_factory=dict)
    shorts: dict = field(default_factory=dict)
    doc: str | dict = ""
    docs: dict = field(default_factory=dict)
    names: str | None = None
    from_doc: str = ANY_CASE
    from_names: str | None = AS_BEFORE
    others: str | None = None
    java_body: str = ""
    go_words: bool = True
    left_out: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.java is AS_BEFORE:
            self.java = self.go
        if self.python is AS_BEFORE:
            self.python = self.java
        if self.from_names is AS_BEFORE:
            self.from_names = self.names
        if self.java is None and ("java", "all") not in self.left_out:
            raise TypeError(f"{self.first}: Java has a type of it, or `left_out` says why not")

    def take(self, declared):
        """The constants that the headers have."""
        self.comment = comment_of(declared)
        self.constants = [Constant(self, one) for one in declared["constants"]]
        shorts = {one.short for one in self.constants} | {"all"}
        for short in {*self.docs, *self.go_names, *(constant for _, constant in self.left_out)} - shorts:
            raise Error(f"enums_table.py, {self.first}: the headers have no {short} there")

    def offered(self, language):
        """The constants that a language offers."""
        if (language, "all") in self.left_out:
            return []
        return [one for one in self.constants if (language, one.short) not in self.left_out]

    def doc_of(self, language, constant=None):
        """Returns the text for a constant, or for the type; "" if there is none."""
        said, comment = (self.docs.get(constant.short), constant.comment) if constant else (self.doc, self.comment)
        if isinstance(said, dict):
            said = said.get(language)
        text = said or comment
        if language == "go":
            names = {one.short: one.go for one in self.constants}
            text = re.sub(r"\b[A-Z][A-Z_]+\b", lambda word: names.get(word[0], word[0]), text)
        return text


DTYPE_JAVA = """
    /** How many bytes an element has. */
    public int sizeBytes() {
        return switch (this) {
            case I8, U8, BOOL -> 1;
            case F16, BF16, I16, U16 -> 2;
            case F32, I32, U32 -> 4;
            case F64, I64, U64, COMPLEX64 -> 8;
        };
    }

    /** As libdist writes it, "f32". */
    @Override
    public String toString() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }
"""
REDUCE_OP_JAVA = """
    /**
     * The operator by which a variable of this aggregation is reduced.
     *
     * @throws DistException INVALID_ARGUMENT it is no reduction: NONE, ONLY_FIRST_REPLICA
     */
    public static ReduceOp fromAggregation(Aggregation aggregation) {
        int[] out = new int[1];
        DistModule.dist_reduce_op_from_aggregation(aggregation.code, out);
        return of(out[0]);
    }
"""
STATUS_JAVA = """
    /** The number in libdist. */
    public int code() {
        return code;
    }
"""
BY_FUNCTIONS = "each enum has functions, or methods, that give its names and take them"
TABLE = [
    Enum(
        "DIST_OK", "DIST_", go="Code", java="Status", go_name="Err{}", go_words=False, others="INTERNAL",
        java_body=STATUS_JAVA, left_out={("go", "OK"): "no error is nil"},
        doc={
            "go": "Code is the kind of a failure. The numbers are those of libdist, Abseil and gRPC.\n"
            "Each code is an error itself: pass it to errors.Is.",
            "java": "The kind of a failure. The numbers are those of libdist, Abseil and gRPC.",
            "python": "The result of a call. The numbers are those of Abseil and gRPC. Every failure raises a DistError.",
        },
        docs={
            "OK": "no failure",
            "CANCELLED": {
                "go": "Strategy.Cancel was called, or a context ended",
                "java": "{@link Strategy#cancel} was called, or the thread that runs was interrupted",
                "python": "it was cancelled, for example with Strategy.cancel()",
            },
            "UNKNOWN": "a function of your own failed",
            "INVALID_ARGUMENT": "an argument is invalid, whatever the state of the object",
            "FAILED_PRECONDITION": "not allowed now: closed, its run has ended, or in the other context",
        },
    ),
    Enum(
        "DIST_F16", "DIST_", go="DType", java_body=DTYPE_JAVA,
        doc={
            "go": "DType is the type of a tensor's elements.",
            "java": "The type of a tensor's elements.",
            "python": "The type of a tensor's elements.",
        },
        docs={
            "F16": {"go": "IEEE 754 binary16: Float16", "java": "IEEE 754 binary16, as its bits in a short"},
            "BF16": {
                "go": "the upper half of a float32: BFloat16",
                "java": "the upper half of a float, as its bits in a short",
            },
            "F32": {"java": "{@code float}"},
            "F64": {"java": "{@code double}"},
            "I8": {"java": "{@code byte}"},
            "U8": {"java": "{@code byte}, unsigned"},
            "I16": {"java": "{@code short}"},
            "U16": {"java": "{@code short}, unsigned"},
            "I32": {"java": "{@code int}"},
            "U32": {"java": "{@code int}, unsigned"},
            "I64": {"java": "{@code long}"},
            "U64": {"java": "{@code long}, unsigned"},
        },
    ),
    Enum(
        "DIST_REDUCE_SUM", "DIST_REDUCE_", go="ReduceOp", go_names={"USER": "ReduceUser"}, names="REDUCE_OP",
        from_names="VALUE_REDUCTION",
        from_doc=': "SUM" or "MEAN", in upper or lower case. Values outside runs have no other reductions.',
        java_body=REDUCE_OP_JAVA,
        doc="The operator of a reduction.",
        docs={
            "SUM": "added, left to right by replica id",
            "MEAN": "the sum, divided by the number of terms or by the sum of the weights",
            "MIN": "the smallest; for booleans: and",
            "MAX": "the largest; for booleans: or",
            "PROD": "multiplied",
            "USER": {
                "go": "an operator of your own: see ReduceWith",
                "java": "combined by the function of {@link CollectiveOptions#reducer}",
                "python": "combined by a function of your own",
            },
        },
    ),
    Enum(
        "DIST_COLLECTIVE_NONE", "DIST_COLLECTIVE_", go="Collective", go_name="Collective{}", others="OTHER",
        doc={
            "go": "Collective is the collective in which an error was detected.",
            "java": "The collective of an exception, or of a row of {@link Strategy#stragglers}.",
            "python": "The collective of an error, or of a row of Strategy.stragglers().",
        },
        docs={
            "NONE": {"java": "none"},
            "ALL_REDUCE": {"java": "{@link Replica#allReduce}"},
            "BROADCAST": {"java": "{@link Replica#broadcast}"},
            "BARRIER": {"java": "{@link Replica#barrier}"},
            "MERGE_CALL": {"java": "{@link Replica#mergeCall}, and operations that work like it"},
            "REDUCE": {"java": "{@link Replica#reduceToRoot}"},
            "REDUCE_SCATTER": {"java": "{@link Replica#reduceScatter}"},
            "ALL_GATHER": {"java": "{@link Replica#allGather}"},
            "GATHER": {"java": "{@link Replica#gatherToRoot}"},
            "SCATTER": {"java": "{@link Replica#scatterFromRoot}"},
            "ALL_TO_ALL": {"java": "{@link Replica#allToAll}"},
            "SCAN": {"java": "{@link Replica#scan}"},
            "PERMUTE": {"java": "{@link Replica#permute}"},
            "REDUCE_APPLY": {"java": "{@link Replica#reduceApply}"},
            "HALO_EXCHANGE": {"java": "{@link Replica#haloExchange}"},
            "RESHARD": {"java": "{@link Replica#reshard}"},
        },
    ),
    Enum(
        "DIST_NUMERICS_DEFAULT", "DIST_NUMERICS_", go="Numerics",
        left_out={
            ("go", "DEFAULT"): "the zero value stands for it",
            ("java", "DEFAULT"): "an option that is not set",
            ("python", "DEFAULT"): "an option that is not given",
        },
    ),
    Enum("DIST_SCAN_INCLUSIVE", "DIST_SCAN_", go="ScanKind"),
    Enum(
        "DIST_STRATEGY_MIRRORED", "DIST_STRATEGY_", go="Kind", java="StrategyKind",
        docs={
            "MESH": {
                "go": "like MIRRORED; replicas consist of logical devices (TensorFlow: TPUStrategy)",
                "java": "like MIRRORED; replicas consist of logical devices: see "
                "{@link StrategyOptions#deviceAssignment}",
            },
        },
    ),
    Enum(
        "DIST_THREADS_CALLER", "DIST_THREADS_", go="Threads", java="ReplicaThreads", python="Threads",
        go_names={"CALLER": "CallerThread", "LIBRARY": "LibraryThreads", "HOST": "Goroutines"},
        docs={
            "CALLER": {
                "go": "Run's caller is replica 0; the others are library threads",
                "java": "run()'s caller is replica 0; the others are library threads",
                "python": "run()'s caller is replica 0; the others are library threads",
            },
            "LIBRARY": {
                "go": "all replicas are library threads",
                "java": "all are library threads; run()'s caller waits",
                "python": "all are library threads; run()'s caller waits",
            },
            "HOST": {
                "go": "each replica is a goroutine: Run starts them, or Strategy.Enter takes yours",
                "java": "your own threads enter with {@link Strategy#enter}",
                "python": "your own threads enter with Strategy.enter()",
            },
        },
    ),
    Enum("DIST_TRANSPORT_AUTO", "DIST_TRANSPORT_", go="Transport", go_name="{}Transport"),
    Enum(
        "DIST_REFORM_EXPLICIT", "DIST_REFORM_", go="Reform", go_name="Reform{}",
        doc={
            "go": "Reform is the time at which workers re-form if some are lost or want to join; see Strategy.Reform.",
            "java": "The time at which workers re-form if some are lost or want to join; see {@link Strategy#reform()}.",
            "python": "The time at which workers re-form if some are lost or want to join; see Strategy.reform().",
        },
        docs={
            "EXPLICIT": {
                "go": "when Strategy.Reform is called",
                "java": "when {@link Strategy#reform()} is called",
                "python": "when Strategy.reform() is called",
            },
        },
    ),
    Enum(
        "DIST_PLACEMENT_FREE", "DIST_PLACEMENT_", go="Placement", docs={"CORES": "each thread on a core of its own"},
    ),
    Enum(
        "DIST_VALUE_TENSOR", "DIST_VALUE_", go="ValueKind", go_name="{}Value",
        docs={
            "TENSOR": {"java": "a tensor"},
            "LIST": {"java": "a list of values"},
            "DICT": "a dictionary: keys are text, in order of their bytes",
            "VARIABLE": "a variable, to be passed to a run",
            "TEXT": {"java": "a text"},
            "OBJECT": "anything of the program's own, passed through",
        },
    ),
    Enum(
        "DIST_SYNCHRONIZATION_AUTO", "DIST_SYNCHRONIZATION_", go="Synchronization", go_name="Synchronization{}",
        names="SYNCHRONIZATION", docs={"NONE": "never; mirrored strategies refuse it"},
    ),
    Enum(
        "DIST_AGGREGATION_NONE", "DIST_AGGREGATION_", go="Aggregation", go_name="Aggregation{}", names="AGGREGATION",
        docs={"SUM": "every copy gets their sum", "MEAN": "every copy gets their mean"},
    ),
    Enum(
        "DIST_ASSIGN", "DIST_ASSIGN_", go="Assign", shorts={"DIST_ASSIGN": "SET"}, go_name="Assign{}",
        docs={"SET": "it becomes the value", "ADD": "the value is added", "SUB": "the value is subtracted"},
    ),
    Enum(
        "DIST_SCATTER_ADD", "DIST_SCATTER_", go="Scatter", go_name="Scatter{}",
        docs={
            "ADD": "added",
            "SUB": "subtracted",
            "MUL": "multiplied",
            "DIV": "divided",
            "MIN": "the smaller one",
            "MAX": "the larger one",
        },
    ),
    Enum(
        "DIST_CROSS_DEVICE_DEFAULT", "DIST_CROSS_DEVICE_", go="CrossDeviceKind", go_name="CrossDevice{}",
        names="CROSS_DEVICE",
        docs={
            "DEFAULT": "the strategy's own",
            "REDUCTION_TO_ONE_DEVICE": "on one device, optionally with an operator of your own",
            "HOST": "functions of your own",
        },
    ),
    Enum("DIST_INPUT_PER_WORKER", "DIST_INPUT_", go="InputMode", names="INPUT_MODE"),
    Enum("DIST_SHARD_AUTO", "DIST_SHARD_", go="ShardPolicy", go_name="Shard{}", names="SHARD_POLICY"),
    Enum(
        "DIST_METRIC_SUM", "DIST_METRIC_", go="MetricKind", go_name="Metric{}",
        docs={"SUM": "the sum of w * x", "MEAN": "the sum of w * x, divided by the sum of w"},
    ),
    Enum(
        "DIST_APPLY_SGD", "DIST_APPLY_", java="Apply", go_name="apply{}", go_words=False,
        doc={"go": "The kinds of dist_apply_options.", "python": "The way in which reduce_apply() uses a reduced gradient."},
        docs={"CALLBACK": "a function of your own"},
        left_out={("java", "all"): "methods there: Optimizer.sgd(), Optimizer.function()"},
    ),
    Enum(
        "DIST_PREEMPTION_NONE", "DIST_PREEMPTION_", go="PreemptionState", go_name="Preemption{}",
        doc={
            "go": "PreemptionState is the state of a preemption; see PreemptionHandler.SaveIfPreempted.",
            "java": "The state of a preemption; see {@link PreemptionHandler#saveIfPreempted}.",
            "python": "The state of a preemption; see PreemptionHandler.save_if_preempted().",
        },
    ),
    Enum("DIST_DEVICE_ORDER_AUTO", "DIST_DEVICE_ORDER_", go="DeviceOrder", go_name="DeviceOrder{}"),
    Enum("DIST_PARTITION_SPLIT", "DIST_PARTITION_", go="PartitionKind", go_name="Partition{}"),
    Enum("DIST_EDGE_ZERO", "DIST_EDGE_", go="Edge", go_name="Edge{}"),
    Enum(
        "DIST_NO_TIMEOUT", "DIST_",
        left_out={
            ("go", "all"): "it is a time.Duration there",
            ("java", "all"): "a negative Duration stands for it",
            ("python", "all"): "None or a negative number stands for it",
        },
    ),
    Enum(
        "DIST_MAX_NDIM", "DIST_", doc={"go": "Limits of libdist."},
        left_out={("java", "all"): "an exception says the limit that was passed"},
    ),
    Enum(
        "DIST_PRIORITY_MIN", "DIST_", doc={"go": "The lowest and the highest priority of a request; see SubmitOptions."},
        left_out={("java", "all"): "they are constants of SubmitOptions"},
    ),
    Enum(
        "DIST_TASK_UNSET", "DIST_", doc={"go": "The index of a task that is not given or not known."},
        left_out={("java", "all"): "an empty OptionalInt stands for it", ("python", "all"): "None stands for it"},
    ),
    Enum(
        "DIST_MAX_CLUSTER_TEXT_BYTES", "DIST_", doc={"go": "Limits of the description of a cluster."},
        left_out={("java", "all"): "an exception says the limit that was passed"},
    ),
    Enum(
        "DIST_PARTITIONER_MIN_SHARD_BYTES", "DIST_PARTITIONER_", go_name="Partitioner{}",
        doc={"go": "TensorFlow's defaults for MinSizeShards."},
        left_out={("java", "all"): "they are constants of Partitioners", ("python", "all"): "they are the defaults of arguments"},
    ),
    Enum(
        "DIST_ENUM_STATUS", "DIST_ENUM_",
        left_out={("go", "all"): BY_FUNCTIONS, ("java", "all"): BY_FUNCTIONS, ("python", "all"): BY_FUNCTIONS},
    ),
    Enum(
        "DIST_LOG_ERROR", "DIST_LOG_", go="LogLevel", go_name="Log{}",
        docs={"ERROR": "something failed", "WARNING": "something may fail", "INFO": "information for diagnosis"},
    ),
]
