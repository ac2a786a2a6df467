// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executor;
import org.libdist.internal.DistModuleConstants;
import org.libdist.internal.dist_strategy_options;

/** What a strategy is made to be. Immutable: each method gives another set of options. */
public final class StrategyOptions {
    /** Mirrored, as many replicas as this process may use CPUs, run()'s caller being one of them. */
    public static final StrategyOptions DEFAULT = new StrategyOptions();

    private StrategyKind kind = StrategyKind.MIRRORED;
    private int replicas;
    private ReplicaThreads threads = ReplicaThreads.CALLER;
    private boolean placedOnCores;
    private long timeoutNanos;
    private LogSink log;
    private List<String> devices = List.of();
    private String parameterDevice;
    private CommunicationOptions communication;
    private CrossDevice crossDevice;
    private StrategyFunctions functions;
    private DeviceAssignment deviceAssignment;
    private List<MeshAxis> axes = List.of();
    private boolean useSpmdPartitioning;
    private ClusterResolver clusterResolver;
    private Network network;
    private int[] cpus = {}; // none: not given
    private boolean moveHostThreads;
    private int[] replicasOfWorkers; // null: not given
    private long stagingBytes;
    private Transport transport = Transport.AUTO;
    private Reform reform = Reform.EXPLICIT;
    private Executor executor;
    private int recordedEvents;
    private long asyncBytes;
    private long stackSizeBytes;
    private Numerics numerics = Numerics.ORDERED;
    private Budget budget;
    private Executor loopExecutor;
    private int loopThreads;
    private boolean helperThreads;

    private StrategyOptions() {}

    private StrategyOptions copy() {
        StrategyOptions copy = new StrategyOptions();
        copy.kind = kind;
        copy.replicas = replicas;
        copy.threads = threads;
        copy.placedOnCores = placedOnCores;
        copy.timeoutNanos = timeoutNanos;
        copy.log = log;
        copy.devices = devices;
        copy.parameterDevice = parameterDevice;
        copy.communication = communication;
        copy.crossDevice = crossDevice;
        copy.functions = functions;
        copy.deviceAssignment = deviceAssignment;
        copy.axes = axes;
        copy.useSpmdPartitioning = useSpmdPartitioning;
        copy.clusterResolver = clusterResolver;
        copy.network = network;
        copy.cpus = cpus;
        copy.moveHostThreads = moveHostThreads;
        copy.replicasOfWorkers = replicasOfWorkers;
        copy.stagingBytes = stagingBytes;
        copy.transport = transport;
        copy.reform = reform;
        copy.executor = executor;
        copy.recordedEvents = recordedEvents;
        copy.asyncBytes = asyncBytes;
        copy.stackSizeBytes = stackSizeBytes;
        copy.numerics = numerics;
        copy.budget = budget;
        copy.loopExecutor = loopExecutor;
        copy.loopThreads = loopThreads;
        copy.helperThreads = helperThreads;
        return copy;
    }

    /** How values and variables are placed. */
    public StrategyOptions kind(StrategyKind kind) {
        StrategyOptions copy = copy();
        copy.kind = Objects.requireNonNull(kind, "kind");
        return copy;
    }

    /** How many replicas; 0: as many as this process may use CPUs. */
    public StrategyOptions replicas(int replicas) {
        StrategyOptions copy = copy();
        copy.replicas = replicas;
        return copy;
    }

    /** On which threads they run. */
    public StrategyOptions threads(ReplicaThreads threads) {
        StrategyOptions copy = copy();
        copy.threads = Objects.requireNonNull(threads, "threads");
        copy.executor = null;
        return copy;
    }

    /**
     * They run on an executor's threads: {@link Strategy#run} gives it a task for each replica. Replicas wait
     * for each other, so it needs as many threads that are free as there are replicas.
     */
    public StrategyOptions executor(Executor executor) {
        StrategyOptions copy = threads(ReplicaThreads.HOST);
        copy.executor = Objects.requireNonNull(executor, "executor");
        return copy;
    }

    Executor executor() {
        return executor;
    }

    /** Whether each library thread has one core of its own. */
    public StrategyOptions placedOnCores(boolean placedOnCores) {
        StrategyOptions copy = copy();
        copy.placedOnCores = placedOnCores;
        return copy;
    }

    /** The longest wait for a peer in one collective; zero: 600 s, negative: no limit. */
    public StrategyOptions timeout(Duration timeout) {
        StrategyOptions copy = copy();
        copy.timeoutNanos = Durations.nanos(timeout, "timeout");
        return copy;
    }

    /** Who takes what libdist has to say; without it libdist is silent. */
    public StrategyOptions log(LogSink log) {
        StrategyOptions copy = copy();
        copy.log = log;
        return copy;
    }

    /** Names of the replicas' devices, "CPU:1" or longer, in replica order. */
    public StrategyOptions devices(List<String> devices) {
        StrategyOptions copy = copy();
        copy.devices = List.copyOf(Objects.requireNonNull(devices, "devices"));
        return copy;
    }

