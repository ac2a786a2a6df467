// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"time"

	"libdist.example/dist/internal/cdist"
)

// A Batcher collects requests, called items, and processes several of them together in steps. Each step is
// one call of a [StepFunc] on one instance of the strategy; see [Strategy.OpenInstances].
type Batcher struct {
	object
	strategy  *Strategy
	functions *batcherFunctions
	forgets   func()
}

// StepFunc processes one step on an instance. If it returns an error, all items of the step fail with that
// error, except those for which [Batch.End] was called.
type StepFunc = func(r *Replica, batch *Batch) error

// batcherFunctions is the part of a batcher that libdist refers to. It does not refer to the Batcher.
type batcherFunctions struct {
	step     StepFunc
	failures failures
}

// NewBatcher returns a new batcher whose steps run on the strategy's instances. If the instances have never
// been opened, NewBatcher opens them with default options; see [Strategy.OpenInstances]. Close the batcher
// before the strategy.
//
//	batcher, err := strategy.NewBatcher(func(r *dist.Replica, batch *dist.Batch) error {
//		for i := range batch.Size() {
//			answer(batch.UserData(i).(*question))
//		}
//		return nil
//	}, dist.BatcherOptions{MaxItems: 8, MaxDelay: 2 * time.Millisecond})
func (s *Strategy) NewBatcher(step StepFunc, options BatcherOptions) (*Batcher, error) {
	var u uses
	defer u.end()
	strategy := u.busy(s)
	native := options.native(&u)
	defer cdist.DeleteDist_batcher_options(native)
	native.Set_tokens()
	if u.err != nil {
		return nil, u.err
	}
	b := &Batcher{strategy: s, functions: &batcherFunctions{step: step}}
	token := registerIf(step != nil, b.functions)
	var out int64
	if err := cdist.Dist_batcher_create(strategy, token, native, &out); err != nil {
		forget(token)
		return nil, fromNative(err)
	}
	b.given = u.keep()
	b.open(out, func(native int64) {
		if cdist.Dist_batcher_destroy(native) == nil {
			forget(token)
		}
	}, s)
	b.forgets = func() { forget(token) }
	return b, nil
}

// Close closes a batcher without items. If items have not completed, Close fails with [ErrFailedPrecondition]
// and the batcher remains usable. Closing a nil or closed batcher does nothing.
func (b *Batcher) Close() error {
	if b == nil || b.functions == nil {
		return nil
	}
	ended, err := b.endBy(func(native int64) error {
		err := cdist.Dist_batcher_destroy(native)
		// After all items have completed, their last arrivals are processed within moments.
		for tries := 0; err != nil && tries < mostTries && !hasItems(native); tries++ {
			time.Sleep(time.Millisecond)
			err = cdist.Dist_batcher_destroy(native)
		}
		return err
	})
	if ended {
		b.forgets()
	}
	return err
}

const mostTries = 30_000

// hasItems reports whether items have not completed.
func hasItems(native int64) bool {
	var waiting, active int64
	cdist.Dist_batcher_count(native, &waiting, &active)
	return waiting+active > 0
}

// Count returns the number of waiting items and the number of items on instances.
func (b *Batcher) Count() (waiting, active int) {
	var u uses
	defer u.end()
	var out [2]int64
	if b != nil {
		if native := u.take(&b.object, "batcher"); u.err == nil {
			cdist.Dist_batcher_count(native, &out[0], &out[1])
		}
	}
	return int(out[0]), int(out[1])
}

// A Batch is one step of a [Batcher], with the items 0 to Size()-1. It is valid only while the [StepFunc]
// runs.
type Batch struct {
	native    int64
	functions *batcherFunctions
	ended     bool
}

