// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// ReplicaFunc is a function that is called once on each replica, concurrently.
type ReplicaFunc = func(r *Replica) error

// ValuesFunc is a replica function on values. args is a list or tuple of arguments, and kwargs is a
// dictionary or nil. Each per-replica or mirrored value that the caller put there, at any depth, is replaced
// by this replica's component. Both are closed when the function returns. libdist takes ownership of the
// result; to return v and keep using it, return v.Retain().
type ValuesFunc = func(r *Replica, args, kwargs *Value) (*Value, error)

// run is one call of Strategy.Run or RunValues: the state that its replicas share. If a run succeeds, the next one
// of its strategy uses the same object again, with its token.
//
// An empty run takes less than a microsecond, so a replica takes no lock and writes only to its own cache line.
type run struct {
	// Written by Run and read by replicas: as few cache lines as possible.
	turn     atomic.Int64 // how many runs have used this object
	ctx      context.Context
	strategy *Strategy
	native   int64
	fn       ReplicaFunc
	values   ValuesFunc
	first    int // the id of this worker's first replica: it may be another one when the run begins (ReformAtNextRun)

	// Rarely written.
	token   int64        // 0: none
	places  []placement  // one for each replica of this worker
	verdict atomic.Int32 // whether the functions are called
	overdue atomic.Bool  // Run has returned, and replicas are still inside
	mu      sync.Mutex   // of failed, and of first until placed
	placed  bool         // first is that of the workers that take part
	failed  []error      // one for each replica of this worker
	shared  failures     // of functions that replicas gave to libdist
	_       [64]byte
}

// placement is the place of one replica in a run.
type placement struct {
	inside atomic.Pointer[Replica] // while its function runs
	left   atomic.Int64            // the turn of the latest run in which its function has returned
	_      [48]byte
}

// A run does not call its functions if its context ended before the first replica was in.
const (
	undecidedRun = iota
	acceptedRun
	refusedRun
)

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
	return s.run(ctx, fn, nil, func(r *run, cancel int64) error {
		switch {
		case s != nil && s.threads == Goroutines && fn != nil:
			return r.onGoroutines()
		case cancel != 0:
			return cdist.Run_until(r.native, r.token, cancel)
		}
		return cdist.Dist_run(r.native, r.token, cdist.SwigcptrDist_run_options(0))
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
	argsHandle, kwargsHandle, native := u.value(args), u.value(options.Kwargs), options.native(&u)
	defer cdist.DeleteDist_run_options(native)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err = s.run(ctx, nil, fn, func(r *run, cancel int64) error {
		native.SetCancel(cancel)
		return cdist.Dist_run_values(r.native, r.token, argsHandle, kwargsHandle, native, &out)
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

func (s *Strategy) run(ctx context.Context, fn ReplicaFunc, values ValuesFunc, call func(r *run, cancel int64) error) error {
	ctx, s = contextOr(ctx), s.orNil()
	if ctx.Err() != nil && !s.hasPeers() { // peers must be notified
		return notBegun(ctx)
	}
	r := s.newRun(fn != nil || values != nil)
	r.ctx, r.strategy, r.fn, r.values = ctx, s, fn, values
	cancel, err := cancelWith(ctx)
	if err != nil {
		forget(r.token)
		return err
	}
	if s != nil {
		r.first = s.first
	}
	r.turn.Add(1) // replicas see what has been written so far, and entered() means this run
	if s != nil {
		if r.native, err = s.takeRun(r); err != nil {
			r.end(cancel)
			return err
		}
		if s.hasPeers() {
			r.place(s.firstReplica(r.native))
		}
	}
	err = fromNative(call(r, cancel.handle()))
	if s == nil {
		r.end(cancel)
		return err
	}
	if err == nil {
		s.dropRun(r)
		r.endWell(s, cancel)
		return nil
	}
	if r.over(err) {
		r.end(cancel)
		s.dropRun(r)
	} else { // replicas are still inside, after a deadline
		s.held.add(r.token)
		cancel.endInside()
		s.dropRun(nil)
	}
	return byContext(ctx, r.result(err))
}

// newRun returns a run of a strategy, which may be nil. Unless the program has given no function, the run has a
// token.
func (s *Strategy) newRun(given bool) *run {
	if s != nil && given {
		if r := s.held.spare.Swap(nil); r != nil {
			return r
		}
	}
	r := &run{failed: make([]error, s.numLocal()), places: make([]placement, s.numLocal())}
	r.token = registerIf(given, r)
	return r
}

// place sets the id of the first replica on this worker.
func (r *run) place(first int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = first
}

// entered reports whether the function of a replica has begun.
func (r *run) entered() bool {
	turn := r.turn.Load()
	for i := range r.places {
		if place := &r.places[i]; place.inside.Load() != nil || place.left.Load() == turn {
			return true
		}
	}
	return false
}

// left reports whether the functions of all replicas have returned. This goroutine then sees what they have
// written.
func (r *run) left() bool {
	turn := r.turn.Load()
	for i := range r.places {
		if r.places[i].left.Load() != turn {
			return false
		}
	}
	return true
}

// over reports whether no replica can start any more.
func (r *run) over(err error) bool {
	if !errors.Is(err, ErrDeadlineExceeded) || !r.entered() {
		return true
	}
	r.overdue.Store(true)
	return r.left() // else the last one to leave finds it overdue
}

// end ends a run that no replica can start any more.
func (r *run) end(cancel *canceller) {
	cancel.end()
	forget(r.token)
}

// endWell ends a run of s that has succeeded, and keeps it for the next one.
func (r *run) endWell(s *Strategy, cancel *canceller) {
	cancel.end()
	if raceDetector { // it does not see that libdist's threads have finished
		r.left()
	}
	if s.threads == Goroutines || s.borrowed || r.shared.some.Load() {
		forget(r.token)
		return
	}
	// The registry refers to r, which must not keep objects of the program alive.
	r.ctx, r.strategy, r.fn, r.values = nil, nil, nil, nil
	if r.placed {
		r.placed = false
	}
	if r.verdict.Load() != undecidedRun {
		r.verdict.Store(undecidedRun)
	}
	s.held.keepRun(r)
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
