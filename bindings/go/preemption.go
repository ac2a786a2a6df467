// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"slices"
	"time"

	"libdist.example/dist/internal/cdist"
)

// PreemptionOptions are the choices for a PreemptionHandler.
type PreemptionOptions struct {
	Path      string        // of the checkpoint, one file for all workers; "": the program saves
	Variables []*Variable   // that are in it; held
	Grace     time.Duration // how long the job may go on after the notice; 0: it saves and ends
}

// PreemptionHandler saves a checkpoint before the job loses a machine, as TensorFlow's PreemptionCheckpointHandler does.
// All workers make the same calls of its methods, but for Notify.
//
//	for handler.TotalRunCalls() < steps {
//		if err := handler.Run(ctx, trainStep); err != nil {
//			return err // with ErrCancelled: all is saved, end the program
//		}
//	}
type PreemptionHandler struct {
	object
	strategy *Strategy
}

// NewPreemptionHandler makes the handler of a training loop. Where the checkpoint is there, its values come to the
// variables, and its number of runs to the handler. options may be nil.
func (s *Strategy) NewPreemptionHandler(options *PreemptionOptions) (*PreemptionHandler, error) {
	if options == nil {
		options = &PreemptionOptions{}
	}
	var u uses
	defer u.end()
	strategy, path := u.busy(s), u.text(options.Path)
	handles := make([]int64, len(options.Variables))
	for i, v := range options.Variables {
		handles[i] = u.variable(v)
	}
	if u.err != nil {
		return nil, u.err
	}
	native := cdist.NewDist_preemption_options()
	defer cdist.DeleteDist_preemption_options(native)
	if path != "" {
		native.SetPath(path)
	}
	native.Set_variables(handles, int64(len(handles)))
	native.SetGrace_ns(int64(options.Grace))
	var out int64
	if err := cdist.Dist_preemption_handler_create(strategy, native, &out); err != nil {
		return nil, fromNative(err)
	}
	h := &PreemptionHandler{strategy: s}
	h.open(out, cdist.Dist_preemption_handler_destroy, []any{s, slices.Clone(options.Variables)})
	return h, nil
}

func (u *uses) preemptionHandler(h *PreemptionHandler) int64 {
	if h == nil {
		return 0
	}
	return u.take(&h.object, "preemption handler")
}

// Close ends the handler; its strategy and variables stay.
func (h *PreemptionHandler) Close() error {
	if h != nil {
		h.close()
	}
	return nil
}

// Notify says that this worker is to be preempted, from any goroutine: from one that gets SIGTERM by os/signal, say. It may
// be called again.
func (h *PreemptionHandler) Notify() error {
	var u uses
	defer u.end()
	native := u.preemptionHandler(h)
	if u.err == nil {
		cdist.Dist_preemption_notify(native)
	}
	return u.err
}

// Run is a step of the loop: SaveIfPreempted, Strategy.Run, and CountRun where that went well. With ErrCancelled, and no
// error of ctx, the job is preempted, and its checkpoint is saved: nothing was run.
func (h *PreemptionHandler) Run(ctx context.Context, fn ReplicaFunc) error {
	state, err := h.SaveIfPreempted(ctx)
	if err != nil {
		return err
	}
	if state == PreemptionOver {
		return h.over()
	}
	if err := h.strategy.Run(ctx, fn); err != nil {
		return err
	}
	return h.CountRun()
}

// over is what libdist says of a job that is over; it runs nothing then.
func (h *PreemptionHandler) over() error {
	var u uses
	defer u.end()
	_, native := u.busy(h.strategy), u.preemptionHandler(h)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_preemption_run(native, 0, cdist.SwigcptrDist_run_options(0)))
}

// SaveIfPreempted saves the checkpoint where the job is preempted, once when that is known and once when the grace is over,
// and tells what it has come to, the same on all workers. Where there is no path, the program saves when the state changes.
// The end of ctx ends the wait for worker 0.
func (h *PreemptionHandler) SaveIfPreempted(ctx context.Context) (PreemptionState, error) {
	var u uses
	defer u.end()
	native := u.preemptionHandler(h)
	if h != nil {
		u.busy(h.strategy)
	}
	if u.err != nil {
		return PreemptionNone, u.err
	}
	watch, err := cancelWith(ctx)
	if err != nil {
		return PreemptionNone, err
	}
	defer watch.end()
	var state int32
	err = fromNative(cdist.Dist_preemption_save_if_preempted(native, watch.handle(), &state))
	return PreemptionState(state), byContextOf(ctx, err, "the context ended the wait for worker 0")
}

// CountRun counts a run that the program has made without Run, by Strategy.RunValues for instance.
func (h *PreemptionHandler) CountRun() error {
	var u uses
	defer u.end()
	native := u.preemptionHandler(h)
	if u.err == nil {
		cdist.Dist_preemption_count_run(native)
	}
	return u.err
}

// TotalRunCalls is how many runs have been counted, with those of earlier starts that the checkpoint knows of; 0 for nil
// and for a closed one.
func (h *PreemptionHandler) TotalRunCalls() int64 {
	var u uses
	defer u.end()
	return cdist.Dist_preemption_total_run_calls(u.preemptionHandler(h))
}