    /** Central storage: the device that variables are on. */
    public StrategyOptions parameterDevice(String name) {
        StrategyOptions copy = copy();
        copy.parameterDevice = name;
        return copy;
    }

    /**
     * How collectives are done, where their own options do not say; its timeout counts before {@link
     * #timeout}.
     */
    public StrategyOptions communication(CommunicationOptions communication) {
        StrategyOptions copy = copy();
        copy.communication = communication;
        return copy;
    }

    /** Who reduces values from outside. */
    public StrategyOptions crossDevice(CrossDevice crossDevice) {
        StrategyOptions copy = copy();
        copy.crossDevice = crossDevice;
        return copy;
    }

    /** A strategy of your own: functions in the place of libdist's. */
    public StrategyOptions functions(StrategyFunctions functions) {
        StrategyOptions copy = copy();
        copy.functions = functions;
        return copy;
    }

    /**
     * Mesh: which devices are whose, and so how many replicas and logical devices there are. The strategy
     * keeps it.
     */
    public StrategyOptions deviceAssignment(DeviceAssignment deviceAssignment) {
        StrategyOptions copy = copy();
        copy.deviceAssignment = deviceAssignment;
        return copy;
    }

    /** Mesh: named axes of a replica's logical devices, the last running fastest. */
    public StrategyOptions axes(MeshAxis... axes) {
        StrategyOptions copy = copy();
        copy.axes = List.of(Objects.requireNonNull(axes, "axes"));
        return copy;
    }

    /**
     * Mesh: whether one program runs on all logical devices, so that {@link Replica#assignToLogicalDevice} is
     * refused.
     */
    public StrategyOptions useSpmdPartitioning(boolean useSpmdPartitioning) {
        StrategyOptions copy = copy();
        copy.useSpmdPartitioning = useSpmdPartitioning;
        return copy;
    }

    /**
     * What describes the cluster, for {@link Strategy#clusterResolver}; the strategy keeps it.
     * MULTI_WORKER_MIRRORED: where the strategy is in it, and null is TF_CONFIG; every other kind stays of
     * one process.
     */
    public StrategyOptions clusterResolver(ClusterResolver clusterResolver) {
        StrategyOptions copy = copy();
        copy.clusterResolver = clusterResolver;
        return copy;
    }

    /**
     * MULTI_WORKER_MIRRORED: how the other workers are reached; the strategy keeps it. null: as {@link #transport}
     * says.
     */
    public StrategyOptions network(Network network) {
        StrategyOptions copy = copy();
        copy.network = network;
        return copy;
    }

    /** MULTI_WORKER_MIRRORED: how workers that are other processes are reached. */
    public StrategyOptions transport(Transport transport) {
        StrategyOptions copy = copy();
        copy.transport = Objects.requireNonNull(transport, "transport");
        return copy;
    }

    /** MULTI_WORKER_MIRRORED: when its workers re-form. */
    public StrategyOptions reform(Reform reform) {
        StrategyOptions copy = copy();
        copy.reform = Objects.requireNonNull(reform, "reform");
        return copy;
    }

    /**
     * MULTI_WORKER_MIRRORED: most of the elements of tensors that are on their way to and from this worker at a
     * time, with the same bits; 0: 64 MiB.
     */
    public StrategyOptions stagingBytes(long stagingBytes) {
        StrategyOptions copy = copy();
        copy.stagingBytes = stagingBytes;
        return copy;
    }

    /** MULTI_WORKER_MIRRORED: how many replicas each worker has; without it all as many as this one. */
    public StrategyOptions replicasOfWorkers(int... replicas) {
        StrategyOptions copy = copy();
        copy.replicasOfWorkers = Objects.requireNonNull(replicas, "replicas").clone();
        return copy;
    }

    /**
     * Where libdist's threads may be, by the system's numbers: {@link #placedOnCores} chooses among them, and
     * replicas: 0 counts them. Threads of the program's are not among them. None: the calling thread's affinity mask.
     */
    public StrategyOptions cpus(int... cpus) {
        StrategyOptions copy = copy();
        copy.cpus = Objects.requireNonNull(cpus, "cpus").clone();
        return copy;
    }

    /**
     * Whether libdist moves a thread of the program's that is a replica and keeps meeting another replica on its CPU, to
     * one that no replica is on. Where the thread may run stays as it is. {@link Strategy#explain} says how often it could.
     */
    public StrategyOptions moveHostThreads(boolean moveHostThreads) {
        StrategyOptions copy = copy();
        copy.moveHostThreads = moveHostThreads;
        return copy;
    }

    /**
     * How many events of each replica {@link Strategy#writeTrace} has: at most 2<sup>20</sup>, rounded up to a power of
     * two; 0: 1,024.
     */
    public StrategyOptions recordedEvents(int recordedEvents) {
        StrategyOptions copy = copy();
        copy.recordedEvents = recordedEvents;
        return copy;
    }

    /**
     * The most memory that collectives under way may take that wait for others; 0: 64 MiB, or 2 MiB a replica
     * where that is more.
     */
    public StrategyOptions asyncBytes(long asyncBytes) {
        StrategyOptions copy = copy();
        copy.asyncBytes = asyncBytes;
        return copy;
    }

