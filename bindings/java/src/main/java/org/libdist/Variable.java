// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.WeakReference;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.LongConsumer;
import org.libdist.internal.DistModule;
import org.libdist.internal.Text;
import org.libdist.internal.dist_drift;

/** A tensor that outlives runs, with one copy for each replica or one copy for all. */
public final class Variable extends NativeObject {
    /** Maps each native variable to one Java object, so that all users see when it is closed. */
    private static final ConcurrentMap<Long, WeakReference<Variable>> LIVE = new ConcurrentHashMap<>();

    private Variable(Native owner) {
        super(owner);
    }

    /** Creates a variable whose copies all equal {@code initial}. */
    public static Variable create(Strategy strategy, Tensor initial, VariableOptions options) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_variable_create(uses.waiting(strategy), uses.tensor(initial, "initial"),
                    options.toNative(uses, 0), out);
            return made(strategy, out[0]);
        }
    }

    /** Same as {@link #create(Strategy, Tensor, VariableOptions)}, with default options and a name. */
    public static Variable create(Strategy strategy, String name, Tensor initial) {
        return create(strategy, initial, VariableOptions.DEFAULT.name(name));
    }

    /**
     * Same as {@link #create(Strategy, Tensor, VariableOptions)}, with an initial value that a function
     * creates. It is called once, during this call.
     *
     * @throws X the exception that the function threw
     */
    public static <X extends Exception> Variable create(
            Strategy strategy, InitialFunction<X> initial, VariableOptions options) throws X {
        long[] out = new long[1];
        Calls.<X>run(Targets.initial(initial),
                (uses, token) -> DistModule.dist_variable_create(
                                uses.waiting(strategy), null, options.toNative(uses, token), out));
        return made(strategy, out[0]);
    }

    private static Variable made(Strategy strategy, long handle) {
        long[] numbers = Tensor.room();
        DistModule.dist_variable_component(handle, strategy.firstReplica(), numbers);
        long sizeBytes =
                Tensor.described(numbers, null).sizeBytes() * DistModule.dist_variable_num_copies(handle);
        return register(
                handle, DistModule::dist_variable_destroy, DistModule::dist_variable_destroy, sizeBytes);
    }

    /**
     * Returns a variable that a strategy knows by its name. close() destroys it, unless the strategy has
     * already done so.
     */
    static Variable ofStrategy(long handle, Strategy strategy) {
        return known(handle, h -> {
            if (!strategy.owner.isClosed()) {
                DistModule.dist_variable_destroy(h);
            }
        });
    }

    /** Returns a variable that another owner destroys; close() only releases the object. 0 means none. */
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

    /** Returns the name of the variable. */
    public String name() {
        return ask(handle -> Texts.of(DistModule.dist_variable_name(handle)));
    }

    /** Returns "MirroredVariable", "SyncOnReadVariable", "AggregatingVariable" or "Variable". */
    public String variableClass() {
        return ask(handle -> Texts.of(DistModule.dist_variable_class(handle)));
    }

    /**
     * Returns when the copies are combined. If the option was AUTO, this is the strategy's choice, if it had
     * one.
     */
    public Synchronization synchronization() {
        return Synchronization.of(askInt(DistModule::dist_variable_synchronization));
    }

    /** Returns how values that replicas assign are combined. */
    public Aggregation aggregation() {
        return Aggregation.of(askInt(DistModule::dist_variable_aggregation));
    }

    /** Returns the number of copies: one per replica, or one. */
    public int numCopies() {
        return askInt(DistModule::dist_variable_num_copies);
    }

    /** Returns the name of a copy: "w", "w/replica_1" and so on; "" if there is no such copy. */
    public String copyName(int copy) {
        return ask(handle -> Texts.of(DistModule.dist_variable_copy_name(handle, copy)));
    }

    /** Returns the device of a copy. */
    public String device(Strategy strategy, int copy) {
        try (Uses uses = new Uses()) {
            byte[][] out = new byte[1][];
            DistModule.dist_variable_device(uses.of(strategy, "strategy"), uses.of(this), copy, out);
            return Texts.of(out[0]);
        }
    }

    /** Returns whether this strategy created a variable, or the variable of which a value is a copy. */
    public static boolean isCreatedInScope(Strategy strategy, Value variable) {
        try (Uses uses = new Uses()) {
            int[] out = new int[1];
            DistModule.dist_variable_created_in_scope(
                    uses.of(strategy, "strategy"), uses.of(variable, "variable"), out);
            return out[0] != 0;
        }
    }

    /**
     * Returns a view of the copy that a replica uses: its own copy, or the one that all replicas share. A
     * replica may write to its own copy. It is then responsible for keeping all copies equal.
     */
    public Tensor component(int replicaId) {
        return ask(handle -> {
            long[] numbers = Tensor.room();
            DistModule.dist_variable_component(handle, replicaId, numbers);
            return Tensor.described(numbers, new Memory(handle));
        });
    }

    /** Keeps the variable's memory alive for views, which may outlive the variable. */
    static final class Memory {
        Memory(long handle) {
            long[] value = new long[1];
            DistModule.dist_value_create_variable(handle, value);
            Native.CLEANER.register(this, () -> DistModule.dist_value_release(value[0]));
        }
    }

    /** Returns the variable's value in cross-replica context, as a new tensor. */
    public Value read(Strategy strategy) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_variable_read(uses.waiting(strategy), uses.of(this), out);
            return Value.taken(out[0]);
        }
    }

    /**
     * Assigns to every copy. A tensor is assigned to all copies; a per-replica or mirrored value assigns each
     * component to the copy of its replica.
     */
    public void assign(Strategy strategy, Assign how, Value value) {
        try (Uses uses = new Uses()) {
            DistModule.dist_variable_assign(
                    uses.of(strategy, "strategy"), uses.of(this), how.code, uses.of(value, "value"));
        }
    }

    /**
     * Changes rows of every copy. Indexed slices apply to all copies; the components of a per-replica value
     * apply to the copies of their replicas.
     */
    public void scatter(Strategy strategy, Scatter how, Value slices) {
        try (Uses uses = new Uses()) {
            DistModule.dist_variable_scatter(
                    uses.of(strategy, "strategy"), uses.of(this), how.code, uses.of(slices, "slices"));
        }
    }

    /**
     * Returns the replica's copy as a new tensor; {@link #component} returns a view instead.
     */
    public Value read(Replica replica) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_replica_read(replica.active("dist_replica_read"), uses.of(this), out);
            return Value.taken(out[0]);
        }
    }

    /**
     * Assigns inside a run, according to the variable's aggregation. With SUM, for example, every copy gets
     * the sum of the values of all replicas.
     */
    public void assign(Replica replica, Assign how, Tensor value, CollectiveOptions options) {
        long handle = replica.active("dist_replica_assign");
        ReplicaContext.call(options,
                (uses, raw) -> DistModule.dist_replica_assign(
                                handle, uses.of(this), how.code, uses.tensor(value, "value"), raw));
    }

    /** Same as {@link #assign(Replica, Assign, Tensor, CollectiveOptions)}, without options. */
    public void assign(Replica replica, Assign how, Tensor value) {
        assign(replica, how, value, CollectiveOptions.DEFAULT);
    }

    /**
     * Same as {@link #assign(Replica, Assign, Tensor, CollectiveOptions)}; if all replicas pass the same
     * value, it counts as one number for all of them.
     */
    public void assign(Replica replica, Assign how, Value value, CollectiveOptions options) {
        long handle = replica.active("dist_replica_assign_value");
        ReplicaContext.call(options,
                (uses, raw) -> DistModule.dist_replica_assign_value(
                                handle, uses.of(this), how.code, uses.of(value, "value"), raw));
    }

    /** Changes rows inside a run by indexed slices, according to the variable's aggregation. */
    public void scatter(Replica replica, Scatter how, Value slices, CollectiveOptions options) {
        long handle = replica.active("dist_replica_scatter");
        ReplicaContext.call(options,
                (uses, raw) -> DistModule.dist_replica_scatter(
                                handle, uses.of(this), how.code, uses.of(slices, "slices"), raw));
    }

    /** Same as {@link #update(Strategy, UpdateFunction, Value, Value, UpdateOptions)}, with default options. */
    public <X extends Exception> Value update(Strategy strategy, UpdateFunction<X> fn, Value args) throws X {
        return update(strategy, fn, args, null, UpdateOptions.DEFAULT);
    }

    /**
     * Calls {@code fn} on every copy with that replica's components of the arguments.
     *
     * @param args a list or tuple; any other value is the only argument; null means none
     * @param kwargs a dictionary; null means none
     * @return the merged results; null if no call returned one
     * @throws X the exception that the function threw
     */
    public <X extends Exception> Value update(Strategy strategy, UpdateFunction<X> fn, Value args, Value kwargs,
            UpdateOptions options) throws X {
        Objects.requireNonNull(options, "options");
        return Calls.<X>valueOf(UpdateTarget.of(this, fn),
                (uses, token, out) -> DistModule.dist_update(uses.of(strategy, "strategy"), uses.of(this), token,
                                Value.arguments(uses, strategy, args), uses.ofNullable(kwargs),
                                options.toNative(uses), out));
    }

    /** Same as {@link #update(Replica, UpdateFunction, Value, Value, UpdateOptions)}, with default options. */
    public <X extends Exception> Value update(Replica replica, UpdateFunction<X> fn, Value args) throws X {
        return update(replica, fn, args, null, UpdateOptions.DEFAULT);
    }

    /**
     * Updates the variable from inside replicas, like {@link #update(Strategy, UpdateFunction, Value, Value,
     * UpdateOptions)}. All replicas must call it together, and their arguments are merged. Returns the
     * replica's component of the result.
     *
     * @throws X the exception that the function threw, on replica 0
     */
    public <X extends Exception> Value update(Replica replica, UpdateFunction<X> fn, Value args, Value kwargs,
            UpdateOptions options) throws X {
        Objects.requireNonNull(options, "options");
        long handle = replica.active("dist_replica_update");
        return Calls.<X>valueOf(UpdateTarget.of(this, fn),
                (uses, token, out) -> DistModule.dist_replica_update(handle, uses.of(this), token,
                                Value.arguments(uses, replica.strategy(), args), uses.ofNullable(kwargs),
                                options.toNative(uses), out));
    }

    /**
     * Checks that the copies, of all workers, are equal to the bit. All workers must call it.
     *
     * @throws DistException DATA_LOSS the copies differ; the exception has the replica, and the two elements
     *         as expected and received
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

    /**
     * Returns the copies as text, on one line: {@code MirroredVariable: 0: "w" f32[2] [1, 2], 1:
     * "w/replica_1" f32[2] [1, 2]}.
     */
    public String describe() {
        return written(Text::describe_variable);
    }

    /** Returns the same text as {@link #describe}; "closed" if the variable is closed. */
    @Override
    public String toString() {
        return owner.isClosed() ? "closed" : describe();
    }
}
