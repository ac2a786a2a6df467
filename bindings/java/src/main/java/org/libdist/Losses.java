// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** Computes a replica's share of a loss. */
public final class Losses {
    private Losses() {}

    /**
     * Computes out = sum of w[i] * loss[i], divided by the size of the global batch. The sum over all
     * replicas is the average over the global batch.
     *
     * @param replica may be null if the size of the global batch is given
     * @param sampleWeight weights; null means all 1
     * @param globalBatchSize 0 means the loss's first dimension times the number of replicas
     * @param out a scalar of the loss's dtype
     */
    public static void averageLoss(
            Replica replica, Tensor perExampleLoss, Tensor sampleWeight, long globalBatchSize, Tensor out) {
        try (Uses uses = new Uses()) {
            DistModule.dist_average_loss(replica == null ? 0 : replica.active("dist_average_loss"),
                    uses.tensor(perExampleLoss, "perExampleLoss"), uses.tensorOrNull(sampleWeight),
                    globalBatchSize, uses.written(out, "out"));
        }
    }

    /**
     * Computes out = the sum of a loss that is the same on all replicas, divided by the number of replicas.
     */
    public static void scaleRegularizationLoss(Replica replica, Tensor loss, Tensor out) {
        try (Uses uses = new Uses()) {
            DistModule.dist_scale_regularization_loss(
                    replica == null ? 0 : replica.active("dist_scale_regularization_loss"),
                    uses.tensor(loss, "loss"), uses.written(out, "out"));
        }
    }
}
