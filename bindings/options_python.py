# SPDX-License-Identifier: Apache-2.0
"""The option records of Python: libdist/_option_fields.py, from the records of options.py.

A record is a TypedDict and a function that makes SWIG's object of its options. Methods take `**options: Unpack[...]`,
and @checked (libdist/_arguments.py) shows the options in their signatures and texts. A record whose `base` is
"dataclass" is a class with a field for each option.

A row of RECORDS has what differs from the rules: an option `clip_norm` of a flag, number, text, enum, list, object or
callback is the keyword argument `clip_norm` of a type that follows from its kind. `_ns` and `_fn` are dropped, and
`has_rank` with `rank` is one argument that may be None.
"""
import re
import textwrap
from dataclasses import dataclass, field, replace

import api
import enums
from enums_table import Error
from options import CALLS, Names, meaning

WIDTH = 110


@dataclass
class Own:
    """An option that differs from the rules."""

    name: str = ""
    type: str = ""
    default: str = ""
    convert: str = ""  # the statement that sets it; {} is the argument
    doc: str = ""
    argument: bool = False  # a parameter that the methods declare themselves
    absent: str = ""  # why Python does not offer it
    always: bool = False  # `convert` runs also for the default


@dataclass
class Row:
    """A record, with the options that differ from the rules."""

    of: str  # the function that takes the options
    options: dict = field(default_factory=dict)  # name of the field -> Own
    name: str = ""
    base: str = ""  # "dataclass", or the record whose options the same functions take
    decorator: str = "@dataclass(frozen=True)"
    doc: str = ""
    keeps: str = ""  # the class that keeps what callbacks and records need: the first argument
    extra: dict = field(default_factory=dict)  # options that only Python has
    shared: bool = False  # several functions take it: they refer to its text
    reads: bool = False  # C fills it, too


# Objects: the type of the handle -> the class, and how C gets it.
HANDLES = {
    "dist_budget": ("Budget", "kept.held({})"),
    "dist_cancel": ("Cancel", "handle_of({})"),
    "dist_cluster_resolver": ("ClusterResolver", "{}._handle"),
    "dist_cross_device": ("CrossDevice", "{}._native()"),
    "dist_device_assignment": ("DeviceAssignment", "{}._handle"),
    "dist_group": ("Group", "{}._native()"),
    "dist_network": ("Network", "kept.held({})"),
}
STRUCTS = {
    "dist_communication_options": ("CommunicationOptions", "kept.record({}._native())"),
    "dist_position": ("Position", "kept.record(native_position({}))"),
}
# Callbacks: the C type -> the type in Python, and the object that takes the calls.
CALLBACKS = {
    "dist_apply_fn": ("Optional[Callable[[Block], None]]", "Applier({}, kept.failures)"),
    "dist_initial_fn": ("Optional[Callable[[], Any]]", "Initial({}, kept.failures)"),
    "dist_log_fn": ("Union[None, logging.Logger, LogFn]", "Log({})"),
    "dist_partition_fn": ("Optional[PartitionFn]", "Partitioner({})"),
    "dist_reduce_fn": ("Optional[Operator]", "Reducer({}, kept.failures)"),
}

HIDDEN = Own(absent="Request has a queue of its own")
UPDATE_GROUP = "True = return a merged result; False = each leaf of the result is a tuple with the result of each call"
PRIORITY = "PRIORITY_MIN to PRIORITY_MAX; higher priorities run first. Runs have priority 0"

