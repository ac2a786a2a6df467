// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"time"

	"libdist.example/dist/internal/cdist"
)

// BatcherOptions are the choices of NewBatcher; zero fields mean the default.
type BatcherOptions struct {
	MaxItems   int           // of a step, and of an instance; 0: 32
	MaxDelay   time.Duration // how long an item waits for others while an instance is free; 0: not at all
	MaxWaiting int           // items that no step has had; one more is refused; 0: 1024
	MaxBytes   int64         // of the items that an instance has, as ItemOptions.Bytes says; 0: any number
	Buckets    []int64       // lengths, ascending, from 1; nil: all items are of one bucket
	Continuous bool          // an item stays until Batch.End; else it is in one step
	MaxResults int           // partial results of an item that nobody has taken; one with as many is in no step; 0: 16
}

// Batcher has requests that an instance answers together, step by step.
type Batcher struct {
	object
	strategy  *Strategy
	functions *batcherFunctions
	forgets   func()
}

// StepFunc is one step, on one instance: with an error all its items end with that, but for those that Batch.End has ended.
type StepFunc = func(r *Replica, batch *Batch) error

// batcherFunctions is what libdist has of a batcher's: it knows nothing of who holds that.
type batcherFunctions struct {
	step     StepFunc
	failures failures
}

// NewBatcher makes a batcher, whose steps are on the strategy's instances: OpenInstances, which is called here where nobody
// has. Close it before the strategy.
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
	native := cdist.NewDist_batcher_options()
	defer cdist.DeleteDist_batcher_options(native)
	native.SetMax_items(u.int32("BatcherOptions.MaxItems", options.MaxItems))
	native.SetMax_delay_ns(int64(options.MaxDelay))
	native.SetMax_waiting(int64(options.MaxWaiting))
	native.SetMax_bytes(options.MaxBytes)
	native.Set_buckets(options.Buckets, int64(len(options.Buckets)))
	native.SetContinuous(intOf(options.Continuous))
	native.SetMax_results(u.int32("BatcherOptions.MaxResults", options.MaxResults))
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
	b.open(out, func(native int64) {
		if cdist.Dist_batcher_destroy(native) == nil {
			forget(token)
		}
	}, s)
	b.forgets = func() { forget(token) }
	return b, nil
}

// Close ends a batcher that has no items: it fails with ErrFailedPrecondition while items have not ended, and then it is as it
// was. Closing twice, and nil, are fine.
func (b *Batcher) Close() error {
	if b == nil {
		return nil
	}
	ended, err := b.endBy(func(native int64) error {
		err := cdist.Dist_batcher_destroy(native)
		// Where all items have ended, what of them has still to arrive, an end or results, is over in a moment.
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

// hasItems says whether there are some that have not ended.
func hasItems(native int64) bool {
	var waiting, active int64
	cdist.Dist_batcher_count(native, &waiting, &active)
	return waiting+active > 0
}

// Count is how many items wait, and how many are on instances.
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

// Batch is a step, for the time of its function: items 0 .. Size()-1.
type Batch struct {
	native    int64
	functions *batcherFunctions
	ended     bool
}

// Step is what libdist calls on an instance's thread.
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

// item is item i; nil: there is none, or the step is over.
func (b *Batch) item(i int) *Item {
	if b == nil || b.ended || i < 0 {
		return nil
	}
	return registered[*Item](cdist.Dist_batch_user_data(b.native, int64(i)))
}

// has says whether the step has an item i, and goes on.
func (b *Batch) has(i int) bool { return i >= 0 && i < b.Size() }

var errNoItem = newError(ErrInvalidArgument, "the step has no such item, or is over")

// Size is how many items the step has; 0 when its function is over.
func (b *Batch) Size() int {
	if b == nil || b.ended {
		return 0
	}
	return int(cdist.Dist_batch_size(b.native))
}

// Bucket is the items' bucket, as it is in the options: none of them has a greater length. 0: there are no buckets.
func (b *Batch) Bucket() int64 {
	if b == nil || b.ended {
		return 0
	}
	return cdist.Dist_batch_bucket(b.native)
}

// UserData is what Batcher.Submit got for item i.
func (b *Batch) UserData(i int) any {
	if item := b.item(i); item != nil {
		return item.userData
	}
	return nil
}

// itemObject is an item's state, or a result, as libdist has its token.
type itemObject struct{ object any }

// State is what a step has set for item i; nil: nothing yet.
func (b *Batch) State(i int) any {
	if b.item(i) == nil {
		return nil
	}
	if state := registered[*itemObject](cdist.Dist_batch_state(b.native, int64(i))); state != nil {
		return state.object
	}
	return nil
}

// SetState keeps a state with item i, until it ends.
func (b *Batch) SetState(i int, state any) {
	if b.item(i) == nil {
		return
	}
	forget(cdist.Dist_batch_state(b.native, int64(i)))
	cdist.Dist_batch_set_state(b.native, int64(i), register(&itemObject{state}))
}

// Check says whether item i is still wanted: nil, or why it ends after the step.
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

// Emit gives a partial result of item i: Item.Take takes them in their order. ErrResourceExhausted says that
// BatcherOptions.MaxResults have not been taken; a step that emits one for each item never sees that.
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

// End says that item i ends after this step, with err, or well where that is nil.
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
