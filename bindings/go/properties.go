// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"time"

	"libdist.example/dist/internal/cdist"
)

// Properties says what a strategy is, in TensorFlow's words (of tf.distribute.StrategyExtended).
type Properties struct {
	Kind                Kind
	NumReplicas         int // of all workers
	NumParameterDevices int
	NumWorkers          int  // 1 but for MultiWorkerMirrored
	InMultiWorkerMode   bool // it is a task of a cluster, though there may be no other
	RequireStaticShapes bool // false: batches and gathered values may differ in size
	UseMergeCall        bool // replicas may call MergeCall
	BetweenGraph        bool // variables are kept away from the replicas, or each worker has a program of its own
	ShouldInit          bool // this worker initializes variables
	ShouldCheckpoint    bool // this worker writes checkpoints: the chief
	ShouldSaveSummary   bool // this worker writes summaries: the chief
	GlobalBatchSize     bool // a batch is for all replicas together, and is divided
	Worker              int  // which of the cluster's this is, 0 for the chief; reports name workers so
	NumLocalReplicas    int  // of this worker
	FirstReplica        int  // the id of the first of these
	Generation          int  // how often its workers have re-formed: Strategy.Reform
	NumJoined           int  // workers that were not in the generation before
	NumLeft             int  // and those of it that are not in this one; 0 on one that has joined
}

// Query says what the strategy is.
func (s *Strategy) Query() (Properties, error) {
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
	}, nil
}

// CommunicationOptions say how a program asks its collectives to be done (TensorFlow: CommunicationOptions).
type CommunicationOptions struct {
	Implementation Communication
	BytesPerPack   int64         // a planned list is cut into packs of about this size; 0: not given
	Timeout        time.Duration // longest wait for a peer; NoTimeout: no limit; 0: not given, unless HasTimeout says so
	HasTimeout     bool          // Timeout is given even where it is 0, which is no limit too
}

// native is nil for nil; the caller deletes it.
func (o *CommunicationOptions) native() cdist.Dist_communication_options {
	if o == nil {
		return nil
	}
	native := cdist.NewDist_communication_options()
	native.SetImplementation(int32Of(int(o.Implementation)))
	native.SetBytes_per_pack(o.BytesPerPack)
	native.SetTimeout_ns(int64(o.Timeout))
	native.SetHas_timeout(intOf(o.HasTimeout))
	return native
}

func deleteCommunication(native cdist.Dist_communication_options) {
	if native != nil {
		cdist.DeleteDist_communication_options(native)
	}
}

// Merge is o overridden by what over gives; over may be nil: a checked copy of o.
func (o *CommunicationOptions) Merge(over *CommunicationOptions) (*CommunicationOptions, error) {
	base, top := o.native(), over.native()
	defer deleteCommunication(base)
	defer deleteCommunication(top)
	out := cdist.NewDist_communication_options()
	defer cdist.DeleteDist_communication_options(out)
	if err := cdist.Dist_communication_options_merge(base, top, out); err != nil {
		return nil, fromNative(err)
	}
	return &CommunicationOptions{
		Implementation: Communication(out.GetImplementation()),
		BytesPerPack:   out.GetBytes_per_pack(),
		Timeout:        time.Duration(out.GetTimeout_ns()),
		HasTimeout:     out.GetHas_timeout() != 0,
	}, nil
}

// Describe writes the options as TensorFlow prints them.
func (o *CommunicationOptions) Describe() (string, error) {
	native := o.native()
	defer deleteCommunication(native)
	return textOf(func(room []byte) error {
		return cdist.Dist_communication_options_describe(native, room, int64(len(room)))
	})
}