RECORDS = {
    "dist_strategy_options": Row(
        "Strategy()",
        {
            "num_replicas": Own(argument=True),
            "functions": Own(
                type="Optional[HostFunctions]",
                convert="{}._set(native, kept.token({}))",
                doc="the program's own strategy, as functions; kind must be the default",
            ),
            "cross_device": Own(doc="implementation for reducing values outside runs; None = CrossDevice()"),
            "move_host_threads": Own(
                doc="True = a thread of the program that is a replica (including the caller of Strategy.run()) may be "
                "moved if it repeatedly shares a CPU with another replica: to a CPU without a replica that is in its "
                "own affinity mask and in cpus. Its affinity mask does not change. False = such threads are never "
                "moved; Strategy.explain() reports how often a move would have helped. Not allowed with "
                "Threads.LIBRARY"
            ),
            "log": Own(
                doc="a logger, or a callback log(level, message) that takes one line; level is a LogLevel. It is "
                "called from any thread and must not call libdist. None = no log lines"
            ),
            "executor": Own(
                type="Optional[Executor]",
                convert="set_executor(native, {}, max_workers, kept)",
                always=True,
                doc="an executor whose threads share loops: libdist calls its submit() for each thread that may help "
                "when a loop begins, and does without the thread if that raises. None = oneTBB",
            ),
            "late_destroys": Own(absent="garbage collection destroys objects at any time, so Strategy always sets it"),
            "axes": Own(
                type="Union[None, Mapping[str, int], Sequence[tuple[str, int]]]",
                convert="set_axes(native, {})",
                doc='MESH: axes over the logical devices of a replica and their sizes, such as {"rows": 2, "columns": '
                "4}; the last axis varies fastest",
            ),
        },
        keeps="Kept",
        extra={
            "max_workers": Own(
                type="Optional[int]",
                default="None",
                doc="maximum number of threads of the executor that help with one loop; None = one less than the "
                "number of CPUs available to the process",
            )
        },
    ),
    "dist_collective_options": Row(
        "collectives",
        {
            "numerics": Own(
                type="Optional[Numerics]",
                default="None",
                convert="native.numerics = int({})",
                doc="order of additions in sums; None = the strategy's",
            ),
            "tag": Own(type="str", default='""'),
            "weights": Own(
                type="Union[None, float, Sequence[float]]",
                convert="set_weights(native, {}, contributions)",
                doc="MEAN: one weight (>= 0) per contribution, or a number if there is only one; set on all members "
                "or on none",
            ),
            "reduce_fn": Own(absent="the argument `op` may be a function"),
            "planned": Own(absent="Replica.plan makes plans"),
            "splits": Own(doc="all_to_all(): R sizes of the parts of x along the axis; None = equal"),
            "reduce_element_bytes": Own(
                doc="size of one element of a user-defined operator, the same on all members; 0 = the dtype's size. "
                "At most 4,096 and a multiple of the dtype's size of each tensor. Elements must be whole: a tensor's "
                "strides and its split along the axis must not divide one. TREE with more than 3 contributions allows "
                "less, for example 3,072 with up to 7, 1,536 with up to 31 and 576 with 1,024; the error report "
                "states the limit"
            ),
        },
        name="Options",
        doc="Options of collectives, and of the other methods of Replica that wait for peers. Unless stated "
        "otherwise, all members of a group pass the same options.",
        shared=True,
    ),
    "dist_communication_options": Row(
        "",
        base="dataclass",
        decorator="@dataclass(kw_only=True, eq=False, slots=True)",
        doc="Options of collectives, for a strategy. A collective's own options override them by the rule of merge().",
        reads=True,
    ),
    "dist_apply_options": Row(
        "Replica.reduce_apply()",
        {
            "kind": Own(absent="reduce_apply() calls `fn` if it has one"),
            "states": Own(absent="an argument of reduce_apply(), because it depends on the number of parameters"),
            "fn": Own(doc="update function, called for each Block of a tensor; None = gradient descent"),
        },
        base="dist_collective_options",
        keeps="Kept",
    ),
    "dist_run_options": Row(
        "runs",
        {
            "timeout_ns": Own(
                doc="limit on the time from the call, in seconds, including the wait for earlier runs and everything "
                "that merge functions start; None = no limit. If the caller is replica 0, it cannot return before its "
                "own function does; if by then all functions have returned, the run succeeds even after the limit"
            ),
            "enable_dynamic_batch_size": Own(
                type="Optional[bool]",
                default="None",
                convert="native.enable_dynamic_batch_size = 1 if {} else -1",
                doc="TensorFlow's RunOptions, accepted without effect, because every size may differ from run to run: "
                "None = default (on), True = on, False = off",
            ),
        },
    ),
    "dist_instances_options": Row(
        "Strategy.instances()",
        {
            "helper_threads": Own(
                doc="Threads.HOST only: True = libdist may start a thread for deadlines, False = it may not. With "
                "library threads it always may"
            ),
            "spin_ns": Own(
                convert="native.spin_ns = delay({}) or -1",
                doc="how long an idle instance spins before it sleeps, in seconds; None = default (60 us), 0 = do not "
                "spin. A spinning instance occupies a CPU",
            ),
            "create_state": Own(
                type="Optional[Callable[[Replica], Any]]",
                convert="kept.set(native, {}, destroy_state, warm_up)",
                always=True,
                doc="callback that returns the state of an instance, which Replica.instance_state then is; called on "
                "the instance's thread. None = instances have no state",
            ),
            "destroy_state": Own(
                type="Optional[Callable[[Any], None]]",
                convert="-",
                doc="callback that receives the state when the instance closes, on the instance's thread",
            ),
            "warm_up": Own(
                type="Optional[Callable[[Replica], Any]]",
                convert="-",
                doc="called once on each instance, after create_state and before the first request",
            ),
        },
        keeps="InstanceFunctions",
    ),
    "dist_submit_options": Row(
        "Strategy.submit()",
        {"priority": Own(doc=PRIORITY), "completions": HIDDEN},
    ),
    "dist_batcher_options": Row(
        "Strategy.batcher()",
        {
            "max_bytes": Own(doc="maximum sum of the items' sizes per instance; 0 = no limit"),
            "free_state": Own(absent="garbage collection"),
            "free_result": Own(absent="garbage collection"),
        },
    ),
    "dist_item_options": Row(
        "Batcher.submit()",
        {
            "priority": Own(doc=PRIORITY),
            "completions": HIDDEN,
            "bytes": Own(name="size", doc="size in bytes that counts towards max_bytes of Strategy.batcher()"),
        },
    ),
    "dist_variable_options": Row(
        "Strategy.variable() and Replica.variable()",
        {
            "name": Own(argument=True),
            "initial_fn": Own(argument=True, type="int", default="0", convert="native.set_initial({})"),
        },
    ),
    "dist_update_options": Row(
        "Strategy.update(), Strategy.update_non_slot() and Replica.update()",
        {
            "ungrouped": Own(name="group", default="True", convert="native.ungrouped = 1", doc=UPDATE_GROUP),
            "parallel": Own(
                doc="True = if the variable is large, calls for several copies run at the same time, on oneTBB's "
                "threads, and their results are dropped; fn must then neither reduce nor start a run. False = one "
                "call after another, on this thread. Not allowed in update_non_slot()"
            ),
        },
    ),
    "dist_dataset_options": Row(
        "datasets",
        {
        },
        doc="Options of datasets: how batches are made of a source's elements, and divided among the replicas of all "
        "workers.",
        shared=True,
    ),
    "dist_checkpoint_options": Row(
        "Strategy.save_checkpoint()",
        {
            "sharded": Own(
                doc="True = `path` becomes an index, and each worker of the strategy writes its part of the variables "
                "to a shard; False = one file, written by worker 0"
            ),
            "names": Own(argument=True),
            "position": Own(doc="position in the input to store; Strategy.load_checkpoint() returns it"),
            "metadata_keys": Own(
                name="metadata",
                type="Optional[Mapping[str, str]]",
                convert="set_metadata(native, {})",
                doc="your own texts, each under a key, which Checkpoint.metadata then has",
            ),
            "metadata_texts": Own(absent="metadata has keys and texts"),
        },
        keeps="Kept",
    ),
    "dist_checkpoint_map_options": Row(
        "Checkpoint.map() and Checkpoint.map_all()",
        {
            "verify": Own(argument=True),
        },
    ),
    "dist_split_options": Row("Replica.split_to_logical_devices()"),
    "dist_devices_options": Row(
        "Replica.run_on_devices()",
        {
            "results": Own(
                type="Union[None, Partition, Sequence[Optional[Partition]]]",
                convert="add_results(native, {}, kept)",
                doc="how to join the devices' results: one Partition for all leaves, or one for each leaf in the "
                "order of the nest (dictionaries: by key). The shape of a partition is ignored. Without a partition, "
                "tensors of equal sizes count as tiles if the first split argument has as many dimensions. If each "
                "device returns a whole tensor, pass Partition.replicate()",
            )
        },
        keeps="Kept",
    ),
    "dist_cluster_resolver_options": Row(
        "",
        {
            "task_type": Own(convert="native.set_task_type({})", doc="job of this process"),
            "task_id": Own(type="TaskId", doc="index of this process in its job"),
            "rpc_layer": Own(
                convert="native.set_rpc_layer({})",
                doc='protocol, such as "grpc", prefixed to addresses with "://"; "" = no prefix',
            ),
            "environment": Own(doc='name of the platform on which the cluster runs, such as "google"'),
            "session_address": Own(
                doc="ClusterResolver.simple() only: the result of ClusterResolver.master() if no task is given"
            ),
        },
        base="dataclass",
        doc="Values that replace what a resolver finds. None = not set.",
    ),
    "dist_slurm_options": Row(
        "",
        {
            "rank": Own(doc="rank of this process in the step; None = SLURM_PROCID"),
            "jobs": Own(
                type="Optional[Mapping[str, int]]",
                convert="set_jobs(native, {}, kept)",
                doc='number of tasks of each job; None = one job, "worker", with all tasks',
            ),
        },
        base="dataclass",
        keeps="Kept",
        doc="A Slurm step. Values that are None or 0 are read from the environment.",
    ),
    "dist_kubernetes_options": Row(
        "",
        {
            "first_index": Own(doc="index of the first pod, as in a StatefulSet's .spec.ordinals.start"),
            "name_space": Own(name="namespace"),
        },
        base="dataclass",
        doc="The pods of a Kubernetes job. Values that are None or 0 are read from the environment.",
    ),
    "dist_network_options": Row("Network()"),
    "dist_reform_options": Row(
        "Strategy.reform()",
        {
            "window_ns": Own(type="Timeout", convert="native.window_ns = nanoseconds({})"),
        },
    ),
    "dist_cross_device_options": Row(
        "CrossDevice()",
        {
            "kind": Own(argument=True),
            "accumulate": Own(
                convert="native.set_accumulate(kept.token(Reducer({}, kept.failures, accumulate_element_bytes)))",
                doc="REDUCTION_TO_ONE_DEVICE: a function accumulate(acc, values) that replaces +: acc[...] = op(acc, "
                "values); MEAN divides by n afterwards",
            ),
            "functions": Own(
                type="Optional[HostFunctions]",
                convert="{}._set_cross_device(native, kept.token({}))",
                doc="HOST: your functions; `reduce` is required",
            ),
        },
        keeps="Kept",
    ),
    "dist_rpc_server_options": Row(
        "RpcServer()",
        {
            "max_queued": Own(
                doc="maximum number of calls waiting for a thread, 1 to 2^20; further ones raise ResourceExhausted; 0 "
                "= default (1024)"
            )
        },
    ),
    "dist_rpc_client_options": Row("RpcClient()"),
    "dist_rpc_call_options": Row("RpcClient.call(), RpcClient.begin() and RpcClient.methods()"),
    "dist_coordinator_options": Row(
        "Strategy.coordinator()",
        {
            "partitioner": Own(
                doc="a function partitioner(shape, dtype) that returns the number of parts per dimension, at most one "
                "of them greater than 1, for variables without partitions of their own; None = not split"
            )
        },
        keeps="Kept",
    ),
    "dist_ps_variable_options": Row(
        "Coordinator.create_variable()",
        {"partitions": Own(doc="number of parts per dimension; None = use the coordinator's partitioner")},
    ),
    "dist_schedule_options": Row("Coordinator.schedule()"),
    "dist_preemption_options": Row(
        "Strategy.preemption_handler()",
        {
            "path": Own(argument=True),
            "variables": Own(
                argument=True,
                type="Sequence[int]",
                default="()",
                convert="native.set_variables({}, len({}))",
                always=True,
            ),
            "grace_ns": Own(
                doc="how long the job continues after the notice, in seconds (TensorFlow: grace_period): it saves at "
                "once, continues, and saves again at the end, by worker 0's clock. None = save and end"
            ),
        },
    ),
    "dist_rendezvous_options": Row(
        "",
        {
            "rank": Own(doc="number of this worker, from 0 to size - 1; None = the rank that the launcher has set"),
            "size": Own(doc="number of workers; 0 = the number that the launcher has set"),
            "address": Own(
                doc='"host:port" of worker 0, with a port of 1 to 65535; None = DIST_RENDEZVOUS, or MASTER_ADDR and '
                "the port after MASTER_PORT"
            ),
            "job_name": Own(
                doc="equal in all workers of a job, and different in other jobs; None = DIST_JOB_NAME, or the name "
                "that the launcher has set"
            ),
            "cancel": Own(absent="an argument of ClusterResolver.rendezvous()"),
        },
        base="dataclass",
        doc="A job whose workers meet at one address. Values that are None or 0 are read from the environment.",
    ),
    "dist_server_options": Row("Server() and Server.local()"),
}

