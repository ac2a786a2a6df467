// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// NoPrefetch is the value of DatasetOptions.Prefetch that disables making batches ahead.
const NoPrefetch = -1

// InputContext describes the part of the input for which a function makes a dataset (TensorFlow:
// tf.distribute.InputContext).
type InputContext struct {
	NumInputPipelines int // one per worker or one per replica
	InputPipelineID   int // index of this pipeline, from 0
	NumReplicasInSync int // number of replicas of all workers
}

// PerReplicaBatchSize returns one replica's share of a global batch. It fails if the size is not a multiple
// of the number of replicas.
func (c InputContext) PerReplicaBatchSize(globalBatchSize int64) (size int64, err error) {
	var u uses
	native := cdist.NewDist_input_context()
	defer cdist.DeleteDist_input_context(native)
	native.SetNum_input_pipelines(u.int32("InputContext.NumInputPipelines", c.NumInputPipelines))
	native.SetInput_pipeline_id(u.int32("InputContext.InputPipelineID", c.InputPipelineID))
	native.SetNum_replicas_in_sync(u.int32("InputContext.NumReplicasInSync", c.NumReplicasInSync))
	if u.err != nil {
		return 0, u.err
	}
	err = fromNative(cdist.Dist_input_context_per_replica_batch_size(native, globalBatchSize, &size))
	return size, err
}

const mostSizes = 1 << 24

// BatchSizesForWorker returns the n sizes of the pieces into which one of several workers splits its batches.
// n must be numWorkers * numReplicasPerWorker.
func BatchSizesForWorker(globalBatchSize int64, numWorkers, numReplicasPerWorker, worker, n int) ([]int64, error) {
	if n < 0 || n > mostSizes {
		return nil, newError(ErrInvalidArgument, "n is %d, but must be numWorkers * numReplicasPerWorker, at most %d", n, mostSizes)
	}
	var u uses
	workers, replicas := u.int32("numWorkers", numWorkers), u.int32("numReplicasPerWorker", numReplicasPerWorker)
	which := u.int32("worker", worker)
	if u.err != nil {
		return nil, u.err
	}
	sizes := make([]int64, n, n+1)
	err := cdist.Dist_batch_sizes_for_worker(globalBatchSize, workers, replicas, which, sizes[:n:n+1], int64(n))
	if err != nil {
		return nil, fromNative(err)
	}
	return sizes, nil
}
