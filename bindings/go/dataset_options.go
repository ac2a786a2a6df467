// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// NoPrefetch is the value of DatasetOptions.Prefetch that disables making batches ahead.
const NoPrefetch = -1

// DatasetOptions specifies how batches are made of a source's elements. The zero value selects the defaults.
type DatasetOptions struct {
	// GlobalBatchSize is the number of elements per batch for all replicas together. If it is 0, the source's
	// elements already are global batches, which are split as they are.
	GlobalBatchSize int64
	DropRemainder   bool // omit a last batch that is not full
	Shuffle         bool // use a different order in every pass, drawn from Seed and the number of the pass
	Seed            uint64
	Prefetch        int // batches made ahead; NoPrefetch = none; 0 = one if libdist measures that this is faster

	ShardPolicy ShardPolicy // how the source is divided among workers
	NumWorkers  int         // number of workers that read this dataset together; 0 = those of the strategy
	WorkerIndex int         // index of this worker, if NumWorkers is set
	// WorkerBatches makes GlobalBatchSize count the elements of one worker; ShardData then distributes whole
	// batches. If it is false, every batch is split over all workers.
	WorkerBatches bool
	// AsOneProcess gives every replica what it would get in one process with all replicas of all workers, so
	// that training produces the same bits however replicas are divided among workers. Every worker then reads
	// the whole source. It requires ShardAuto or ShardData. If it is false, workers take turns at the pieces of
	// a batch, as in TensorFlow.
	AsOneProcess bool
	// ShardHint states that the source must be sharded element by element before batches are made. It requires
	// the ShardHint policy.
	ShardHint  bool
	Interleave int // number of files read in turn, one element each; 0 or 1 = one file after another
	// StaticShapes states whether every batch has the same shape (Yes) or the last ones may be smaller (No).
	// DefaultChoice derives this from DropRemainder.
	StaticShapes    Choice
	ReplicationMode InputMode // PerReplica only for NewDatasetFromFunction, on mirrored strategies
	// BatchSizes lists the sizes, in examples, of consecutive pieces, repeated cyclically. If it is nil, batches
	// are split evenly.
	BatchSizes []int64
}

// native passes the options to a creating function; o may be nil.
func (o *DatasetOptions) native(create func(cdist.Dist_dataset_options) error) error {
	var u uses
	native := cdist.NewDist_dataset_options()
	defer cdist.DeleteDist_dataset_options(native)
	if o != nil {
		native.SetGlobal_batch_size(o.GlobalBatchSize)
		native.SetDrop_remainder(intOf(o.DropRemainder))
		native.SetShuffle(intOf(o.Shuffle))
		native.SetSeed(o.Seed)
		native.SetPrefetch(u.int32("DatasetOptions.Prefetch", o.Prefetch))
		native.SetShard_policy(int32Of(int(o.ShardPolicy)))
		native.SetNum_workers(u.int32("DatasetOptions.NumWorkers", o.NumWorkers))
		native.SetWorker_index(u.int32("DatasetOptions.WorkerIndex", o.WorkerIndex))
		native.SetWorker_batches(intOf(o.WorkerBatches))
		native.SetAs_one_process(intOf(o.AsOneProcess))
		native.SetShard_hint(intOf(o.ShardHint))
		native.SetInterleave(u.int32("DatasetOptions.Interleave", o.Interleave))
		native.SetStatic_shapes(o.StaticShapes.native())
		native.SetReplication_mode(int32Of(int(o.ReplicationMode)))
		if o.BatchSizes != nil {
			// NULL is "evenly"; an empty list is not.
			native.Set_batch_sizes(append([]int64{}, o.BatchSizes...), int64(len(o.BatchSizes)))
		}
	}
	if u.err != nil {
		return u.err
	}
	return create(native)
}

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

// BatchSizesForWorker returns the n sizes of the pieces into which one of several workers splits its batches.
// n must be numWorkers * numReplicasPerWorker.
func BatchSizesForWorker(globalBatchSize int64, numWorkers, numReplicasPerWorker, worker, n int) ([]int64, error) {
	if n < 0 {
		return nil, newError(ErrInvalidArgument, "%d sizes are wanted: give numWorkers * numReplicasPerWorker", n)
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