# The imports of the generated module, from which unused names are left out. Those of CHECKED_ONLY are for annotations.
RUNTIME = {
    "concurrent.futures": ("Executor",),
    "dataclasses": ("dataclass",),
    "typing": ("TYPE_CHECKING", "Any", "Callable", "Mapping", "Optional", "Sequence", "TypedDict", "Union"),
    "._arguments": ("Count", "Delay", "Limit", "Timeout", "checked", "delay", "limit", "nanoseconds", "seconds_of"),
    "._callbacks": (
        "Applier", "Initial", "Kept", "Log", "LogFn", "Operator", "PartitionFn", "Partitioner", "Reducer",
    ),
    "._options": ("add_results", "set_axes", "set_jobs", "set_metadata", "set_weights"),
    ".budget": ("set_executor",),
    ".cancel": ("handle_of",),
    ".cluster": ("TaskId",),
    ".dataset": ("native_position",),
}
CHECKED_ONLY = {
    ".budget": ("Budget",),
    ".cancel": ("Cancel",),
    ".cluster_resolver": ("ClusterResolver",),
    ".cross_device": ("CrossDevice", "HostFunctions"),
    ".dataset": ("Position",),
    ".group": ("Group",),
    ".network": ("Network",),
    ".partition": ("Partition",),
    ".replica": ("Block", "Replica"),
    ".serve": ("InstanceFunctions",),
    ".topology": ("DeviceAssignment",),
}


