// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.dist_input_context;

/**
 * For which part of the input a function makes a dataset.
 *
 * @param numInputPipelines one a worker, or one a replica
 * @param inputPipelineId which of them
 * @param numReplicasInSync the replicas of all workers
 */
public record InputContext(int numInputPipelines, int inputPipelineId, int numReplicasInSync) {
    /**
     * What one replica gets of a global batch.
     *
     * @throws DistException INVALID_ARGUMENT a size that is no multiple of the number of replicas
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
