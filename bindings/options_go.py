# SPDX-License-Identifier: Apache-2.0
"""Go's part of options.py: go/options.go, with the options of the package and the code that passes them to C.

An option needs no row here. Its name follows from the field in C, or from dist_names.i if that has another one, its
type and conversion from its kind, and its documentation from the header. RECORDS and DOCS have what differs, HANDLES
the types of objects, and CALLBACKS those of functions.
"""
import itertools
import re
import textwrap
from dataclasses import dataclass, field

import api
from enums_table import TABLE, Constant
from options import CALLS, PARTS, Error, Names, meaning

WIDTH = 110
LONGEST = 120  # of a field with its documentation behind it
CALLER = "caller"  # the method or function that takes the options sets it


@dataclass
class Field:
    """What differs from the rule. `set` is a statement in which `native` is SWIG's object and `o` has the options."""

    name: str | None = None
    type: str | None = None
    set: str | None = None


@dataclass
class LeftOut:
    """An option that is not offered."""

    why: str


@dataclass
class Struct:
    """A record. The differences are by the field's name in C; `own` are fields (name, type) that C does not have."""

    name: str
    options: dict = field(default_factory=dict)
    own: tuple = ()
    texts: str = "string"  # *string if "" is not the same as nothing


KWARGS = (("Kwargs", "*Value"),)  # RunOptions and others
HANDLES = {
    "dist_budget": ("*Budget", "u.budget"),
    "dist_cluster_resolver": ("*ClusterResolver", "u.resolver"),
    "dist_cross_device": ("*CrossDevice", "u.crossDevice"),
    "dist_device_assignment": ("*DeviceAssignment", "u.assignment"),
    "dist_group": ("*Group", "u.group"),
    "dist_network": ("*Network", "u.network"),
}
# Handles that calls have in another form, the context and a channel, and their arguments in the functions of CALLS.
ALWAYS = {"dist_cancel": "0", "dist_completions": "queue"}
# The type of a function, and the object that its token stands for. {bytes} is the option NAME_element_bytes.
CALLBACKS = {
    "dist_apply_fn": ("ApplyFunc", "&applyCall{{u.panics(), {fn}}}"),
    "dist_initial_fn": ("func() (*Value, error)", "&initialCall{{u.failures(), {fn}}}"),
    "dist_log_fn": ("func(level LogLevel, message string)", "logger({fn})"),
    "dist_partition_fn": ("PartitionFunc", "&partitionCall{{failures: u.failures(), fn: {fn}}}"),
    "dist_reduce_fn": ("ReduceOperator", "&reduceCall{{u.panics(), {fn}, {bytes}}}"),
}
LISTS = {
    "texts": ("[]string", "u.texts({})"),
    "int32s": ("[]int", "u.int32s({what}, {})"),
    "longs": ("[]int64", "{}"),
    "reals": ("[]float64", "{}"),
}
# Records without a struct: all of their options, and why.
PARAMETERS = {
    "dist_checkpoint_map_options": ("copy verify", "Checkpoint.Read copies, and verify is a parameter"),
    "dist_rpc_call_options": ("timeout_ns cancel", "calls have a context"),
    "dist_schedule_options": ("timeout_ns cancel", "Coordinator.Schedule has a context"),
}
INITIALISMS = {"cpu": "CPU", "cpus": "CPUs", "fn": "Function", "gpus": "GPUs", "id": "ID", "rpc": "RPC", "spmd": "SPMD",
               "tf": "TF"}
TENSORFLOW = ("experimental_per_replica_buffer_size", "grace_period")  # names in comments that stay

