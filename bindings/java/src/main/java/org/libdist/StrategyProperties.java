// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_strategy_properties;

/**
 * The properties of a strategy, named as in TensorFlow's tf.distribute.StrategyExtended.
 *
 * @param kind determines where values and variables are placed
 * @param numReplicas number of replicas in sync, over all workers
 * @param numParameterDevices number of devices that hold variables
 * @param numWorkers 1 except for MULTI_WORKER_MIRRORED
 * @param inMultiWorkerMode whether the strategy is a task of a cluster, even if it is the only one
 * @param requireStaticShapes whether batches and gathered values must have the same size; always false
 * @param useMergeCall whether replicas may call {@link Replica#mergeCall}; always true
 * @param betweenGraph whether variables are apart from the replicas, or each worker runs its own program
 * @param shouldInit whether this worker initializes variables
 * @param shouldCheckpoint whether this worker writes checkpoints: the chief does
 * @param shouldSaveSummary whether this worker writes summaries: the chief does
 * @param globalBatchSize whether a batch is for all replicas together and is divided among them; always true
 * @param worker number of this worker, 0 for the chief; reports use these numbers
 * @param numLocalReplicas number of replicas of this worker
 * @param firstReplica id of this worker's first replica
 * @param generation number of times the workers have re-formed; see {@link Strategy#reform()}
 * @param numJoined workers that were not in the previous generation
 * @param numLeft workers of the previous generation that are not in this one; 0 on a worker that has joined
 * @param maxContributions limit for the tensors in one sum
 */
public record StrategyProperties(StrategyKind kind, int numReplicas, int numParameterDevices, int numWorkers,
        boolean inMultiWorkerMode, boolean requireStaticShapes, boolean useMergeCall, boolean betweenGraph,
        boolean shouldInit, boolean shouldCheckpoint, boolean shouldSaveSummary, boolean globalBatchSize,
        int worker, int numLocalReplicas, int firstReplica, int generation, int numJoined, int numLeft,
        int maxContributions) {
    static StrategyProperties of(dist_strategy_properties p) {
        return new StrategyProperties(StrategyKind.of(p.getKind()), p.getNum_replicas(), p.getNum_parameter_devices(),
                p.getNum_workers(), p.getIn_multi_worker_mode() != 0, p.getRequire_static_shapes() != 0,
                p.getUse_merge_call() != 0, p.getBetween_graph() != 0, p.getShould_init() != 0,
                p.getShould_checkpoint() != 0, p.getShould_save_summary() != 0,
                p.getGlobal_batch_size() != 0, p.getWorker(), p.getNum_local_replicas(),
                p.getFirst_replica(), p.getGeneration(), p.getNum_joined(), p.getNum_left(),
                p.getMax_contributions());
    }
}
