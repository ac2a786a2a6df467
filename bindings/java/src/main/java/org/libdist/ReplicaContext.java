// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_collective_options;

/** The operations of a replica on tensors and values; see {@link Replica}. */
public abstract class ReplicaContext extends Collectives<Void> {
    ReplicaContext() {}

    /** Returns the handle for a libdist function, or throws if it cannot be used here and now. */
    abstract long active(String function);

    abstract int numReplicas();

    /** Returns the strategy that runs this replica. */
    public abstract Strategy strategy();

    @FunctionalInterface
    interface OptionsCall {
        void with(Uses uses, dist_collective_options options);
    }

    /** Makes a call with a collective's options, whose functions may throw. */
    static void call(CollectiveOptions options, OptionsCall call) {
        call(options, new Tokens(), call);
    }

    /** Same as {@link #call(CollectiveOptions, OptionsCall)}, with functions of further options. */
    private static void call(CollectiveOptions options, Tokens tokens, OptionsCall call) {
        try (Uses uses = new Uses()) {
            call.with(uses, options == CollectiveOptions.DEFAULT ? null : options.toNative(uses, tokens));
        } catch (DistException report) {
            throw Target.<RuntimeException>rethrow(tokens.cause(report));
        } finally {
            tokens.end();
        }
        tokens.check();
    }

    @Override
    Void make(String name, Call collective, List<Tensor> in, List<Tensor> out, int n,
            CollectiveOptions options) {
        CollectiveChecks.sizes(options, in, out, numReplicas());
        long replica = active(name);
        call(options, (uses, raw) -> collective.with(replica, uses.tensors(in), uses.written(out), n, raw));
        return null;
    }

    /** Reduces a tensor over all replicas, in place. */
    public void allReduce(ReduceOp op, Tensor data) {
        allReduce(op, List.of(Objects.requireNonNull(data, "data")), CollectiveOptions.DEFAULT);
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
            Optimizer optimizer, CollectiveOptions options) {
        long lists = Math.max(1, options.contributions);
        if (gradients.size() != lists * parameters.size()) {
            throw new IllegalArgumentException(gradients.size() + " gradients are given for " + parameters.size()
                    + " parameters, but there must be " + lists + " for each");
        }
        Objects.requireNonNull(optimizer, "optimizer");
        double[] norm = new double[1];
        long replica = active("dist_reduce_apply");
        Tokens tokens = new Tokens();
        call(options, tokens,
                (uses, raw) -> DistModule.dist_reduce_apply(replica, op.code,
                                uses.written(gradients, "gradients"), uses.written(parameters, "parameters"),
                                parameters.size(), optimizer.toNative(uses, tokens), raw, norm));
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
                    return Value.handedOver(fn.call(strategy, given, keys));
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
                fn.call(from, to);
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
        Calls.<X>run(Targets.initial(initial),
                (uses, token) -> DistModule.dist_replica_variable(replica, Texts.bytes(name, "name"), null,
                                options.toNative(uses, token), out));
        return Variable.ofStrategy(out[0], strategy());
    }
}