RECORDS = {
    "dist_strategy_options": Struct(
        "Options",
        {
            "functions": Field(type="*StrategyFunctions", set="u.strategyFunctions(native, o.Functions)"),
            "executor": Field(type="*Executor", set="u.executor(native, o.Executor)"),
            "late_destroys": LeftOut("New sets it, because the garbage collector destroys objects at any time"),
            "axes": Field(type="[]MeshAxis", set="u.axes(native, o.Axes)"),
        },
        (("HopGoroutine", "Choice"),),
    ),
    "dist_collective_options": Struct(
        "choices",
        {
            "numerics": Field(name="WithNumerics"),
            "tag": Field(set=CALLER),
            "timeout_ns": Field(set=CALLER),
            "contributions": Field(type="int"),
            "splits": Field(type="[]int"),
            "planned": Field(set=CALLER),
            "reduce_element_bytes": Field(type="int"),
        },
        (("rare", "bool"), ("later", "bool"), ("work", "**Work"), ("ctx", "context.Context")),
    ),
    "dist_communication_options": Struct("CommunicationOptions"),
    "dist_apply_options": Struct(
        "ApplyOptions",
        {
            "kind": LeftOut("it follows from Function"),
            "states": Field(type="[][]Array", set="u.states(native, o.States)"),
        },
    ),
    "dist_run_options": Struct("RunOptions", own=KWARGS),
    "dist_instances_options": Struct(
        "InstancesOptions",
        {
            "max_queued": Field(type="int"),
            "create_state": Field(type="func(r *Replica) (any, error)", set=CALLER),
            "destroy_state": Field(type="func(state any)", set=CALLER),
            "warm_up": Field(type="func(r *Replica) error", set=CALLER),
        },
    ),
    "dist_submit_options": Struct(
        "SubmitOptions", {"completions": Field(type="chan<- *Request", set=CALLER)}, (("UserData", "any"),)
    ),
    "dist_batcher_options": Struct(
        "BatcherOptions",
        {
            "max_waiting": Field(type="int"),
            "free_state": LeftOut("the collector frees states"),
            "free_result": LeftOut("the collector frees results"),
        },
    ),
    "dist_item_options": Struct("ItemOptions"),
    "dist_variable_options": Struct("VariableOptions"),
    "dist_update_options": Struct("UpdateOptions", own=KWARGS),
    "dist_dataset_options": Struct("DatasetOptions"),
    "dist_checkpoint_options": Struct(
        "CheckpointOptions",
        {
            "position": Field(type="*Position", set=CALLER),
            "metadata_keys": Field(type="map[string]string", set="u.metadata(native, o.Metadata)"),
            "metadata_texts": LeftOut("Metadata has them"),
        },
    ),
    "dist_split_options": Struct("SplitOptions"),
    "dist_devices_options": Struct(
        "DevicesOptions",
        {
            "results": Field(type="[]*Partition", set="u.results(native, o.Results)"),
            "cancel": Field(name="Context", type="context.Context", set=CALLER),
        },
        KWARGS,
    ),
    "dist_cluster_resolver_options": Struct("ResolverOptions", texts="*string"),
    "dist_slurm_options": Struct(
        "SlurmOptions",
        {
            "num_tasks": Field(name="NumTasks"),
            "jobs": Field(type="[]SlurmJob", set="u.slurmJobs(native, o.Jobs)"),
        },
        texts="*string",
    ),
    "dist_kubernetes_options": Struct("KubernetesOptions", texts="*string"),
    "dist_network_options": Struct("NetworkOptions"),
    "dist_reform_options": Struct("ReformOptions"),
    "dist_cross_device_options": Struct(
        "CrossDeviceOptions",
        {
            "functions": Field(type="*CrossDeviceFunctions", set="u.crossDeviceFunctions(native, o.Functions)"),
            "accumulate_element_bytes": Field(type="int"),
        },
    ),
    "dist_rpc_server_options": Struct("RPCServerOptions"),
    "dist_rpc_client_options": Struct("RPCClientOptions"),
    "dist_coordinator_options": Struct("CoordinatorOptions"),
    "dist_ps_variable_options": Struct("PSVariableOptions", {"partitions": Field(type="[]int")}),
    "dist_preemption_options": Struct(
        "PreemptionOptions", {"variables": Field(type="[]*Variable", set="u.checkpointed(native, o.Variables)")}
    ),
    "dist_rendezvous_options": Struct(
        "RendezvousOptions", {"timeout_ns": LeftOut("NewRendezvousResolver has a context")}, texts="*string"
    ),
    "dist_server_options": Struct("ServerOptions"),
}
# Documentation of structs and functions, and of fields for which that of the header does not fit Go.
DOCS = """
Options configures [New]. The zero value selects the defaults.
Options.Numerics: order of additions in sums, for collectives without WithNumerics and for sums outside runs: Reduce
    and similar methods, and variables; 0 = Ordered
Options.AsyncBytes: memory limit for queued asynchronous collectives; 0 = default (64 MiB, or 2 MiB per replica if
    that is more)
Options.ParameterDevice: CentralStorage: device that holds the variables; "" = CPU:0
Options.CrossDevice: implementation for reducing values outside runs; nil = default
Options.Functions: the program's own strategy; Kind must be 0
Options.CPUs: CPUs, by the system's numbers, on which libdist's threads may run. Placement chooses among them, and
    Replicas: 0 counts them. Goroutines are not affected. nil = affinity mask of the calling goroutine's thread
Options.StackSizeBytes: stack size of each libdist thread, 256 KiB to 1 TiB, and more for more than 64 replicas; 0 =
    system default
Options.MoveHostThreads: MoveHostThreads lets libdist move the thread of a goroutine that is a replica, if it
    repeatedly shares a CPU with another replica, to a CPU without a replica. The thread's affinity mask does not
    change. Strategy.Explain reports how often a move would have helped. Not allowed with LibraryThreads
Options.Log: Log receives libdist's log lines, on any thread. It must not call libdist. LogTo passes the lines to a
    slog.Logger. nil = no log lines
Options.Executor: goroutines for loops; nil = oneTBB threads
Options.RecordedEvents: events that the flight recorder keeps per replica, for Strategy.WriteTrace: 1 to 2^20, rounded
    up to a power of two; 0 = default (1024). Each reserves 128 bytes of address space, which use memory once they are
    written
Options.Axes: Mesh: axes of a replica's logical devices, the last one varying fastest; nil = see DeviceAxis
Options.Transport: MultiWorkerMirrored: transport between workers that are processes; 0 = AutoTransport
Options.Network: MultiWorkerMirrored: connects workers within one process; nil = use Transport
Options.Reform: MultiWorkerMirrored: when the workers re-form; 0 = ReformExplicit
Options.HopGoroutine: HopGoroutine runs each replica function on a goroutine of its own while its thread waits, so
    that runtime.Goexit (t.FailNow, t.Fatal) in the function makes the replica fail instead of ending the process. A
    run takes about 50 µs longer. DefaultChoice means Yes in a test binary and No elsewhere; set No to benchmark short
    runs. Runs with Goroutines do not need it
choices are the options of one collective.
choices.rare: an option besides Tag and Timeout is set
choices.later: Async or Plan is given
choices.work: of Async and Plan
choices.ctx: of Within
WithNumerics selects the order of additions in a sum, which determines its bits. Without it, the strategy's
    Options.Numerics applies.
InGroup runs the collective only among the members of a group. Roots and ranks are then ranks in the group.
Weights gives [Mean] one weight, at least 0, for each contribution. Either all members pass weights or none.
Contributions is the number of lists of tensors that this replica adds to each sum. A sum has at most 1,024
    contributions, or 16 for each replica if that is more.
ReduceWith sets the operator of [ReduceUser]. It must be the same on all members.
ReduceElement sets the size in bytes of one element of the operator of [ReduceUser]: a multiple of the size of the
    tensor's elements, at most 4096. libdist never splits such an element. The size must be the same on all members.
Splits sets the R sizes of the parts into which AllToAll splits its input along the axis. Without it, the parts are
    equal.
Axis selects the dimension along which tensors are split or joined. A negative axis counts from the end.
BytesPerPack sets the approximate size of the packs into which a planned list is divided, in bytes.
CommunicationOptions specifies how collectives communicate (TensorFlow: CommunicationOptions).
ApplyOptions specifies how [Replica.ReduceApply] applies reduced gradients: by gradient descent, or with a function of
    the program.
ApplyOptions.LearningRate: for gradient descent
ApplyOptions.Momentum: for gradient descent; 0 = no momentum and no states
ApplyOptions.States: lists with the shapes of the parameters; gradient descent with momentum needs one
ApplyOptions.Function: update function; nil = gradient descent. The function of replica 0 is used
RunOptions configures [Strategy.RunValues]. The zero value selects the defaults.
RunOptions.EnableDynamicBatchSize: as in TensorFlow's RunOptions; accepted without effect, because every size may
    differ from run to run
InstancesOptions configures [Strategy.OpenInstances]. The zero value selects the defaults.
InstancesOptions.HelperThreads: Goroutines: true = libdist may start the thread that watches deadlines. With other
    Threads it always may
InstancesOptions.CreateState: CreateState creates the state of an instance, on its thread. Replica.InstanceState
    returns it in the functions of requests. If it fails, opening the instances fails. nil = instances have no state
InstancesOptions.DestroyState: DestroyState destroys the state, on the same thread, when the instances close; may be
    nil
InstancesOptions.Stuck: Stuck replaces the thread of a function that still runs this long after its deadline or
    cancellation; 0 = never. The new thread creates its own state and warms up. The limit also applies to a batcher's
    step, counted from the deadline or cancellation of one of its items. All items of that instance then complete;
    those that were not due fail with ErrUnavailable. Not available with Goroutines
SubmitOptions configures [Strategy.Submit]. The zero value selects the defaults.
SubmitOptions.Priority: PriorityMin to PriorityMax; higher priorities run first, and runs have priority 0
SubmitOptions.Timeout: time limit from now to completion; 0 = only the context's
SubmitOptions.Completions: Completions receives the completed request. A full channel does not block other channels;
    requests for which it has no room arrive later, in any order
SubmitOptions.UserData: returned by Request.UserData
BatcherOptions specifies how [Strategy.NewBatcher] forms batches. The zero value selects the defaults.
BatcherOptions.MaxResults: maximum number of partial results of an item that have not been taken; 0 = default (16), at
    most 65,536. An item with that many takes part in no further step until one is taken
ItemOptions configures [Batcher.Submit]. The zero value selects the defaults.
ItemOptions.Timeout: time limit from now to completion; 0 = only the context's
ItemOptions.Length: selects the bucket; 0 to the last of BatcherOptions.Buckets
ItemOptions.Bytes: size that counts towards BatcherOptions.MaxBytes
VariableOptions configures [Strategy.NewVariable]. The zero value selects the defaults.
VariableOptions.Initial: Initial creates the initial value, in place of an initial tensor. It is called once, on the
    calling goroutine, and libdist takes ownership of the value
UpdateOptions configures [Strategy.Update] and the other methods with an [UpdateFunc].
UpdateOptions.Parallel: true = the calls for the copies of a large variable run at the same time, on oneTBB threads;
    fn must then neither reduce nor start a run. false = one call after another, on the calling goroutine.
    UpdateNonSlot rejects true
DatasetOptions specifies how libdist makes batches from the elements of a source. The zero value selects the defaults.
DatasetOptions.Prefetch: number of batches that oneTBB threads make ahead; NoPrefetch = none; 0 = one if that makes
    your loop faster, which libdist measures (see Dataset.Explain), and none if the strategy starts no threads
    (Options.HelperThreads)
DatasetOptions.ShardHint: true = the source must be sharded element by element before batches are made; requires the
    ShardHint policy and fails with any other
DatasetOptions.StaticShapes: Yes = every batch has the same shape; No = the last ones may be smaller; DefaultChoice
    follows from DropRemainder, and is Yes for rows of tensors that are batches
DatasetOptions.AsOneProcess: true = every replica gets what it would get in one process with all replicas of all
    workers, so that training produces the same bits however replicas are divided among workers. Every worker then
    reads the whole source. Requires ShardAuto or ShardData. false = workers take turns at the pieces of a batch, as
    in TensorFlow
CheckpointOptions specifies what a checkpoint contains besides the variables.
CheckpointOptions.Names: names of the variables in the file; nil = their own names
CheckpointOptions.Metadata: saving: texts to store in the file; not used for loading, see Checkpoint.Metadata
SplitOptions configures [Replica.SplitToLogicalDevices].
DevicesOptions configures [Replica.RunOnDevices].
DevicesOptions.Results: how to join the devices' results: no partition, one for all leaves, or one for each leaf in
    the order of the nest (dictionaries by key). A leaf without a partition follows the rules of Replica.RunOnDevices.
    The shape of a partition is ignored
RunOptions.Kwargs: dictionary of named arguments; may be nil
UpdateOptions.Kwargs: dictionary of named arguments; may be nil
DevicesOptions.Kwargs: dictionary of named arguments; may be nil
DevicesOptions.Context: cancels only this run on devices; nil = only the end of the whole run cancels it
ResolverOptions specifies settings that take precedence over what a resolver finds. Fields that are nil are not set;
    [Given] returns a pointer to a value.
ResolverOptions.TaskID: index of this process in its job
SlurmOptions describes a Slurm step. A field that is not set is read from the environment variable that its comment
    names.
SlurmOptions.Rank: rank of this process in the step; nil = SLURM_PROCID
SlurmOptions.Jobs: nil = one job, "worker", with all tasks
KubernetesOptions describes the names of Kubernetes pods. A field that is not set is read from the environment
    variable that its comment names.
KubernetesOptions.Index: index of this pod; nil = JOB_COMPLETION_INDEX, or the number at the end of the host name
KubernetesOptions.Namespace: namespace of the service; requires Service; nil = POD_NAMESPACE, if set
NetworkOptions configures [NewNetwork]. The zero value selects the defaults.
ReformOptions configures [Strategy.Reform]. The zero value selects the defaults.
CrossDeviceOptions configures [NewCrossDevice]. The zero value selects the defaults.
CrossDeviceOptions.ReduceToDevice: CrossDeviceReductionToOneDevice: a device name; "" = any device
CrossDeviceOptions.Accumulate: CrossDeviceReductionToOneDevice: replaces +; Mean divides by n afterwards; may be nil
CrossDeviceOptions.Functions: CrossDeviceHost: your functions; Reduce is required
CrossDeviceOptions.AccumulateElementBytes: size of one element of Accumulate; 0 = the element size of the tensors. See
    ReduceElement
RPCServerOptions configures [NewRPCServer]. The zero value selects the defaults.
RPCClientOptions configures [NewRPCClient]. The zero value selects the defaults.
RPCClientOptions.Timeout: timeout of calls whose context has no deadline; 0 = default (600 s), NoTimeout = no limit
CoordinatorOptions configures [Strategy.NewCoordinator]. The zero value selects the defaults.
CoordinatorOptions.Timeout: timeout of calls whose context has no deadline; 0 = the strategy's, NoTimeout = no limit
PSVariableOptions configures [Coordinator.CreateVariable]. The zero value selects the defaults.
PreemptionOptions configures [Strategy.NewPreemptionHandler].
PreemptionOptions.Path: path of the checkpoint, one file for all workers; "" = the program saves
PreemptionOptions.Variables: variables in the checkpoint; kept alive by the handler
RendezvousOptions describes a job whose workers meet at one address. A field that is not set is read from the
    environment variables of the launcher; see [NewRendezvousResolver].
RendezvousOptions.Rank: number of this worker, from 0; nil = from the launcher
RendezvousOptions.Size: number of workers; 0 = from the launcher
RendezvousOptions.Address: "host:port" of worker 0, with a port of 1 to 65535; nil = DIST_RENDEZVOUS, or MASTER_ADDR
    and the port after MASTER_PORT
RendezvousOptions.JobName: equal in all workers of a job, and different in other jobs; nil = DIST_JOB_NAME, or the
    launcher's
ServerOptions configures [NewServer] and [NewLocalServer]. The zero value selects the defaults.
ServerOptions.BindAddress: address to listen on; "" = the environment variable DIST_BIND_ADDRESS. If that is not set
    either, the server listens on the port of the task's address: only on that address if it is localhost or a
    loopback address, otherwise on all interfaces
"""
CHOICES = RECORDS["dist_collective_options"]


