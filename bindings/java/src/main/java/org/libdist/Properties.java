// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_strategy_properties;

/**
 * What a strategy is, in TensorFlow's words (of tf.distribute.StrategyExtended).
 *
 * @param kind how values and variables are placed
 * @param numReplicas how many are in sync
 * @param numParameterDevices how many devices variables are on
 * @param numWorkers processes
 * @param inMultiWorkerMode more than one process
 * @param requireStaticShapes whether batches and gathered values must not differ in size
 * @param useMergeCall whether replicas may call {@link Replica#mergeCall}
 * @param betweenGraph variables are kept away from the replicas: central storage
 * @param shouldInit this process initializes variables
 * @param shouldCheckpoint this process writes checkpoints
 * @param shouldSaveSummary this process writes summaries
 * @param globalBatchSize a batch is for all replicas together, and is divided
 */
public record Properties(StrategyKind kind, int numReplicas, int numParameterDevices, int numWorkers,
        boolean inMultiWorkerMode, boolean requireStaticShapes, boolean useMergeCall, boolean betweenGraph,
        boolean shouldInit, boolean shouldCheckpoint, boolean shouldSaveSummary, boolean globalBatchSize) {
    static Properties of(dist_strategy_properties p) {
        return new Properties(StrategyKind.of(p.getKind()), p.getNum_replicas(), p.getNum_parameter_devices(),
                p.getNum_workers(), p.getIn_multi_worker_mode() != 0, p.getRequire_static_shapes() != 0,
                p.getUse_merge_call() != 0, p.getBetween_graph() != 0, p.getShould_init() != 0,
                p.getShould_checkpoint() != 0, p.getShould_save_summary() != 0,
                p.getGlobal_batch_size() != 0);
    }
}