// Step is called by libdist on an instance's thread.
func (callbacks) Step(token, replica, batch int64) int {
	functions := registered[*batcherFunctions](token)
	if functions == nil {
		return tell(errTooLate)
	}
	s := strategyOf(cdist.Dist_replica_strategy(replica))
	members := &Batch{native: batch, functions: functions}
	err := s.alone(newReplica(replica, s, &failures{}), func(r *Replica) error { return functions.step(r, members) })
	defer func() { members.ended = true }()
	if err == nil {
		return 0
	}
	for i := range members.Size() { // those that have not ended by themselves
		if item := members.item(i); item != nil && !item.ends.Load() {
			item.fail(err)
		}
	}
	return tell(err)
}

// item returns item i, or nil if there is none or the step has ended.
func (b *Batch) item(i int) *Item {
	if b == nil || b.ended || i < 0 {
		return nil
	}
	return registered[*Item](cdist.Dist_batch_user_data(b.native, int64(i)))
}

// has reports whether the step has an item i and has not ended.
func (b *Batch) has(i int) bool { return i >= 0 && i < b.Size() }

var errNoItem = newError(ErrInvalidArgument, "the step has no such item, or is over")

// Size returns the number of items in the step, or 0 after the step function has returned.
func (b *Batch) Size() int {
	if b == nil || b.ended {
		return 0
	}
	return int(cdist.Dist_batch_size(b.native))
}

// Bucket returns the bucket to which all items of the step belong, as given in [BatcherOptions]. No item has
// a greater length. Bucket returns 0 if there are no buckets.
func (b *Batch) Bucket() int64 {
	if b == nil || b.ended {
		return 0
	}
	return cdist.Dist_batch_bucket(b.native)
}

// UserData returns the user data that was passed to [Batcher.Submit] for item i.
func (b *Batch) UserData(i int) any {
	if item := b.item(i); item != nil {
		return item.userData
	}
	return nil
}

// itemObject is an item's state or partial result, which libdist knows by a token.
type itemObject struct{ object any }

// State returns the state that an earlier call of [Batch.SetState] stored for item i, or nil if there is
// none.
func (b *Batch) State(i int) any {
	if b.item(i) == nil {
		return nil
	}
	if state := registered[*itemObject](cdist.Dist_batch_state(b.native, int64(i))); state != nil {
		return state.object
	}
	return nil
}

// SetState stores a state with item i until the item completes.
func (b *Batch) SetState(i int, state any) {
	if b.item(i) == nil {
		return
	}
	forget(cdist.Dist_batch_state(b.native, int64(i)))
	cdist.Dist_batch_set_state(b.native, int64(i), register(&itemObject{state}))
}

// Check returns nil if item i is still wanted. Otherwise it returns the error with which the item completes
// after the step. A long step can call Check to skip items that were cancelled or whose deadline has expired.
func (b *Batch) Check(i int) error {
	if !b.has(i) {
		return errNoItem
	}
	err := fromNative(cdist.Dist_batch_check(b.native, int64(i)))
	if item := b.item(i); item != nil {
		return byContextOf(item.ctx, err, "the context ended the item")
	}
	return err // the step was stuck, and its items have ended
}

// Emit adds a partial result of item i. [Item.Take] returns the results in the order of the calls. Emit fails
// with [ErrResourceExhausted] if [BatcherOptions].MaxResults results of the item have not been taken. This
// cannot happen in a step that emits at most one result per item.
func (b *Batch) Emit(i int, result any) error {
	if !b.has(i) {
		return errNoItem
	}
	token := register(&itemObject{result})
	err := fromNative(cdist.Dist_batch_emit(b.native, int64(i), token))
	if err != nil {
		forget(token)
	}
	return err
}

// End completes item i after this step: successfully if err is nil, otherwise with err.
func (b *Batch) End(i int, err error) {
	item := b.item(i)
	if item == nil {
		return
	}
	status := 0
	item.ends.Store(true)
	item.fail(err)
	if err != nil {
		status = tell(err)
	}
	cdist.Dist_batch_end(b.native, int64(i), status)
}
