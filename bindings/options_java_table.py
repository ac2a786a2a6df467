# SPDX-License-Identifier: Apache-2.0
"""The table of options_java.py: what does not follow from the headers.

A new option needs a line if its type has no rule there, if Java has another form of it or does not offer it, or if the
comment in the header does not read well as Javadoc. OptionParts.java has the functions that pass on options without a
rule.
"""
from dataclasses import dataclass, field

# A callback: its interface in Java, and the Target that calls a function of it.
CALLBACKS = {
    "dist_apply_fn": ("ApplyFunction", "Targets.apply({0})"),
    "dist_initial_fn": ("InitialFunction<?>", "Targets.initial({0})"),
    "dist_log_fn": ("LogFunction", "Targets.log({0})"),
    "dist_partition_fn": ("PartitionFunction", "new PartitionTarget({0})"),
    "dist_reduce_fn": ("ReduceFunction", "Targets.reduce({0}, 0)"),
}


@dataclass
class Option:
    """What an option has that the rules do not give."""

    name: str | None = None  # None: as in messages
    type: str | None = None  # of the field and of the method's parameter
    parameters: str | None = None  # of the method; None: one of the type
    value: str | None = None  # of the field, from the parameters
    null: bool | None = None  # whether null is accepted; None: unless the comment has no more than "may be NULL"
    also: str = ""  # what the method sets besides
    set: str | None = None  # the statement of toNative(), or the argument of a call
    no_method: str = ""  # why there is no method, but a field
    left_out: str = ""  # why there is neither


@dataclass
class Class:
    """What a record's class has that the rules do not give."""

    doc: str | None = None  # None: the header's comment
    default: str | None = "The default options."  # its comment; None: there is none
    docs: dict = field(default_factory=dict)  # Javadoc of options whose comment in the header would not do
    options: dict = field(default_factory=dict)  # by the field's name; also those that C does not have
    takes: str = ""  # further parameters of toNative()
    check: str = ""  # a statement at its beginning,
    last: str = ""  # and one at its end
    quick: tuple = ()  # options that calls without a struct take: the field `quick` says whether only they are set
    readable: bool = False  # a method of the same name reads each option
    constants: str = ""
    body: str = ""  # further methods
    call: tuple = ()  # for CALLS: the arguments before and after the options


OWN_CANCEL = Option(set="options.setCancel(cancel);")  # toNative() takes the call's own, which this one signals
EXECUTOR = (
    "Sets the executor that completes the future and so runs its dependents. Without it, they run on one thread that "
    "all requests of the program share, so a slow dependent delays the others.")
COMPLETIONS = Option(left_out="futures stand for completions", set="queue")
REDUCE_TO_ONE = "CrossDevice.createReductionToOneDevice"

