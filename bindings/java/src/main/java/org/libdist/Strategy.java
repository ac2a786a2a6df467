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
 * Holds R replicas: threads that run the same function and meet in collectives. Its methods may be called
 * from several threads.
 *
 * <pre>{@code
 * try (Strategy strategy = new Strategy(4)) {
 *     strategy.run(replica -> {
 *         FloatBuffer gradient = DirectBuffers.of(1f, 2f, 3f);
 *         replica.allReduce(ReduceOp.SUM, gradient);
 *     });
 * }
 * }</pre>
 */
public final class Strategy extends Serving {
    /** For strategies that come back from libdist: the same object again. */
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
        Properties place = query();
        firstReplica = place.firstReplica();
        hasPeers = place.numWorkers() > 1;
    }

    /** A strategy with that many replicas; 0: as many as this process may use CPUs. */
    public Strategy(int replicas) {
        this(StrategyOptions.DEFAULT.replicas(replicas));
    }

    /** Makes the threads, which sleep until the first run. */
    public Strategy(StrategyOptions options) {
        this(create(options), null, options);
        LIVE.put(ask(Long::valueOf), new WeakReference<>(this));
    }

    private static StrategyLife create(StrategyOptions options) {
        long[] tokens = new long[3];
        boolean made = false;
        try (Uses uses = new Uses()) {
            dist_strategy_options raw = options.toNative(uses, tokens);
            long[] out = new long[1];
            DistModule.dist_strategy_create(raw, out);
            made = true;
            return new StrategyLife(
                    out[0], handle -> destroy(handle, tokens), handle -> end(handle, tokens, h -> {}));
        } finally {
            if (!made) {
                unregister(tokens);
            }
        }
    }

    /** Where replicas run; null: on threads of libdist's, or that come in by themselves. */
    Executor executor() {
        return options == null ? null : options.executor();
    }

    Turns turns() {
        return turns;
    }

    private static void destroy(long handle, long[] tokens) {
        end(handle, tokens, DistModule::dist_strategy_destroy);
    }

    private static void end(long handle, long[] tokens, LongConsumer destroy) {
        WeakReference<Strategy> known = LIVE.remove(handle); // before another may have the same address
        try {
            destroy.accept(handle);
        } catch (DistException e) {
            if (known != null) {
                LIVE.put(handle, known);
            }
            throw e;
        }
        unregister(tokens);
    }

    private static void unregister(long[] tokens) {
        for (long token : tokens) {
            if (token != 0) { // where there is none the native libraries may not be there either
                Upcalls.unregister(token);
            }
        }
    }

    /** A strategy that libdist has given: one of Java's, or this thread's default one. */
    static Strategy known(long handle) {
        WeakReference<Strategy> reference = LIVE.get(handle);
        Strategy strategy = (reference == null ? DEFAULT.get() : reference).get();
        if (strategy == null || strategy.ask(Long::valueOf) != handle) {
            strategy = new Strategy(new StrategyLife(handle, h -> {}, h -> {}), Thread.currentThread(), null);
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
        if (boundTo != null && boundTo != Thread.currentThread()) {
            throw new DistException(Status.FAILED_PRECONDITION,
                    "this is the default strategy of the thread " + boundTo.getName() + ", and ends with it");
        }
        return super.acquire();
    }

    // ---- Running ----

    /**
     * Calls {@code body} once on every replica, at the same time, and waits for all of them.
     *
     * <p>If a replica throws, the others' pending and later collectives throw a DistException with ABORTED,
     * and run() throws what the replica that failed first threw: the same object. What other replicas threw
     * by themselves is suppressed in it. The next run starts clean. An interrupt of this thread cancels the
     * run: it ends with CANCELLED, and the thread stays interrupted.
     *
     * @throws X what the body threw
     * @throws DistException FAILED_PRECONDITION inside a replica, or when the strategy is closed
     */
    public <X extends Exception> void run(ReplicaBody<X> body) throws X {
        run(body, RunOptions.DEFAULT);
    }

    /**
     * As {@link #run(ReplicaBody)}, with options.
     *
     * @throws X what the body threw
     */
    public <X extends Exception> void run(ReplicaBody<X> body, RunOptions options) throws X {
        Objects.requireNonNull(body, "body");
        Objects.requireNonNull(options, "options");
        if (executor() != null) {
            new ExecutorRun(this, options).<X>run(body);
            return;
        }
        RunCall run = new RunCall(this) {
            @Override
            void replica(long handle) throws Exception {
                asReplica(handle, replica -> {
                    body.run(replica);
                    return null;
                });
            }
        };
        run.<X>run(options.cancel(),
                (uses, token, cancel)
                        -> DistModule.dist_run(uses.ofRun(this, run), token, options.toNative(uses, cancel)));
    }

    /**
     * {@link #run} with arguments and results. Wherever the arguments have a per-replica or mirrored value,
     * at any depth, each replica finds its own component; results of the same structure merge leaf by leaf.
     *
     * @param args a list or tuple; any other value, a batch for instance, is the only argument; null: none
     * @param kwargs a dictionary; null: none
     * @return the results merged; null: no replica gave one
     * @throws X what the function threw
     */
    public <X extends Exception> Value runValues(
            ValuesFunction<X> fn, Value args, Value kwargs, RunOptions options) throws X {
        Objects.requireNonNull(fn, "fn");
        Objects.requireNonNull(options, "options");
        if (executor() != null) {
            return new ExecutorRun(this, options).<X>runValues(fn, args, kwargs);
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
        run.<X>run(options.cancel(), (uses, token, cancel) -> {
            dist_run_options raw = options.toNative(uses, cancel);
            DistModule.dist_run_values(uses.ofRun(this, run), token, Value.arguments(uses, this, args),
                    uses.ofNullable(kwargs), raw, out);
        });
        return Value.taken(out[0]);
    }

    /** As {@link #runValues(ValuesFunction, Value, Value, RunOptions)}, with positional arguments alone. */
    public <X extends Exception> Value runValues(ValuesFunction<X> fn, Value args) throws X {
        return runValues(fn, args, null, RunOptions.DEFAULT);
    }

    /**
     * Ends the run that is under way: replicas that wait in a collective, now or later in that run, get a
     * DistException with CANCELLED, and so does run()'s caller.
     */
    public void cancel() {
        ask(handle -> {
            DistModule.dist_strategy_cancel(handle);
            return null;
        });
    }

    /** As {@link #reform(ReformOptions)}, with libdist's own options. */
    public void reform() {
        reform(ReformOptions.DEFAULT);
    }

    /**
     * Goes on with the workers that are there: a new generation, in which those that are lost are not, and those are
     * that have been started again, or late. Replicas are numbered anew, in the order of the workers; each worker
     * keeps how many it has. workers.h says when to call it, and what stays: plans and datasets do not, and are to be
     * made again. An interrupt of this thread ends the wait, and so does {@link #cancel}: CANCELLED.
     *
     * @throws DistException UNAVAILABLE worker 0, which says who takes part, is lost: the job has ended.
     *         DEADLINE_EXCEEDED not enough workers have come. FAILED_PRECONDITION a run is under way, or groups or
     *         plans are left, or the cluster has one worker. After an error the strategy has no way to the others, and
     *         this may be called again
     */
    public void reform(ReformOptions options) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            DistModule.dist_strategy_reform(uses.waiting(this), options.toNative(uses));
        }
    }

    /**
     * Whether the workers are to re-form before the next run: some are lost, or others have come. All workers that
     * have made the same runs get the same answer, for which those other than worker 0 wait until worker 0 has ended
     * the latest one. With {@link Reform#AT_NEXT_RUN} run() and runValues() ask for it by themselves.
     */
    public boolean reformDue() {
        try (Uses uses = new Uses()) {
            int[] out = new int[1];
            DistModule.dist_strategy_reform_due(uses.waiting(this), out);
            return out[0] != 0;
        }
    }

    /** For who ends a run on threads of the program's: its strategy may be closed by now. */
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
     * This thread becomes a replica of a strategy with {@link ReplicaThreads#HOST}, until {@link
     * Replica#leave()}, which has to come whatever happens: {@link #enter(int, ReplicaBody)} sees to that.
     */
    public Replica enter(int replicaId) {
        return new HostRun(this).enter(replicaId);
    }

    /**
     * This thread is a replica for as long as {@code body} runs, of a strategy with {@link
     * ReplicaThreads#HOST}. Returns when all replicas of the run have come and gone.
     *
     * @throws X what the body threw
     * @throws DistException what another replica failed with
     */
    public <X extends Exception> void enter(int replicaId, ReplicaBody<X> body) throws X {
        Objects.requireNonNull(body, "body");
        new HostRun(this).<X>run(replicaId, body);
    }

    /**
     * Ends the threads; nothing on a closed strategy. Values and variables stay readable.
     *
     * @throws DistException FAILED_PRECONDITION while a run or a request is under way, or groups or plans are left
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
     * Closes it whatever its replicas do: refuses new runs, ends those that wait and the one under way, and
     * waits for their functions. One that has not returned in time is left alone: collectives in it fail with
     * CANCELLED, and what it uses stays until it returns. Groups and plans end with the strategy.
     *
     * @param timeout the longest wait; zero: none, negative: no limit
     * @throws DistException DEADLINE_EXCEEDED functions are still inside, and the message says whose; the
     *         strategy is closed for this program. FAILED_PRECONDITION inside a replica, and in the
     * strategy's scope; it is as it was
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
     * The strategy of the scope or function that this thread is in, else that of {@link #setCurrent}, else a
     * default.
     */
    public static Strategy current() {
        long handle = DistModule.dist_get_strategy();
        if (handle == 0) {
            throw new DistException(
                    Status.RESOURCE_EXHAUSTED, "no default strategy could be made for this thread");
        }
        return known(handle);
    }

    /** Makes a strategy this thread's own outside scopes; null: none any more. */
    public static void setCurrent(Strategy strategy) {
        try (Uses uses = new Uses()) {
            DistModule.dist_set_strategy(uses.ofNullable(strategy));
        }
    }

    /** Whether {@link #current} is not a default strategy. */
    public static boolean hasCurrent() {
        return DistModule.dist_has_strategy() != 0;
    }

    /** Whether this thread is in a merge function, in a scope, or has had a strategy set. */
    public static boolean inCrossReplicaContext() {
        return DistModule.dist_in_cross_replica_context() != 0;
    }

    // ---- What it is ----

    /** How many replicas are in sync, those of all workers. */
    public int numReplicas() {
        return askInt(DistModule::dist_strategy_num_replicas);
    }

    /** Whether calls from outside may wait for other workers. */
    boolean hasPeers() {
        return hasPeers;
    }

    /** The id of this worker's first replica. */
    int firstReplica() {
        return hasPeers ? query().firstReplica() : firstReplica;
    }

    /** How values and variables are placed. */
    public StrategyKind kind() {
        return StrategyKind.of(askInt(DistModule::dist_strategy_kind));
    }

    /** The name of a replica's device, "/job:localhost/replica:0/task:0/device:CPU:1". */
    public String device(int replicaId) {
        return ask(handle -> {
            byte[][] out = new byte[1][];
            DistModule.dist_strategy_device(handle, replicaId, out);
            return Texts.of(out[0]);
        });
    }

    /** As {@link #device}, of the devices that variables are on. */
    public String parameterDevice(int index) {
        return ask(handle -> {
            byte[][] out = new byte[1][];
            DistModule.dist_strategy_parameter_device(handle, index, out);
            return Texts.of(out[0]);
        });
    }

    /** What it is, in TensorFlow's words. */
    public Properties query() {
        dist_strategy_properties out = new dist_strategy_properties();
        try {
            return ask(handle -> {
                DistModule.dist_strategy_query(handle, out);
                return Properties.of(out);
            });
        } finally {
            out.delete();
        }
    }

    /** How many logical devices each replica has; 1 for strategies of other kinds than MESH. */
    public int numLogicalDevices() {
        return askInt(DistModule::dist_strategy_num_logical_devices);
    }

    /** The device assignment that it was made with, if any; it ends with the strategy. */
    public Optional<DeviceAssignment> deviceAssignment() {
        return ask(handle -> {
            long assignment = DistModule.dist_strategy_device_assignment(handle);
            return assignment == 0 ? Optional.empty() : Optional.of(new DeviceAssignment(assignment, this));
        });
    }

    /** What was given to describe the cluster, {@link StrategyOptions#clusterResolver}; it ends with the strategy. */
    public Optional<ClusterResolver> clusterResolver() {
        return ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_strategy_cluster_resolver(handle, out);
            return out[0] == 0 ? Optional.empty() : Optional.of(new ClusterResolver(out[0], this));
        });
    }

    // ---- Looking inside ----

    /** What the strategy came to on this machine, and why: lines of "subject: words", for people. */
    public String explain() {
        return written(Text::explain);
    }

    /** What the flight recorder holds, as JSON for Perfetto or chrome://tracing. */
    public String writeTrace() {
        return written(Text::write_trace);
    }

    /** Counters and gauges in Prometheus' text format; {@code name} becomes a label; null: none. */
    public String writeMetrics(String name) {
        return written((text, handle) -> text.write_metrics(handle, Texts.orNull(name)));
    }

    /** Who comes last to the rounds that the recorder still holds, most often last first. */
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
