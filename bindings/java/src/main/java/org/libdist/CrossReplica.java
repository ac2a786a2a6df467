// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * The operations of a {@link Strategy} on values outside runs and inside merge functions: reduce, broadcast
 * and gather.
 */
public abstract class CrossReplica extends NativeObject {
    static final int NAME_BYTES = 1024; // more than any device's name has

    CrossReplica(Native owner) {
        super(owner);
    }

    /** Returns the handle for a call that may wait for other workers. */
    private long waiting(Uses uses) {
        return uses.waiting((Strategy) this);
    }

    /**
     * Reduces a per-replica value to one tensor. Each leaf of a nested value is reduced. {@code op} is SUM or
     * MEAN.
     *
     * @param axes axes along which each component is reduced first; none means that the components are used
     *         as they are
     */
    public Value reduce(ReduceOp op, Value value, int... axes) {
        int[] given = axes.length == 0 ? null : axes;
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_reduce(waiting(uses), op.code, uses.of(value, "value"), given, axes.length, out);
            return Value.taken(out[0]);
        }
    }

    /** Reduces a per-replica value and places the result at a destination; null means every replica. */
    public Value reduceTo(ReduceOp op, Value value, Destination destination) {
        return reduceTo(op, value, destination, CommunicationOptions.DEFAULT);
    }

    /**
     * Same as {@link #reduceTo(ReduceOp, Value, Destination)}, with TensorFlow's options, which are checked
     * but have no effect.
     */
    public Value reduceTo(ReduceOp op, Value value, Destination destination, CommunicationOptions options) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_reduce_to(waiting(uses), op.code, uses.of(value, "value"),
                    Destination.toNative(uses, destination), options.toNative(uses), out);
            return Value.taken(out[0]);
        }
    }

    /**
     * Performs several calls of {@link #reduceTo} in one pass: each value goes to its destination; null means
     * that all go to every replica.
     */
    public List<Value> batchReduceTo(ReduceOp op, List<Value> values, List<Destination> destinations) {
        return batchReduceTo(op, values, destinations, CommunicationOptions.DEFAULT);
    }

    /** Same as {@link #batchReduceTo(ReduceOp, List, List)}, with the options of {@link #reduceTo}. */
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

    /**
     * Places a value at a destination. The result is mirrored if the destination is on every replica, as it
     * is if destination is null.
     */
    public Value broadcastTo(Value value, Destination destination) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_broadcast_to(
                    waiting(uses), uses.of(value, "value"), Destination.toNative(uses, destination), out);
            return Value.taken(out[0]);
        }
    }

    /**
     * Concatenates the components of a per-replica value along an axis to one tensor. Each leaf of a nested
     * value is gathered.
     */
    public Value gather(Value value, int axis) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_gather(waiting(uses), uses.of(value, "value"), axis, out);
            return Value.taken(out[0]);
        }
    }

    /** Returns the full name of the device of a destination. */
    public String destinationDevice(Destination destination) {
        try (Uses uses = new Uses()) {
            byte[] name = new byte[NAME_BYTES];
            DistModule.dist_destination_device(
                    uses.of(this), Destination.toNative(uses, destination), name, name.length);
            return Texts.written(name);
        }
    }

    /**
     * Returns a tuple of a value's components, in replica order. For any other value, the tuple contains only
     * that value.
     */
    public Value localResults(Value value) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_strategy_local_results(uses.of(this), uses.of(value, "value"), out);
            return Value.taken(out[0]);
        }
    }

    /**
     * Calls a function once for each device that holds variables, like {@link Variable#update} but without a
     * variable.
     *
     * @param args a list or tuple; any other value is the only argument; null means none
     * @param kwargs a dictionary; null means none
     * @param options without {@link UpdateOptions#parallel}
     * @return the merged results; null if no call returned one
     * @throws X the exception that the function threw
     */
    public <X extends Exception> Value updateNonSlot(
            UpdateFunction<X> fn, Value args, Value kwargs, UpdateOptions options) throws X {
        Objects.requireNonNull(options, "options");
        return Calls.<X>valueOf(UpdateTarget.of(null, fn),
                (uses, token, out) -> DistModule.dist_update_non_slot(uses.of(this), token,
                                Value.arguments(uses, this, args), uses.ofNullable(kwargs),
                                options.toNative(uses), out));
    }

    /**
     * Enters the strategy's scope: until close(), it is the current strategy of this thread, in cross-replica
     * context. Use it in a try-with-resources statement; scopes must be closed in the reverse order.
     */
    public Scope scope() {
        return new Scope(this, DistModule::dist_scope_enter, DistModule::dist_scope_exit);
    }

    /**
     * Declares, until close(), that variables which this thread creates belong on the device of another
     * variable. This does not change where variables are placed; it only checks that colocation is possible.
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
