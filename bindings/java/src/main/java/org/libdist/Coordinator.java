// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.Text;
import org.libdist.internal.dist_coordinator_stats;

/**
 * Keeps variables on the parameter servers of a job and runs closures on its workers, like TensorFlow's
 * ClusterCoordinator with a ParameterServerStrategy. Closures run concurrently and do not wait for each
 * other: training is asynchronous. Several threads may use a coordinator at the same time.
 *
 * <pre>{@code
 * StrategyOptions options = StrategyOptions.DEFAULT.kind(StrategyKind.PARAMETER_SERVER); // TF_CONFIG lists the servers
 * try (Strategy strategy = Strategy.create(options); Coordinator coordinator = Coordinator.create(strategy)) {
 *     coordinator.createVariable("w", zeros);
 *     for (Value batch : batches) {
 *         coordinator.schedule("train", batch);
 *     }
 *     coordinator.join();
 *     coordinator.read("w").forEach(this::use);
 * } // also stops the servers
 * }</pre>
 *
 * <p>If a closure fails, the next call of schedule(), join() or isDone() throws its failure, once; {@link
 * RemoteValue#get} always throws it. If a worker is lost, its closures run again on another worker; their
 * effects are applied exactly once. If a parameter server is lost, its variables are lost, and all further
 * calls fail with ABORTED.
 *
 * <p>Interrupting a thread that waits in schedule() or join() ends that wait with CANCELLED, and the thread
 * stays interrupted.
 */
public final class Coordinator extends NativeObject {
    private final Strategy strategy; // which the collector is to leave alone
    private final SharedCoordinator shared;
    private final Wait.Calls waits = new Wait.Calls();

    private Coordinator(Strategy strategy, SharedCoordinator shared, long handle) {
        super(life(strategy.life(), shared, handle));
        this.strategy = strategy;
        this.shared = shared;
    }

    /**
     * Ensures that the coordinator ends before the strategy, whichever of them the garbage collector finds
     * first.
     */
    private static Native life(StrategyLife strategy, SharedCoordinator shared, long handle) {
        Native life = new UnlockedNative("coordinator", handle, shared::drop) {
            @Override
            void destroyed() {
                strategy.goesWithout(this);
            }
        };
        strategy.outlives(life);
        return life;
    }

    /** Same as {@link #create(Strategy, CoordinatorOptions)}, with default options. */
    public static Coordinator create(Strategy strategy) {
        return create(strategy, CoordinatorOptions.DEFAULT);
    }

