// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_collective_options;

/**
 * All collectives on lists of tensors, blocking, under way or planned: {@link Replica} itself, {@link
 * Replica#async} and {@link Replica#planned}. Every replica of the run makes the same collectives in the same
 * order; whoever comes for something else, fails or does not come gives all of them the same DistException. For
 * details see the C header collective.h.
 *
 * <p>{@code in} and {@code out} are lists of the same length. Where they are the same tensors it is done in
 * place.
 *
 * @param <R> what a collective gives: nothing, work under way, or a plan
 */
public abstract class Collectives<R> {
    Collectives() {}

    @FunctionalInterface
    interface Call {
        void with(long replica, long[] in, long[] out, long n, dist_collective_options options);
    }

    /**
     * Makes a collective on tensors, which may be null where only a root has them.
     *
     * @param name of libdist's function
     */
    abstract R make(
            String name, Call call, List<Tensor> in, List<Tensor> out, int n, CollectiveOptions options);

    private R listed(String name, Call call, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        if (in.size() != out.size()) {
            throw new IllegalArgumentException(in.size() + " tensors in and " + out.size() + " out");
        }
        return make(name, call, in, out, out.size(), options);
    }

    private R rooted(String name, Call call, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        if (in == null || out == null) {
            return make(name, call, in, out, in != null ? in.size() : out.size(), options);
        }
        return listed(name, call, in, out, options);
    }

    /** Reduces each tensor over all replicas, in place; every replica gets the results. */
    public R allReduce(ReduceOp op, List<Tensor> data, CollectiveOptions options) {
        return allReduce(op, Objects.requireNonNull(data, "data"), data, options);
    }

    /**
     * Reduces each tensor over all replicas; every replica gets the results: folded from left to right by
     * replica id, the same bits on every replica and in every run.
     */
    public R allReduce(ReduceOp op, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        int code = op.code;
        return make("dist_all_reduce",
                (r, i, o, n, opt) -> DistModule.dist_all_reduce(r, code, i, o, n, opt),
                in, out, out.size(), options);
    }

    /** As {@link #allReduce}; the root gets the results: {@code out} may be null elsewhere. */
    public R reduceToRoot(
            ReduceOp op, int root, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        int code = op.code;
        return make("dist_reduce_to_root",
                (r, i, o, n, opt) -> DistModule.dist_reduce_to_root(r, code, root, i, o, n, opt),
                in, out, out == null ? in.size() : out.size(), options);
    }

    /** As {@link #allReduce}; every replica gets a part of each result, as large as its {@code out}. */
    public R reduceScatter(ReduceOp op, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        int code = op.code;
        return make("dist_reduce_scatter",
                (r, i, o, n, opt) -> DistModule.dist_reduce_scatter(r, code, i, o, n, opt),
                in, out, out.size(), options);
    }

    /** Joins the tensors of all replicas along the options' axis; every replica gets the results. */
    public R allGather(List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return listed("dist_all_gather", DistModule::dist_all_gather, in, out, options);
    }

    /** As {@link #allGather}; the root gets the results: {@code out} may be null elsewhere. */
    public R gatherToRoot(int root, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return rooted("dist_gather_to_root",
                (r, i, o, n, opt) -> DistModule.dist_gather_to_root(r, root, i, o, n, opt), in, out, options);
    }

    /** Gives every replica the root's tensors, in place. */
    public R broadcast(int root, List<Tensor> data, CollectiveOptions options) {
        return broadcast(root, Objects.requireNonNull(data, "data"), data, options);
    }

    /** Gives every replica the root's tensors: {@code in} may be null elsewhere. */
    public R broadcast(int root, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return rooted("dist_broadcast",
                (r, i, o, n, opt) -> DistModule.dist_broadcast(r, root, i, o, n, opt), in, out, options);
    }

    /** Gives every replica a part of each of the root's tensors: {@code in} may be null elsewhere. */
    public R scatterFromRoot(int root, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return rooted("dist_scatter_from_root",
                (r, i, o, n, opt) -> DistModule.dist_scatter_from_root(r, root, i, o, n, opt),
                in, out, options);
    }

    /** Every replica gives every replica a part of its tensors: equal ones, or the options' splits. */
    public R allToAll(List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return listed("dist_all_to_all", DistModule::dist_all_to_all, in, out, options);
    }

    /** Reduces each tensor over the replicas up to each one. */
    public R scan(ReduceOp op, ScanKind kind, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        int code = op.code;
        return listed("dist_scan",
                (r, i, o, n, opt) -> DistModule.dist_scan(r, code, kind.code, i, o, n, opt),
                in, out, options);
    }

    /**
     * Every replica gives its tensors to one other.
     *
     * @param destination who gets this replica's tensors; -1: nobody
     * @param source whose tensors it gets; -1: nobody's, and {@code out} becomes 0
     */
    public R permute(
            int destination, int source, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return listed("dist_permute",
                (r, i, o, n, opt) -> DistModule.dist_permute(r, destination, source, i, o, n, opt),
                in, out, options);
    }

    /** Returns, or ends, when every replica has come. What each wrote before, all can read after. */
    public R barrier(CollectiveOptions options) {
        return make(
                "dist_barrier", (r, i, o, n, opt) -> DistModule.dist_barrier(r, opt), null, null, 0, options);
    }
}
