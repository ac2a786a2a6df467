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
 * Keeps variables on the parameter servers of a job, and gives closures to its workers, as TensorFlow's ClusterCoordinator
 * does with a ParameterServerStrategy. Closures run side by side and wait for nobody: training is asynchronous. What becomes
 * of servers that are lost is in libdist's coordinator.h. Its methods may be called from several threads.
 *
 * <pre>{@code
 * StrategyOptions options = StrategyOptions.DEFAULT.kind(StrategyKind.PARAMETER_SERVER); // TF_CONFIG says which servers
 * try (Strategy strategy = new Strategy(options); Coordinator coordinator = Coordinator.create(strategy)) {
 *     coordinator.createVariable("w", zeros);
 *     for (Value batch : batches) {
 *         coordinator.schedule("train", batch);
 *     }
 *     coordinator.join();
 *     coordinator.read("w").forEach(this::use);
 * } // the servers end too
 * }</pre>
 *
 * What an earlier closure has failed with comes out of schedule(), join() or done(), once; {@link RemoteValue#get} says it
 * always. An interrupt of a thread that waits in schedule() or join() ends that wait: CANCELLED, and the thread stays
 * interrupted.
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

    /** It ends before the strategy, whichever the collector finds first. */
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

    /** As {@link #create(Strategy, CoordinatorOptions)}, as libdist has it by itself. */
    public static Coordinator create(Strategy strategy) {
        return create(strategy, CoordinatorOptions.DEFAULT);
    }

    /**
     * Makes the coordinator of a strategy of kind PARAMETER_SERVER, whose cluster resolver says which servers there are. It
     * waits for nobody. A strategy has one: where there is one already, that is what comes, its options are not read, and it
     * ends when everybody who has it has closed it. Close it before the strategy.
     */
    public static Coordinator create(Strategy strategy, CoordinatorOptions options) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            SharedCoordinator shared = Objects.requireNonNull(strategy, "strategy").coordinator();
            return new Coordinator(strategy, shared, shared.hold(uses, uses.of(strategy), options));
        }
    }

    // ---- Variables ----

    /** As {@link #createVariable(String, Tensor, PsVariableOptions)}, as the partitioner says. */
    public void createVariable(String name, Tensor initial) {
        createVariable(name, initial, PsVariableOptions.DEFAULT);
    }

    /**
     * Makes a variable on the parameter servers, with these elements. Variables, and the parts of divided ones, go to the
     * servers in turn, in the order in which they are created. What the partitioner throws comes out itself.
     *
     * @throws DistException DEADLINE_EXCEEDED not within the coordinator's time-out: the message names a server that is not
     *         there
     */
    public void createVariable(String name, Tensor initial, PsVariableOptions options) {
        byte[] text = Texts.bytes(name, "name");
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            long[] tensor = uses.tensor(initial, "initial");
            long handle = uses.of(this);
            PartitionTarget.asking(() -> DistModule.dist_coordinator_create_variable(
                                               handle, text, tensor, options.toNative(uses)));
        }
    }

    /** The names of the variables, in the order of their creation. */
    public List<String> variables() {
        return ask(handle -> {
            List<String> names = new ArrayList<>();
            for (long i = 0; i < DistModule.dist_coordinator_num_variables(handle); i++) {
                names.add(Texts.of(DistModule.dist_coordinator_variable_name(handle, i)));
            }
            return names;
        });
    }

    /** What a variable is like. */
    public record Spec(DType dtype, List<Long> shape) {}

    /** A variable's dtype and shape. */
    public Spec variableSpec(String name) {
        byte[] text = Texts.bytes(name, "name");
        return ask(handle -> {
            long[] out = Tensor.room();
            DistModule.dist_coordinator_variable_spec(handle, text, out, new long[1]);
            List<Long> shape = new ArrayList<>();
            for (int d = 0; d < out[2]; d++) {
                shape.add(out[4 + d]);
            }
            return new Spec(DType.of((int) out[1]), List.copyOf(shape));
        });
    }

    /**
     * Where some rows of a variable lie.
     *
     * @param device "/job:ps/replica:0/task:1/device:CPU:0"
     * @param begin the first of its rows
     * @param rows how many
     */
    public record Part(String device, long begin, long rows) {}

    /** The parts of a variable, in the order of their rows; one that is not divided has one. */
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

    /** Variables as they are now. Those of one parameter server are of one moment. */
    public List<Value> read(String... names) {
        return ask(own -> RemoteVariables.read(
                names, (texts, n, out) -> DistModule.dist_coordinator_read(own, texts, n, out)));
    }

    /** Rows of a variable, as an embedding is looked up: row k of the result is row indices[k], I32 or I64. */
    public Value readRows(String name, Value indices) {
        return ask(own -> RemoteVariables.rows(
                name, indices, (text, rows, out) -> DistModule.dist_coordinator_read_rows(own, text, rows, out)));
    }

    /** Changes a variable, at once. */
    public void assign(String name, Assign how, Value value) {
        ask(own -> {
            RemoteVariables.assign(
                    name, how, value, (text, code, of) -> DistModule.dist_coordinator_assign(own, text, code, of));
            return null;
        });
    }

    /** Changes rows of a variable by indexed slices, row by row as given, at once. */
    public void scatter(String name, Scatter how, Value slices) {
        ask(own -> {
            RemoteVariables.scatter(
                    name, how, slices, (text, code, of) -> DistModule.dist_coordinator_scatter(own, text, code, of));
            return null;
        });
    }

    /** As {@link #update(String, List, Value)}, without arguments. */
    public void update(String function, List<String> names) {
        update(function, names, null);
    }

    /**
     * Changes variables that lie alike by a function that the parameter servers have registered, {@link
     * Server#registerUpdate}, at once. Where that throws, nothing has changed on the server whose function did.
     *
     * @param arguments null: nothing
     */
    public void update(String function, List<String> names, Value arguments) {
        ask(own -> {
            RemoteVariables.update(function, names, arguments,
                    (text, texts, n, of) -> DistModule.dist_coordinator_update(own, text, texts, n, of));
            return null;
        });
    }

    /**
     * Writes a checkpoint of all variables, in which a divided variable is one tensor, and waits until it is on the disk.
     * Closures go on meanwhile: the file has, for each parameter server, the variables of one moment, and which closures they
     * have in them.
     */
    public void save(Path path) {
        byte[] text = Texts.bytes(path.toString());
        ask(handle -> {
            DistModule.dist_coordinator_save(handle, text);
            return null;
        });
    }

    /**
     * Gives all variables the values that a checkpoint has for them, before the first closure. A program that schedules its
     * closures again from the mark on, in the same order, has each of them have its effects once.
     *
     * @return the mark that was saved, by which closures are numbered on: all below it had ended; 0 for files of other programs
     */
    public long restore(Path path) {
        byte[] text = Texts.bytes(path.toString());
        return ask(handle -> {
            long[] mark = new long[1];
            DistModule.dist_coordinator_restore(handle, text, mark);
            return mark[0];
        });
    }

    // ---- Closures ----

    /** As {@link #schedule(String, Value)}, without arguments. */
    public RemoteValue schedule(String function) {
        return schedule(function, null);
    }

    /** As {@link #schedule(String, Value, ScheduleOptions)}, with the coordinator's time-out. */
    public RemoteValue schedule(String function, Value arguments) {
        return schedule(function, arguments, ScheduleOptions.DEFAULT);
    }

    /**
     * Has a worker run the closure that it has registered under a name. It waits while there are maxQueued closures that have
     * no end. Where an earlier closure has failed, nothing is scheduled.
     *
     * @param arguments held until it has ended: their elements must stay as they are; null: nothing
     * @return what it comes to; who does not want it may forget it
     */
    public RemoteValue schedule(String function, Value arguments, ScheduleOptions options) {
        byte[] name = Texts.bytes(function, "function");
        Objects.requireNonNull(options, "options");
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            long handle = uses.of(this);
            long given = uses.ofNullable(arguments);
            Wait.run(uses, waits, options.cancel(), own -> DistModule.dist_coordinator_schedule(
                                                            handle, name, given, options.toNative(uses, own), out));
        }
        return new RemoteValue(out[0], this);
    }

    /** As {@link #join(Duration)}, for the coordinator's time-out. */
    public void join() {
        join(Duration.ZERO);
    }

    /**
     * Waits until all closures have ended.
     *
     * @param timeout zero: the coordinator's; negative: without limit
     * @throws DistException DEADLINE_EXCEEDED not in time: the message names a server that is not there
     */
    public void join(Duration timeout) {
        join(timeout, null);
    }

    /**
     * As {@link #join(Duration)}.
     *
     * @param cancel ends the wait, too; null: nothing
     */
    public void join(Duration timeout, Cancel cancel) {
        long nanos = Durations.nanos(timeout, "timeout");
        try (Uses uses = new Uses()) {
            long handle = uses.of(this);
            Wait.run(uses, waits, cancel, own -> DistModule.dist_coordinator_join(handle, nanos, own));
        }
    }

    /** Whether all closures have ended. */
    public boolean done() {
        return askInt(handle -> {
            int[] done = new int[1];
            DistModule.dist_coordinator_done(handle, done);
            return done[0];
        }) != 0;
    }

    /** As {@link #createPerWorker(String, String, Value)}, without arguments. */
    public void createPerWorker(String name, String function) {
        createPerWorker(name, function, null);
    }

    /**
     * Has each worker run a closure, once and before any further one, and keep its result under a name for its closures:
     * {@link Closure#perWorker}. So each has a dataset or a buffer of its own. A worker that returns runs it again. The result
     * is not sent, so that it may be anything: {@link Value#wrapObject} makes a value of a Java object. It waits until the
     * workers that are there have it; what the function throws there comes out with its status and message.
     *
     * @param function the closure's name
     * @param arguments null: nothing
     */
    public void createPerWorker(String name, String function, Value arguments) {
        byte[] text = Texts.bytes(name, "name");
        byte[] called = Texts.bytes(function, "function");
        try (Uses uses = new Uses()) {
            DistModule.dist_coordinator_create_per_worker(
                    uses.of(this), text, called, uses.ofNullable(arguments));
        }
    }

    /** What it does now. */
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
     * The latest 16,384 closures as a trace, JSON of Chrome's trace-event format, for Perfetto: a row for each worker, on
     * which a slice is the time from when a closure was sent until its end.
     */
    public String writeTrace() {
        return written(Text::write_coordinator_trace);
    }

    /**
     * Ends it, where nobody else has it: closures that have no end are CANCELLED, and the servers are told to end. schedule()
     * and join() that wait are CANCELLED; other calls are waited for. Remote values stay readable.
     *
     * @throws DistException FAILED_PRECONDITION while the partitioner runs
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
