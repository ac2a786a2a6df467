// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"time"

	"libdist.example/dist/internal/cdist"
)

// Properties describes a strategy, with the names of TensorFlow's tf.distribute.StrategyExtended.
type Properties struct {
	Kind                Kind
	NumReplicas         int // of all workers
	NumParameterDevices int
	NumWorkers          int  // 1 except for MultiWorkerMirrored
	InMultiWorkerMode   bool // the strategy is a task of a cluster, even if it is the only one
	RequireStaticShapes bool // always false: sizes of batches and of gathered values may vary
	UseMergeCall        bool // always true: replicas may call MergeCall
	BetweenGraph        bool // variables are apart from the replicas, or each worker runs its own program
	ShouldInit          bool // this worker initializes variables
	ShouldCheckpoint    bool // this worker writes checkpoints: the chief
	ShouldSaveSummary   bool // this worker writes summaries: the chief
	GlobalBatchSize     bool // always true: a batch is for all replicas together and is divided among them
	Worker              int  // number of this worker, 0 for the chief; reports use these numbers
	NumLocalReplicas    int  // of this worker
	FirstReplica        int  // id of this worker's first replica
	Generation          int  // number of times the workers have re-formed; see Strategy.Reform
	NumJoined           int  // workers that were not in the previous generation
	NumLeft             int  // workers of the previous generation that have left; 0 on a worker that has joined
	MaxContributions    int  // limit for the tensors in one sum: see Contributions
}

// Properties returns the properties of the strategy.
func (s *Strategy) Properties() (Properties, error) {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return Properties{}, u.err
	}
	p := cdist.NewDist_strategy_properties()
	defer cdist.DeleteDist_strategy_properties(p)
	if err := cdist.Dist_strategy_query(native, p); err != nil {
		return Properties{}, fromNative(err)
	}
	return Properties{
		Kind:                Kind(p.GetKind()),
		NumReplicas:         p.GetNum_replicas(),
		NumParameterDevices: p.GetNum_parameter_devices(),
		NumWorkers:          p.GetNum_workers(),
		InMultiWorkerMode:   p.GetIn_multi_worker_mode() != 0,
		RequireStaticShapes: p.GetRequire_static_shapes() != 0,
		UseMergeCall:        p.GetUse_merge_call() != 0,
		BetweenGraph:        p.GetBetween_graph() != 0,
		ShouldInit:          p.GetShould_init() != 0,
		ShouldCheckpoint:    p.GetShould_checkpoint() != 0,
		ShouldSaveSummary:   p.GetShould_save_summary() != 0,
		GlobalBatchSize:     p.GetGlobal_batch_size() != 0,
		Worker:              p.GetWorker(),
		NumLocalReplicas:    p.GetNum_local_replicas(),
		FirstReplica:        p.GetFirst_replica(),
		Generation:          p.GetGeneration(),
		NumJoined:           p.GetNum_joined(),
		NumLeft:             p.GetNum_left(),
		MaxContributions:    p.GetMax_contributions(),
	}, nil
}

func deleteCommunication(native cdist.Dist_communication_options) {
	if native != nil {
		cdist.DeleteDist_communication_options(native)
	}
}

// Merge returns a copy of o in which the fields that are set in over replace those of o. over may be nil; the
// result is then a checked copy of o.
func (o *CommunicationOptions) Merge(over *CommunicationOptions) (*CommunicationOptions, error) {
	var u uses
	defer u.end()
	base, top := o.native(&u), over.native(&u)
	defer deleteCommunication(base)
	defer deleteCommunication(top)
	if u.err != nil {
		return nil, u.err
	}
	out := cdist.NewDist_communication_options()
	defer cdist.DeleteDist_communication_options(out)
	if err := cdist.Dist_communication_options_merge(base, top, out); err != nil {
		return nil, fromNative(err)
	}
	return &CommunicationOptions{BytesPerPack: out.GetBytes_per_pack(), Timeout: time.Duration(out.GetTimeout_ns())}, nil
}