# ---- Names and documentation ----


class Package:
    """The names of the package."""

    def __init__(self, records):
        self.records = records
        self.names = Names("go")
        rows, self.enums, self.constants = {row.first: row for row in TABLE}, {}, {}
        for enum in api.parse(api.HEADERS)["enums"]:
            row = rows[enum["constants"][0]["name"]]
            self.enums[enum["name"]] = row.go
            self.constants |= {one["name"]: (enum["name"], Constant(row, one).go) for one in enum["constants"]}
        lines = re.sub(r"\n +", " ", DOCS).strip().splitlines()
        self.docs = {re.match(r"[\w.]+", line)[0]: re.sub(r"^\w+\.\w+: ", "", line) for line in lines}
        self.used = set()

    def name(self, option):
        """The name of a field."""
        row = RECORDS[option.record].options.get(option.name)
        if isinstance(row, Field) and row.name:
            return row.name
        return self.names.table.get(option.name) or camel(option.short)

    def text(self, name):
        """The documentation of a name in DOCS."""
        if name not in self.docs:
            raise Error(f"options_go.py: DOCS has no text for {name}")
        self.used.add(name)
        return self.docs[name]

    def translated(self, word, option):
        """The name that Go has in place of a word of a header."""
        if word in TENSORFLOW:
            return word
        if word.startswith(("dist_", "DIST_")) and "." not in word:
            found = CALLBACKS[word][0] if word in CALLBACKS else self.names.table.get(word, "-")
            if found == "-":
                return self.constants[word][1] if word in self.constants else self.names.of(word)
            return found.removeprefix("dist.")
        if re.fullmatch(r"[A-Z]+_[A-Z_]+", word):  # a constant without its prefix, or an environment variable
            found = [one for c, one in self.constants.items() if re.fullmatch(rf"DIST_([A-Z_]+_)?{word}", c)]
            found = [one for one in found if one[0] == option.type] or found
            return found[0][1] if len(found) == 1 else word
        owner, _, name = word.rpartition(".")
        owner = owner or option.record
        owner = "dist_strategy_options" if owner in PARTS.values() else owner
        one = self.option(owner, name)
        if not one:
            raise Error(f"{option.record}.{option.name}: the comment has {word}, which is no option: DOCS needs a text")
        return (f"{RECORDS[owner].name}." if owner != option.record else "") + self.name(one)

    def doc(self, option, own_name):
        if own_name in self.docs:
            return self.text(own_name)
        none = '""' if option.kind == "text" and RECORDS[option.record].texts == "string" else "nil"
        words = {"NULL": none, "1": "true", "0": "false", "0s": "0", "DIST_NO_TIMEOUT": "NoTimeout"}
        text = meaning(option, lambda word: self.translated(word, option), words)
        if is_choice(option):
            for number, constant in ("-1", "No"), ("1", "Yes"), ("0", "DefaultChoice"):
                text = re.sub(rf"(?<![-\d]){number} = ", f"{constant} = ", text)
        text = re.sub(r"\b[A-Z]+_[A-Z_]+\b", lambda word: self.translated(word[0], option), text)
        text = re.sub(r"`(\w+)`", lambda word: camel(word[1]) if self.option(option.record, word[1]) else word[1], text)
        return re.sub(r"(\d) us\b", r"\1 µs", re.sub(r'[;,.] may be ""', "", text))

    def option(self, record, name):
        options = self.records[record].options if record in self.records else ()
        return next((option for option in options if option.name == name), None)


