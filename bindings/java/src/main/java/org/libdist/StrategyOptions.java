// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executor;
import org.libdist.internal.DistModuleConstants;
import org.libdist.internal.dist_strategy_options;

/** Options of a {@link Strategy}. Immutable: each method returns a new set of options. */
public final class StrategyOptions {
    /**
     * The default options: mirrored, one replica for each CPU available to the process, and the caller of
     * run() is one of them.
     */
    public static final StrategyOptions DEFAULT = new StrategyOptions();

    private StrategyKind kind = StrategyKind.MIRRORED;
    private int numReplicas;
    private ReplicaThreads threads = ReplicaThreads.CALLER;
    private boolean placedOnCores;
    private long timeoutNanos;
    private LogFunction log;
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
    private int[] replicasPerWorker; // null: not given
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
        copy.numReplicas = numReplicas;
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
        copy.replicasPerWorker = replicasPerWorker;
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

    /** Sets the kind of strategy, which determines where values and variables are placed. */
    public StrategyOptions kind(StrategyKind kind) {
        StrategyOptions copy = copy();
        copy.kind = Objects.requireNonNull(kind, "kind");
        return copy;
    }

    /** Sets the number of replicas; 0 selects the number of CPUs available to the process. */
    public StrategyOptions numReplicas(int numReplicas) {
        StrategyOptions copy = copy();
        copy.numReplicas = numReplicas;
        return copy;
    }

    /** Sets the threads that run the replicas. */
    public StrategyOptions threads(ReplicaThreads threads) {
        StrategyOptions copy = copy();
        copy.threads = Objects.requireNonNull(threads, "threads");
        copy.executor = null;
        return copy;
    }

    /**
     * Runs the replicas on an executor: {@link Strategy#run} submits one task for each replica. Replicas wait
     * for each other, so the executor must have as many free threads as there are replicas.
     */
    public StrategyOptions executor(Executor executor) {
        StrategyOptions copy = threads(ReplicaThreads.HOST);
        copy.executor = Objects.requireNonNull(executor, "executor");
        return copy;
    }

    Executor executor() {
        return executor;
    }

    /** Sets whether each library thread is pinned to a CPU. */
    public StrategyOptions placedOnCores(boolean placedOnCores) {
        StrategyOptions copy = copy();
        copy.placedOnCores = placedOnCores;
        return copy;
    }

    /**
     * Sets the longest wait for a peer in one collective; zero selects the default (600 s), and a negative
     * value means no limit.
     */
    public StrategyOptions timeout(Duration timeout) {
        StrategyOptions copy = copy();
        copy.timeoutNanos = Durations.nanos(timeout, "timeout");
        return copy;
    }

    /** Sets the receiver of log lines. Without it, there are none. */
    public StrategyOptions log(LogFunction log) {
        StrategyOptions copy = copy();
        copy.log = log;
        return copy;
    }

    /** Sets the names of the replicas' devices, "CPU:1" or longer, in replica order. */
    public StrategyOptions devices(List<String> devices) {
        StrategyOptions copy = copy();
        copy.devices = List.copyOf(Objects.requireNonNull(devices, "devices"));
        return copy;
    }

    /** Central storage: sets the device that holds the variables. */
    public StrategyOptions parameterDevice(String name) {
        StrategyOptions copy = copy();
        copy.parameterDevice = name;
        return copy;
    }

    /**
     * Sets how collectives communicate, unless their own options set it. Its timeout takes precedence over
     * {@link #timeout}.
     */
    public StrategyOptions communication(CommunicationOptions communication) {
        StrategyOptions copy = copy();
        copy.communication = communication;
        return copy;
    }

    /** Sets the implementation for reducing values outside runs. */
    public StrategyOptions crossDevice(CrossDevice crossDevice) {
        StrategyOptions copy = copy();
        copy.crossDevice = crossDevice;
        return copy;
    }

    /** Sets a strategy of your own, whose functions replace those of libdist. */
    public StrategyOptions functions(StrategyFunctions functions) {
        StrategyOptions copy = copy();
        copy.functions = functions;
        return copy;
    }

    /**
     * Mesh: assigns devices to replicas, and so sets the number of replicas and of logical devices. The
     * strategy retains it.
     */
    public StrategyOptions deviceAssignment(DeviceAssignment deviceAssignment) {
        StrategyOptions copy = copy();
        copy.deviceAssignment = deviceAssignment;
        return copy;
    }

    /** Mesh: sets named axes of a replica's logical devices, the last one varying fastest. */
    public StrategyOptions axes(MeshAxis... axes) {
        StrategyOptions copy = copy();
        copy.axes = List.of(Objects.requireNonNull(axes, "axes"));
        return copy;
    }

    /**
     * Mesh: sets whether one program runs on all logical devices; {@link Replica#assignToLogicalDevice} is
     * then rejected.
     */
    public StrategyOptions useSpmdPartitioning(boolean useSpmdPartitioning) {
        StrategyOptions copy = copy();
        copy.useSpmdPartitioning = useSpmdPartitioning;
        return copy;
    }

    /**
     * Sets the description of the cluster, which {@link Strategy#clusterResolver} returns; the strategy
     * retains it. For MULTI_WORKER_MIRRORED it gives this worker's place in the cluster, and for
     * PARAMETER_SERVER it lists the servers; null selects TF_CONFIG. Strategies of other kinds stay within
     * one process.
     */
    public StrategyOptions clusterResolver(ClusterResolver clusterResolver) {
        StrategyOptions copy = copy();
        copy.clusterResolver = clusterResolver;
        return copy;
    }

