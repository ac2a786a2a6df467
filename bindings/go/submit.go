// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"libdist.example/dist/internal/cdist"
)

// A Request is a function that one replica runs; see [Strategy.Submit]. Any goroutine may use it.
type Request struct {
	strategy *Strategy
	ctx      context.Context
	fn       ReplicaFunc
	options  SubmitOptions
	token    int64
	shared   failures // of functions that fn gave to libdist
	err      error    // written before done is closed
	done     chan struct{}
	stop     func() bool // ends the watch of ctx; nil: there is none

	mu    sync.Mutex
	own   error // result of fn
	work  int64 // 0: it has ended
	ended bool
}

// Submit schedules one call of fn on the next idle replica and returns immediately. Requests and runs share
// the replicas through one queue, which is ordered by priority, then by arrival.
//
// Inside fn, the replica works alone: ParallelFor, RunOnDevices and methods that describe the replica work,
// while collectives, groups and merge calls fail with [ErrFailedPrecondition]. If fn fails or panics, only
// this request fails.
//
// The end of ctx cancels the request. If it is queued, it completes at once. If fn is running,
// [Replica.Check] and the collectives of logical devices fail, and the request completes when fn returns. A
// deadline of ctx is the deadline of the request.
//
// Submit fails with [ErrResourceExhausted] if the queue is full (InstancesOptions.MaxQueued), and with
// [ErrUnavailable] if the instances are closing or closed. If the instances are not open, the first Submit
// opens them; [Strategy.OpenInstances] states which strategies cannot have instances. A request in progress
// occupies no goroutine.
func (s *Strategy) Submit(ctx context.Context, fn ReplicaFunc, options SubmitOptions) (*Request, error) {
	r := &Request{strategy: s, ctx: contextOr(ctx), fn: fn, options: options, done: make(chan struct{})}
	if over(r.ctx) {
		return nil, refused(r.ctx)
	}
	queue, err := completions()
	if err != nil {
		return nil, err
	}
	var u uses
	native := u.running(s)
	if u.err != nil {
		u.end()
		return nil, u.err
	}
	r.token = registerIf(fn != nil, r)
	r.mu.Lock() // it may end before its handle is here
	var work int64
	err = options.submit(r.ctx, &u, native, r.token, queue, &work)
	if r.work = work; err != nil {
		r.mu.Unlock()
		forget(r.token)
		close(r.done) // wakes callers that have found it and wait for it
		u.end()
		return nil, err
	}
	if r.ctx.Done() != nil {
		r.stop = context.AfterFunc(r.ctx, r.Cancel)
	}
	r.mu.Unlock()
	return r, nil // its end is that of the uses
}

// late reports whether a context's deadline has passed, which the context itself may not have noticed yet.
func late(ctx context.Context) bool {
	deadline, dated := ctx.Deadline()
	return dated && !time.Now().Before(deadline)
}

func over(ctx context.Context) bool { return ctx.Err() != nil || late(ctx) }

// timeoutWithin returns the time until the deadline, in libdist's form.
func timeoutWithin(ctx context.Context, timeout time.Duration) int64 {
	if deadline, dated := ctx.Deadline(); dated {
		left := max(time.Until(deadline), 1)
		if timeout == 0 || left < timeout {
			timeout = left
		}
	}
	return int64(timeout)
}

// refused returns the error of a request whose context had ended before.
func refused(ctx context.Context) error {
	report := endedBefore(ctx, "the context ended before the request was submitted")
	if ctx.Err() == nil {
		report.Code, report.cause = ErrDeadlineExceeded, context.DeadlineExceeded
	}
	return report
}

// Done returns a channel that is closed when the request has completed. [Request.Err] then returns its
// result.
func (r *Request) Done() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.done
}

// Err returns the result of a completed request: nil, the error that its function returned, or an [*Error].
// It returns nil before the request has completed.
func (r *Request) Err() error {
	select {
	case <-r.Done():
		return r.err
	default:
		return nil
	}
}

// Wait waits until the request has completed and returns its result, like [Request.Err]. The end of ctx ends
// the wait; the request continues. Do not call Wait inside a replica of the same strategy, because the
// request may need that replica.
func (r *Request) Wait(ctx context.Context) error {
	if r == nil || r.done == nil {
		return newError(ErrInvalidArgument, "the request is nil: Strategy.Submit gives one")
	}
	return waitFor(ctx, r.done, &r.err, "the context ended the wait. The request continues to run.")
}

// waitFor waits until done is closed; *how is valid then.
func waitFor(ctx context.Context, done <-chan struct{}, how *error, words string) error {
	ctx = contextOr(ctx)
	select {
	case <-done:
		return *how
	default:
	}
	select {
	case <-done:
		return *how
	case <-ctx.Done():
		return endedBefore(ctx, words)
	}
}