def camel(name):
    return "".join(INITIALISMS.get(word, word.capitalize()) for word in name.split("_"))


def lower(name):
    return name[:1].lower() + name[1:]


def is_choice(option):
    """Whether the option is on, off, or left to libdist."""
    return option.kind == "int" and all(re.search(rf"(?<![-\d]){n} = ", option.comment) for n in ("1", "-1"))


def comment(text, indent=""):
    lines = textwrap.wrap(text, WIDTH - len(indent.expandtabs(4)) - 3, break_on_hyphens=False, break_long_words=False)
    return "".join(f"{indent}// {line}\n" for line in lines)


def sentence(text):
    return (text if text.startswith("true = ") else text[:1].upper() + text[1:]) + "." * (not text.endswith("."))


def fields(members):
    """The members (name, type, documentation) of a struct as gofmt has them: in columns, between long comments."""
    above = set()
    while True:
        sections = [[]]
        for one in members:
            if one[0] in above:
                sections.append([])
            sections[-1].append(one)
        lines = [line for section in sections for line in columns(section, above)]
        length, longest = max(((len(line), name) for name, line in lines if name not in above), default=(0, ""))
        if length <= LONGEST:
            return "".join(line for _, line in lines)
        above.add(longest)


def columns(section, above):
    """The lines of members in a row, with their names."""
    name_width = max((len(name) for name, _, _ in section), default=0)
    for behind, run in itertools.groupby(section, lambda one: bool(one[2]) and one[0] not in above):
        run = list(run)
        type_width = max(len(kind) for _, kind, _ in run)
        for name, kind, text in run:
            before = comment(sentence(text), "\t") if name in above else ""
            end = f"{kind:{type_width}} // {text}" if behind else kind
            yield name, f"{before}\t{name:{name_width}} {end}\n"


