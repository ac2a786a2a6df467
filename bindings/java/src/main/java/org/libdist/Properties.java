// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_strategy_properties;

/**
 * What a strategy is, in TensorFlow's words (of tf.distribute.StrategyExtended).
 *
 * @param kind how values and variables are placed
 * @param numReplicas how many are in sync, those of all workers
 * @param numParameterDevices how many devices variables are on
 * @param numWorkers 1 but for MULTI_WORKER_MIRRORED
 * @param inMultiWorkerMode it is a task of a cluster, though there may be no other
 * @param requireStaticShapes whether batches and gathered values must not differ in size
 * @param useMergeCall whether replicas may call {@link Replica#mergeCall}
 * @param betweenGraph variables are kept away from the replicas, or each worker has a program of its own
 * @param shouldInit this worker initializes variables
 * @param shouldCheckpoint this worker writes checkpoints: the chief
 * @param shouldSaveSummary this worker writes summaries: the chief
 * @param globalBatchSize a batch is for all replicas together, and is divided
 * @param worker which of the cluster's this is, 0 for the chief; reports name workers so
 * @param numLocalReplicas of this worker
 * @param firstReplica the id of the first of these
 * @param generation how often its workers have re-formed: {@link Strategy#reform()}
 * @param numJoined workers that were not in the generation before
 * @param numLeft and those of it that are not in this one; 0 on one that has joined
 */
public record Properties(StrategyKind kind, int numReplicas, int numParameterDevices, int numWorkers,
        boolean inMultiWorkerMode, boolean requireStaticShapes, boolean useMergeCall, boolean betweenGraph,
        boolean shouldInit, boolean shouldCheckpoint, boolean shouldSaveSummary, boolean globalBatchSize,
        int worker, int numLocalReplicas, int firstReplica, int generation, int numJoined, int numLeft) {
    static Properties of(dist_strategy_properties p) {
        return new Properties(StrategyKind.of(p.getKind()), p.getNum_replicas(), p.getNum_parameter_devices(),
                p.getNum_workers(), p.getIn_multi_worker_mode() != 0, p.getRequire_static_shapes() != 0,
                p.getUse_merge_call() != 0, p.getBetween_graph() != 0, p.getShould_init() != 0,
                p.getShould_checkpoint() != 0, p.getShould_save_summary() != 0,
                p.getGlobal_batch_size() != 0, p.getWorker(), p.getNum_local_replicas(),
                p.getFirst_replica(), p.getGeneration(), p.getNum_joined(), p.getNum_left());
    }
}
