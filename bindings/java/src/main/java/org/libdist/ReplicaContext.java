// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_collective_options;
import org.libdist.internal.dist_update_options;

/** The operations of a replica on tensors, values and variables; see {@link Replica}. */
public abstract class ReplicaContext extends Collectives<Void> {
    ReplicaContext() {}

    /** Returns the handle for a libdist function, or throws if it cannot be used here and now. */
    abstract long active(String function);

    /** Returns the strategy that runs this replica. */
    public abstract Strategy strategy();

    @FunctionalInterface
    private interface OptionsCall {
        void with(Uses uses, dist_collective_options options);
    }

    /** Makes a call with a collective's options, whose operator may throw. */
    private static void call(CollectiveOptions options, OptionsCall call) {
        Target reducer = options.reducerTarget();
        if (reducer == null) {
            try (Uses uses = new Uses()) {
                call.with(uses, options == CollectiveOptions.NONE ? null : options.toNative(uses, 0));
            }
        } else {
            Calls.<RuntimeException>run(
                    reducer, (uses, token) -> call.with(uses, options.toNative(uses, token)));
        }
    }

    @Override
    Void make(String name, Call collective, List<Tensor> in, List<Tensor> out, int n,
            CollectiveOptions options) {
        long replica = active(name);
        call(options, (uses, raw) -> collective.with(replica, uses.tensors(in), uses.written(out), n, raw));
        return null;
    }

    /** Reduces a tensor over all replicas, in place. */
    public void allReduce(ReduceOp op, Tensor data) {
        allReduce(op, List.of(Objects.requireNonNull(data, "data")), CollectiveOptions.NONE);
    }

    /** Reduces every leaf of a nested value over all replicas. The result has the structure of the value. */
    public Value allReduce(ReduceOp op, Value value, CollectiveOptions options) {
        long[] result = new long[1];
        long replica = active("dist_all_reduce_value");
        call(options,
                (uses, raw) -> DistModule.dist_all_reduce_value(
                                replica, op.code, uses.of(value, "value"), raw, result));
        return Value.taken(result[0]);
    }

    /**
     * Concatenates every leaf of a nested value along the axis of the options. The result has the structure
     * of the value.
     */
    public Value allGather(Value value, CollectiveOptions options) {
        long[] result = new long[1];
        long replica = active("dist_all_gather_value");
        call(options,
                (uses, raw)
                        -> DistModule.dist_all_gather_value(replica, uses.of(value, "value"), raw, result));
        return Value.taken(result[0]);
    }

    /**
     * Reduces gradients and updates parameters with them in one pass, while they are in the cache.
     *
     * @return the norm of the gradients before clipping, if the options ask for clipping; otherwise 0
     */
    public double reduceApply(ReduceOp op, List<Tensor> gradients, List<Tensor> parameters,
            ApplyOptions apply, CollectiveOptions options) {
        if (gradients.isEmpty() && !parameters.isEmpty()) {
            throw new IllegalArgumentException("no gradients for " + parameters.size() + " parameters");
        }
        Target function = apply.target();
        double[] norm = new double[1];
        long replica = active("dist_reduce_apply");
        Calls.<RuntimeException>run(function,
                (uses, token) -> call(options,
                                (more, raw) -> apply.with(uses, token,
                                                   given -> DistModule.dist_reduce_apply(replica, op.code,
                                                           uses.written(gradients, "gradients"),
                                                           uses.written(parameters, "parameters"),
                                                           parameters.size(), given, raw, norm))));
        return norm[0];
    }

    /**
     * Waits for all replicas, then runs {@code fn} once on behalf of all of them: on replica 0's thread, in
     * cross-replica context, with the merged arguments. Every replica gets its component of the result.
     *
     * @param args a list or tuple; any other value is the only argument; null means none
     * @param kwargs a dictionary of named arguments; null means none
     * @throws X the exception that the function threw, on replica 0
     * @throws DistException its text, on all other replicas
     */
    public <X extends Exception> Value mergeCall(MergeFunction<X> fn, Value args, Value kwargs,
            CollectiveOptions options) throws X {
        Objects.requireNonNull(fn, "fn");
        long replica = active("dist_merge_call");
        Strategy strategy = strategy();
        Target target = new Target() {
            @Override
            long merge(long handle, long positional, long named) throws X {
                try (Value given = Value.borrowed(positional); Value keys = Value.borrowed(named)) {
                    return Value.handedOver(fn.merge(strategy, given, keys));
                }
            }
        };
        return Calls.<X>valueOf(target,
                (uses, token, out) -> call(options,
                                (more, raw) -> DistModule.dist_merge_call(replica, token,
                                                Value.arguments(uses, strategy(), args), uses.ofNullable(kwargs), raw, out)));
    }

