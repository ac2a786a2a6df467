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

// SubmitOptions are the rare choices of Submit.
type SubmitOptions struct {
	Priority int           // PriorityMin .. PriorityMax: the greater comes first; runs have 0
	Timeout  time.Duration // until its end, from now; 0: as long as the context allows
	// Completions gets the request when it has ended. One queue of libdist's is emptied into the channels of all requests: a
	// channel that is full keeps nobody waiting, but what it has no room for comes later, in any order.
	Completions chan<- *Request
	UserData    any   // for Request.UserData
	RequestID   int64 // in traces, to find it there; 0: libdist numbers them from 1 on
}

// Request is a function that one replica runs. Any goroutine may use it.
type Request struct {
	strategy *Strategy
	ctx      context.Context
	fn       ReplicaFunc
	options  SubmitOptions
	token    int64
	shared   failures // of functions that fn gave to libdist
	own      error    // what fn returned; written before the end
	err      error    // written before done is closed
	done     chan struct{}
	stop     func() bool // ends the watch of ctx; nil: there is none

	mu   sync.Mutex
	work int64 // 0: it has ended
}

// Submit has fn called once, on one replica that is free, and returns at once. Requests and runs share the replicas by one
// queue: the greater priority comes first, and within a priority who came first.
//
// Inside fn the replica is alone: ParallelFor, RunOnDevices and questions about it work; collectives, groups and merge
// functions are ErrFailedPrecondition. What fn returns, or its panic, is this request's failure, and of no other.
//
// The end of ctx ends the request: at once where it is queued; where fn runs, Replica.Check says so, and so do collectives
// of its logical devices. It has ended when fn has returned. A deadline is the request's time-out.
//
// ErrResourceExhausted says that the queue is full (InstancesOptions.MaxQueued), ErrUnavailable that the instances close, or
// have been closed. The first Submit opens them: OpenInstances, which says which strategies have none. No goroutine
// waits for a request that is under way.
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
	native, priority := u.running(s), u.int32("SubmitOptions.Priority", options.Priority)
	if u.err != nil {
		u.end()
		return nil, u.err
	}
	r.token = registerIf(fn != nil, r)
	r.mu.Lock() // it may end before its handle is here
	var work int64
	err = fromNative(cdist.Submit(native, r.token, priority, timeoutWithin(r.ctx, options.Timeout), 0, queue,
		options.RequestID, &work))
	if r.work = work; err != nil {
		r.mu.Unlock()
		forget(r.token)
		close(r.done) // for who has found it meanwhile, and waits for its end
		u.end()
		return nil, err
	}
	if r.ctx.Done() != nil {
		r.stop = context.AfterFunc(r.ctx, r.Cancel)
	}
	r.mu.Unlock()
	return r, nil // its end is that of the uses
}

// late says whether a context's deadline has passed, of which the context may not know yet.
func late(ctx context.Context) bool {
	deadline, dated := ctx.Deadline()
	return dated && !time.Now().Before(deadline)
}

func over(ctx context.Context) bool { return ctx.Err() != nil || late(ctx) }

// timeoutWithin is what is left until the end, as libdist has it.
func timeoutWithin(ctx context.Context, timeout time.Duration) int64 {
	if deadline, dated := ctx.Deadline(); dated {
		left := max(time.Until(deadline), 1)
		if timeout == 0 || left < timeout {
			timeout = left
		}
	}
	return int64(timeout)
}

// refused is the error of a request whose context was over before.
func refused(ctx context.Context) error {
	report := endedBefore(ctx, "the context ended before the request was submitted")
	if ctx.Err() == nil {
		report.Code, report.cause = ErrDeadlineExceeded, context.DeadlineExceeded
	}
	return report
}

// Done is closed when the request has ended; Err says how.
func (r *Request) Done() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.done
}

// Err is how the request has ended: nil, what its function returned, or an *Error of libdist's; nil, too, before its end.
func (r *Request) Err() error {
	select {
	case <-r.Done():
		return r.err
	default:
		return nil
	}
}

// Wait waits until the request has ended, and says how, as Err; the end of ctx ends the wait, and the request goes on.
// Not inside a replica of the same strategy, which the request may need.
func (r *Request) Wait(ctx context.Context) error {
	if r == nil {
		return newError(ErrInvalidArgument, "the request is nil: Strategy.Submit gives one")
	}
	return waitFor(ctx, r.done, &r.err, "the context ended the wait; the request goes on")
}

// waitFor waits until done is closed, which says how by then.
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

// Cancel ends the request with ErrCancelled: at once where it is queued; where its function runs, Replica.Check says so. One
// that has ended is as it was.
func (r *Request) Cancel() { r.cancel() }

func (r *Request) cancel() (asked bool) {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.work != 0 && cdist.Dist_work_cancel(r.work) == nil
}

// settle waits until those who wait for a strategy's requests have been told of all that are seen here to have ended.
func (s *Strategy) settle() {
	eachArrival(s, func(a arrival) {
		if _, done := a.of(); a.hasEnded() {
			<-done
		}
	})
}

// arrival is what arrives when it has ended: a request, or an item.
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

// isOver says whether libdist is done with a work; 0: it was before.
func isOver(work int64) bool {
	var out int32
	return work == 0 || cdist.Dist_work_test(work, &out) != nil || out != 0
}

// cancelRequests ends a strategy's requests; how many there were.
func cancelRequests(s *Strategy) (n int64) {
	eachArrival(s, func(a arrival) {
		if a.cancel() {
			n++
		}
	})
	return n
}

// UserData is that of SubmitOptions; nil for nil.
func (r *Request) UserData() any {
	if r == nil {
		return nil
	}
	return r.options.UserData
}

// call runs the request's function and gives the status that libdist passes on.
func (r *Request) call(native int64) (status int) {
	replica := newReplica(native, r.strategy, &r.shared)
	replica.ctx = r.ctx
	if r.own = r.strategy.alone(replica, r.fn); r.own != nil {
		return tell(r.own)
	}
	return 0
}

// arrived ends the request, as libdist says.
func (r *Request) arrived(work int64) {
	r.mu.Lock() // its handle is here
	err := resultOf(r.ctx, r.shared.own(cdist.Dist_work_wait(work, 0)), r.own, "the context ended the request")
	cdist.Dist_work_destroy(work)
	cdist.Dist_work_destroy(r.work)
	r.work = 0
	r.mu.Unlock()
	if r.stop != nil {
		r.stop()
	}
	r.err = err
	r.strategy.drop()
	r.strategy.running.drop()
	forget(r.token) // after the uses: who closes the strategy finds it as long as there are any
	close(r.done)
	if to := r.options.Completions; to != nil {
		select {
		case to <- r:
		default:
			go func() { to <- r }()
		}
	}
}

// resultOf is the function's own error where it has one, else what libdist says, with the context's where that ended it.
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

// arrivals is where all requests of the process arrive when they have ended, which one goroutine takes.
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
		if a := registered[arrival](cdist.Dist_work_user_data(work)); a != nil {
			a.arrived(work)
		} else { // an item that came once more after its end
			cdist.Dist_work_destroy(work)
		}
	}
}