    /**
     * Creates the coordinator of a strategy of kind PARAMETER_SERVER, whose cluster resolver lists the
     * servers. It does not block. A strategy has one coordinator: if it already exists, this method returns
     * it and ignores the options, and the coordinator ends when every owner has closed it. Close it before
     * the strategy.
     */
    public static Coordinator create(Strategy strategy, CoordinatorOptions options) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            SharedCoordinator shared = Objects.requireNonNull(strategy, "strategy").coordinator();
            return new Coordinator(strategy, shared, shared.hold(uses, uses.of(strategy), options));
        }
    }

    // ---- Variables ----

    /** Same as {@link #createVariable(String, Tensor, CoordinatorVariableOptions)}, with default options. */
    public void createVariable(String name, Tensor initial) {
        createVariable(name, initial, CoordinatorVariableOptions.DEFAULT);
    }

    /**
     * Creates a variable on the parameter servers, with the elements of {@code initial}. Variables, and the
     * parts of divided variables, are placed on the servers in turn, in the order of their creation.
     * Exceptions that the partitioner throws are rethrown unchanged.
     *
     * @throws DistException DEADLINE_EXCEEDED the coordinator's timeout expired; the message names a server
     *         that is not available
     */
    public void createVariable(String name, Tensor initial, CoordinatorVariableOptions options) {
        byte[] text = Texts.bytes(name, "name");
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            long[] tensor = uses.tensor(initial, "initial");
            long handle = uses.of(this);
            PartitionTarget.asking(() -> DistModule.dist_coordinator_create_variable(
                                               handle, text, tensor, options.toNative(uses)));
        }
    }

    /** Returns the names of the variables, in the order of their creation. */
    public List<String> variables() {
        return ask(handle -> {
            List<String> names = new ArrayList<>();
            for (long i = 0; i < DistModule.dist_coordinator_num_variables(handle); i++) {
                names.add(Texts.of(DistModule.dist_coordinator_variable_name(handle, i)));
            }
            return names;
        });
    }

    /** Returns the dtype and shape of a variable. */
    public TensorSpec variableSpec(String name) {
        byte[] text = Texts.bytes(name, "name");
        return ask(handle -> {
            long[] out = Tensor.room();
            DistModule.dist_coordinator_variable_spec(handle, text, out, new long[1]);
            List<Long> shape = new ArrayList<>();
            for (int d = 0; d < out[2]; d++) {
                shape.add(out[4 + d]);
            }
            return new TensorSpec(DType.of((int) out[1]), List.copyOf(shape));
        });
    }

    /**
     * Describes where some rows of a variable are stored.
     *
     * @param device the device of the server, "/job:ps/replica:0/task:1/device:CPU:0"
     * @param begin the first row
     * @param rows the number of rows
     */
    public record Part(String device, long begin, long rows) {}

    /**
     * Returns the parts of a variable, in the order of their rows. A variable that is not divided has one
     * part.
     */
    public List<Part> variableParts(String name) {
        byte[] text = Texts.bytes(name, "name");
        return ask(handle -> {
            long[] numParts = new long[1];
            DistModule.dist_coordinator_variable_spec(handle, text, Tensor.room(), numParts);
            List<Part> parts = new ArrayList<>();
            for (long i = 0; i < numParts[0]; i++) {
                byte[][] device = new byte[1][];
                long[] begin = new long[1];
                long[] rows = new long[1];
                DistModule.dist_coordinator_variable_part(handle, text, i, device, begin, rows);
                parts.add(new Part(Texts.of(device[0]), begin[0], rows[0]));
            }
            return parts;
        });
    }

    /** Reads variables. The values of variables on the same parameter server are from the same moment. */
    public List<Value> read(String... names) {
        return ask(own -> RemoteVariables.read(
                names, (texts, n, out) -> DistModule.dist_coordinator_read(own, texts, n, out)));
    }

    /**
     * Reads rows of a variable, for example of an embedding: row k of the result is row indices[k]. The
     * indices are of type I32 or I64.
     */
    public Value readRows(String name, Value indices) {
        return ask(own -> RemoteVariables.rows(
                name, indices, (text, rows, out) -> DistModule.dist_coordinator_read_rows(own, text, rows, out)));
    }

    /** Changes a variable immediately. */
    public void assign(String name, Assign how, Value value) {
        ask(own -> {
            RemoteVariables.assign(
                    name, how, value, (text, code, of) -> DistModule.dist_coordinator_assign(own, text, code, of));
            return null;
        });
    }

    /** Changes rows of a variable immediately, by indexed slices, row by row in the given order. */
    public void scatter(String name, Scatter how, Value slices) {
        ask(own -> {
            RemoteVariables.scatter(
                    name, how, slices, (text, code, of) -> DistModule.dist_coordinator_scatter(own, text, code, of));
            return null;
        });
    }

    /** Same as {@link #update(String, List, Value)}, without arguments. */
    public void update(String function, List<String> names) {
        update(function, names, null);
    }

    /**
     * Changes variables immediately with a function that the parameter servers have registered; see {@link
     * Server#registerUpdate}. The variables must have the same parts on the same servers. If the function throws on a
     * server, nothing changes there; other servers may have changed their parts.
     *
     * @param arguments may be null
     */
    public void update(String function, List<String> names, Value arguments) {
        ask(own -> {
            RemoteVariables.update(function, names, arguments,
                    (text, texts, n, of) -> DistModule.dist_coordinator_update(own, text, texts, n, of));
            return null;
        });
    }

    /**
     * Writes a checkpoint of all variables and waits until it is on disk. A divided variable is one tensor in
     * the file. Closures continue meanwhile: for each parameter server, the file has the variables of one
     * moment, and records the closures whose effects they include.
     */
    public void save(Path path) {
        byte[] text = Texts.bytes(path.toString());
        ask(handle -> {
            DistModule.dist_coordinator_save(handle, text);
            return null;
        });
    }

    /**
     * Loads all variables from a checkpoint. Call it before the first closure is scheduled. If the program
     * schedules its closures again from the mark, in the same order, the effects of each closure are applied
     * once.
     *
     * @return the saved mark, from which closures are numbered: all closures with lower numbers had finished;
     *         0 for files of other programs
     */
    public long load(Path path) {
        byte[] text = Texts.bytes(path.toString());
        return ask(handle -> {
            long[] mark = new long[1];
            DistModule.dist_coordinator_restore(handle, text, mark);
            return mark[0];
        });
    }

    // ---- Closures ----

    /** Same as {@link #schedule(String, Value)}, without arguments. */
    public RemoteValue schedule(String function) {
        return schedule(function, null);
    }

    /** Same as {@link #schedule(String, Value, ScheduleOptions)}, with the coordinator's timeout. */
    public RemoteValue schedule(String function, Value arguments) {
        return schedule(function, arguments, ScheduleOptions.DEFAULT);
    }

    /**
     * Schedules one call of the closure that the workers have registered under a name. It waits while there
     * are {@link CoordinatorOptions#maxQueued} unfinished closures. If an earlier closure has failed, nothing
     * is scheduled.
     *
     * @param arguments may be null; otherwise retained until the closure has finished, and its elements must
     *         not change until then
     * @return the future result, which may be ignored
     */
    public RemoteValue schedule(String function, Value arguments, ScheduleOptions options) {
        byte[] name = Texts.bytes(function, "function");
        Objects.requireNonNull(options, "options");
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            long handle = uses.of(this);
            long given = uses.ofNullable(arguments);
            Wait.run(uses, waits, options.cancel, own -> DistModule.dist_coordinator_schedule(
                                                            handle, name, given, options.toNative(uses, own), out));
        }
        return new RemoteValue(out[0], this);
    }

    /** Same as {@link #join(Duration)}, without a timeout. */
    public void join() {
        join(Duration.ofNanos(Durations.NO_TIMEOUT_NANOS));
    }

    /**
     * Waits until all closures have finished.
     *
     * @param timeout zero selects the coordinator's; a negative value means no limit
     * @throws DistException DEADLINE_EXCEEDED the timeout expired; the message names a server that is not
     *         available
     */
    public void join(Duration timeout) {
        join(timeout, null);
    }

    /**
     * Same as {@link #join(Duration)}.
     *
     * @param cancel also cancels the wait; may be null
     */
    public void join(Duration timeout, Cancel cancel) {
        long nanos = Durations.nanos(timeout, "timeout");
        try (Uses uses = new Uses()) {
            long handle = uses.of(this);
            Wait.run(uses, waits, cancel, own -> DistModule.dist_coordinator_join(handle, nanos, own));
        }
    }

    /** Returns whether all closures have finished. */
    public boolean isDone() {
        return askInt(handle -> {
            int[] done = new int[1];
            DistModule.dist_coordinator_done(handle, done);
            return done[0];
        }) != 0;
    }

    /** Same as {@link #createPerWorker(String, String, Value)}, without arguments. */
    public void createPerWorker(String name, String function) {
        createPerWorker(name, function, null);
    }

    /**
     * Runs a closure once on each worker, before any further closure, and keeps its result on that worker
     * under a name. Closures get it with {@link Closure#perWorker}, so each worker can have its own dataset
     * or buffer. A worker that returns after a loss runs the closure again. The result is not sent and can be
     * of any kind; {@link Value#wrapObject} makes a value of a Java object. This method waits until the
     * available workers have the result. If the closure throws, it fails with the same status and message.
     *
     * @param function the name of the closure
     * @param arguments may be null
     */
    public void createPerWorker(String name, String function, Value arguments) {
        byte[] text = Texts.bytes(name, "name");
        byte[] called = Texts.bytes(function, "function");
        try (Uses uses = new Uses()) {
            DistModule.dist_coordinator_create_per_worker(
                    uses.of(this), text, called, uses.ofNullable(arguments));
        }
    }

    /** Returns the current counters. */
    public CoordinatorStats stats() {
        dist_coordinator_stats raw = new dist_coordinator_stats();
        try {
            return ask(handle -> {
                DistModule.dist_coordinator_query(handle, raw);
                return CoordinatorStats.of(raw);
            });
        } finally {
            raw.delete();
        }
    }

    /**
     * Returns the latest 16,384 closures as a trace in Chrome's trace-event format (JSON), for Perfetto. Each
     * worker has a row, on which a slice is the time from sending a closure until it finished.
     */
    public String traceJson() {
        return written(Text::write_coordinator_trace);
    }

    /**
     * Ends the coordinator if no other owner holds it. Unfinished closures, and schedule() and join() calls
     * in progress, fail with CANCELLED; it waits for other calls. The servers are asked to stop. Remote values
     * stay readable.
     *
     * @throws DistException FAILED_PRECONDITION the partitioner is running
     */
    @Override
    public void close() {
        if (shared.isPartitioning()) {
            throw new DistException(Status.FAILED_PRECONDITION,
                    "the coordinator's partitioner runs: close the coordinator afterwards");
        }
        waits.end("the coordinator is closed");
        if (((UnlockedNative) owner).end(shared::drop)) {
            super.close(); // the cleaner finds nothing left to do
        }
    }
}