    /**
     * Runs a loop in parallel on this replica's share of the cores, in pieces of at least {@code grain}
     * iterations, in any order.
     */
    public void parallelFor(long begin, long end, long grain, RangeFunction fn) {
        Objects.requireNonNull(fn, "fn");
        long replica = active("dist_replica_parallel_for");
        Target target = new Target() {
            @Override
            void loop(long from, long to) {
                fn.run(from, to);
            }
        };
        Calls.<RuntimeException>run(
                target, (uses, token) -> DistModule.dist_replica_parallel_for(replica, begin, end, grain, token));
    }

    /**
     * Returns the strategy's variable with a name. The first run whose replicas ask for the name creates it;
     * later calls return the existing variable.
     */
    public Variable variable(String name, Tensor initial, VariableOptions options) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_replica_variable(active("dist_replica_variable"), Texts.bytes(name, "name"),
                    uses.tensor(initial, "initial"), options.toNative(uses, 0), out);
            return Variable.ofStrategy(out[0], strategy());
        }
    }

    /**
     * Same as {@link #variable(String, Tensor, VariableOptions)}, with an initial value that a function
     * creates.
     *
     * @throws X the exception that the function threw
     */
    public <X extends Exception> Variable variable(
            String name, InitialFunction<X> initial, VariableOptions options) throws X {
        long[] out = new long[1];
        long replica = active("dist_replica_variable");
        Calls.<X>run(Variable.initialTarget(initial),
                (uses, token) -> DistModule.dist_replica_variable(replica, Texts.bytes(name, "name"), null,
                                options.toNative(uses, token), out));
        return Variable.ofStrategy(out[0], strategy());
    }

    /**
     * Returns this replica's copy of a variable as a new tensor; {@link Variable#component} returns a view
     * instead.
     */
    public Value read(Variable variable) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_replica_read(active("dist_replica_read"), uses.of(variable, "variable"), out);
            return Value.taken(out[0]);
        }
    }

    /**
     * Assigns to a variable according to its aggregation. With SUM, for example, every copy gets the sum of
     * the values of all replicas.
     */
    public void assign(Variable variable, Assign how, Tensor value, CollectiveOptions options) {
        long replica = active("dist_replica_assign");
        call(options,
                (uses, raw)
                        -> DistModule.dist_replica_assign(replica, uses.of(variable, "variable"), how.code,
                                uses.tensor(value, "value"), raw));
    }

    /** Same as {@link #assign(Variable, Assign, Tensor, CollectiveOptions)}, without options. */
    public void assign(Variable variable, Assign how, Tensor value) {
        assign(variable, how, value, CollectiveOptions.NONE);
    }

    /**
     * Same as {@link #assign(Variable, Assign, Tensor, CollectiveOptions)}; if all replicas pass the same
     * value, it counts as one number for all of them.
     */
    public void assign(Variable variable, Assign how, Value value, CollectiveOptions options) {
        long replica = active("dist_replica_assign_value");
        call(options,
                (uses, raw) -> DistModule.dist_replica_assign_value(replica, uses.of(variable, "variable"),
                                how.code, uses.of(value, "value"), raw));
    }

    /** Changes rows of a variable by indexed slices, according to its aggregation. */
    public void scatter(Variable variable, Scatter how, Value slices, CollectiveOptions options) {
        long replica = active("dist_replica_scatter");
        call(options,
                (uses, raw)
                        -> DistModule.dist_replica_scatter(replica, uses.of(variable, "variable"), how.code,
                                uses.of(slices, "slices"), raw));
    }

    /**
     * Updates a variable from inside replicas, like {@link CrossReplica#updateValues}. All replicas must call
     * it together, and their arguments are merged. Returns this replica's component of the result.
     *
     * @param ungrouped whether each leaf of the result is a tuple of the results of all calls
     * @throws X the exception that the function threw, on replica 0
     */
    public <X extends Exception> Value update(Variable variable, UpdateValuesFunction<X> fn, Value args,
            Value kwargs, boolean ungrouped) throws X {
        long replica = active("dist_replica_update");
        return Calls.<X>valueOf(UpdateTarget.of(variable, fn), (uses, token, out) -> {
            dist_update_options options = UpdateTarget.options(uses, ungrouped, false);
            DistModule.dist_replica_update(replica, uses.of(variable, "variable"), token,
                    Value.arguments(uses, strategy(), args), uses.ofNullable(kwargs), options, out);
        });
    }
}