class Translation:
    """C's names in texts, as Python has them."""

    PROPERTIES = ("Strategy.cluster_resolver",)
    OF_C = ("DIST_BIND_ADDRESS", "grace_period", "experimental_per_replica_buffer_size")
    WORDS = {"NULL": "None", "1": "True", "0": "False", "0s": "None", "DIST_NO_TIMEOUT": "a negative number"}

    def __init__(self, names):
        self.names = names

    def __call__(self, word):
        if word in self.OF_C:
            return word
        if word.startswith("DIST_"):
            return self.names.of(word)
        if "." in word:
            record, option = word.split(".")
            row = RECORDS.get(record) or RECORDS["dist_strategy_options"]  # one of its parts
            return f"{row.options.get(option, Own()).name or short(option)} of {row.of}"
        if word.startswith("dist_"):
            name = self.names.of(word)
            return name if name in self.PROPERTIES else f"{name}()"
        return short(word)


def short(name):
    """A field's name without the unit, or what it is."""
    return re.sub(r"_(ns|fn)$", "", name)


def in_seconds(text):
    """The text of a time with its unit, after the words that define the time."""
    text = re.sub(r"default \((none|no limit)\)", "no limit", text)
    if "seconds" in text:
        return text
    end = re.search(r"[;.](?= |$)|$", text).start()
    return f"{text[:end]}, in seconds{text[end:]}"


