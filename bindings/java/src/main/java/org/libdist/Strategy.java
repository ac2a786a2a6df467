// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Executor;
import java.util.function.LongConsumer;
import org.libdist.internal.DistModule;
import org.libdist.internal.Stragglers;
import org.libdist.internal.Text;
import org.libdist.internal.dist_run_options;
import org.libdist.internal.dist_strategy_options;
import org.libdist.internal.dist_strategy_properties;

/**
 * Holds R replicas, which run the same function. Several threads may use a strategy at the same time.
 *
 * <pre>{@code
 * try (Strategy strategy = Strategy.create(4)) {
 *     strategy.run(replica -> {
 *         FloatBuffer gradient = DirectBuffers.of(1f, 2f, 3f);
 *         replica.allReduce(ReduceOp.SUM, gradient);
 *     });
 * }
 * }</pre>
 */
public final class Strategy extends Serving {
    /** Finds the Java object of a native strategy. */
    private static final ConcurrentMap<Long, WeakReference<Strategy>> LIVE = new ConcurrentHashMap<>();
    private static final ThreadLocal<WeakReference<Strategy>> DEFAULT = // weak: threads outlive class loaders
            ThreadLocal.withInitial(() -> new WeakReference<>(null));

    private final StrategyLife life;
    private final Thread boundTo; // of a thread's default strategy, which ends with it; null: free
    private final StrategyOptions options; // keeps cross-device operations; null: libdist's own
    private final int firstReplica; // the id of this worker's first, before the first reform()
    private final boolean hasPeers; // the cluster has other workers, though all of them may be lost
    private final Turns turns = new Turns(); // of runs on an executor
    private final SharedCoordinator coordinator = new SharedCoordinator();

    private Strategy(StrategyLife life, Thread boundTo, StrategyOptions options) {
        super(life);
        this.life = life;
        this.boundTo = boundTo;
        this.options = options;
        StrategyProperties place = properties();
        firstReplica = place.firstReplica();
        hasPeers = place.numWorkers() > 1;
    }

    /** Creates a strategy with the given number of replicas; 0 selects the number of CPUs available to the process. */
    public static Strategy create(int numReplicas) {
        return create(StrategyOptions.DEFAULT.numReplicas(numReplicas));
    }

    /** Creates a strategy and its threads, which sleep until the first run. */
    public static Strategy create(StrategyOptions options) {
        Strategy strategy = new Strategy(life(options), null, options);
        LIVE.put(strategy.ask(Long::valueOf), new WeakReference<>(strategy));
        return strategy;
    }

    private static StrategyLife life(StrategyOptions options) {
        Tokens tokens = new Tokens();
        boolean made = false;
        try (Uses uses = new Uses()) {
            dist_strategy_options raw = options.toNative(uses, tokens);
            long[] out = new long[1];
            DistModule.dist_strategy_create(raw, out);
            made = true;
            return new StrategyLife(out[0], handle -> destroy(handle, tokens));
        } finally {
            if (!made) {
                tokens.end();
            }
        }
    }

    /**
     * Returns the executor that runs the replicas; null if they run on library threads or threads that enter.
     */
    Executor executor() {
        return options == null ? null : options.executor;
    }

    Turns turns() {
        return turns;
    }

    private static void destroy(long handle, Tokens tokens) {
        WeakReference<Strategy> known = LIVE.remove(handle); // before another may have the same address
        try {
            DistModule.dist_strategy_destroy(handle);
        } catch (DistException e) {
            if (known != null) {
                LIVE.put(handle, known);
            }
            throw e;
        }
        tokens.end();
    }

    /** Returns the object of a native strategy, which can be this thread's default strategy. */
    static Strategy known(long handle) {
        WeakReference<Strategy> reference = LIVE.get(handle);
        Strategy strategy = (reference == null ? DEFAULT.get() : reference).get();
        if (strategy == null || strategy.ask(Long::valueOf) != handle) {
            strategy = new Strategy(new StrategyLife(handle, h -> {}), Thread.currentThread(), null);
            DEFAULT.set(new WeakReference<>(strategy));
        }
        return strategy;
    }

    StrategyLife life() {
        return life;
    }

    SharedCoordinator coordinator() {
        return coordinator;
    }

    Native dependent(String what, long handle, LongConsumer destroy) {
        return life.dependent(what, handle, destroy);
    }

