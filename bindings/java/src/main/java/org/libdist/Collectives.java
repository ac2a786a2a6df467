// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_collective_options;

/**
 * The collectives on lists of tensors: blocking ({@link Replica} itself), asynchronous ({@link
 * Replica#async}) or planned ({@link Replica#planned}). All replicas of a run must call the same collectives
 * in the same order. If a replica calls something else, fails, or does not arrive in time, all of them throw
 * the same DistException.
 *
 * <p>{@code in} and {@code out} are lists of the same length. If they have the same tensors, the operation is
 * in place.
 *
 * @param <R> the result of a collective: nothing, work in progress, or a plan
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

    /** Reduces each tensor over all replicas, in place. Every replica gets the results. */
    public R allReduce(ReduceOp op, List<Tensor> data, CollectiveOptions options) {
        return allReduce(op, Objects.requireNonNull(data, "data"), data, options);
    }

    /**
     * Reduces each tensor over all replicas. Every replica gets the results. By default, elements are folded from left
     * to right by replica id: the bits are the same on every replica and in every run.
     */
    public R allReduce(ReduceOp op, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        int code = op.code;
        return make("dist_all_reduce",
                (r, i, o, n, opt) -> DistModule.dist_all_reduce(r, code, i, o, n, opt),
                in, out, out.size(), options);
    }

    /**
     * Reduces each tensor like {@link #allReduce}. Only the root gets the results; {@code out} may be null
     * elsewhere.
     */
    public R reduceToRoot(
            ReduceOp op, int root, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        int code = op.code;
        return make("dist_reduce_to_root",
                (r, i, o, n, opt) -> DistModule.dist_reduce_to_root(r, code, root, i, o, n, opt),
                in, out, out == null ? (int) (in.size() / CollectiveChecks.numLists(options)) : out.size(), options);
    }

    /**
     * Reduces each tensor like {@link #allReduce}. Every replica gets a part of each result, of the size of
     * its {@code out}.
     */
    public R reduceScatter(ReduceOp op, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        int code = op.code;
        return make("dist_reduce_scatter",
                (r, i, o, n, opt) -> DistModule.dist_reduce_scatter(r, code, i, o, n, opt),
                in, out, out.size(), options);
    }

    /**
     * Concatenates the tensors of all replicas along the axis of the options. Every replica gets the results.
     */
    public R allGather(List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return listed("dist_all_gather", DistModule::dist_all_gather, in, out, options);
    }

    /**
     * Concatenates tensors like {@link #allGather}. Only the root gets the results; {@code out} may be null
     * elsewhere.
     */
    public R gatherToRoot(int root, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return rooted("dist_gather_to_root",
                (r, i, o, n, opt) -> DistModule.dist_gather_to_root(r, root, i, o, n, opt), in, out, options);
    }

    /** Copies the root's tensors to every replica, in place. */
    public R broadcast(int root, List<Tensor> data, CollectiveOptions options) {
        return broadcast(root, Objects.requireNonNull(data, "data"), data, options);
    }

    /** Copies the root's tensors to every replica. {@code in} may be null on other replicas. */
    public R broadcast(int root, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return rooted("dist_broadcast",
                (r, i, o, n, opt) -> DistModule.dist_broadcast(r, root, i, o, n, opt), in, out, options);
    }

    /** Gives every replica a part of each of the root's tensors. {@code in} may be null on other replicas. */
    public R scatterFromRoot(int root, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return rooted("dist_scatter_from_root",
                (r, i, o, n, opt) -> DistModule.dist_scatter_from_root(r, root, i, o, n, opt),
                in, out, options);
    }

    /** Sends a part of each replica's tensors to every replica: equal parts, or the splits of the options. */
    public R allToAll(List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return listed("dist_all_to_all", DistModule::dist_all_to_all, in, out, options);
    }

    /** Reduces each tensor over the replicas up to this one. */
    public R scan(ReduceOp op, ScanKind kind, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        int code = op.code;
        return listed("dist_scan",
                (r, i, o, n, opt) -> DistModule.dist_scan(r, code, kind.code, i, o, n, opt),
                in, out, options);
    }

    /**
     * Sends each replica's tensors to one other replica.
     *
     * @param destination the rank that receives this replica's tensors; -1 means none
     * @param source the rank whose tensors this replica receives; -1 means none, and {@code out} is set to 0
     */
    public R permute(
            int destination, int source, List<Tensor> in, List<Tensor> out, CollectiveOptions options) {
        return listed("dist_permute",
                (r, i, o, n, opt) -> DistModule.dist_permute(r, destination, source, i, o, n, opt),
                in, out, options);
    }

    /**
     * Waits until every member has arrived. All writes that a member made before the barrier are visible to
     * all members after it.
     */
    public R barrier(CollectiveOptions options) {
        return make(
                "dist_barrier", (r, i, o, n, opt) -> DistModule.dist_barrier(r, opt), null, null, 0, options);
    }
}
