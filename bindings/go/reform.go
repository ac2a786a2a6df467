// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"time"

	"libdist.example/dist/internal/cdist"
)

// Reform forms a new generation of workers: without the workers that are lost, and with those that were
// restarted or started late. Replicas are renumbered in the order of the workers. Each worker keeps its
// number of replicas. Worker 0 decides who takes part; if it is lost, the job has ended, and Reform fails
// with [ErrUnavailable]. options may be nil.
//
// Reform keeps the strategy and its variables, with their content on this worker. A failed run may have
// changed the variables of some replicas only, and a worker that joins has no content, so load a checkpoint
// that was saved between runs. Plans and datasets are not kept; create them again.
//
// The end of ctx cancels the wait. After an error the strategy has no connection to the other workers, and
// Reform may be called again.
func (s *Strategy) Reform(ctx context.Context, options *ReformOptions) error {
	ctx = contextOr(ctx)
	if ctx.Err() != nil {
		return endedBefore(ctx, "the context ended before the workers re-formed")
	}
	var u uses
	defer u.end()
	strategy := u.busy(s)
	native := options.native(&u)
	defer cdist.DeleteDist_reform_options(native)
	if u.err != nil {
		return u.err
	}
	defer cancelWhenOver(ctx, strategy)()
	return byContextOf(ctx, fromNative(cdist.Dist_strategy_reform(strategy, native)),
		"the context ended the wait for the other workers")
}

// cancelWhenOver cancels the strategy when ctx ends. It does so repeatedly until it is stopped, because the
// call that it should cancel may not have reached its wait yet.
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

// ReformDue reports whether the workers should re-form before the next run, because workers were lost or
// others want to join. All workers that have made the same runs get the same answer; workers other than
// worker 0 wait for it until worker 0 has ended the latest run. If Options.Reform is [ReformAtNextRun], Run
// and RunValues make this check themselves.
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
