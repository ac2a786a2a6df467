// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"time"

	"libdist.example/dist/internal/cdist"
)

// ReformOptions are the rare choices of Strategy.Reform.
type ReformOptions struct {
	MinWorkers int           // fewer do not go on, and wait for more; 0: 1
	Window     time.Duration // worker 0: how long it waits for workers that are not known to be lost; 0: a lease
	Timeout    time.Duration // how long to wait in all; 0: the strategy's; NoTimeout: no limit
}

// Reform goes on with the workers that are there: a new generation, in which those that are lost are not, and those are
// that have been started again, or late. Replicas are numbered anew, in the order of the workers; each worker keeps how
// many it has. Worker 0 says who takes part; where it is lost the job has ended, and this is ErrUnavailable. workers.h says
// when to call it, and what stays: plans and datasets do not, and are to be made again. options may be nil.
//
// The end of ctx ends this wait. After an error the strategy has no way to the other workers, and Reform may be called
// again.
func (s *Strategy) Reform(ctx context.Context, options *ReformOptions) error {
	ctx = contextOr(ctx)
	if ctx.Err() != nil {
		return endedBefore(ctx, "the context ended before the workers re-formed")
	}
	var u uses
	defer u.end()
	strategy := u.busy(s)
	native := cdist.NewDist_reform_options()
	defer cdist.DeleteDist_reform_options(native)
	if options != nil {
		native.SetMin_workers(u.int32("ReformOptions.MinWorkers", options.MinWorkers))
		native.SetWindow_ns(int64(options.Window))
		native.SetTimeout_ns(int64(options.Timeout))
	}
	if u.err != nil {
		return u.err
	}
	defer cancelWhenOver(ctx, strategy)()
	return byContextOf(ctx, fromNative(cdist.Dist_strategy_reform(strategy, native)),
		"the context ended the wait for the other workers")
}

// cancelWhenOver cancels the strategy when ctx is over, again and again until it is stopped, as the call that is to end may
// only be on its way to its wait.
func cancelWhenOver(ctx context.Context, strategy int64) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	stopped, gone := make(chan struct{}), make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(gone)
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		for {
			_ = cdist.Dist_strategy_cancel(strategy) // fails only for NULL
			select {
			case <-stopped:
				return
			case <-again.C:
			}
		}
	})
	return func() {
		close(stopped)
		if !unwatch() {
			<-gone
		}
	}
}

// ReformDue says whether the workers are to re-form before the next run: some are lost, or others have come. All workers
// that have made the same runs get the same answer, for which those other than worker 0 wait until worker 0 has ended the
// latest one. With Options.Reform of ReformAtNextRun, Run and RunValues ask for it by themselves.
func (s *Strategy) ReformDue() (due bool, err error) {
	var u uses
	defer u.end()
	native := u.busy(s)
	if u.err != nil {
		return false, u.err
	}
	var out int32
	err = fromNative(cdist.Dist_strategy_reform_due(native, &out))
	return out != 0, err
}
