// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// A Replica is one running copy of the replica function: its id, and its side of every collective. It is
// valid inside the function that received it; afterwards its collectives fail with [ErrFailedPrecondition].
// Inside [Replica.RunOnDevices], a *Replica is a logical device of a replica, and its collectives are among
// the devices of that replica.
type Replica struct {
	native   int64
	id       int
	place    int // in a run: its number among this worker's replicas
	strategy *Strategy
	shared   *failures // of functions that this run's replicas gave to libdist
	host     bool      // it came by Strategy.Enter
	ended    atomic.Bool
	ctx      context.Context // of its run; nil: none

	works sync.Map // *Work that it began: they must not end by the garbage collector while it runs
}

// replicas maps handles to the *Replica whose function runs, except for the replicas of runs: their strategy has those.
var replicas sync.Map // int64 to *Replica

// ID returns this replica's id in 0 to NumReplicas()-1, which is its rank in every collective. For a logical
// device, both numbers count the devices of its replica. ID returns -1 for nil.
func (r *Replica) ID() int {
	if r == nil {
		return -1
	}
	return r.id
}

// NumReplicas returns the number of replicas in sync. It returns 0 for nil and after the replica's function
// has returned.
func (r *Replica) NumReplicas() int {
	if r == nil || r.ended.Load() {
		return 0
	}
	return cdist.Dist_replica_num_replicas(r.native)
}

// Strategy returns the strategy that runs this replica, which functions that create values need; nil for nil.
func (r *Replica) Strategy() *Strategy {
	if r == nil {
		return nil
	}
	return r.strategy
}

// check rejects a replica whose function has returned, because C would read freed memory. libdist itself
// rejects nil.
func (r *Replica) check() error {
	if r != nil && r.ended.Load() {
		return newError(ErrFailedPrecondition,
			"replica %d is not running. Its handle is valid only inside its function.", r.id)
	}
	return nil
}

// handle returns 0 for nil.
func (r *Replica) handle() int64 {
	if r == nil {
		return 0
	}
	return r.native
}

// given returns the failures of callbacks that the run's replicas passed to libdist.
func (r *Replica) given() *failures {
	if r == nil {
		return &failures{}
	}
	return r.shared
}

// told returns the error of a call on this replica, which the end of the run's context may have caused.
func (r *Replica) told(err error) error {
	if err == nil {
		return nil
	}
	err = fromNative(err)
	if r == nil {
		return err
	}
	return byContext(r.ctx, err)
}

// replica returns the handle of an argument.
func (u *uses) replica(r *Replica) int64 {
	u.fail(r.check())
	if u.err != nil {
		return 0
	}
	return r.handle()
}

func newReplica(native int64, s *Strategy, shared *failures) *Replica {
	r := &Replica{native: native, id: cdist.Dist_replica_id(native), strategy: s, shared: shared}
	replicas.Store(native, r)
	return r
}

func (r *Replica) end() {
	r.ended.Store(true)
	replicas.Delete(r.native)
}

// replicaOf returns the *Replica of a handle: the one whose function runs, or a thread's default one.
func replicaOf(native int64) *Replica {
	if native == 0 {
		return nil
	}
	if known, ok := replicas.Load(native); ok {
		return known.(*Replica)
	}
	s := strategyOf(cdist.Dist_replica_strategy(native))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.inside {
		if known := r.replica(native); known != nil {
			return known
		}
	}
	if s.replica == nil || s.replica.native != native { // another thread's, at the same address
		s.replica = &Replica{native: native, id: cdist.Dist_replica_id(native), strategy: s, shared: &failures{}}
	}
	return s.replica
}

// errTooLate is the error of a replica that starts after its run has been abandoned, when the run's data is
// gone.
var errTooLate = newError(ErrDeadlineExceeded, "the run was over before this replica began")

// Replica is called by libdist on every replica's thread.
func (callbacks) Replica(token, replica int64, id, _ int) int {
	switch r := registered[any](token).(type) {
	case *run:
		return r.callAs(replica, id, nil)
	case *Request:
		return r.call(replica)
	}
	return tell(errTooLate)
}

