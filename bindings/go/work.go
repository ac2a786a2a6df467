// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"runtime"
	"time"

	"libdist.example/dist/internal/cdist"
)

// Work is a collective that is under way (Async), or planned (Plan). Its tensors are libdist's until it has ended:
// they stay where they are, and the program leaves them alone. It is its replica's: use it inside that replica's
// function. Work that the function leaves under way is brought to its end before the replica is.
type Work struct {
	object
	replica *Replica
	hold    *workHold
}

// workHold is what a work needs until it is destroyed.
type workHold struct {
	pins     runtime.Pinner
	tokens   []int64
	user     *operators
	cancel   *canceller
	ctx      context.Context // of Within
	ended    bool            // the round, and the program has been told how
	strategy *Strategy       // ends later
	group    *Group
}

// newWork takes over what the call held for its tensors.
func newWork(native int64, c *collective) *Work {
	hold := &workHold{pins: c.pins, tokens: c.tokens, strategy: c.replica.strategy, group: c.choices.group}
	hold.cancel, hold.ctx = c.cancel, c.choices.ctx
	c.pins, c.tokens, c.cancel = runtime.Pinner{}, nil, nil
	hold.user = &c.user
	w := &Work{replica: c.replica, hold: hold}
	w.open(native, func(native int64) {
		cdist.Dist_work_destroy(native)
		hold.cancel.end()
		hold.pins.Unpin()
		for _, token := range hold.tokens {
			forget(token)
		}
	}, hold)
	c.replica.works.Store(w, nil)
	return w
}

func (w *Work) do(call func(native int64) error) error {
	if w == nil {
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

// round is do for what may begin a round, which has nothing of the round before.
func (w *Work) round(call func(native int64) error) error {
	if w != nil && w.hold.ended {
		w.hold.ended = false
		w.hold.user.begin()
	}
	return w.do(call)
}

// outcome is how the work has ended: by a panic of the program's operator, or as libdist says.
func (w *Work) outcome(err error) error {
	if w == nil {
		return err
	}
	w.hold.ended = true
	return w.hold.user.own(err)
}

// Start begins a round of planned work: all tensors that are not ready yet are from now on.
func (w *Work) Start() error {
	return w.round(cdist.Dist_work_start)
}

// Ready says that one tensor of the planned list is ready; the first of a round begins it.
func (w *Work) Ready(tensor int) error {
	return w.round(func(native int64) error { return cdist.Dist_work_ready(native, int64(tensor)) })
}

// Test says whether the work has ended, and how. It does a part of it where there is one to do.
func (w *Work) Test() (done bool, err error) {
	var out int32
	err = w.do(func(native int64) error { return cdist.Dist_work_test(native, &out) })
	if out != 0 {
		err = w.outcome(err)
	}
	return out != 0, err
}

// Wait waits until the work has ended, and says how; at most as long as the collective's options allow.
func (w *Work) Wait() error { return w.WaitFor(0) }

// WaitFor is Wait with a limit of its own; 0: that of the collective's options; NoTimeout: none.
func (w *Work) WaitFor(timeout time.Duration) error {
	return w.outcome(w.do(func(native int64) error { return cdist.Dist_work_wait(native, int64(timeout)) }))
}

// WaitAny waits until one of the works has ended: works[index], and says how.
func WaitAny(timeout time.Duration, works ...*Work) (index int, err error) {
	var u uses
	defer u.end()
	handles := make([]int64, len(works))
	for i, w := range works {
		if w == nil {
			return 0, newError(ErrInvalidArgument, "work %d is nil", i)
		}
		u.fail(w.replica.check())
		handles[i] = u.take(&w.object, "work")
	}
	if u.err != nil {
		return 0, u.err
	}
	var out uint64
	err = fromNative(cdist.Dist_work_wait_any(handles, int64(len(handles)), int64(timeout), &out))
	if len(works) > 0 && out < uint64(len(works)) {
		w := works[out]
		err = w.outcome(byContext(w.hold.ctx, w.replica.told(err)))
	}
	return int(out), err
}

// Cancel ends the work that is under way, and with it all rounds of its group in this run, on every member.
func (w *Work) Cancel() error { return w.do(cdist.Dist_work_cancel) }

// Close gives up the handle, after the work has ended; it waits where it has not. Before Strategy.Close.
func (w *Work) Close() error {
	if w != nil {
		w.replica.works.Delete(w)
		w.close()
	}
	return nil
}