def about(text):
    """An enum's text as what an option of it means."""
    return text[0].lower() + text[1:].rstrip(".")


class Argument:
    """An option as Python has it."""

    def __init__(self, option, own, python_enums, text):
        self.option, self.own = option, own
        self.name = own.name or option.short
        self.type, self.default = own.type, own.default
        self.convert = own.convert
        if not self.type or not self.convert:
            kind, default, convert = self.by_rule(python_enums)
            self.type, self.default = self.type or kind, self.default or default
            self.convert = self.convert or convert
        self.default = self.default or "None"
        self.doc = own.doc or text
        if option.kind == "duration":
            self.doc = in_seconds(self.doc)

    def by_rule(self, python_enums):
        """(type, default, statement) of a kind."""
        option = self.option
        kind, set_it = option.kind, f"native.{option.name} = "
        if kind == "flag":
            return "bool", "False", set_it + "int({})"
        if kind in ("int", "long"):
            return "Count" if option.type == "size_t" else "int", "0", set_it + "{}"
        if kind == "real":
            return "float", "0.0", set_it + "{}"
        if kind == "text":
            return "Optional[str]", "None", set_it + "{}"
        if kind in ("texts", "int32s", "longs", "reals"):
            item = {"texts": "str", "reals": "float"}.get(kind, "int")
            return f"Optional[Sequence[{item}]]", "None", f"native.{option.setter}(list({{}}), len({{}}))"
        if kind == "enum":
            row = python_enums[option.type]
            found = re.search(r"\b0 = (DIST_\w+)", option.comment)
            for one in row.constants if found else ():
                if one.name == found[1]:
                    return row.python, f"{row.python}.{one.short}", set_it + "int({})"
            raise Error(f"{option.record}.{option.name}: the comment does not name the default, 0 = DIST_...")
        if kind == "duration":
            if "DIST_NO_TIMEOUT" in option.comment:
                return "Timeout", "None", set_it + "nanoseconds({})"
            if re.search(r"0 = (default \(no limit\)|no limit|never)", option.comment):
                return "Limit", "None", set_it + "limit({})"
            return "Delay", "None", set_it + "delay({})"
        if kind == "handle" and option.type in HANDLES:
            python, get = HANDLES[option.type]
            return f"Optional[{python}]", "None", set_it + get
        if kind == "record" and option.type in STRUCTS:
            python, get = STRUCTS[option.type]
            return f"Optional[{python}]", "None", set_it + get
        if kind == "function" and option.type in CALLBACKS:
            python, target = CALLBACKS[option.type]
            return python, "None", f"native.{option.setter}(kept.token({target}))"
        raise Error(f"{option.record}.{option.name}: options_python.py has no rule for {kind} {option.type}")

    def statements(self, of="{}", indent="    "):
        """The lines that set it in `native`."""
        if self.convert == "-":
            return ""
        given = of.format(self.name)
        lines = f"{self.convert.format(*[given] * 2)}\n"
        if self.own.always:
            return indent + lines
        if self.default in ("False", "0", "0.0", '""'):
            condition = given
        elif self.default == "True":
            condition = f"not {given}"
        else:
            condition = f"{given} is not {self.default}"
        if self.option.belongs_to_flag:
            lines = f"native.{self.option.belongs_to_flag} = 1\n{indent}    {lines}"
        return f"{indent}if {condition}:\n{indent}    {lines}"


