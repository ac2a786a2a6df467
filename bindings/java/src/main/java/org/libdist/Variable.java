// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.WeakReference;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.LongConsumer;
import org.libdist.internal.DistModule;
import org.libdist.internal.Text;
import org.libdist.internal.dist_drift;

/** A tensor that outlives runs, with one copy for each replica, or one that all share. */
public final class Variable extends NativeObject {
    /** One object for one variable, however it is come by: closing it must be seen by all. */
    private static final ConcurrentMap<Long, WeakReference<Variable>> LIVE = new ConcurrentHashMap<>();

    private Variable(Native owner) {
        super(owner);
    }

    /** A variable whose copies are all equal to {@code initial}. */
    public static Variable create(Strategy strategy, Tensor initial, VariableOptions options) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_variable_create(uses.waiting(strategy), uses.tensor(initial, "initial"),
                    options.toNative(uses, 0), out);
            return made(strategy, out[0]);
        }
    }

    /** As {@link #create(Strategy, Tensor, VariableOptions)}, with the options' defaults and a name. */
    public static Variable create(Strategy strategy, String name, Tensor initial) {
        return create(strategy, initial, VariableOptions.DEFAULT.name(name));
    }

    /**
     * As {@link #create(Strategy, Tensor, VariableOptions)}, with what a function gives; it is called once,
     * here.
     *
     * @throws X what the function threw
     */
    public static <X extends Exception> Variable create(
            Strategy strategy, InitialFunction<X> initial, VariableOptions options) throws X {
        long[] out = new long[1];
        Calls.<X>run(initialTarget(initial),
                (uses, token) -> DistModule.dist_variable_create(
                                uses.waiting(strategy), null, options.toNative(uses, token), out));
        return made(strategy, out[0]);
    }

    static Target initialTarget(InitialFunction<?> initial) {
        return new Target() {
            @Override
            long initial() throws Exception {
                return Value.handedOver(initial.make());
            }
        };
    }

    private static Variable made(Strategy strategy, long handle) {
        long[] numbers = Tensor.room();
        DistModule.dist_variable_component(handle, strategy.firstReplica(), numbers);
        long sizeBytes =
                Tensor.described(numbers, null).sizeBytes() * DistModule.dist_variable_num_copies(handle);
        return register(
                handle, DistModule::dist_variable_destroy, DistModule::dist_variable_destroy, sizeBytes);
    }

    /** One that a strategy has by its name: close() ends it, unless the strategy has ended it before. */
    static Variable ofStrategy(long handle, Strategy strategy) {
        return known(handle, h -> {
            if (!strategy.owner.isClosed()) {
                DistModule.dist_variable_destroy(h);
            }
        });
    }

    /** One that libdist has given, and somebody else ends: close() only lets go of it. 0: none. */
    static Optional<Variable> found(long handle) {
        return handle == 0 ? Optional.empty() : Optional.of(known(handle, h -> {}));
    }

    private static synchronized Variable known(long handle, LongConsumer close) {
        WeakReference<Variable> reference = LIVE.get(handle);
        Variable variable = reference == null ? null : reference.get();
        return variable != null ? variable : register(handle, close, h -> {}, 0);
    }

    /** @param close what close() does, {@code collect} what the cleaner does */
    private static Variable register(long handle, LongConsumer close, LongConsumer collect, long sizeBytes) {
        long[] keeper = new long[1]; // a value of the variable: while it is held the handle is valid
        DistModule.dist_value_create_variable(handle, keeper);
        WeakReference<?>[] self = new WeakReference<?>[ 1 ];
        LongConsumer letGo = h -> {
            LIVE.remove(h, self[0]);
            DistModule.dist_value_release(keeper[0]);
        };
        Variable variable = new Variable(new Native("variable", handle, close.andThen(letGo), sizeBytes) {
            @Override
            void collect() {
                endBy(collect.andThen(letGo));
            }
        });
        WeakReference<Variable> reference = new WeakReference<>(variable);
        self[0] = reference;
        LIVE.put(handle, reference);
        return variable;
    }

    /** Its name. */
    public String name() {
        return ask(handle -> Texts.of(DistModule.dist_variable_name(handle)));
    }

    /** "MirroredVariable", "SyncOnReadVariable", "AggregatingVariable" or "Variable". */
    public String variableClass() {
        return ask(handle -> Texts.of(DistModule.dist_variable_class(handle)));
    }

    /**
     * When its copies are brought together: AUTO has become what the strategy chose, where it had a choice.
     */
    public Synchronization synchronization() {
        return Synchronization.of(askInt(DistModule::dist_variable_synchronization));
    }

    /** What assignments inside replicas do. */
    public Aggregation aggregation() {
        return Aggregation.of(askInt(DistModule::dist_variable_aggregation));
    }

    /** Whether it is for training to change. */
    public boolean trainable() {
        return askInt(DistModule::dist_variable_trainable) != 0;
    }

    /** How many copies: one for each replica, or one. */
    public int numCopies() {
        return askInt(DistModule::dist_variable_num_copies);
    }

    /** The name of a copy: "w", "w/replica_1" ...; "" where there is no such copy. */
    public String copyName(int copy) {
        return ask(handle -> Texts.of(DistModule.dist_variable_copy_name(handle, copy)));
    }

    /** The device that a copy is on. */
    public String device(Strategy strategy, int copy) {
        try (Uses uses = new Uses()) {
            byte[][] out = new byte[1][];
            DistModule.dist_variable_device(uses.of(strategy, "strategy"), uses.of(this), copy, out);
            return Texts.of(out[0]);
        }
    }

    /** Whether this strategy made a variable, or the variable that a value is a copy of. */
    public static boolean createdInScope(Strategy strategy, Value variable) {
        try (Uses uses = new Uses()) {
            int[] out = new int[1];
            DistModule.dist_variable_created_in_scope(
                    uses.of(strategy, "strategy"), uses.of(variable, "variable"), out);
            return out[0] != 0;
        }
    }

    /**
     * What replica {@code replicaId} has of the variable: its own copy, or the one that all share, in place.
     * A replica may write to its own; that all copies stay equal is then its affair.
     */
    public Tensor component(int replicaId) {
        return ask(handle -> {
            long[] numbers = Tensor.room();
            DistModule.dist_variable_component(handle, replicaId, numbers);
            return Tensor.described(numbers, new Memory(handle));
        });
    }

    /** What keeps the variable's memory: for views, which may outlive it. */
    static final class Memory {
        Memory(long handle) {
            long[] value = new long[1];
            DistModule.dist_value_create_variable(handle, value);
            Native.CLEANER.register(this, () -> DistModule.dist_value_release(value[0]));
        }
    }

    /** Its value as the cross-replica context sees it, as a new tensor. */
    public Value read(Strategy strategy) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_variable_read(uses.waiting(strategy), uses.of(this), out);
            return Value.taken(out[0]);
        }
    }

    /** Assigns to every copy: a tensor to all, a per-replica or mirrored value to each its own. */
    public void assign(Strategy strategy, Assign how, Value value) {
        try (Uses uses = new Uses()) {
            DistModule.dist_variable_assign(
                    uses.of(strategy, "strategy"), uses.of(this), how.code, uses.of(value, "value"));
        }
    }

    /** Changes rows of every copy: indexed slices for all, or per-replica ones. */
    public void scatter(Strategy strategy, Scatter how, Value slices) {
        try (Uses uses = new Uses()) {
            DistModule.dist_variable_scatter(
                    uses.of(strategy, "strategy"), uses.of(this), how.code, uses.of(slices, "slices"));
        }
    }

    /**
     * Checks that the copies are still equal, to the bit, those of all workers, each of which calls it.
     *
     * @throws DistException DATA_LOSS they are not: it has the replica, and the two elements as expected and
     *         received
     */
    public Drift checkDrift(Strategy strategy) {
        dist_drift out = new dist_drift();
        try (Uses uses = new Uses()) {
            DistModule.dist_variable_check_drift(uses.waiting(strategy), uses.of(this), out);
            return new Drift(
                    out.getNum_copies(), out.getReplica(), out.getExpected_replica(), out.getElement());
        } finally {
            out.delete();
        }
    }

    /** On one line: {@code MirroredVariable: 0: "w" f32[2] [1, 2], 1: "w/replica_1" f32[2] [1, 2]}. */
    public String describe() {
        return written(Text::describe_variable);
    }

    /** As {@link #describe}; "closed" where it is. */
    @Override
    public String toString() {
        return owner.isClosed() ? "closed" : describe();
    }
}
