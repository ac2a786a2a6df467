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

// ReplicaFunc is a function that is called once on each replica, concurrently.
type ReplicaFunc = func(r *Replica) error

// ValuesFunc is a replica function on values. args is a list or tuple of arguments, and kwargs is a
// dictionary or nil. Each per-replica or mirrored value that the caller put there, at any depth, is replaced
// by this replica's component. Both are closed when the function returns. libdist takes ownership of the
// result; to return v and keep using it, return v.Retain().
type ValuesFunc = func(r *Replica, args, kwargs *Value) (*Value, error)

// RunOptions configures [Strategy.RunValues].
type RunOptions struct {
	Kwargs  *Value        // dictionary of named arguments; may be nil
	Timeout time.Duration // time limit from the call, including the wait for earlier runs; 0 = none
	// EnableDynamicBatchSize and BucketizingDynamicShape are those of TensorFlow's RunOptions. They are accepted
	// without effect, because every size may differ from run to run.
	EnableDynamicBatchSize  Choice
	BucketizingDynamicShape bool
}

// run is one call of Strategy.Run or RunValues: the state that its replicas share.
type run struct {
	ctx      context.Context
	strategy *Strategy
	native   int64
	fn       ReplicaFunc
	values   ValuesFunc
	failed   []error  // one for each replica of this worker, written by it alone
	shared   failures // of functions that replicas gave to libdist

	mu      sync.Mutex
	first   int // the id of this worker's first replica: it may be another one when the run begins (ReformAtNextRun)
	ender   *canceller
	coming  bool   // no function has begun: libdist may not know it yet
	inside  []bool // one for each replica of this worker: its function has begun and has not returned
	entered int
	left    int
	refused bool // the context ended before a replica was in: fn is not called
	overdue bool // Run has returned, and replicas are still inside
}

// Run calls fn once on every replica of this worker, concurrently, and waits for all of them.
//
// If a replica fails, pending and later collectives of the others fail with [ErrAborted], and Run returns the
// error of the replica that failed first, as fn returned it. If several replicas failed on their own account,
// Run joins their errors, with that one first. The next run starts clean.
//
// The end of ctx cancels this run only. If the run waits for earlier ones, Run returns at once. Replicas that
// wait in a collective return at once; Run waits for the others until fn returns. Run then returns an
// [*Error] with [ErrDeadlineExceeded] if ctx reached its deadline, and with [ErrCancelled] otherwise. The
// error wraps ctx.Err() and context.Cause(ctx).
//
// Runs of one strategy are executed one after another, in the order of arrival. With Threads [Goroutines], a
// second run at the same time is rejected. Run is rejected inside fn, but allowed inside a [MergeFunc].
//
// If fn calls [runtime.Goexit], directly or through t.FailNow, t.Fatal or t.Skip, the replica has failed.
// This works with Threads [Goroutines] and with Options.HopGoroutine, which is the default in tests. In all
// other cases, and in other callbacks of libdist, C code waits below the callback for a return that would
// never happen, so the process ends with a message.
func (s *Strategy) Run(ctx context.Context, fn ReplicaFunc) error {
	return s.run(&run{ctx: ctx, fn: fn}, func(r *run, token, cancel int64) error {
		switch {
		case s != nil && s.threads == Goroutines && fn != nil:
			return r.onGoroutines()
		case cancel != 0:
			return cdist.Run_until(r.native, token, cancel)
		}
		return cdist.Dist_run(r.native, token, cdist.SwigcptrDist_run_options(0))
	})
}

// RunValues runs a function on every replica, like [Strategy.Run], with arguments and results. args is a list
// or tuple of arguments; any other value, such as a batch of one tensor, is the only argument; nil means no
// arguments. Results must have the same structure and are merged leaf by leaf into per-replica values. The
// result is nil if no replica returned one; otherwise the caller must close it. options may be nil.
func (s *Strategy) RunValues(ctx context.Context, fn ValuesFunc, args *Value, options *RunOptions) (*Value, error) {
	if options == nil {
		options = &RunOptions{}
	}
	args, err := s.arguments(args)
	if err != nil {
		return nil, err
	}
	defer args.Close()
	if s != nil && s.threads == Goroutines && fn != nil {
		return s.runValuesOnGoroutines(ctx, fn, args, options)
	}
	var u uses
	defer u.end()
	argsHandle, kwargsHandle := u.value(args), u.value(options.Kwargs)
	if u.err != nil {
		return nil, u.err
	}
	native := options.native()
	defer cdist.DeleteDist_run_options(native)
	var out int64
	err = s.run(&run{ctx: ctx, values: fn}, func(r *run, token, cancel int64) error {
		native.SetCancel(cancel)
		return cdist.Dist_run_values(r.native, token, argsHandle, kwargsHandle, native, &out)
	})
	if err != nil {
		return nil, err
	}
	return ownValue(out), nil
}

