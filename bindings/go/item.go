// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"libdist.example/dist/internal/cdist"
)

// An Item is a request in a [Batcher]. Any goroutine may use it.
type Item struct {
	strategy *Strategy
	batcher  *Batcher // not the collector's before the item
	ctx      context.Context
	userData any
	timeout  time.Duration
	token    int64
	ends     atomic.Bool // by Batch.End
	err      error       // written before done is closed
	done     chan struct{}
	more     chan struct{} // there are results, or it has ended
	stop     func() bool   // ends the watch of ctx; nil: there is none

	mu   sync.Mutex
	work int64 // 0: it has ended
	own  error // error from Batch.End or from the step
	left []any // results that had not been taken on completion
}

// Submit enqueues an item and returns immediately. [Batch.UserData] returns userData in the steps. The end of
// ctx completes the item: at once if it is waiting, otherwise before its next step. Submit fails with
// [ErrResourceExhausted] if MaxWaiting items are waiting, and with [ErrUnavailable] if the instances are
// closing or closed.
func (b *Batcher) Submit(ctx context.Context, userData any, options ItemOptions) (*Item, error) {
	item := &Item{batcher: b, ctx: contextOr(ctx), userData: userData, timeout: options.Timeout,
		done: make(chan struct{}), more: make(chan struct{}, 1)}
	if over(item.ctx) {
		return nil, refused(item.ctx)
	}
	queue, err := completions()
	if err != nil {
		return nil, err
	}
	var u uses
	if b == nil || b.strategy == nil {
		return nil, newError(ErrInvalidArgument, "the batcher is nil: Strategy.NewBatcher makes one")
	}
	item.strategy = b.strategy
	u.running(b.strategy)
	native := u.take(&b.object, "batcher")
	if u.err != nil {
		u.end()
		return nil, u.err
	}
	item.token = register(item)
	item.mu.Lock() // it may end before its handle is here
	defer item.mu.Unlock()
	var work int64
	err = options.submit(item.ctx, &u, native, item.token, queue, &work)
	b.drop() // libdist rejects closing a batcher that has items
	if item.work = work; err != nil {
		forget(item.token)
		close(item.done) // as in Strategy.Submit
		b.strategy.dropRun(nil)
		return nil, err
	}
	if item.ctx.Done() != nil {
		item.stop = context.AfterFunc(item.ctx, item.Cancel)
	}
	return item, nil // its end is that of the strategy's uses
}

// Done returns a channel that is closed when the item has completed. [Item.Err] then returns its result.
func (i *Item) Done() <-chan struct{} {
	if i == nil {
		return nil
	}
	return i.done
}

// Err returns the result of a completed item: nil, the error that its step returned or passed to [Batch.End],
// or an [*Error]. It returns nil before the item has completed.
func (i *Item) Err() error {
	select {
	case <-i.Done():
		return i.err
	default:
		return nil
	}
}

// Wait waits until the item has completed and returns its result, like [Item.Err]. The end of ctx ends the
// wait; the item continues. Wait does not take partial results: in a continuous batcher, another goroutine
// must take them, because an item with too many untaken results takes part in no further step.
func (i *Item) Wait(ctx context.Context) error {
	if i == nil || i.done == nil {
		return newError(ErrInvalidArgument, "the item is nil: Batcher.Submit gives one")
	}
	return waitFor(ctx, i.done, &i.err, "the context ended the wait. The item continues to run.")
}

// Take waits for the next partial result. If there are no more results, ok is false and err is the result of
// the item. If ctx ends first, ok is false, err reports that, and the item continues. Only one goroutine may
// call Take at a time.
func (i *Item) Take(ctx context.Context) (result any, ok bool, err error) {
	if i == nil || i.done == nil {
		return nil, false, newError(ErrInvalidArgument, "the item is nil: Batcher.Submit gives one")
	}
	ctx = contextOr(ctx)
	for {
		result, ok, ended := i.taken()
		if ok {
			return result, true, nil
		}
		if ended {
			return nil, false, i.Err()
		}
		select {
		case <-i.more:
		case <-i.done:
		case <-ctx.Done():
			return nil, false, endedBefore(ctx, "the context ended the wait. The item continues to run.")
		}
	}
}

// taken returns the next result, if there is one. ended is true if there are no more.
func (i *Item) taken() (result any, ok, ended bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.work != 0 {
		result, ok = takeFrom(i.work)
		return result, ok, false
	}
	if len(i.left) == 0 {
		<-i.done // in a moment
		return nil, false, true
	}
	result, i.left = i.left[0], i.left[1:]
	return result, true, false
}

func takeFrom(work int64) (result any, ok bool) {
	var token int64
	if cdist.Dist_request_take(work, 0, &token) != nil || token == 0 {
		return nil, false
	}
	object := registered[*itemObject](token)
	forget(token)
	return object.object, true
}

// Cancel completes the item with [ErrCancelled]: at once if it is waiting, otherwise before its next step.
func (i *Item) Cancel() { i.cancel() }

func (i *Item) cancel() (asked bool) {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.work != 0 && cdist.Dist_request_cancel(i.work) == nil
}

// UserData returns the userData that was passed to [Batcher.Submit]; nil for a nil item.
func (i *Item) UserData() any {
	if i == nil {
		return nil
	}
	return i.userData
}

// fail keeps the program's error for the completion of the item.
func (i *Item) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.own = err
}

func (i *Item) of() (*Strategy, <-chan struct{}) { return i.strategy, i.done }

func (i *Item) hasEnded() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return isOver(i.work)
}

// arrived handles an arrival: of results, which wait for Take, or of the completion. One more arrival can
// follow after the completion was seen.
func (i *Item) arrived(work int64) {
	i.mu.Lock()
	var over bool
	var native error
	if i.work != 0 {
		if over = isOver(i.work); over {
			native = cdist.Dist_request_wait(i.work, 0)
			for result, ok := takeFrom(i.work); ok; result, ok = takeFrom(i.work) {
				i.left = append(i.left, result)
			}
			cdist.Dist_request_destroy(i.work)
			i.work = 0
		}
	}
	cdist.Dist_request_destroy(work)
	own := i.own
	i.mu.Unlock()
	if !over {
		select {
		case i.more <- struct{}{}:
		default:
		}
		return
	}
	if i.stop != nil {
		i.stop()
	}
	i.err = resultOf(i.ctx, native, own, "the context ended the item")
	i.strategy.dropRun(nil)
	forget(i.token) // as in Request.arrived
	close(i.done)
}