# Records that Java has as arguments of methods: the method of each option.
ARGUMENTS = {
    "dist_cross_device_options": {
        "kind": "CrossDevice.create", "reduce_to_device": REDUCE_TO_ONE, "accumulate": REDUCE_TO_ONE,
        "accumulate_element_bytes": REDUCE_TO_ONE, "functions": "CrossDevice.fromFunctions",
    },
    "dist_split_options": {"uneven": "Replica.splitToLogicalDevices"},
    "dist_checkpoint_map_options": {"copy": "Checkpoint.read", "verify": "Checkpoint.map"},
}
TABLE = {
    "dist_strategy_options": Class(
        docs={
            "replica_executor": "Runs the replicas on an executor: {@link Strategy#run} submits one task for each "
            "replica. Replicas wait for each other, so the executor must have as many free threads as there are "
            "replicas.",
            "kind": "Sets the kind of strategy, which determines where values and variables are placed. The default "
            "is {@link StrategyKind#MIRRORED}.",
            "num_replicas": "Sets the number of replicas; 0 selects the number of CPUs available to the process "
            "(affinity, cgroup quota).",
            "threads": "Sets the threads that run the replicas. The default is {@link ReplicaThreads#CALLER}.",
            "numerics": "Sets the order of additions in sums, which determines their bits, for collectives that do "
            "not set it and for sums outside runs: {@link Strategy#reduce} and similar methods, and variables. The "
            "default is {@link Numerics#ORDERED}.",
            "async_bytes": "Sets the memory limit for queued asynchronous collectives; 0 selects 64 MiB, or 2 MiB per "
            "replica if that is more.",
            "parameter_device": "Central storage: sets the device that holds the variables; null selects CPU:0.",
            "cpus": "Sets the CPUs, by the system's numbers, on which the strategy's threads may run: library threads "
            "of replicas and logical devices, threads that serve {@link Strategy#submit}, and oneTBB threads while "
            "they help. Threads of the program and those of gRPC and Gloo are not affected. {@link Placement#CORES} "
            "chooses among these CPUs, and 0 replicas counts them. Each CPU must be in the affinity mask of the "
            "calling thread or of the process's first thread. No CPUs means the mask of the calling thread.",
            "stack_size_bytes": "Sets the stack size of each library thread, 256 KiB to 1 TiB, and more for more than "
            "64 replicas; 0 selects the system's default.",
            "move_host_threads": "Sets whether libdist moves a thread of the program that is a replica, if it "
            "repeatedly shares a CPU with another replica, to a CPU without a replica. The thread's affinity mask "
            "does not change. {@link Strategy#explain} reports how often a move would have helped. Not allowed with "
            "{@link ReplicaThreads#LIBRARY}.",
            "communication": "Sets how collectives communicate, unless their own options set it. If it sets a "
            "timeout, that replaces {@link #timeout}.",
            "cross_device": "Sets the implementation for reducing values outside runs; null selects {@link "
            "CrossDeviceKind#DEFAULT}.",
            "functions": "Sets a strategy of your own, whose functions replace those of libdist. The kind must be the "
            "default.",
            "placement": "Sets whether each library thread is pinned to a CPU. The default is {@link Placement#FREE}.",
            "log": "Sets the receiver of log lines; null means that there are none.",
            "executor": "Runs parts of loops on an executor instead of oneTBB threads: {@link Replica#parallelFor}, "
            "and reducing, gathering, assigning and loading values outside runs. The thread that starts a loop "
            "submits one task for each helper, at most {@code numThreads}, takes part in the loop, and never waits "
            "for a task that has not started. A task may run at any time, even after the strategy was closed. If the "
            "executor throws, for example a RejectedExecutionException, the loop runs without that helper, and the "
            "exception is not reported. If the executor drops a task without throwing, the task's memory leaks. "
            "{@link #executor} is for the replicas.",
            "recorded_events": "Sets how many events of each replica {@link Strategy#traceJson} has, 1 to 2^20, "
            "rounded up to a power of two; 0 selects the default (1024). Each reserves 128 bytes of address space, "
            "which use memory once they are written.",
            "transport": "MULTI_WORKER_MIRRORED: sets the transport between workers that are processes, if {@link "
            "#network} is not set. The default is {@link Transport#AUTO}.",
            "cluster_resolver": "Sets the description of the cluster, which {@link Strategy#clusterResolver} returns. "
            "For MULTI_WORKER_MIRRORED it gives this worker's place in the cluster, and for PARAMETER_SERVER it lists "
            "the servers; null selects TF_CONFIG. Strategies of other kinds stay within one process.",
            "network": "MULTI_WORKER_MIRRORED: connects workers within one process; null selects {@link #transport}.",
            "reform": "MULTI_WORKER_MIRRORED: sets when the workers re-form. The default is {@link Reform#EXPLICIT}.",
        },
        doc="Options of a {@link Strategy}.",
        default="The default options: mirrored, one replica for each CPU available to the process, and the caller of "
        "run() is one of them.",
        options={
            "replica_executor": Option(name="executor", type="Executor", also="threads = ReplicaThreads.HOST.code"),
            "threads": Option(also="executor = null"),
            "functions": Option(type="StrategyFunctions", set="OptionParts.functions(options, functions, tokens);"),
            "axes": Option(
                type="List<MeshAxis>", parameters="MeshAxis... axes",
                value='List.of(Objects.requireNonNull(axes, "axes"))', set="OptionParts.axes(options, axes);",
            ),
            "executor": Option(
                name="loopExecutor", type="LoopTarget", parameters="Executor executor, int numThreads",
                value="new LoopTarget(executor, numThreads)",
                set="OptionParts.executor(options, loopExecutor, tokens);",
            ),
            "late_destroys": Option(
                left_out="always true", set="options.setLate_destroys(1); // cleaners destroy objects at any time"),
        },
    ),
    "dist_collective_options": Class(
        docs={
            "numerics": "Sets the order of additions in a sum, which determines its bits. The default is the "
            "strategy's.",
            "group": "Sets the participating group; null selects all replicas. Roots, ranks and sizes are those of "
            "the group.",
            "weights": "MEAN: sets one weight, at least 0, for each contribution of this replica. Either all members "
            "set weights or none.",
            "contributions": "Sets the number of tensors that this replica adds to each sum; 0 selects 1. The list of "
            "inputs is that many times as long. A sum has at most 1,024 contributions, or 16 for each replica if that "
            "is more.",
            "splits": "{@link Replica#allToAll}: sets one size for each member, into which the input is split along "
            "the axis; by default, the sizes are equal.",
        },
        doc="Options of one collective. Create them outside the loop that uses them.",
        quick=("tag", "timeout_ns"),
        check="CollectiveChecks.weights(this);",
        options={
            "reduce_fn": Option(
                set="if (reducer != null) {\n"
                "options.set_reduce(tokens.add(Targets.reduce(reducer, reduceElementBytes)));\n}"),
            "planned": Option(left_out="Replica.planned()"),
        },
    ),
    "dist_communication_options": Class(
        doc="Specifies how collectives communicate.",
        docs={
            "bytes_per_pack": "Sets the approximate size of the packs into which planned lists, and lists reduced "
            "outside runs, are split; 0 means not set.",
        },
        readable=True,
        options={"timeout_ns": Option(null=True)},
        body="""
    /**
     * Returns these options, in which values that are set in {@code over} replace others. {@code over} may be
     * null.
     */
    public CommunicationOptions merge(CommunicationOptions over) {
        return OptionParts.merge(this, over);
    }
""",
    ),
    "dist_apply_options": Class(
        docs={
            "clip_norm": "Scales gradients down if their global norm exceeds {@code clipNorm}; 0 means no clipping.",
        },
        doc="Specifies how {@link Replica#reduceApply} applies reduced gradients. Immutable: each method returns a "
        "new optimizer.",
        default=None,
        options={
            "kind": Option(
                left_out="follows from the function",
                set="options.setKind(fn == null ? DistModuleConstants.DIST_APPLY_SGD\n"
                "                           : DistModuleConstants.DIST_APPLY_CALLBACK);"),
            "learning_rate": Option(no_method="an argument of sgd()"),
            "momentum": Option(no_method="an argument of sgd()"),
            "states": Option(
                type="List<List<Tensor>>", no_method="an argument of sgd() and function()",
                set="OptionParts.states(options, states, uses);"),
            "fn": Option(no_method="an argument of function()"),
        },
        body="""
    /** Selects gradient descent: parameter = parameter - learningRate * gradient. */
    public static Optimizer sgd(double learningRate) {
        Optimizer made = new Optimizer();
        made.learningRate = learningRate;
        return made;
    }

    /**
     * Selects gradient descent with momentum: state = momentum * state - learningRate * gradient; parameter =
     * parameter + state.
     */
    public static Optimizer sgd(double learningRate, double momentum, List<Tensor> state) {
        Optimizer made = sgd(learningRate);
        made.momentum = momentum;
        made.states = List.of(List.copyOf(Objects.requireNonNull(state, "state")));
        return made;
    }

    /** Selects a function of your own. Each list of states has tensors with the shapes of the parameters. */
    public static Optimizer function(ApplyFunction function, List<List<Tensor>> states) {
        Optimizer made = new Optimizer();
        made.fn = Objects.requireNonNull(function, "function");
        made.states = List.copyOf(Objects.requireNonNull(states, "states"));
        return made;
    }
""",
    ),
    "dist_run_options": Class(
        doc="Options of a run.",
        docs={
            "timeout_ns": "Sets the time limit from the call, including the wait for earlier runs and everything that "
            "merge functions start; zero means none. If the caller is replica 0, it cannot return before its own "
            "function does; if by then all functions have returned normally, the run succeeds even after the limit.",
            "enable_dynamic_batch_size": "Accepted for compatibility with TensorFlow; has no effect, because every "
            "size may differ from run to run.",
            "bucketizing_dynamic_shape": "Accepted for compatibility with TensorFlow; has no effect.",
        },
        quick=("cancel",), takes="long cancel", options={"cancel": OWN_CANCEL},
    ),
    "dist_instances_options": Class(
        docs={
            "helper_threads": "{@link ReplicaThreads#HOST} only: sets whether libdist may start the thread that "
            "watches deadlines. With library threads it always may.",
            "spin_ns": "Sets how long an idle instance spins before it sleeps; zero selects the default (60 us), and "
            "a negative value disables spinning. A spinning instance occupies a CPU.",
            "create_state": "Sets a function that creates the state of an instance, on its thread; null means that "
            "instances have no state. {@link Replica#instanceState} returns the state in the functions of requests. "
            "If the function throws, opening the instances fails.",
            "destroy_state": "Sets a function that destroys a state, on the same thread, when the instances close. "
            "Exceptions that it throws are ignored.",
            "warm_up": "Sets a function that is called once on each instance, after {@link #createState} and before "
            "the first request.",
            "stuck_ns": "Replaces the thread of a function that still runs this long after its deadline or "
            "cancellation; zero means never. The new thread creates its own state and warms up. The limit also "
            "applies to a batcher's step, counted from the deadline or cancellation of one of its items. All items of "
            "that instance then complete; those that were not due fail with UNAVAILABLE. Not available with {@link "
            "ReplicaThreads#HOST}.",
        },
        takes="long token",
        last="options.set_functions(token, createState == null ? 0 : 1, warmUp == null ? 0 : 1);",
        options={
            "create_state": Option(type="ReplicaFunction<?>", set=""),
            "destroy_state": Option(type="Consumer<Object>", set=""),
            "warm_up": Option(type="RunFunction<?>", set=""),
        },
    ),
    "dist_submit_options": Class(
        docs={
            "executor": EXECUTOR,
            "priority": "Sets the priority, {@link #PRIORITY_MIN} to {@link #PRIORITY_MAX}. Higher priorities run "
            "first.",
            "timeout_ns": "Sets the time limit from now to completion; zero means none.",
            "request_id": "Sets the id in traces ({@link Strategy#traceJson}); 0 means that libdist assigns 1, 2, 3, "
            "...",
        },
        takes="long strategy, long token, long queue, long[] out",
        call=("strategy, token", "out"),
        options={"completions": COMPLETIONS, "executor": Option(type="Executor")},
        constants="""    /** The lowest priority of a request; runs have priority 0. */
    public static final int PRIORITY_MIN = -7;
    /** The highest priority of a request. */
    public static final int PRIORITY_MAX = 7;
""",
    ),
    "dist_item_options": Class(
        doc="Options of {@link Batcher#submit}.",
        docs={
            "executor": EXECUTOR,
            "priority": "Sets the priority, which {@link SubmitOptions#priority} describes.",
            "timeout_ns": "Sets the time limit from now to completion; zero means none.",
            "length": "Sets the length, which selects the bucket: 0 to the last of {@link BatcherOptions#buckets}.",
            "bytes": "Sets the size that counts towards {@link BatcherOptions#maxBytes}.",
        },
        takes="long batcher, long token, long queue, long[] out",
        call=("batcher, token", "out"),
        options={"completions": COMPLETIONS, "executor": Option(type="Executor")},
    ),
    "dist_batcher_options": Class(
        doc="Options of {@link Batcher#create}.",
        docs={
            "buckets": "Sets the buckets: lengths in ascending order, from 1. By default, all items belong to one "
            "bucket.",
            "continuous": "Sets whether an item stays until {@link Batch#end}; otherwise it takes part in one step.",
            "max_results": "Sets the maximum number of untaken results per item; 0 selects the default (16), at most "
            "65,536. An item with that many results takes part in no further step until one is taken.",
        },
        last="options.set_tokens();",
        options={
            "free_state": Option(left_out="states are objects"),
            "free_result": Option(left_out="results are objects"),
        },
    ),
    "dist_variable_options": Class(
        doc="Options of a variable.",
        docs={
            "aggregation": "Sets how values that replicas assign are combined. The default is {@link "
            "Aggregation#NONE}.",
            "name": "Sets the name, for messages and checkpoints; null selects \"Variable\".",
            "synchronization": "Sets when the copies are combined. The default is {@link Synchronization#AUTO}.",
        },
        takes="long initial",
        options={
            "initial_fn": Option(
                left_out="an argument of Variable.create()",
                set="if (initial != 0) {\noptions.set_initial(initial);\n}"),
        },
    ),
    "dist_dataset_options": Class(
        doc="Specifies how libdist makes batches from the elements of a source, and how it divides them.",
        docs={
            "drop_remainder": "Sets whether a last batch that is not full is omitted.",
            "global_batch_size": "Sets the number of elements per batch for all replicas together; 0 means that the "
            "source's elements already are global batches, which are split as they are.",
            "shuffle": "Uses a different order in every pass, drawn from {@code seed} and the number of the pass.",
            "seed": "Sets the seed without shuffling.",
            "worker_index": "Sets the index of this worker, 0 to {@link #numWorkers} - 1.",
            "interleave": "Sets the number of files that are read in turn, one element each; with 0 or 1, files are "
            "read one after another.",
            "static_shapes": "Sets whether every batch has the same shape; otherwise the last ones may be smaller. If "
            "it is not set, it follows from {@link #dropRemainder}, or is true for rows of tensors that are batches.",
            "replication_mode": "Sets the number of pipelines that produce batches. The default is {@link "
            "InputMode#PER_WORKER}; PER_REPLICA is possible only for datasets from a function, on mirrored "
            "strategies.",
        },
        options={"shuffle": Option(parameters="long seed", value="true", also="seed = seed")},
    ),
    "dist_checkpoint_options": Class(
        docs={
            "sharded": "Saving: sets whether the path becomes an index, and each worker of the strategy writes its "
            "part of the variables to a shard; otherwise worker 0 writes one file. Loading: ignored.",
            "names": "Sets the names of the variables in the file; by default, their own names.",
            "position": "Saving: sets the input position to store. Loading: asks for the stored position.",
            "metadata_keys": "Saving: sets texts to store in the file. Loading: ignored; see {@link "
            "Checkpoint#metadata}.",
        },
        takes="dist_position place",
        options={
            "position": Option(type="Position", null=True, set="if (place != null) {\noptions.setPosition(place);\n}"),
            "metadata_keys": Option(
                type="Map<String, String>", value='new TreeMap<>(Objects.requireNonNull(metadata, "metadata"))',
                set="OptionParts.metadata(options, metadata);"),
            "metadata_texts": Option(left_out="the values of the map"),
        },
    ),
    "dist_devices_options": Class(
        docs={
            "timeout_ns": "Sets the time limit of the whole run on devices; zero means none.",
            "results": "Sets how the devices' results are joined: one partition for all leaves, or one for each leaf "
            "in the order of the nest (dictionaries by key). The shape of a partition is ignored. If each device "
            "returns a whole tensor, pass a partition of kind REPLICATE.",
        },
        takes="long cancel",
        options={
            "results": Option(
                type="List<Partition>", parameters="Partition... results",
                value='List.of(Objects.requireNonNull(results, "results"))',
                set="OptionParts.results(options, results, uses);"),
            "cancel": OWN_CANCEL,
        },
    ),
    "dist_cluster_resolver_options": Class(
        doc="Options of cluster resolvers. They take precedence over what a resolver finds. A null text is not set.",
        docs={
            "task_id": "Sets the index of this process in its job.",
            "num_accelerators": "Sets the number of accelerators of this process; 0 means none, or the number from "
            "{@link SlurmOptions}.",
            "rpc_layer": "Sets the prefix of addresses, \"grpc\", which is followed by \"://\"; \"\" means no prefix.",
            "environment": "Sets the name of the platform on which the cluster runs: \"google\", or \"\".",
            "session_address": "Sets the result of {@link ClusterResolver#master()} if no task is given; only for "
            "{@link ClusterResolver#fromSpec}.",
        },
        body="""
    /** Sets the index of this process in its job; empty means not set. */
    public ClusterResolverOptions taskId(OptionalInt taskId) {
        ClusterResolverOptions copy = copy();
        copy.taskId = Objects.requireNonNull(taskId, "taskId");
        return copy;
    }
""",
    ),
    "dist_slurm_options": Class(
        doc="A Slurm step. Options that are not set are read from the environment.",
        docs={
            "rank": "Sets the rank of this process in the step. The default is SLURM_PROCID.",
            "num_tasks": "Sets the number of tasks of the step; 0 selects SLURM_STEP_NUM_TASKS, if no jobs are given.",
            "host_list": "Sets the hosts, in Slurm's format: \"n[01-03,7],m1\"; null selects SLURM_STEP_NODELIST.",
            "tasks_per_node": "Sets the number of tasks of each host, in Slurm's format and in the order of {@link "
            "#hostList}: \"2(x3),1\"; null selects SLURM_STEP_TASKS_PER_NODE.",
            "tasks_on_each_host": "Sets the number of tasks of every host; 0 selects those of {@link #tasksPerNode}.",
            "gpus_per_host": "Sets the number of GPUs of each host; 0 means none, and GPUs are then not distributed.",
            "gpus_per_task": "Sets the number of GPUs of each task; 0 selects as many as every task of a host can "
            "have.",
            "jobs": "Sets how many tasks each job has. By default, there is one job, \"worker\", with all tasks.",
        },
        options={
            "jobs": Option(
                type="Map<String, Integer>", value="OptionParts.jobs(jobs)",
                set="OptionParts.jobs(options, jobs, uses);"),
        },
    ),
    "dist_rpc_call_options": Class(takes="long cancel", options={"cancel": OWN_CANCEL}),
    "dist_schedule_options": Class(
        docs={
            "cancel": "Sets an object that cancels the wait. It does not cancel a closure that has been scheduled.",
        },
        takes="long cancel", options={"cancel": OWN_CANCEL},
    ),
    "dist_rendezvous_options": Class(
        doc="A job whose workers meet at one address. Options that are not set are read from the environment.",
        docs={
            "rank": "Sets the number of this worker, from 0 to size - 1. Without it, the launcher's rank is used.",
            "size": "Sets the number of workers; 0 selects that of the launcher.",
            "address": "Sets the address of worker 0, \"host:port\", with a port of 1 to 65535. If it is null, "
            "DIST_RENDEZVOUS is used, or else MASTER_ADDR with the port after MASTER_PORT.",
            "job_name": "Sets a name that all workers of the job share and that other jobs do not have. If it is "
            "null, DIST_JOB_NAME or the launcher's name is used.",
        },
        takes="long cancel", options={"cancel": OWN_CANCEL},
    ),
    "dist_preemption_options": Class(
        docs={
            "path": "Sets the path of the checkpoint, one file for all workers; null means that the program saves.",
            "variables": "Sets the variables in the checkpoint.",
            "grace_ns": "Sets the grace period during which the job continues after the notice: it saves at once, "
            "continues, and saves again at the end, by worker 0's clock; zero means to save and end.",
        },
        options={
            "path": Option(type="Path", set='options.setPath(path == null ? null : Texts.bytes(path.toString()));'),
            "variables": Option(
                type="List<Variable>", value='List.copyOf(Objects.requireNonNull(variables, "variables"))',
                set='OptionParts.variables(options, variables, uses);'),
        },
    ),
    "dist_update_options": Class(
        doc="Options of {@link Variable#update}.",
        docs={
            "parallel": "Sets whether several calls can run at the same time, on oneTBB threads, if the variable is "
            "large. The function must then neither reduce nor start a run. Otherwise the calls run one after another, "
            "on the calling thread.",
        },
    ),
    "dist_kubernetes_options": Class(
        doc="Names of Kubernetes pods. Options that are not set are read from the environment.",
        docs={
            "index": "Sets the index of this pod. The default is JOB_COMPLETION_INDEX, or the number at the end of "
            "the host name.",
            "num_workers": "Sets the number of workers; 0 selects WORLD_SIZE.",
            "service": "Sets the headless service; null means that addresses use only the host name.",
            "name_space": "Sets the namespace of the service; requires {@link #service}; null selects POD_NAMESPACE, "
            "if set.",
            "domain": "Sets the cluster domain, \"cluster.local\", which requires a namespace; null means that it is "
            "omitted.",
        },
    ),
    "dist_reform_options": Class(
        doc="Options of {@link Strategy#reform(ReformOptions)}.\n\nRe-forming renumbers the replicas in the order of "
        "the workers. Each worker keeps its number of replicas and the content of its variables. Because a failed run "
        "may have changed the variables of some replicas only, and a worker that joins has no content, load a "
        "checkpoint that was saved between runs. Plans and datasets are not kept; create them again. After an error, "
        "the strategy has no connection to the other workers, and {@link Strategy#reform(ReformOptions)} can be "
        "called again.",
        docs={
            "min_workers": "Sets the minimum number of workers that continue; with fewer, worker 0 waits for more. 0 "
            "selects the default (1).",
            "window_ns": "Sets, on worker 0, how long to wait for workers that are not known to be lost; zero selects "
            "one lease.",
            "timeout_ns": "Sets the limit on the whole wait; zero selects the strategy's timeout, and a negative "
            "value means no limit.",
        },
    ),
    "dist_coordinator_options": Class(
        doc="Options of a {@link Coordinator}.",
        docs={
            "closures_per_worker": "Sets the number of closures that a worker has at a time; 0 selects the default "
            "(1), at most 1024.",
            "partitioner": "Sets a function that divides variables without partitions of their own; null means that "
            "they are not divided.",
        },
    ),
    "dist_ps_variable_options": Class(
        doc="Options of a variable on parameter servers; see {@link Coordinator#createVariable}.",
        docs={
            "partitions": "Sets the number of parts per dimension, like a {@link PartitionFunction}; by default, the "
            "partitioner sets it.",
            "colocate_with": "Places the parts with those of this variable, for optimizer states, or the whole "
            "variable with one part of another one, by a name like \"w/part_1\".",
        },
    ),
    "dist_server_options": Class(
        docs={
            "num_threads": "Sets the number of closures that a worker runs at the same time, 1 to 1,024; 0 selects "
            "the default (1).",
        },
    ),
}