// arguments returns args as a list or tuple, which the caller must close. A value that is neither becomes the
// only argument.
func (s *Strategy) arguments(args *Value) (*Value, error) {
	if args == nil {
		return nil, nil
	}
	switch args.Kind() {
	case ListValue, TupleValue, NoneValue: // libdist refuses nothing as a list of arguments
		return args.Retain(), nil
	}
	return s.NewTuple(args)
}

func (o *RunOptions) native() cdist.Dist_run_options {
	native := cdist.NewDist_run_options()
	native.SetTimeout_ns(int64(o.Timeout))
	native.SetEnable_dynamic_batch_size(o.EnableDynamicBatchSize.native())
	native.SetBucketizing_dynamic_shape(intOf(o.BucketizingDynamicShape))
	return native
}

// Collect runs fn on every replica of this worker and returns the results in the order of the replicas' ids.
func Collect[T any](ctx context.Context, s *Strategy, fn func(r *Replica) (T, error)) ([]T, error) {
	results := make([]T, s.numLocal())
	err := s.Run(ctx, func(r *Replica) (err error) {
		results[r.place], err = fn(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (s *Strategy) run(r *run, call func(r *run, token, cancel int64) error) error {
	r.ctx = contextOr(r.ctx)
	if r.ctx.Err() != nil && !s.hasPeers() { // who have to hear of it
		return notBegun(r.ctx)
	}
	var u uses
	defer u.end()
	r.strategy = s
	r.failed = make([]error, s.numLocal())
	r.inside = make([]bool, len(r.failed))
	if s != nil {
		r.coming = s.threads != Goroutines
		s.inside.add(r) // before it has the strategy, so that no Shutdown misses it
	}
	if r.native = u.running(s); r.native != 0 {
		r.first = s.firstReplica(r.native)
	}
	cancel, err := r.cancellable(&u)
	if err != nil {
		if s != nil {
			s.inside.remove(r)
		}
		return err
	}
	token := registerIf(r.fn != nil || r.values != nil, r)
	err = fromNative(call(r, token, cancel.handle()))
	r.come()
	if r.over(err) {
		forget(token)
		cancel.end()
		if s != nil {
			s.inside.remove(r)
		}
	} else { // replicas are still inside, after a deadline
		s.held.add(token)
		cancel.endInside()
	}
	err = byContext(r.ctx, r.result(err))
	runtime.KeepAlive(s)
	return err
}

// cancellable returns what cancels the run when its context ends or a Shutdown ends it.
func (r *run) cancellable(u *uses) (*canceller, error) {
	if u.err != nil {
		return nil, u.err
	}
	cancel, err := cancelWith(r.ctx)
	if r.coming && cancel == nil && err == nil {
		cancel, err = cancelAtWill()
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ender = cancel
	return cancel, nil
}

// come records that libdist knows the run, or knew it.
func (r *run) come() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.coming = false
}

// endComing cancels the run if libdist may not know it yet, and reports whether that is so.
func (r *run) endComing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.coming && r.ender != nil {
		r.ender.askFor("Strategy.Shutdown")
	}
	return r.coming
}

// over reports whether no replica can start any more.
func (r *run) over(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.overdue = errors.Is(err, ErrDeadlineExceeded) && r.left < len(r.failed) && r.entered > 0
	return !r.overdue
}

// result selects the error that Run returns: that of the replica that the report names, as its function
// returned it, or else that of the lowest replica that failed on its own account. Own errors of other
// replicas are joined.
func (r *run) result(native error) error {
	report, ok := native.(*Error)
	if !ok {
		return native
	}
	r.mu.Lock() // replicas that a deadline left inside still write
	defer r.mu.Unlock()
	if own := ownOf(r.failed, report.Replica-r.first); own != nil {
		return own
	}
	return r.shared.own(native)
}

// ownOf returns the error of member culprit if it failed on its own account, or else that of the first member
// that did, joined with those of the others. It returns nil if none did.
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