// Cancel completes the request with [ErrCancelled]: at once if it is queued. If its function is running,
// [Replica.Check] fails there, and the request completes when the function returns. Cancel does nothing if
// the request has completed.
func (r *Request) Cancel() { r.cancel() }

func (r *Request) cancel() (asked bool) {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.work != 0 && cdist.Dist_request_cancel(r.work) == nil
}

// settle waits until all requests that are seen here to have completed have been delivered.
func (s *Strategy) settle() {
	eachArrival(s, func(a arrival) {
		if _, done := a.of(); a.hasEnded() {
			<-done
		}
	})
}

// arrival is an object that arrives in the queue when it has completed: a request or an item.
type arrival interface {
	arrived(work int64)
	of() (s *Strategy, done <-chan struct{})
	hasEnded() bool // libdist is done with it
	cancel() (asked bool)
}

func eachArrival(s *Strategy, do func(arrival)) {
	registry.entries.Range(func(_, entry any) bool {
		if a, ok := entry.(arrival); ok {
			if of, _ := a.of(); of == s {
				do(a)
			}
		}
		return true
	})
}

func (r *Request) of() (*Strategy, <-chan struct{}) { return r.strategy, r.done }

func (r *Request) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return isOver(r.work)
}

// isOver reports whether libdist has finished with a work; 0 means that it has.
func isOver(work int64) bool {
	var out int32
	return work == 0 || cdist.Dist_request_test(work, &out) != nil || out != 0
}

// cancelRequests cancels a strategy's requests and returns their number.
func cancelRequests(s *Strategy) (n int64) {
	eachArrival(s, func(a arrival) {
		if a.cancel() {
			n++
		}
	})
	return n
}

// UserData returns the UserData of the [SubmitOptions]; nil for a nil request.
func (r *Request) UserData() any {
	if r == nil {
		return nil
	}
	return r.options.UserData
}

// call runs the request's function and returns the status for libdist.
func (r *Request) call(native int64) (status int) {
	replica := newReplica(native, r.strategy, &r.shared)
	replica.ctx = r.ctx
	own := r.strategy.alone(replica, r.fn)
	r.mu.Lock()
	if !r.ended { // a request that was stuck ends before its function does
		r.own = own
	}
	r.mu.Unlock()
	if own != nil {
		return tell(own)
	}
	return 0
}

// arrived completes the request with libdist's result.
func (r *Request) arrived(work int64) {
	r.mu.Lock() // its handle is here
	err := resultOf(r.ctx, r.shared.own(cdist.Dist_request_wait(work, 0)), r.own, "the context ended the request")
	cdist.Dist_request_destroy(work)
	cdist.Dist_request_destroy(r.work)
	r.work, r.ended = 0, true
	r.mu.Unlock()
	if r.stop != nil {
		r.stop()
	}
	r.err = err
	r.strategy.dropRun(nil)
	forget(r.token) // after its uses, because closing the strategy must find it until then
	close(r.done)
	if to := r.options.Completions; to != nil {
		select {
		case to <- r:
		default:
			go func() { to <- r }()
		}
	}
}

// resultOf returns the function's own error if it has one, or else libdist's, with the context's error if the
// context ended the request.
func resultOf(ctx context.Context, native, own error, words string) error {
	if native == nil {
		return nil
	}
	if own != nil && !errors.Is(own, ErrAborted) {
		return own
	}
	err := fromNative(native)
	report, ok := err.(*Error)
	if ok && report.Code == ErrDeadlineExceeded && late(ctx) {
		if report.cause = context.DeadlineExceeded; ctx.Err() != nil {
			report.cause = why(ctx)
		}
		return report
	}
	return byContextOf(ctx, err, words)
}

// arrivals is the queue of all completed requests of the process, which one goroutine empties.
var arrivals struct {
	once  sync.Once
	queue int64
	err   error
}

func completions() (queue int64, err error) {
	arrivals.once.Do(func() {
		var queue int64
		arrivals.err = fromNative(cdist.Dist_completions_create(nil, &queue))
		if arrivals.queue = queue; arrivals.err == nil {
			go takeEnded(queue)
		}
	})
	return arrivals.queue, arrivals.err
}

func takeEnded(queue int64) {
	runtime.LockOSThread() // it waits in C most of the time
	for {
		var work int64
		if err := cdist.Dist_completions_next(queue, int64(NoTimeout), &work); err != nil || work == 0 {
			continue
		}
		if a := registered[arrival](cdist.Dist_request_user_data(work)); a != nil {
			a.arrived(work)
		} else { // an item that came once more after its end
			cdist.Dist_request_destroy(work)
		}
	}
}