# ---- Options ----


@dataclass
class Offered:
    """An option as Go has it."""

    name: str  # of the struct's field
    type: str
    doc: str
    value: str  # the expression for C; "" if there is a statement
    statement: str


def by_rule(package, struct, option, given, name):
    """The type of an option, its value for C, and the statement that sets it."""
    of, kind, row = f"o.{given}", option.kind, struct.options.get(option.name) or Field()
    what = f'"{name}"' if struct is CHOICES else f'"{struct.name}.{name}"'
    setter = option.setter or (f"set_{option.name}" if option.by_hand else None)
    method = f"native.{setter.capitalize()}" if setter else f"native.Set{option.name.capitalize()}"
    if package.option(option.record, f"has_{option.name}"):
        number = f"\tnative.SetHas_{option.name}(1)\n\t{method}(u.int32({what}, *{of}))\n"
        return "*int", "", f"if {of} != nil {{\n{number}}}"
    if kind == "text" and struct.texts == "*string":
        return "*string", "", f"u.ifGiven({of}, {method})"
    if kind == "text":
        return "string", "", f'if {of} != "" {{\n\t{method}(u.text({of}))\n}}'
    if kind == "longs" and row.type == "[]int":
        return row.type, "", call(method, [f"int64sOf({of})", f"int64(len({of}))"])
    if kind in LISTS:
        return LISTS[kind][0], "", call(method, [LISTS[kind][1].format(of, what=what), f"int64(len({of}))"])
    if kind == "function" and option.type in CALLBACKS:
        type_, entry = CALLBACKS[option.type]
        size = package.option(option.record, f"{option.short}_element_bytes")
        entry = entry.format(fn=of, bytes=f"int64(o.{member(package, struct, size)})" if size else "0")
        return type_, "", f"if {of} != nil {{\n\t{method}(u.token({entry}))\n}}"
    if kind == "record" and option.type in RECORDS:
        c, inner = option.type.capitalize(), lower(given)
        made = f"\t{inner} := {of}.native(u)\n\tu.later(func() {{ cdist.Delete{c}({inner}) }})\n\t{method}({inner})\n"
        return f"*{RECORDS[option.type].name}", "", f"if {of} != nil {{\n{made}}}"
    c_integer = "uint64" if option.type == "uint64_t" else "int64"
    rules = {
        "flag": ("bool", f"intOf({of})"),
        "int": ("Choice", f"{of}.native()") if is_choice(option) else ("int", f"u.int32({what}, {of})"),
        "long": (row.type or c_integer, of if row.type in (None, c_integer) else f"{c_integer}({of})"),
        "real": ("float64", of),
        "duration": ("time.Duration", f"int64({of})"),
        "enum": (package.enums.get(option.type), f"int32Of(int({of}))"),
        "handle": (HANDLES[option.type][0], f"{HANDLES[option.type][1]}({of})") if option.type in HANDLES else None,
    }
    if not rules.get(kind):
        raise Error(f"{option.record}.{option.name}: options_go.py has no rule for the {kind} {option.type}: "
                    "CALLBACKS, HANDLES or RECORDS needs a row")
    type_, value = rules[kind]
    return type_, value, f"{method}({value})"


