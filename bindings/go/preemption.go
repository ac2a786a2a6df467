// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"slices"

	"libdist.example/dist/internal/cdist"
)

// A PreemptionHandler saves a checkpoint before the job loses a machine, like TensorFlow's
// PreemptionCheckpointHandler. All workers must make the same calls of its methods, except Notify.
//
//	for handler.TotalRunCalls() < steps {
//		if err := handler.Run(ctx, trainStep); err != nil {
//			return err // ErrCancelled: everything is saved, end the program
//		}
//	}
type PreemptionHandler struct {
	object
	strategy *Strategy
}

// NewPreemptionHandler returns the handler of a training loop. If the checkpoint exists, it is loaded into
// the variables, and the handler continues with the saved number of runs. options may be nil. The caller must
// close the handler before the strategy.
func (s *Strategy) NewPreemptionHandler(options *PreemptionOptions) (*PreemptionHandler, error) {
	if options == nil {
		options = &PreemptionOptions{}
	}
	var u uses
	defer u.end()
	strategy, native := u.busy(s), options.native(&u)
	defer cdist.DeleteDist_preemption_options(native)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := cdist.Dist_preemption_handler_create(strategy, native, &out); err != nil {
		return nil, fromNative(err)
	}
	h := &PreemptionHandler{strategy: s}
	h.given = u.keep()
	h.open(out, cdist.Dist_preemption_handler_destroy, []any{s, slices.Clone(options.Variables)})
	return h, nil
}

// checkpointed sets the variables of a checkpoint.
func (u *uses) checkpointed(native cdist.Dist_preemption_options, variables []*Variable) {
	handles := make([]int64, len(variables))
	for i, v := range variables {
		handles[i] = u.variable(v)
	}
	native.Set_variables(handles, int64(len(handles)))
}

func (u *uses) preemptionHandler(h *PreemptionHandler) int64 {
	if h == nil {
		return 0
	}
	return u.take(&h.object, "preemption handler")
}

// Close closes the handler. Its strategy and variables stay open.
func (h *PreemptionHandler) Close() error {
	if h != nil {
		h.close()
	}
	return nil
}

// Notify announces that this worker will be preempted. Any goroutine may call it, repeatedly, for example one
// that receives SIGTERM through [os/signal].
func (h *PreemptionHandler) Notify() error {
	var u uses
	defer u.end()
	native := u.preemptionHandler(h)
	if u.err == nil {
		cdist.Dist_preemption_notify(native)
	}
	return u.err
}

// Run performs one step of the loop: it calls [PreemptionHandler.SaveIfPreempted], [Strategy.Run] and, if
// that succeeds, [PreemptionHandler.CountRun]. If the job is preempted and its checkpoint is saved, Run does
// not call fn and fails with [ErrCancelled]; the error does not wrap an error of ctx.
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

// over returns libdist's error for a job that has ended. libdist runs nothing then.
func (h *PreemptionHandler) over() error {
	var u uses
	defer u.end()
	_, native := u.busy(h.strategy), u.preemptionHandler(h)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_preemption_run(native, 0, cdist.SwigcptrDist_run_options(0)))
}

// SaveIfPreempted saves the checkpoint if the job is preempted, once when the notice arrives and once when
// the grace period ends. It returns the state, which is the same on all workers. If the options have no path,
// the program must save when the state changes. The end of ctx cancels the wait for worker 0.
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

// CountRun counts a run that the program made without [PreemptionHandler.Run], for example with
// [Strategy.RunValues].
func (h *PreemptionHandler) CountRun() error {
	var u uses
	defer u.end()
	native := u.preemptionHandler(h)
	if u.err == nil {
		cdist.Dist_preemption_count_run(native)
	}
	return u.err
}

// TotalRunCalls returns the number of counted runs, including those of earlier program starts that the
// checkpoint recorded. It returns 0 for a nil or closed handler.
func (h *PreemptionHandler) TotalRunCalls() int64 {
	var u uses
	defer u.end()
	return cdist.Dist_preemption_total_run_calls(u.preemptionHandler(h))
}