    @Override
    long acquire() {
        checkThread();
        return super.acquire();
    }

    /** Same as {@link #acquire}, for a run; {@link StrategyLife#leaves} must follow. */
    long acquireForRun() {
        checkThread();
        return life.comes();
    }

    private void checkThread() {
        if (boundTo != null && boundTo != Thread.currentThread()) {
            throw new DistException(Status.FAILED_PRECONDITION,
                    "this is the default strategy of the thread " + boundTo.getName() + ", and ends with it");
        }
    }

    // ---- Running ----

    /**
     * Calls {@code body} once on every replica, concurrently, and waits for all of them.
     *
     * <p>If a replica throws, pending and later collectives of the others throw a DistException with ABORTED, and run()
     * rethrows the exception of the replica that failed first, unchanged; those of other replicas that failed on their
     * own account are suppressed in it. Interrupting this thread cancels the run with CANCELLED, and the thread stays
     * interrupted.
     *
     * @throws X the exception that the body threw
     * @throws DistException FAILED_PRECONDITION called inside a replica, or the strategy is closed
     */
    public <X extends Exception> void run(RunFunction<X> body) throws X {
        run(body, RunOptions.DEFAULT);
    }

    /**
     * Same as {@link #run(RunFunction)}, with options.
     *
     * @throws X the exception that the body threw
     */
    public <X extends Exception> void run(RunFunction<X> body, RunOptions options) throws X {
        Objects.requireNonNull(body, "body");
        Objects.requireNonNull(options, "options");
        if (executor() != null) {
            new ExecutorRun(this, options).<X>run(body);
            return;
        }
        RunCall run = new RunCall(this) {
            @Override
            void replica(long handle, int id, int numReplicas) throws Exception {
                asReplica(new Replica(Strategy.this, handle, this, id, numReplicas), replica -> {
                    body.call(replica);
                    return null;
                });
            }
        };
        run.<X>run(options.cancel, (token, cancel) -> {
            if (options.quick) {
                long handle = acquireForRun();
                try {
                    DistModule.run_until(handle, token, cancel);
                } finally {
                    life.leaves();
                }
                return;
            }
            try (Uses uses = new Uses()) {
                DistModule.dist_run(uses.ofRun(this), token, options.toNative(uses, cancel));
            }
        });
    }

    /**
     * Runs a function on every replica, like {@link #run}, with arguments and results. Each per-replica or mirrored
     * value in the arguments, at any depth, is replaced by the component of that replica. Results must have the same
     * structure and are merged leaf by leaf.
     *
     * @param args a list or tuple; any other value, for example a batch, is the only argument; null means none
     * @param kwargs a dictionary; null means none
     * @return the merged results; null if no replica returned one
     * @throws X the exception that the function threw
     */
    public <X extends Exception> Value run(
            ValuesFunction<X> fn, Value args, Value kwargs, RunOptions options) throws X {
        Objects.requireNonNull(fn, "fn");
        Objects.requireNonNull(options, "options");
        if (executor() != null) {
            return new ExecutorRun(this, options).<X>run(fn, args, kwargs);
        }
        RunCall run = new RunCall(this) {
            @Override
            long values(long handle, long positional, long named) throws Exception {
                return asReplica(handle, replica -> {
                    try (Value given = Value.borrowed(positional); Value keys = Value.borrowed(named)) {
                        return Value.handedOver(fn.call(replica, given, keys));
                    }
                });
            }
        };
        long[] out = new long[1];
        run.<X>run(options.cancel, (token, cancel) -> {
            try (Uses uses = new Uses()) {
                dist_run_options raw = options.toNative(uses, cancel);
                DistModule.dist_run_values(uses.ofRun(this), token, Value.arguments(uses, this, args),
                        uses.ofNullable(kwargs), raw, out);
            }
        });
        return Value.taken(out[0]);
    }

    /** Same as {@link #run(ValuesFunction, Value, Value, RunOptions)}, with positional arguments only. */
    public <X extends Exception> Value run(ValuesFunction<X> fn, Value args) throws X {
        return run(fn, args, null, RunOptions.DEFAULT);
    }

    /** Cancels the run in progress: its collectives, now and later, and run() throw a DistException with CANCELLED. */
    public void cancel() {
        ask(handle -> {
            DistModule.dist_strategy_cancel(handle);
            return null;
        });
    }