class Extra:
    """An option that only Python has."""

    def __init__(self, name, own):
        self.name, self.own = name, own
        self.type, self.default, self.doc = own.type, own.default, own.doc

    def statements(self, of="", indent=""):
        """Another option's statement has it."""
        return ""


class Emitted:
    """A record as Python has it."""

    def __init__(self, record, row, python_enums, translate):
        self.row, self.record = row, record
        fields = {one.name: one for one in record.options}
        for name in row.options:
            if name not in fields:
                raise Error(f"options_python.py: {record.name} has no field {name}")
        camel = "".join(word.capitalize() for word in record.name.removeprefix("dist_").split("_"))
        self.name = row.name or camel
        self.function = record.name.removeprefix("dist_")
        self.arguments = []
        for option in record.options:
            own = row.options.get(option.name, Own())
            is_flag = option.name.startswith("has_") and option.name[4:] in fields
            if own.absent or is_flag or option.kind == "left out":
                continue
            if option.kind == "hand" and not own.type:
                raise Error(f"{record.name}.{option.name}: options_python.py needs a row for it")
            flag = f"has_{option.name}"
            option.belongs_to_flag = flag if flag in fields else ""
            if option.belongs_to_flag:
                own = replace(own, type=own.type or "Optional[int]", default="None")
            text = "" if own.doc or own.argument else meaning(option, translate, translate.WORDS)
            if option.kind == "enum" and not own.argument:  # the signature has the default
                text = re.sub(r"(^|[;.] )0 = [\w.]+$", "", text) or about(python_enums[option.type].doc_of("python"))
            self.arguments.append(Argument(option, own, python_enums, text))
            if "kept." in self.arguments[-1].convert and not row.keeps:
                raise Error(f"{record.name}.{option.name}: Python has to keep its value: the record's row needs `keeps`")
        self.arguments += [Extra(name, own) for name, own in row.extra.items()]
        self.options = [one for one in self.arguments if not one.own.argument]

    def text(self):
        """The docstring: what the record is, and a paragraph for each option."""
        says = self.row.doc or f"Options of {self.row.of}."
        paragraphs = [textwrap.wrap(says, WIDTH, break_on_hyphens=False)]
        for one in self.options:
            text = re.sub(r"; may be None$", "", one.doc)
            end = "" if text.endswith(".") else "."
            lines = textwrap.wrap(f"{one.name}: {text}{end}", WIDTH, break_on_hyphens=False, break_long_words=False)
            paragraphs.append(lines)
        if len(paragraphs) == 1 and len(paragraphs[0]) == 1:
            return f'    """{says}"""\n'
        joined = "\n\n".join("\n".join(f"    {line}" for line in lines) for lines in paragraphs)
        return f'    """{joined.strip()}\n    """\n'

    def typed(self):
        """The TypedDict."""
        base = RECORDS[self.row.base].name if self.row.base else "TypedDict"
        fields = "".join(f"    {one.name}: {one.type}\n" for one in self.options)
        return f"class {self.name}({base}, total=False):\n{self.text()}\n{fields}"

    def maker(self):
        """The function that makes SWIG's object."""
        parameters = [f"kept: {self.row.keeps}"] * bool(self.row.keeps) + ["*"]
        parameters += [f"{one.name}: {one.type} = {one.default}" for one in self.arguments]
        listed = "".join(f"    {one},\n" for one in parameters)
        body = "".join(one.statements() for one in self.arguments)
        return (
            f"def {self.function}(\n{listed}) -> Any:\n"
            f'    """{self.name} for C."""\n'
            f"    native = _cdist.{self.record.name}()\n{body}    return native\n"
        )

    def call(self, function):
        """The function that makes the call of options.CALLS, which takes options as arguments."""
        own = ("strategy", "token", "completions") if function == "dist_submit" else ("batcher", "token", "completions")
        offered = {one.option.name: one for one in self.arguments}
        passed = list(own[:2])
        for option in self.record.options:
            if option.name in offered:
                passed.append(offered[option.name].convert.format(offered[option.name].name).partition(" = ")[2])
            elif option.name == "completions":
                passed.append("completions")
        listed = "".join(f"    {one.name}: {one.type} = {one.default},\n" for one in self.arguments)
        name = function.removeprefix("dist_")
        return (
            f"def {self.function}(\n    {', '.join(f'{one}: int' for one in own)}, *,\n{listed}) -> int:\n"
            f'    """Submits with {self.name}: the request\'s handle."""\n'
            f"    handle: int = _cdist.{name}(\n        {', '.join(passed)}\n    )\n    return handle\n"
        )

    def data(self):
        """The class with a field for each option."""
        fields = "".join(f"    {one.name}: {one.type} = {one.default}\n" for one in self.options)
        body = "".join(one.statements("self.{}", "        ") for one in self.options)
        keeps, read = f", kept: {self.row.keeps}" if self.row.keeps else "", ""
        if self.row.reads:
            taken = "".join(f"            {one.name}={self.taken(one)},\n" for one in self.options)
            read = (
                f"\n    @classmethod\n    def _of(cls, native: Any) -> Self:\n"
                f'        """The record that C has filled."""\n        return cls(\n{taken}        )\n'
            )
        return (
            f"@checked\n{self.row.decorator}\nclass {self.name}:\n{self.text()}\n{fields}\n"
            f'    def _native(self{keeps}) -> Any:\n        """For C."""\n'
            f"        native = _cdist.{self.record.name}()\n{body}        return native\n{read}"
        )

    @staticmethod
    def taken(one):
        """An option of a record that C has filled."""
        return f"seconds_of(native.{one.option.name})" if one.option.kind == "duration" else f"native.{one.option.name}"


