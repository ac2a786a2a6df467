// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"runtime"
	"time"

	"libdist.example/dist/internal/cdist"
)

// A Work is an asynchronous collective in progress ([Async]) or a planned collective ([Plan]). Until it has
// completed, its tensors belong to libdist and must not be used. A Work belongs to the replica that started
// it: use it only inside that replica's function. If the function returns while work is in progress, libdist
// completes it before the replica ends.
type Work struct {
	object
	replica *Replica
	hold    *workHold
}

// workHold is what a work needs until it is destroyed.
type workHold struct {
	pins     runtime.Pinner
	given    *attached
	cancel   *canceller
	ctx      context.Context // of Within
	ended    bool            // the round, and the program has been told how
	strategy *Strategy       // ends later
	group    *Group
}

// newWork takes over what the call held for its tensors.
func newWork(native int64, c *collective) *Work {
	hold := &workHold{pins: c.pins, given: c.keep(), strategy: c.replica.strategy, group: c.choices.group}
	hold.cancel, hold.ctx = c.cancel, c.choices.ctx
	c.pins, c.cancel = runtime.Pinner{}, nil
	w := &Work{replica: c.replica, hold: hold}
	w.open(native, func(native int64) {
		cdist.Dist_work_destroy(native)
		hold.cancel.end()
		hold.pins.Unpin()
		hold.given.end()
	}, hold)
	c.replica.works.Store(w, nil)
	return w
}

func (w *Work) do(call func(native int64) error) error {
	if w == nil || w.replica == nil {
		return newError(ErrInvalidArgument, "the work is nil: pass Async(&work) or Plan(&work) to a collective")
	}
	if err := w.replica.check(); err != nil {
		return err
	}
	var u uses
	defer u.end()
	native := u.take(&w.object, "work")
	if u.err != nil {
		return u.err
	}
	return byContext(w.hold.ctx, w.replica.told(call(native)))
}

// round is do for calls that may start a round, and discards the result of the previous one.
func (w *Work) round(call func(native int64) error) error {
	if w != nil && w.hold != nil && w.hold.ended {
		w.hold.ended = false
		w.hold.given.begin()
	}
	return w.do(call)
}

// outcome returns the result of the work: a panic of the program's operator, or libdist's result.
func (w *Work) outcome(err error) error {
	if w == nil || w.hold == nil {
		return err
	}
	w.hold.ended = true
	return w.hold.given.own(err)
}

// Start starts a round of planned work. All tensors that are not ready yet become ready.
func (w *Work) Start() error {
	return w.round(cdist.Dist_work_start)
}

// Ready declares one tensor of the planned list ready. The first call of a round starts it.
func (w *Work) Ready(tensor int) error {
	return w.round(func(native int64) error { return cdist.Dist_work_ready(native, int64(tensor)) })
}

// Test reports whether the work has completed, and its result. If there is a part of the work to do, Test
// does it.
func (w *Work) Test() (done bool, err error) {
	var out int32
	err = w.do(func(native int64) error { return cdist.Dist_work_test(native, &out) })
	if out != 0 {
		err = w.outcome(err)
	}
	return out != 0, err
}

// Wait waits until the work has completed and returns its result. It waits for peers up to the timeout in the
// collective's options.
func (w *Work) Wait() error { return w.WaitFor(NoTimeout) }

// WaitFor waits like [Work.Wait], at most for a timeout. 0 does not wait, and [NoTimeout] means no limit. If the
// timeout expires, WaitFor returns [ErrDeadlineExceeded] and the work continues; [Work.Test] tells this apart from a work
// that has failed.
func (w *Work) WaitFor(timeout time.Duration) error {
	err := w.do(func(native int64) error { return cdist.Dist_work_wait(native, int64(timeout)) })
	if errors.Is(err, ErrDeadlineExceeded) && w.inProgress() {
		return err
	}
	return w.outcome(err)
}

func (w *Work) inProgress() bool {
	done := int32(1)
	err := w.do(func(native int64) error { return cdist.Dist_work_test(native, &done) })
	return err == nil && done == 0
}

// WaitAny waits until one of the works has completed. It returns the index of that work and its result.
func WaitAny(timeout time.Duration, works ...*Work) (index int, err error) {
	var u uses
	defer u.end()
	handles := make([]int64, len(works))
	for i, w := range works {
		if w == nil || w.replica == nil {
			return 0, newError(ErrInvalidArgument, "work %d is nil", i)
		}
		u.fail(w.replica.check())
		handles[i] = u.take(&w.object, "work")
	}
	if u.err != nil {
		return 0, u.err
	}
	out := uint64(len(works)) // written only if a work has completed
	err = fromNative(cdist.Dist_work_wait_any(handles, int64(len(handles)), int64(timeout), &out))
	if len(works) > 0 && out < uint64(len(works)) {
		w := works[out]
		err = w.outcome(byContext(w.hold.ctx, w.replica.told(err)))
	}
	return int(out), err
}

// Cancel cancels work in progress, and with it all rounds of its group in this run, on every member.
func (w *Work) Cancel() error { return w.do(cdist.Dist_work_cancel) }

// Close releases the handle. If the work is in progress, Close waits until it has completed. Close it before
// the strategy.
func (w *Work) Close() error {
	if w != nil && w.replica != nil {
		w.replica.works.Delete(w)
		w.close()
	}
	return nil
}
