// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/**
 * A number that is accumulated over the updates of all replicas, step after step. Each replica adds to its
 * own copy without waiting. The bits of the result depend only on the numbers that were added.
 */
public final class Metric extends NativeObject {
    private Metric(Native owner) {
        super(owner);
    }

    /** Creates a metric without updates. */
    public static Metric create(Strategy strategy, MetricKind kind, String name) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_metric_create(uses.of(strategy, "strategy"), kind.code, Texts.orNull(name), out);
            return new Metric(new Native("metric", out[0], DistModule::dist_metric_destroy));
        }
    }

    /**
     * Adds a batch to this replica's copy.
     *
     * @param labels ACCURACY: the expected values of the predictions; otherwise null
     * @param weights weights of the values; null means all 1
     */
    public void update(Replica replica, Tensor values, Tensor labels, Tensor weights) {
        try (Uses uses = new Uses()) {
            DistModule.dist_metric_update(replica.active("dist_metric_update"), uses.of(this),
                    uses.tensor(values, "values"), uses.tensorOrNull(labels), uses.tensorOrNull(weights));
        }
    }

    /** Same as {@link #update(Replica, Tensor, Tensor, Tensor)}, for SUM and MEAN without weights. */
    public void update(Replica replica, Tensor values) {
        update(replica, values, null, null);
    }

    /** Returns the metric over all updates of all replicas since it was created or reset. */
    public double result(Strategy strategy) {
        try (Uses uses = new Uses()) {
            double[] out = new double[1];
            DistModule.dist_metric_result(uses.waiting(strategy), uses.of(this), out);
            return out[0];
        }
    }

    /** Discards all updates of all replicas. */
    public void reset(Strategy strategy) {
        try (Uses uses = new Uses()) {
            DistModule.dist_metric_reset(uses.of(strategy, "strategy"), uses.of(this));
        }
    }

    /** Returns what the metric computes. */
    public MetricKind kind() {
        return MetricKind.of(askInt(DistModule::dist_metric_kind_of));
    }

    /** Returns the name of the metric. */
    public String name() {
        return ask(handle -> Texts.of(DistModule.dist_metric_name(handle)));
    }

    /** Returns the variable that holds the metric's state, for checkpoints. */
    public Variable variable() {
        return ask(handle -> Variable.found(DistModule.dist_metric_variable(handle)).orElseThrow());
    }
}
