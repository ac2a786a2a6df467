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

// ReplicaFunc is the program's function, called once on each replica, concurrently.
type ReplicaFunc = func(r *Replica) error

// ValuesFunc is a replica function on values. args is a list or tuple, kwargs a dictionary or nil; wherever the caller
// put a per-replica or mirrored value, this replica finds its own component. Both end with the call. The result is
// taken over: return v.Retain() to keep using v.
type ValuesFunc = func(r *Replica, args, kwargs *Value) (*Value, error)

// RunOptions are the rare choices of RunValues.
type RunOptions struct {
	Kwargs  *Value        // a dictionary of named arguments
	Timeout time.Duration // of the whole run; 0: none
	// TensorFlow's, accepted without effect: here every size may differ from run to run.
	EnableDynamicBatchSize  int // 0: the default, on; 1: on; -1: off
	BucketizingDynamicShape bool
}

// run is one call of Strategy.Run or RunValues: what the replicas share on Go's side.
type run struct {
	ctx      context.Context
	strategy *Strategy
	native   int64
	fn       ReplicaFunc
	values   ValuesFunc
	failed   []error  // one for each replica, written by it alone
	shared   failures // of functions that replicas gave to libdist

	mu      sync.Mutex
	entered int
	left    int
	refused bool // the context ended before a replica was in: fn is not called
}

// Run calls fn once on every replica, at the same time, and waits for all of them.
//
// If a replica fails, the others' pending and later collectives fail with ErrAborted, and Run returns the
// error of the replica that failed first, as fn returned it; where several failed by themselves, all of them, joined,
// that one first. The next run starts clean.
//
// The end of ctx ends replicas that wait in a collective; Run then returns an *Error with ErrCancelled that
// wraps ctx.Err(). A replica that is busy elsewhere ends when fn returns.
//
// Runs of one strategy are served one after another; with Goroutines a second one at the same time is
// refused. Inside fn, Run is refused; inside a merge function it is not.
//
// fn must not call runtime.Goexit, nor what calls it (t.FailNow, t.Fatal, t.Skip): that would tear the
// thread out of libdist's hands, so the process ends with a message. A strategy with Goroutines, or with
// Options.HopGoroutine, survives it: the replica has failed then.
func (s *Strategy) Run(ctx context.Context, fn ReplicaFunc) error {
	return s.run(&run{ctx: ctx, fn: fn}, func(r *run, token int64) error {
		if s != nil && s.threads == Goroutines && fn != nil {
			return r.onGoroutines()
		}
		return cdist.Dist_run(r.native, token, cdist.SwigcptrDist_run_options(0))
	})
}

// RunValues is Run with arguments and results. args is a list or tuple, or nil. Results of the same structure merge leaf
// by leaf into per-replica values; the result is nil where no replica gave one, and is the caller's to close.
// options may be nil. A strategy with Goroutines has Run alone.
func (s *Strategy) RunValues(ctx context.Context, fn ValuesFunc, args *Value, options *RunOptions) (*Value, error) {
	var u uses
	defer u.end()
	if options == nil {
		options = &RunOptions{}
	}
	argsHandle, kwargsHandle := u.value(args), u.value(options.Kwargs)
	if u.err != nil {
		return nil, u.err
	}
	native := cdist.NewDist_run_options()
	defer cdist.DeleteDist_run_options(native)
	native.SetTimeout_ns(int64(options.Timeout))
	native.SetEnable_dynamic_batch_size(int32Of(options.EnableDynamicBatchSize))
	native.SetBucketizing_dynamic_shape(intOf(options.BucketizingDynamicShape))
	var out int64
	err := s.run(&run{ctx: ctx, values: fn}, func(r *run, token int64) error {
		return cdist.Dist_run_values(r.native, token, argsHandle, kwargsHandle, native, &out)
	})
	if err != nil {
		return nil, err
	}
	return ownValue(out), nil
}

// Collect runs fn on every replica and gives what they returned, by replica id.
func Collect[T any](ctx context.Context, s *Strategy, fn func(r *Replica) (T, error)) ([]T, error) {
	results := make([]T, s.NumReplicas())
	err := s.Run(ctx, func(r *Replica) (err error) {
		results[r.ID()], err = fn(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (s *Strategy) run(r *run, call func(r *run, token int64) error) error {
	if r.ctx == nil {
		r.ctx = context.Background()
	}
	if err := r.ctx.Err(); err != nil {
		return cancelled(newError(ErrCancelled, "the context ended before the run began"), err)
	}
	var u uses
	defer u.end()
	r.native = u.strategy(s)
	if u.err != nil {
		return u.err
	}
	r.strategy = s
	r.failed = make([]error, s.NumReplicas())
	token := registerIf(r.fn != nil || r.values != nil, r)
	stop := r.watch()
	err := fromNative(call(r, token))
	stop()
	if r.over(err) {
		forget(token)
	} else { // replicas are still inside, after a deadline
		s.held.add(token)
	}
	err = r.result(err)
	if r.ctx.Err() != nil && errors.Is(err, ErrCancelled) {
		err = cancelled(err, r.ctx.Err())
	}
	runtime.KeepAlive(s)
	return err
}

// over says whether no replica can come any more.
func (r *run) over(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !errors.Is(err, ErrDeadlineExceeded) || r.left == len(r.failed)
}

// result picks what Run returns: the error of the replica that the report names, as it was returned; else
// that of the lowest replica that failed by itself, not because a peer did. Others' own errors are joined.
func (r *run) result(native error) error {
	report, ok := native.(*Error)
	if !ok {
		return native
	}
	r.mu.Lock() // replicas that a deadline left inside still write
	defer r.mu.Unlock()
	if own := ownOf(r.failed, report.Replica); own != nil {
		return own
	}
	return r.shared.own(native)
}

// ownOf is the error of the member `culprit` where that failed by itself, else that of the first which did, with those
// of the others that did; nil where none did.
func ownOf(failed []error, culprit int) error {
	var first error
	if culprit >= 0 && culprit < len(failed) && isOwn(failed[culprit]) {
		first = failed[culprit]
	}
	var others []error
	seen := map[string]bool{}
	for _, err := range failed {
		if !isOwn(err) {
			continue
		}
		if first == nil {
			first = err
		}
		var told *Error
		if err != first && !errors.As(err, &told) && err.Error() != first.Error() && !seen[err.Error()] {
			seen[err.Error()] = true
			others = append(others, err)
		}
	}
	if others != nil {
		return errors.Join(append([]error{first}, others...)...)
	}
	return first
}

func isOwn(err error) bool { return err != nil && !errors.Is(err, ErrAborted) }

// watch cancels the run when ctx ends; the returned function ends the watch.
func (r *run) watch() (stop func()) {
	if r.ctx.Done() == nil {
		return func() {}
	}
	gone := make(chan struct{})
	unwatch := context.AfterFunc(r.ctx, func() {
		defer close(gone)
		r.cancel()
	})
	return func() {
		if !unwatch() {
			<-gone
		}
	}
}

// cancel ends this run, and never another one of the same strategy: before the first replica is in, the run
// may still wait for its turn, and when the last is out the next may have begun. In between, the lock keeps
// that last one in.
func (r *run) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entered > 0 && r.left < len(r.failed) {
		_ = cdist.Dist_strategy_cancel(r.native) // fails only for NULL
	}
}