def offered(package, struct, option):
    """An option, or None if it is not offered."""
    row = struct.options.get(option.name)
    is_half = option.name.startswith("has_") and package.option(option.record, option.name.removeprefix("has_"))
    if isinstance(row, LeftOut) or is_half or option.kind == "left out" or option.type in ALWAYS and not row:
        return None
    name, given = package.name(option), member(package, struct, option)
    if row and row.type and row.set or option.type in ALWAYS:
        type_, value, statement = row.type, "", row.set
    else:
        type_, value, statement = by_rule(package, struct, option, given, name)
    if row and row.set:
        statement = row.set if row.set != CALLER else ""
    full = name if struct is CHOICES else f"{struct.name}.{name}"
    text = "" if struct is CHOICES and row and row.set else package.doc(option, full)
    return Offered(given, type_, text, value, statement or "")


def member(package, struct, option):
    """The field that has an option. Those of a collective's choices are not public."""
    return lower(camel(option.short)) if struct is CHOICES else package.name(option)


def all_offered(package, record):
    found = [(option, offered(package, RECORDS[record.name], option)) for option in record.options]
    return [(option, one) for option, one in found if one]


def call(function, arguments):
    """A call, on two lines if it is long."""
    whole = f"{function}({', '.join(arguments)})"
    at = whole.rfind(", ", 0, WIDTH) + 1
    return whole if len(whole) <= WIDTH else f"{whole[:at]}\n\t{whole[at + 1 :]}"