    /**
     * MULTI_WORKER_MIRRORED: connects workers within one process; the strategy retains it. null selects
     * {@link #transport}.
     */
    public StrategyOptions network(Network network) {
        StrategyOptions copy = copy();
        copy.network = network;
        return copy;
    }

    /** MULTI_WORKER_MIRRORED: sets the transport between workers that are processes. */
    public StrategyOptions transport(Transport transport) {
        StrategyOptions copy = copy();
        copy.transport = Objects.requireNonNull(transport, "transport");
        return copy;
    }

    /** MULTI_WORKER_MIRRORED: sets when the workers re-form. */
    public StrategyOptions reform(Reform reform) {
        StrategyOptions copy = copy();
        copy.reform = Objects.requireNonNull(reform, "reform");
        return copy;
    }

    /**
     * MULTI_WORKER_MIRRORED: sets the maximum size of tensor data in transit to and from this worker at one
     * time; 0 selects the default (64 MiB). Larger tensors are sent in pieces, with the same bits.
     */
    public StrategyOptions stagingBytes(long stagingBytes) {
        StrategyOptions copy = copy();
        copy.stagingBytes = stagingBytes;
        return copy;
    }

    /**
     * MULTI_WORKER_MIRRORED: sets the number of replicas of each worker. Without it, all have as many as this
     * one.
     */
    public StrategyOptions replicasPerWorker(int... replicas) {
        StrategyOptions copy = copy();
        copy.replicasPerWorker = Objects.requireNonNull(replicas, "replicas").clone();
        return copy;
    }

    /**
     * Sets the CPUs, by the system's numbers, on which libdist's threads may run. {@link #placedOnCores}
     * chooses among them, and 0 replicas counts them. Threads of the program are not affected. No CPUs means
     * the calling thread's affinity mask.
     */
    public StrategyOptions cpus(int... cpus) {
        StrategyOptions copy = copy();
        copy.cpus = Objects.requireNonNull(cpus, "cpus").clone();
        return copy;
    }

    /**
     * Sets whether libdist moves a thread of the program that is a replica, if it repeatedly shares a CPU
     * with another replica, to a CPU without a replica. The thread's affinity mask does not change. {@link
     * Strategy#explain} reports how often a move would have helped.
     */
    public StrategyOptions moveHostThreads(boolean moveHostThreads) {
        StrategyOptions copy = copy();
        copy.moveHostThreads = moveHostThreads;
        return copy;
    }

    /**
     * Sets how many events of each replica {@link Strategy#traceJson} has: at most 2<sup>20</sup>, rounded
     * up to a power of two; 0 selects the default (1024).
     */
    public StrategyOptions recordedEvents(int recordedEvents) {
        StrategyOptions copy = copy();
        copy.recordedEvents = recordedEvents;
        return copy;
    }

    /**
     * Sets the memory limit for queued asynchronous collectives; 0 selects 64 MiB, or 2 MiB per replica if
     * that is more.
     */
    public StrategyOptions asyncBytes(long asyncBytes) {
        StrategyOptions copy = copy();
        copy.asyncBytes = asyncBytes;
        return copy;
    }

    /** Sets the stack size of each library thread, at least 256 KiB; 0 selects the system's default. */
    public StrategyOptions stackSizeBytes(long stackSizeBytes) {
        StrategyOptions copy = copy();
        copy.stackSizeBytes = stackSizeBytes;
        return copy;
    }

    /**
     * Sets the order of additions in sums, which determines their bits, for collectives that do not set it
     * and for sums outside runs: {@link Strategy#reduce} and similar methods, and variables.
     */
    public StrategyOptions numerics(Numerics numerics) {
        StrategyOptions copy = copy();
        copy.numerics = Objects.requireNonNull(numerics, "numerics");
        return copy;
    }

    /** Sets a limit on threads shared with other strategies, for runs and requests; null means no limit. */
    public StrategyOptions budget(Budget budget) {
        StrategyOptions copy = copy();
        copy.budget = budget;
        return copy;
    }

    /**
     * Runs parts of loops on an executor instead of oneTBB threads: {@link Replica#parallelFor}, and
     * reducing, gathering, assigning and loading values outside runs. The thread that starts a loop submits
     * one task for each helper, takes part in the loop, and never waits for a task that has not started. A
     * task may run at any time, even after the strategy was closed. If the executor throws, for example a
     * RejectedExecutionException, the loop runs without that helper, and the exception is not reported. If
     * the executor drops a task without throwing, the task's memory leaks. {@link #executor} is for the
     * replicas.
     *
     * @param numThreads maximum number of threads that help with a loop, not counting the one that starts it
     */
    public StrategyOptions loopExecutor(Executor executor, int numThreads) {
        StrategyOptions copy = copy();
        copy.loopExecutor = Objects.requireNonNull(executor, "executor");
        copy.loopThreads = numThreads;
        return copy;
    }

    /** HOST threads: sets whether oneTBB threads may help with loops and batches, as in other strategies. */
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
        options.setNum_replicas(numReplicas);
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
        if (replicasPerWorker != null) {
            options.set_replicas_of_workers(replicasPerWorker, replicasPerWorker.length);
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
        options.setLate_destroys(1); // cleaners destroy objects at any time
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

    private static Target logTarget(LogFunction log) {
        return new Target() {
            @Override
            void log(LogLevel level, String message) {
                log.call(level, message);
            }
        };
    }
}
