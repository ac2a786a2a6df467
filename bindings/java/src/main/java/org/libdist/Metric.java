// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/**
 * A number that is gathered over the updates of all replicas, step after step. Each replica adds to its own
 * copy and waits for nobody; the bits of the result depend on what was added alone.
 */
public final class Metric extends NativeObject {
    private Metric(Native owner) {
        super(owner);
    }

    /** A metric without any update. */
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
     * @param labels ACCURACY: what the predictions should be; else null
     * @param weights of the values; null: all 1
     */
    public void update(Replica replica, Tensor values, Tensor labels, Tensor weights) {
        try (Uses uses = new Uses()) {
            DistModule.dist_metric_update(replica.active("dist_metric_update"), uses.of(this),
                    uses.tensor(values, "values"), uses.tensorOrNull(labels), uses.tensorOrNull(weights));
        }
    }

    /** As {@link #update(Replica, Tensor, Tensor, Tensor)}, of SUM and MEAN without weights. */
    public void update(Replica replica, Tensor values) {
        update(replica, values, null, null);
    }

    /** The metric over all updates of all replicas since it was made or reset. */
    public double result(Strategy strategy) {
        try (Uses uses = new Uses()) {
            double[] out = new double[1];
            DistModule.dist_metric_result(uses.waiting(strategy), uses.of(this), out);
            return out[0];
        }
    }

    /** Forgets all updates of all replicas. */
    public void reset(Strategy strategy) {
        try (Uses uses = new Uses()) {
            DistModule.dist_metric_reset(uses.of(strategy, "strategy"), uses.of(this));
        }
    }

    /** What it computes. */
    public MetricKind kind() {
        return MetricKind.of(askInt(DistModule::dist_metric_kind));
    }

    /** Its name. */
    public String name() {
        return ask(handle -> Texts.of(DistModule.dist_metric_name(handle)));
    }

    /** The variable that holds its state, for checkpoints. */
    public Variable variable() {
        return ask(handle -> Variable.found(DistModule.dist_metric_variable(handle)).orElseThrow());
    }
}
