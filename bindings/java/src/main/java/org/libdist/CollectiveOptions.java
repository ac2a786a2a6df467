// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.dist_collective_options;

/**
 * Options of one collective. Immutable: each method returns a new set of options, so create one outside the
 * loop that uses it.
 */
public final class CollectiveOptions {
    /** The default options: no tag, the strategy's timeout, all replicas. */
    public static final CollectiveOptions DEFAULT = new CollectiveOptions();

    // What the quick forms of collectives read.
    byte[] tag;
    long timeoutNanos;
    boolean simple = true; // nothing but tag and timeout

    private Numerics numerics = Numerics.ORDERED;
    private Group group;
    private double[] weights;
    private int contributions;
    private ReduceFunction reducer;
    private long[] splits;
    private int axis;
    private long bytesPerPack;
    private Cancel cancel;
    private long elementBytes;

    private CollectiveOptions() {}

    private CollectiveOptions(CollectiveOptions other, boolean simple) {
        tag = other.tag;
        timeoutNanos = other.timeoutNanos;
        this.simple = simple;
        numerics = other.numerics;
        group = other.group;
        weights = other.weights;
        contributions = other.contributions;
        reducer = other.reducer;
        splits = other.splits;
        axis = other.axis;
        bytesPerPack = other.bytesPerPack;
        cancel = other.cancel;
        elementBytes = other.elementBytes;
    }

    private CollectiveOptions more() {
        return new CollectiveOptions(this, false);
    }

    /** Sets a name for error reports. It must be the same on all replicas. */
    public CollectiveOptions tag(String tag) {
        CollectiveOptions options = new CollectiveOptions(this, simple);
        options.tag = Texts.bytes(tag, "tag");
        return options;
    }

    /** Sets the longest wait for a peer; zero selects the strategy's, and a negative value means no limit. */
    public CollectiveOptions timeout(Duration timeout) {
        CollectiveOptions options = new CollectiveOptions(this, simple);
        options.timeoutNanos = Durations.nanos(timeout, "timeout");
        return options;
    }

    /**
     * Sets the order of additions in a sum, which determines its bits. ORDERED selects the strategy's
     * setting, whose default is ORDERED too.
     */
    public CollectiveOptions numerics(Numerics numerics) {
        CollectiveOptions options = more();
        options.numerics = Objects.requireNonNull(numerics, "numerics");
        return options;
    }

    /** Sets the participating group. Roots, ranks and sizes are then those of the group. */
    public CollectiveOptions group(Group group) {
        CollectiveOptions options = more();
        options.group = Objects.requireNonNull(group, "group");
        return options;
    }

    /**
     * MEAN: sets one weight, at least 0, for each contribution of this replica. Either all members set
     * weights or none.
     */
    public CollectiveOptions weights(double... weights) {
        CollectiveOptions options = more();
        options.weights = weights.clone();
        return options;
    }

    /**
     * Sets the number of tensors that this replica adds to each sum. The list of inputs is that many times as
     * long.
     */
    public CollectiveOptions contributions(int contributions) {
        CollectiveOptions options = more();
        options.contributions = contributions;
        return options;
    }

    /** Sets the operator of {@link ReduceOp#USER}. It must be the same on all members. */
    public CollectiveOptions reducer(ReduceFunction reducer) {
        CollectiveOptions options = more();
        options.reducer = Objects.requireNonNull(reducer, "reducer");
        return options;
    }

    /** allToAll: sets one size for each member, into which the input is split along the axis. */
    public CollectiveOptions splits(long... splits) {
        CollectiveOptions options = more();
        options.splits = splits.clone();
        return options;
    }

    /** Sets the dimension along which tensors are split or joined. A negative axis counts from the end. */
    public CollectiveOptions axis(int axis) {
        CollectiveOptions options = more();
        options.axis = axis;
        return options;
    }

    /** Sets the approximate pack size of a planned list; 0 selects the strategy's, or one pack. */
    public CollectiveOptions bytesPerPack(long bytesPerPack) {
        CollectiveOptions options = more();
        options.bytesPerPack = bytesPerPack;
        return options;
    }

    /**
     * Sets the size of one element of {@link #reducer}, a multiple of the dtype's size. It must be the same
     * on all members. Tensors are never split inside such an element. 0 selects the dtype's size.
     */
    public CollectiveOptions elementBytes(long elementBytes) {
        CollectiveOptions options = more();
        options.elementBytes = elementBytes;
        return options;
    }

    /** Sets an object that cancels the group's rounds in this run, on all members. */
    public CollectiveOptions cancel(Cancel cancel) {
        CollectiveOptions options = more();
        options.cancel = Objects.requireNonNull(cancel, "cancel");
        return options;
    }

    /** Returns the reducer as a target of calls; null if there is none. */
    Target reducerTarget() {
        return reducer == null ? null : reducerTarget(reducer, elementBytes);
    }

    /** @param elementBytes of one of the reducer's elements; 0: the dtype's */
    static Target reducerTarget(ReduceFunction reducer, long elementBytes) {
        return new Target() {
            @Override
            void reduce(long acc, long in, long count, DType dtype) {
                long each = elementBytes == 0 ? 1 : elementBytes / dtype.sizeBytes();
                Elements sum = Elements.at(acc, count * each, dtype);
                Elements next = Elements.at(in, count * each, dtype);
                try {
                    reducer.call(sum, next);
                } finally {
                    sum.end();
                    next.end();
                }
            }
        };
    }

    /** @param reducerToken of {@link #reducerTarget}; 0: none */
    /** Returns how many lists like {@code out} there are in {@code in}. */
    int numLists() {
        return Math.max(1, contributions);
    }

    /** Refuses lists that C would read beyond: {@code in} has one list like {@code out} for each contribution. */
    void checkSizes(List<Tensor> in, List<Tensor> out, int numReplicas) {
        int lists = numLists();
        if (in != null && out != null && in.size() != lists * out.size()) {
            throw new IllegalArgumentException("in has " + in.size() + " tensors and out has " + out.size()
                    + ", but in must have " + (lists == 1 ? "as many as" : lists + " for each of") + " out");
        }
        int members = group == null ? numReplicas : group.size();
        if (splits != null && splits.length != members) {
            throw new IllegalArgumentException(
                    "splits has " + splits.length + " numbers, but must have one for each of " + members + " replicas");
        }
    }

    dist_collective_options toNative(Uses uses, long reducerToken) {
        dist_collective_options options = new dist_collective_options();
        uses.defer(options::delete);
        options.setTag(tag);
        options.setTimeout_ns(timeoutNanos);
        if (simple) {
            return options;
        }
        options.setNumerics(numerics.code);
        options.setGroup(uses.ofNullable(group));
        if (weights != null) {
            if (weights.length != numLists()) {
                throw new IllegalArgumentException("weights has " + weights.length + " numbers, but must have "
                        + numLists() + ", one for each contribution");
            }
            options.set_weights(weights, weights.length);
        }
        options.setContributions(contributions);
        if (reducerToken != 0) {
            options.set_reduce(reducerToken);
        }
        if (splits != null) {
            options.set_splits(splits, splits.length);
        }
        options.setAxis(axis);
        options.setBytes_per_pack(bytesPerPack);
        options.setCancel(uses.ofNullable(cancel));
        options.setReduce_element_bytes(elementBytes);
        return options;
    }
}
