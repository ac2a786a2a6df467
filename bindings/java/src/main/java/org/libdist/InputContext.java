// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.dist_input_context;

/**
 * The part of the input for which a function makes a dataset.
 *
 * @param numInputPipelines one per worker or one per replica
 * @param inputPipelineId index of this pipeline
 * @param numReplicasInSync number of replicas of all workers
 */
public record InputContext(int numInputPipelines, int inputPipelineId, int numReplicasInSync) {
    /**
     * Returns one replica's share of a global batch.
     *
     * @throws DistException INVALID_ARGUMENT the size is not a multiple of the number of replicas
     */
    public long perReplicaBatchSize(long globalBatchSize) {
        dist_input_context context = new dist_input_context();
        try {
            context.setNum_input_pipelines(numInputPipelines);
            context.setInput_pipeline_id(inputPipelineId);
            context.setNum_replicas_in_sync(numReplicasInSync);
            long[] out = new long[1];
            DistModule.dist_input_context_per_replica_batch_size(context, globalBatchSize, out);
            return out[0];
        } finally {
            context.delete();
        }
    }
}