    /** Same as {@link #reform(ReformOptions)}, with default options. */
    public void reform() {
        reform(ReformOptions.DEFAULT);
    }

    /**
     * Forms a new generation of workers: without those that are lost, and with those that were restarted or started
     * late. {@link ReformOptions} describes what is kept. An interrupt of this thread and {@link #cancel} end the wait
     * with CANCELLED.
     *
     * @throws DistException UNAVAILABLE worker 0, which decides who takes part, is lost: the job has ended.
     *         DEADLINE_EXCEEDED too few workers arrived. FAILED_PRECONDITION a run is in progress, groups or plans
     *         still exist, or there is only one worker
     */
    public void reform(ReformOptions options) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            DistModule.dist_strategy_reform(uses.waiting(this), options.toNative(uses));
        }
    }

    /**
     * Returns whether the workers should re-form before the next run, because some were lost or want to join. Workers
     * that have made the same runs get the same answer. Waits until worker 0 has ended the latest run. {@link
     * Reform#AT_NEXT_RUN} makes runs check this.
     */
    public boolean isReformDue() {
        try (Uses uses = new Uses()) {
            int[] out = new int[1];
            DistModule.dist_strategy_reform_due(uses.waiting(this), out);
            return out[0] != 0;
        }
    }

    /** Cancels a run on threads of the program, unless the strategy is closed by now. */
    void cancelIfOpen() {
        try {
            cancel();
        } catch (DistException e) {
            if (e.status() != Status.FAILED_PRECONDITION) {
                throw e;
            }
        }
    }

    /**
     * Makes this thread a replica of a strategy with {@link ReplicaThreads#HOST}, until {@link Replica#leave()}, which
     * must always be called. {@link #enter(int, RunFunction)} does this for you.
     */
    public Replica enter(int replicaId) {
        return new HostRun(this).enter(replicaId);
    }

    /**
     * Makes this thread a replica, like {@link #enter(int)}, while {@code body} runs, and waits until all have left.
     *
     * @throws X the exception that the body threw
     * @throws DistException the failure of another replica
     */
    public <X extends Exception> void enter(int replicaId, RunFunction<X> body) throws X {
        Objects.requireNonNull(body, "body");
        new HostRun(this).<X>run(replicaId, body);
    }

    /**
     * Closes the strategy and ends its threads. Does nothing if it is closed. Values and variables stay readable.
     *
     * @throws DistException FAILED_PRECONDITION a run or a request is in progress, or groups or plans still exist
     */
    @Override
    public void close() {
        if (boundTo == null) {
            awaitEnded();
            if (endsStates() && !life.isUsed()) {
                closeInstances(Duration.ofNanos(-1));
            }
            life.closeUnused();
            statesEnd();
        }
    }

    /**
     * Closes the strategy even if replica functions do not return: rejects new runs, cancels queued runs and the one in
     * progress, and waits for their functions. If a function has not returned in time, its collectives fail with
     * CANCELLED, and everything that it uses stays valid until it returns. Groups and plans end with the strategy.
     *
     * @param timeout the longest wait; zero means not to wait, and a negative value means no limit
     * @throws DistException DEADLINE_EXCEEDED some functions are still running; the strategy is closed.
     *         FAILED_PRECONDITION called inside a replica or in the strategy's scope; the strategy is unchanged
     */
    public void close(Duration timeout) {
        long nanos = Durations.nanos(timeout, "timeout");
        if (Replica.isInside(this)) {
            throw new DistException(Status.FAILED_PRECONDITION,
                    "Strategy.close() inside a replica of the strategy: it cannot end here");
        }
        if (boundTo == null) {
            try {
                life.shutDown(nanos, hasPeers);
            } finally {
                if (life.isClosed()) {
                    statesEnd();
                }
            }
        }
    }

    // ---- The strategy that a thread is with ----

    /**
     * Returns the strategy of this thread's scope or function, or of {@link #setCurrent}, or the thread's default one.
     */
    public static Strategy current() {
        long handle = DistModule.dist_get_strategy();
        if (handle == 0) {
            throw new DistException(
                    Status.RESOURCE_EXHAUSTED, "no default strategy could be made for this thread");
        }
        return known(handle);
    }

    /** Sets the strategy that is current on this thread outside scopes; null removes it. */
    public static void setCurrent(Strategy strategy) {
        try (Uses uses = new Uses()) {
            DistModule.dist_set_strategy(uses.ofNullable(strategy));
        }
    }

    /** Returns whether {@link #current} is not a default strategy. */
    public static boolean hasCurrent() {
        return DistModule.dist_has_strategy() != 0;
    }

    /** Returns whether this thread is in a merge function or a scope, or {@link #setCurrent} applies to it. */
    public static boolean isInCrossReplicaContext() {
        return DistModule.dist_in_cross_replica_context() != 0;
    }

    // ---- What it is ----

    /** Returns the number of replicas in sync, over all workers. */
    public int numReplicas() {
        return askInt(DistModule::dist_strategy_num_replicas);
    }

    /** Returns whether calls outside runs may wait for other workers. */
    boolean hasPeers() {
        return hasPeers;
    }

    /** Returns the id of this worker's first replica. */
    int firstReplica() {
        return hasPeers ? properties().firstReplica() : firstReplica;
    }

    /** Returns the kind of the strategy, which determines where values and variables are placed. */
    public StrategyKind kind() {
        return StrategyKind.of(askInt(DistModule::dist_strategy_kind_of));
    }

    /** Returns the name of a replica's device, "/job:localhost/replica:0/task:0/device:CPU:1". */
    public String device(int replicaId) {
        return ask(handle -> {
            byte[][] out = new byte[1][];
            DistModule.dist_strategy_device(handle, replicaId, out);
            return Texts.of(out[0]);
        });
    }

    /** Returns the name of a device that holds variables, in the form of {@link #device}. */
    public String parameterDevice(int index) {
        return ask(handle -> {
            byte[][] out = new byte[1][];
            DistModule.dist_strategy_parameter_device(handle, index, out);
            return Texts.of(out[0]);
        });
    }

    /** Returns the properties of the strategy, named as in TensorFlow. */
    public StrategyProperties properties() {
        dist_strategy_properties out = new dist_strategy_properties();
        try {
            return ask(handle -> {
                DistModule.dist_strategy_query(handle, out);
                return StrategyProperties.of(out);
            });
        } finally {
            out.delete();
        }
    }

    /** Returns the number of logical devices of each replica; 1 for strategies of other kinds than MESH. */
    public int numLogicalDevices() {
        return askInt(DistModule::dist_strategy_num_logical_devices);
    }

    /** Returns the device assignment of the strategy, if any. It is valid until the strategy is closed. */
    public Optional<DeviceAssignment> deviceAssignment() {
        return ask(handle -> {
            long assignment = DistModule.dist_strategy_device_assignment(handle);
            return assignment == 0 ? Optional.empty() : Optional.of(new DeviceAssignment(assignment, this));
        });
    }

    /** Returns {@link StrategyOptions#clusterResolver}, if it was set. It is valid until the strategy is closed. */
    public Optional<ClusterResolver> clusterResolver() {
        return ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_strategy_cluster_resolver(handle, out);
            return out[0] == 0 ? Optional.empty() : Optional.of(new ClusterResolver(out[0], this));
        });
    }

    // ---- Looking inside ----

    /** Returns a description of how the strategy uses this machine, for people to read. It begins with a summary. */
    public String explain() {
        return written(Text::explain);
    }

    /** Returns the events of the flight recorder as JSON for Perfetto or chrome://tracing. */
    public String traceJson() {
        return written(Text::write_trace);
    }

    /**
     * Returns counters and gauges in Prometheus' text format, with the label {@code strategy} unless {@code name} is
     * null.
     */
    public String metricsText(String name) {
        return written((text, handle) -> text.write_metrics(handle, Texts.orNull(name)));
    }

    /** Lists the replicas that arrived last at recorded rounds, sorted by how often they did. */
    public List<Straggler> stragglers() {
        Stragglers rows = new Stragglers();
        try {
            return ask(handle -> {
                rows.read(handle);
                List<Straggler> all = new ArrayList<>();
                for (long i = 0; i < rows.size(); i++) {
                    all.add(new Straggler(Collective.of(rows.collective(i)), rows.group(i), rows.replica(i),
                            rows.worker(i), rows.rounds(i), rows.times_last(i), rows.mean_late_ns(i),
                            rows.max_late_ns(i), Texts.of(rows.tag(i))));
                }
                return all;
            });
        } finally {
            rows.delete();
        }
    }
}