def indented(statement):
    return "".join(f"\t{line}\n" for line in statement.split("\n"))


def struct_of(package, struct, options):
    members = [(one.name, one.type, "" if struct is CHOICES else one.doc) for _, one in options]
    members += [(name, kind, package.text(f"{struct.name}.{name}")) for name, kind in struct.own]
    return f"{comment(package.text(struct.name))}type {struct.name} struct {{\n{fields(members)}}}\n"


def go_record(package, record):
    struct, options, c = RECORDS[record.name], all_offered(package, record), record.name.capitalize()
    sets = "".join(indented(one.statement) for _, one in options if one.statement)
    return f"""{struct_of(package, struct, options)}
// native returns the options for C, which the caller must delete; nil for nil.
func (o *{struct.name}) native(u *uses) cdist.{c} {{
\tif o == nil {{
\t\treturn nil
\t}}
\tnative := cdist.New{c}()
{sets}\treturn native
}}
"""


def go_call(package, record):
    """The options that are arguments of one function."""
    struct, options = RECORDS[record.name], all_offered(package, record)
    function = CALLS[record.name].removeprefix("dist_").capitalize()
    of = {option.name: one for option, one in options}
    checks, arguments = [], []
    for option in record.options:
        if option.by_hand:
            continue
        if option.type in ALWAYS:
            arguments.append(ALWAYS[option.type])
        elif option.name == "timeout_ns":
            arguments.append(f"timeoutWithin(ctx, o.{of[option.name].name})")
        elif option.name not in of or not of[option.name].value:
            raise Error(f"{record.name}.{option.name}: options_go.py has no argument of {function} for it")
        elif of[option.name].value.startswith("u."):
            checks.append(f"\t{lower(of[option.name].name)} := {of[option.name].value}\n")
            arguments.append(lower(of[option.name].name))
        else:
            arguments.append(of[option.name].value)
    return f"""{struct_of(package, struct, options)}
// submit calls C with the options. native is the strategy or the batcher. The request arrives in queue, and its handle
// is stored in *work.
func (o *{struct.name}) submit(ctx context.Context, u *uses, native, token, queue int64, work *int64) error {{
{"".join(checks)}\tif u.err != nil {{
\t\treturn u.err
\t}}
{indented(call(f"return fromNative(cdist.{function}", ["native", "token", *arguments, "work)"]))}}}
"""


