// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// NoPrefetch is the number of batches that are made ahead where none are.
const NoPrefetch = -1

// DatasetOptions say how batches are made of a source's elements; zero fields mean the default.
type DatasetOptions struct {
	// GlobalBatchSize is how many elements a batch has for all replicas together; 0: the source's elements are global
	// batches already, and are split as they are.
	GlobalBatchSize int64
	DropRemainder   bool // leave out a last batch that is not full
	Shuffle         bool // another order in every pass, drawn from Seed and the pass's number
	Seed            uint64
	Prefetch        int // batches made ahead; 0: one where that is faster, as measured; NoPrefetch: none

	ShardPolicy ShardPolicy // what of the source goes to which worker
	NumWorkers  int         // that read this dataset together; 0: those of the strategy, and this one of them
	WorkerIndex int         // which of them this one is, where NumWorkers is given
	// WorkerBatches: GlobalBatchSize counts what one worker gets of a batch, and with ShardData whole batches are dealt
	// out; false: every batch is cut up for all workers.
	WorkerBatches bool
	// AsOneProcess: replica r of all workers gets what replica r of one process with all of them would, so that training has
	// the same bits however replicas are divided among workers; false: workers take turns at the pieces, as TensorFlow's do.
	// Every worker reads everything. Only with ShardAuto and ShardData.
	AsOneProcess bool
	// ShardHint: the source wants to be sharded element by element, before batches are made; only the policy ShardHint
	// does so, all else fails.
	ShardHint  bool
	Interleave int // files that are read in turn, an element each; 0 or 1: one file after another
	// StaticShapes: Yes: every batch has the same shape; No: the last ones may be smaller; DefaultChoice: as it follows
	// from DropRemainder.
	StaticShapes         Choice
	ReplicationMode      InputMode // PerReplica only of a function, on mirrored strategies
	FetchToDevice        Choice    // DefaultChoice: yes
	PlaceDatasetOnDevice bool      // no effect: the device is the host
	// BatchSizes are the examples of the 1st, 2nd, ... piece, again from the first after the last; nil: batches are cut
	// evenly.
	BatchSizes []int64
}

// native gives the options to a creation; nil options too.
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
		native.SetFetch_to_device(o.FetchToDevice.native())
		native.SetPlace_dataset_on_device(intOf(o.PlaceDatasetOnDevice))
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

// InputContext is for which part of the input a function makes a dataset (TensorFlow: tf.distribute.InputContext).
type InputContext struct {
	NumInputPipelines int // one a worker, or one a replica
	InputPipelineID   int
	NumReplicasInSync int
}

// PerReplicaBatchSize is what one replica gets of a global batch.
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

// BatchSizesForWorker are the n sizes of the pieces that one of several workers cuts its batches to; n is
// numWorkers * numReplicasPerWorker.
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
