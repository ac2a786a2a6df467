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

// replicas maps handles to the *Replica whose function runs.
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
	if s.replica == nil || s.replica.native != native { // another thread's, at the same address
		s.replica = &Replica{native: native, id: cdist.Dist_replica_id(native), strategy: s, shared: &failures{}}
	}
	return s.replica
}

// errTooLate is the error of a replica that starts after its run has been abandoned, when the run's data is
// gone.
var errTooLate = newError(ErrDeadlineExceeded, "the run was over before this replica began")

// Replica is called by libdist on every replica's thread.
func (callbacks) Replica(token, replica int64) int {
	switch r := registered[any](token).(type) {
	case *run:
		return r.call(replica, func(replica *Replica) error { return r.fn(replica) })
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

// call runs the program's function as one replica and returns the status for its peers.
func (r *run) call(native int64, fn func(*Replica) error) (status int) {
	replica := newReplica(native, r.strategy, &r.shared)
	replica.ctx = r.ctx
	defer r.leave(replica.id)
	defer replica.end()
	if refused := r.enter(replica); refused {
		return r.fail(replica.id, notBegun(r.ctx))
	}
	guard := onNative
	if r.strategy.threads == Goroutines {
		guard = protect
	} else if r.strategy.hop {
		guard = func(id int, fn func() error) error { return onGoroutine(native, id, fn) }
	}
	if err := guard(replica.id, func() error { return fn(replica) }); err != nil {
		return r.fail(replica.id, err)
	}
	return 0
}

// fail keeps a replica's own error for Run and passes it to libdist, on this replica's thread.
func (r *run) fail(id int, err error) int {
	r.mu.Lock()
	r.failed[id-r.first] = err
	r.mu.Unlock()
	return tell(err)
}

func (r *run) enter(replica *Replica) (refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entered == 0 {
		if r.strategy.threads != Goroutines { // which libdist does not re-form for, and which read it
			r.first = r.strategy.firstReplica(cdist.Dist_replica_strategy(replica.native))
		}
		r.refused = r.ctx.Err() != nil
	}
	replica.place = replica.id - r.first
	r.inside[replica.place] = true
	r.entered++
	r.coming = false
	return r.refused
}

func (r *run) leave(id int) {
	r.mu.Lock()
	r.inside[id-r.first] = false
	r.left++
	last := r.overdue && r.left == len(r.failed)
	r.mu.Unlock()
	if last {
		r.strategy.inside.remove(r)
	}
	r.strategy.hasLeft()
}

// insideNow returns the replicas whose functions have not returned.
func (r *run) insideNow() (ids []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, inside := range r.inside {
		if inside {
			ids = append(ids, r.first+i)
		}
	}
	return ids
}