    /** The stack of each library thread, at least 256 KiB; 0: the system's default. */
    public StrategyOptions stackSizeBytes(long stackSizeBytes) {
        StrategyOptions copy = copy();
        copy.stackSizeBytes = stackSizeBytes;
        return copy;
    }

    /**
     * What the bits of sums depend on where a call does not say, and those of sums from outside: {@link Strategy#reduce}
     * and the like, and variables.
     */
    public StrategyOptions numerics(Numerics numerics) {
        StrategyOptions copy = copy();
        copy.numerics = Objects.requireNonNull(numerics, "numerics");
        return copy;
    }

    /** Whose threads its runs and requests take, as other strategies' do; null: they begin whatever others do. */
    public StrategyOptions budget(Budget budget) {
        StrategyOptions copy = copy();
        copy.budget = budget;
        return copy;
    }

    /**
     * An executor's threads share loops, in place of oneTBB's: {@link Replica#parallelFor}, and what is reduced, gathered,
     * assigned and loaded from outside. Who begins a loop gives the executor a task for each thread that may help, takes part
     * in it, and never waits for a task that has not begun. A task may run at any time, also when the strategy is closed; what
     * the executor throws, a RejectedExecutionException for instance, says that it will not: the loop does without, and nobody
     * is told. A task that is dropped without a word leaves its memory behind. {@link #executor} is for the replicas.
     *
     * @param numThreads how many help a loop at most, beside the one that begins it
     */
    public StrategyOptions loopExecutor(Executor executor, int numThreads) {
        StrategyOptions copy = copy();
        copy.loopExecutor = Objects.requireNonNull(executor, "executor");
        copy.loopThreads = numThreads;
        return copy;
    }

    /** HOST threads: whether oneTBB's threads may help, with loops and batches, as with other strategies. */
    public StrategyOptions helperThreads(boolean helperThreads) {
        StrategyOptions copy = copy();
        copy.helperThreads = helperThreads;
        return copy;
    }

    /** @param tokens gets those of the log, the functions and the executor, which live as long as the strategy */
    dist_strategy_options toNative(Uses uses, long[] tokens) {
        dist_strategy_options options = new dist_strategy_options();
        uses.defer(options::delete);
        options.setKind(kind.code);
        options.setNum_replicas(replicas);
        options.setThreads(threads.code);
        options.setPlacement(placedOnCores ? DistModuleConstants.DIST_PLACEMENT_CORES
                                           : DistModuleConstants.DIST_PLACEMENT_FREE);
        options.setTimeout_ns(timeoutNanos);
        if (!devices.isEmpty()) {
            options.set_devices(Texts.all(devices, "devices"), devices.size());
        }
        if (parameterDevice != null) {
            options.setParameter_device(Texts.bytes(parameterDevice, "parameterDevice"));
        }
        if (communication != null) {
            options.setCommunication(communication.toNative(uses));
        }
        options.setCross_device(uses.ofNullable(crossDevice));
        options.setDevice_assignment(uses.ofNullable(deviceAssignment));
        options.setCluster_resolver(uses.ofNullable(clusterResolver));
        options.setNetwork(uses.ofNullable(network));
        options.setTransport(transport.code);
        options.setReform(reform.code);
        options.setStaging_bytes(stagingBytes);
        if (cpus.length > 0) {
            options.set_cpus(cpus, cpus.length);
        }
        options.setMove_host_threads(moveHostThreads ? 1 : 0);
        options.setRecorded_events(recordedEvents);
        if (replicasOfWorkers != null) {
            options.set_replicas_of_workers(replicasOfWorkers, replicasOfWorkers.length);
        }
        if (!axes.isEmpty()) {
            options.set_axes(Texts.all(axes.stream().map(MeshAxis::name).toList()),
                    axes.stream().mapToInt(MeshAxis::size).toArray(), axes.size());
        }
        options.setUse_spmd_partitioning(useSpmdPartitioning ? 1 : 0);
        options.setAsync_bytes(asyncBytes);
        options.setStack_size_bytes(stackSizeBytes);
        options.setNumerics(numerics.code);
        options.setBudget(uses.ofNullable(budget));
        options.setHelper_threads(helperThreads ? 1 : 0);
        if (loopExecutor != null) {
            tokens[2] = Upcalls.register(new LoopTarget(loopExecutor));
            options.set_executor(tokens[2], loopThreads);
        }
        if (log != null) {
            tokens[0] = Upcalls.register(logTarget(log));
            options.set_log(tokens[0]);
        }
        if (functions != null) {
            tokens[1] = Upcalls.register(CrossDeviceTarget.of(functions));
            options.set_functions(tokens[1], functions.sharesOneCopy() ? 1 : 0, 1,
                    CrossDeviceTarget.hasOwnBroadcast(functions) ? 1 : 0,
                    CrossDeviceTarget.hasOwnGather(functions) ? 1 : 0);
        }
        return options;
    }

    private static Target logTarget(LogSink log) {
        return new Target() {
            @Override
            void log(LogLevel level, String message) {
                log.log(level, message);
            }
        };
    }
}