# ---- The module ----

HEAD = """# SPDX-License-Identifier: Apache-2.0
# Written by bindings/options.py from the headers: do not edit.
\"\"\"The options of functions, as keyword arguments and for C.\"\"\"

from __future__ import annotations

"""


def imports(body):
    """The import statements of the names that the module's code has."""
    used = set(re.findall(r"\w+", re.sub(r'""".*?"""', "", body, flags=re.S)))

    def lines(table, indent=""):
        text = ""
        for module, names in table.items():
            taken = sorted({*names} & used)
            line = f"{indent}from {module} import {', '.join(taken)}\n"
            if len(line) > 121:
                listed = "".join(f"{indent}    {one},\n" for one in taken)
                line = f"{indent}from {module} import (\n{listed}{indent})\n"
            text += line if taken else ""
        return text

    standard = {module: names for module, names in RUNTIME.items() if not module.startswith(".")}
    own = {module: names for module, names in RUNTIME.items() if module.startswith(".")}
    typed = "    from typing_extensions import Self\n\n" if "Self" in used else ""
    constants = {".constants": [row.python for row in enums.TABLE if row.python]}
    logging = "import logging\n" if "logging" in used else ""
    return (
        f"{logging}{lines(standard)}\nfrom . import _cdist\n{lines(dict(sorted((own | constants).items())))}\n"
        f"if TYPE_CHECKING:\n{typed}{lines(CHECKED_ONLY, '    ')}"
    )


