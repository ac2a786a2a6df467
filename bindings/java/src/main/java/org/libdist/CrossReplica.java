// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * What a {@link Strategy} does with values and variables from outside runs, and inside merge functions:
 * reduces, broadcasts, gathers, updates.
 */
public abstract class CrossReplica extends NativeObject {
    static final int NAME_BYTES = 1024; // more than any device's name has

    CrossReplica(Native owner) {
        super(owner);
    }

    /** Its handle, for a call that may wait for other workers. */
    private long waiting(Uses uses) {
        return uses.waiting((Strategy) this);
    }

    /**
     * Reduces a per-replica value to one tensor; of a nest, each leaf. {@code op} is SUM or MEAN.
     *
     * @param axes that are reduced too, in each component; none: the components as they are
     */
    public Value reduce(ReduceOp op, Value value, int... axes) {
        int[] given = axes.length == 0 ? null : axes;
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_reduce(waiting(uses), op.code, uses.of(value, "value"), given, axes.length, out);
            return Value.taken(out[0]);
        }
    }

    /** Reduces a per-replica value to where it is wanted; null: on every replica. */
    public Value reduceTo(ReduceOp op, Value value, Destination destination) {
        return reduceTo(op, value, destination, CommunicationOptions.DEFAULT);
    }

    /**
     * As {@link #reduceTo(ReduceOp, Value, Destination)}, with TensorFlow's options: checked, and of no
     * consequence.
     */
    public Value reduceTo(ReduceOp op, Value value, Destination destination, CommunicationOptions options) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_reduce_to(waiting(uses), op.code, uses.of(value, "value"),
                    Destination.toNative(uses, destination), options.toNative(uses), out);
            return Value.taken(out[0]);
        }
    }

    /** {@link #reduceTo} of many values in one pass: each to its destination; null: all to every replica. */
    public List<Value> batchReduceTo(ReduceOp op, List<Value> values, List<Destination> destinations) {
        return batchReduceTo(op, values, destinations, CommunicationOptions.DEFAULT);
    }

    /** As {@link #batchReduceTo(ReduceOp, List, List)}, with options as {@link #reduceTo} has them. */
    public List<Value> batchReduceTo(
            ReduceOp op, List<Value> values, List<Destination> destinations, CommunicationOptions options) {
        return batch(values, destinations,
                (uses, in, to, n, out) -> DistModule.dist_batch_reduce_to(
                                waiting(uses), op.code, in, to, n, options.toNative(uses), out));
    }

    @FunctionalInterface
    interface Batch {
        void with(Uses uses, long[] values, long destinations, long n, long[] out);
    }

    static List<Value> batch(List<Value> values, List<Destination> destinations, Batch call) {
        if (destinations != null && destinations.size() != values.size()) {
            throw new IllegalArgumentException(
                    destinations.size() + " destinations of " + values.size() + " values");
        }
        try (Uses uses = new Uses()) {
            long[] out = new long[values.size()];
            call.with(uses, uses.all(values, "values"), Destination.toNative(uses, destinations), out.length,
                    out);
            List<Value> results = new ArrayList<>();
            for (long handle : out) {
                results.add(Value.taken(handle));
            }
            return results;
        }
    }

    /** One value where it is wanted, mirrored where that is on every replica; null: on every replica. */
    public Value broadcastTo(Value value, Destination destination) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_broadcast_to(
                    waiting(uses), uses.of(value, "value"), Destination.toNative(uses, destination), out);
            return Value.taken(out[0]);
        }
    }

    /** Joins the components of a per-replica value along an axis to one tensor; of a nest, each leaf. */
    public Value gather(Value value, int axis) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_gather(waiting(uses), uses.of(value, "value"), axis, out);
            return Value.taken(out[0]);
        }
    }

    /** The name, in full, of the device that a destination is on. */
    public String destinationDevice(Destination destination) {
        try (Uses uses = new Uses()) {
            byte[] name = new byte[NAME_BYTES];
            DistModule.dist_destination_device(
                    uses.of(this), Destination.toNative(uses, destination), name, name.length);
            return Texts.written(name);
        }
    }

    /** A tuple of a value's components, in replica order; of any other value a tuple of itself. */
    public Value localResults(Value value) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_local_results(uses.of(this), uses.of(value, "value"), out);
            return Value.taken(out[0]);
        }
    }

    /**
     * Calls {@code fn} on every copy of a variable, with that replica's components of {@code args}, some at
     * the same time.
     *
     * @param args a list or tuple; any other value is the only argument; null: none
     * @throws X what the function threw
     */
    public <X extends Exception> void update(Variable variable, UpdateFunction<X> fn, Value args) throws X {
        Calls.<X>run(UpdateTarget.of(variable, fn),
                (uses, token) -> DistModule.dist_update(uses.of(this), uses.of(variable, "variable"), token,
                                Value.arguments(uses, this, args)));
    }

    /**
     * {@link #update} with named arguments and results: one call after another, on this thread.
     *
     * @param args a list or tuple; any other value is the only argument; null: none
     * @param kwargs a dictionary; null: none
     * @param ungrouped whether each leaf of the result is a tuple of what the calls gave
     * @return the results merged; null: no call gave one
     * @throws X what the function threw
     */
    public <X extends Exception> Value updateValues(Variable variable, UpdateValuesFunction<X> fn, Value args,
            Value kwargs, boolean ungrouped) throws X {
        return Calls.<X>valueOf(UpdateTarget.of(variable, fn),
                (uses, token, out)
                        -> DistModule.dist_update_values(uses.of(this), uses.of(variable, "variable"), token,
                                Value.arguments(uses, this, args), uses.ofNullable(kwargs),
                                UpdateTarget.options(uses, ungrouped), out));
    }

    /**
     * {@link #updateValues} of what is no variable: once for each device that variables are on.
     *
     * @throws X what the function threw
     */
    public <X extends Exception> Value updateNonSlot(
            UpdateValuesFunction<X> fn, Value args, Value kwargs, boolean ungrouped) throws X {
        return Calls.<X>valueOf(UpdateTarget.of(null, fn),
                (uses, token, out) -> DistModule.dist_update_non_slot(uses.of(this), token,
                                Value.arguments(uses, this, args), uses.ofNullable(kwargs),
                                UpdateTarget.options(uses, ungrouped), out));
    }

    /**
     * Enters the strategy's scope: on this thread it is the current strategy until close(), in the
     * cross-replica context. Meant for try-with-resources; scopes end in the reverse order of their
     * beginning.
     */
    public Scope scope() {
        return new Scope(this, DistModule::dist_scope_enter, DistModule::dist_scope_exit);
    }

    /**
     * Variables that this thread makes next are placed with another, until close(). They always are: it is
     * checked.
     */
    public Scope colocate(Value variable) {
        Objects.requireNonNull(variable, "variable");
        return new Scope(this,
                strategy -> variable.ask(handle -> {
                    DistModule.dist_colocate_enter(strategy, handle);
                    return null;
                }),
                DistModule::dist_colocate_exit);
    }
}
