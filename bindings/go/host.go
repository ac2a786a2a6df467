// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"sync"

	"libdist.example/dist/internal/cdist"
)

// onGoroutines runs each replica on a goroutine that libdist takes for a host thread.
func (r *run) onGoroutines() error {
	// Two runs' goroutines would enter each other's run; the native threads know which run they serve.
	if !r.strategy.hosts.TryLock() {
		return newError(ErrFailedPrecondition,
			"a run is under way: a strategy with Goroutines does one at a time, and none inside a replica")
	}
	defer r.strategy.hosts.Unlock()
	results := make([]error, len(r.failed))
	var all sync.WaitGroup
	for id := range r.failed {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			r.onThisGoroutine(id, &results[id])
		}()
	}
	all.Wait()
	return results[0] // every replica gets the run's status
}

func (r *run) onThisGoroutine(id int, result *error) {
	var replica int64
	if err := cdist.Dist_replica_enter(r.native, id, &replica); err != nil {
		*result = fromNative(err)
		return
	}
	status := 0
	over := false
	defer func() {
		if !over { // fn called runtime.Goexit, which still runs this
			status = r.fail(id, errGoexit)
		}
		*result = fromNative(cdist.Dist_replica_leave(replica, status))
	}()
	status = r.call(replica, r.fn)
	over = true
}

// Enter makes the calling goroutine replica id of a strategy with Goroutines, and locks it to its thread, until
// Replica.Leave. The first to enter begins a run, and each replica enters it once; the run ends when all have entered
// and left. Run does all that with goroutines of its own.
func (s *Strategy) Enter(id int) (*Replica, error) {
	var u uses
	native := u.strategy(s)
	if u.err != nil {
		return nil, u.err
	}
	runtime.LockOSThread()
	var replica int64
	if err := cdist.Dist_replica_enter(native, int32Of(id), &replica); err != nil {
		runtime.UnlockOSThread()
		u.end()
		return nil, fromNative(err)
	}
	r := newReplica(replica, s, &failures{})
	r.host = true
	return r, nil // Leave ends the use of the strategy
}

// Leave ends the part of a replica that entered by Strategy.Enter, on the goroutine that entered: with err, or well where
// that is nil. It waits until all replicas have left, and gives every one of them the run's error; the one whose
// error it is gets it back as it was.
func (r *Replica) Leave(err error) error {
	if refused := r.check(); refused != nil {
		return refused
	}
	if !r.host || cdist.Dist_get_replica() != r.native {
		return newError(ErrFailedPrecondition,
			"Leave is for a replica that entered by Strategy.Enter, on the goroutine that entered")
	}
	status := 0
	if err != nil {
		status = r.shared.fail(err)
	}
	result := r.shared.own(cdist.Dist_replica_leave(r.native, status))
	r.end()
	r.strategy.drop()
	runtime.UnlockOSThread()
	return result
}