def files(records):
    """Path below bindings -> text."""
    found = api.parse(api.HEADERS)
    rows = {one["name"]: row for one, row in zip(found["enums"], enums.rows(found)) if one["name"]}
    translate = Translation(Names("python"))
    for name in RECORDS:
        if name not in records:
            raise Error(f"options_python.py: the headers have no {name}")
    parts, makers = [], []
    for name, record in records.items():
        if name not in RECORDS:
            raise Error(f"{name}: options_python.py needs a row for it")
        one = Emitted(record, RECORDS[name], rows, translate)
        if one.row.base == "dataclass":
            parts.append(one.data())
            continue
        parts += [one.typed(), one.call(CALLS[name]) if name in CALLS else one.maker()]
        also = [one.row.base.removeprefix("dist_")] if one.row.base else []
        makers.append((one, [one.function, *also]))
    shared = "".join(f'    "{one.name}",\n' for one, _ in makers if one.row.shared)
    listed = ""
    for one, functions in makers:
        listed += f'    "{one.name}": ({one.name}, ({", ".join(functions)}{"," * (len(functions) == 1)})),\n'
    parts.append(
        "MAKERS: dict[str, tuple[type[Any], tuple[Callable[..., Any], ...]]] = {\n" + listed + "}\n"
        '"""The records by name, with the functions whose parameters have the types and defaults of their options."""\n'
    )
    parts.append(f'SHARED = (\n{shared})\n"""Records that many functions take, whose texts only name them."""\n')
    body = "\n\n".join(parts)
    return {"python/libdist/_option_fields.py": f"{HEAD}{imports(body + ' TYPE_CHECKING')}\n\n{body}"}