// valuesRun is a run with a function on values: a run of replicas, or a run on a replica's logical devices.
type valuesRun interface {
	call(native int64, fn func(*Replica) error) (status int)
	onValues() ValuesFunc
}

func (r *run) onValues() ValuesFunc { return r.values }

// Values is like Replica, for RunValues and RunOnDevices.
func (callbacks) Values(token, replica, args, kwargs int64) int64 {
	r := registered[valuesRun](token)
	if r == nil {
		return -int64(tell(errTooLate))
	}
	var out int64
	status := r.call(replica, func(replica *Replica) (err error) {
		given := [2]*Value{lend(args), lend(kwargs)}
		defer given[0].Close()
		defer given[1].Close()
		result, err := r.onValues()(replica, given[0], given[1])
		if err == nil {
			out, err = result.handOver()
		}
		return err
	})
	if status != 0 {
		return -int64(status)
	}
	return out
}

// call runs a function as one replica and returns the status for its peers.
func (r *run) call(native int64, fn func(*Replica) error) (status int) {
	return r.callAs(native, cdist.Dist_replica_id(native), fn)
}

// callAs is call for a replica whose id is known. If fn is nil, it runs the run's ReplicaFunc.
func (r *run) callAs(native int64, id int, fn func(*Replica) error) (status int) {
	turn := r.turn.Load() // first: this goroutine sees what Run has written
	if fn == nil {
		fn = r.fn
	}
	replica := &Replica{native: native, id: id, strategy: r.strategy, shared: &r.shared, ctx: r.ctx}
	defer r.leave(replica, turn)
	if !r.enter(replica) {
		return r.fail(id, notBegun(r.ctx))
	}
	var err error
	switch {
	case r.strategy.threads == Goroutines:
		err = protect(id, func() error { return fn(replica) })
	case r.strategy.hop:
		err = onGoroutineAs(replica, fn)
	default:
		err = onNative(id, func() error { return fn(replica) })
	}
	if err != nil {
		return r.fail(id, err)
	}
	return 0
}

// onGoroutineAs is onGoroutine for a replica's function.
func onGoroutineAs(replica *Replica, fn func(*Replica) error) error {
	return onGoroutine(replica.native, replica.id, func() error { return fn(replica) })
}

// fail keeps a replica's own error for Run and passes it to libdist, on this replica's thread.
func (r *run) fail(id int, err error) int {
	r.mu.Lock()
	r.failed[id-r.first] = err
	r.mu.Unlock()
	return tell(err)
}

// enter records that a replica is inside, and reports whether its function is to be called.
func (r *run) enter(replica *Replica) bool {
	if r.strategy.hasPeers() && r.strategy.threads != Goroutines { // which libdist does not re-form for, and which read it
		r.mu.Lock()
		if !r.placed {
			r.placed, r.first = true, r.strategy.firstReplica(cdist.Dist_replica_strategy(replica.native))
		}
		r.mu.Unlock()
	}
	replica.place = replica.id - r.first
	r.places[replica.place].inside.Store(replica) // before the context is checked: if it ends later, cancel() finds the replica
	if r.ctx.Done() != nil {
		verdict := int32(acceptedRun)
		if r.ctx.Err() != nil {
			verdict = refusedRun
		}
		r.verdict.CompareAndSwap(undecidedRun, verdict)
	}
	return r.verdict.Load() != refusedRun
}

// leave records that a replica's function has returned.
func (r *run) leave(replica *Replica, turn int64) {
	replica.ended.Store(true)
	s := r.strategy
	if s.threads == Goroutines { // a cancel under way keeps the last one inside
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	place := &r.places[replica.place]
	place.left.Store(turn)
	place.inside.Store(nil)
	if r.overdue.Load() && r.left() {
		s.forgetRun(r)
	}
	s.hasLeft()
}

// insideNow returns the replicas whose functions have not returned.
func (r *run) insideNow() (ids []int) {
	for i := range r.places {
		if replica := r.places[i].inside.Load(); replica != nil {
			ids = append(ids, replica.id)
		}
	}
	return ids
}

// replica returns the replica of a handle if it is inside.
func (r *run) replica(native int64) *Replica {
	for i := range r.places {
		if replica := r.places[i].inside.Load(); replica != nil && replica.native == native {
			return replica
		}
	}
	return nil
}