def go_choices(package, record):
    """The options of collectives are functions."""
    struct, options = RECORDS[record.name], all_offered(package, record)
    text = struct_of(package, struct, options)
    for option, one in options:
        row = struct.options.get(option.name)
        if row and row.set:
            continue
        name = package.name(option)
        about = one.doc if one.doc.startswith(f"{name} ") else f"{name} sets an option of one collective: {one.doc}."
        parameter = f"...{one.type[2:]}" if one.type.startswith("[]") else one.type
        text += f"\n{comment(about)}func {name}({one.name} {parameter}) Option {{\n"
        text += f"\treturn Option{{set: func(c *choices) {{ c.{one.name} = {one.name} }}}}\n}}\n"
    sets = "".join(indented(one.statement) for _, one in options if one.statement)
    return f"""{text}
// set passes the options to C, except for those that Tag, Timeout, Async, Plan and Within set.
func (o *choices) set(native cdist.{record.name.capitalize()}, u *uses) {{
{sets}}}
"""


HEAD = """// SPDX-License-Identifier: Apache-2.0

// Code generated by bindings/options.py from the headers. DO NOT EDIT.

package dist

import (
	"context"
	"time"

	"libdist.example/dist/internal/cdist"
)
"""


def files(records):
    """Path below bindings -> text."""
    package, parts = Package(records), [HEAD]
    for record in records.values():
        if record.name in PARAMETERS:
            known, why = PARAMETERS[record.name]
            for option in record.options:
                if option.name not in known.split():
                    raise Error(f"{record.name}.{option.name}: Go has no struct for it ({why}): add a parameter, and the name to "
                                "PARAMETERS in options_go.py")
        elif record.name not in RECORDS:
            raise Error(f"{record.name}: options_go.py needs a row for it")
        elif record.name in CALLS:
            parts.append(go_call(package, record))
        elif record.name == "dist_collective_options":
            parts.append(go_choices(package, record))
        else:
            parts.append(go_record(package, record))
    for name, struct in RECORDS.items():
        for option in struct.options:
            if not package.option(name, option):
                raise Error(f"options_go.py: {name} has no option {option}")
    for name in package.docs.keys() - package.used:
        raise Error(f"options_go.py: DOCS has a text for {name}, which does not exist")
    return {"go/options.go": "\n".join(parts)}
