// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"sync"

	"libdist.example/dist/internal/cdist"
)

// run is one call of Strategy.Run: what the replicas share on Go's side.
type run struct {
	ctx      context.Context
	strategy cdist.Strategy
	fn       func(*Replica) error
	failures []error // one for each replica, written by it alone

	mu      sync.Mutex
	entered int
	left    int
	refused bool // the context ended before a replica was in: fn is not called
}

// Call is what libdist calls on every replica's thread (by SWIG's director). Nothing may unwind out of it.
func (r *run) Call(native cdist.Replica) int {
	returned := false
	defer func() {
		if !returned {
			panic("dist: a replica function called runtime.Goexit (t.FailNow does); see Strategy.Run")
		}
	}()
	status := r.replica(native)
	returned = true
	return status
}

// onNativeThreads runs the replicas on libdist's threads.
func (r *run) onNativeThreads() error {
	body := cdist.NewDirectorReplicaBody(r)
	defer cdist.DeleteDirectorReplicaBody(body)
	return fromNative(r.strategy.Run(body))
}

// onGoroutines runs each replica on a goroutine that libdist takes for a host thread.
func (r *run) onGoroutines() error {
	results := make([]error, len(r.failures))
	var all sync.WaitGroup
	for id := range r.failures {
		all.Add(1)
		go func(id int) {
			defer all.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			r.onThisGoroutine(id, &results[id])
		}(id)
	}
	all.Wait()
	return results[0] // every replica gets the run's status
}

func (r *run) onThisGoroutine(id int, result *error) {
	box := cdist.NewReplicaBox()
	defer cdist.DeleteReplicaBox(box)
	if err := r.strategy.Enter(id, box); err != nil {
		*result = fromNative(err)
		return
	}
	native := box.Get()
	status := int(ErrUnknown) // stays where fn called runtime.Goexit
	defer func() { *result = fromNative(native.Leave(status)) }()
	status = r.replica(native)
}

// replica runs fn as one replica and gives the status that libdist passes to its peers.
func (r *run) replica(native cdist.Replica) (status int) {
	replica := &Replica{native: native, id: native.Id(), replicas: len(r.failures)}
	defer r.leave()
	if refused := r.enter(); refused {
		return r.failed(replica.id, newError(ErrCancelled, "the context ended before the run began"))
	}
	returned := false
	defer func() {
		replica.ended.Store(true)
		if returned {
			return
		}
		if value := recover(); value != nil {
			status = r.failed(replica.id, &PanicError{replica.id, value, debug.Stack()})
		} else {
			status = r.failed(replica.id,
				newError(ErrUnknown, "the replica function ended by runtime.Goexit or panic(nil)"))
		}
	}()
	err := r.fn(replica)
	returned = true
	if err != nil {
		return r.failed(replica.id, err)
	}
	return 0
}

// failed keeps a replica's own error for Run, and tells libdist, on this replica's thread.
func (r *run) failed(id int, err error) int {
	r.failures[id] = err
	code := int32Of(int(codeOf(err)))
	if libdist, ok := err.(*Error); ok && libdist.told {
		return cdist.FailAsTold(code, libdist.Message)
	}
	return cdist.Fail(code, err.Error())
}

// result picks what Run returns: the error of the replica that the report names, as it was returned; else
// that of the lowest replica that failed by itself, not because a peer did.
func (r *run) result(native error) error {
	var report *Error
	if native == nil || !errors.As(native, &report) {
		return native
	}
	own := func(err error) bool { return err != nil && !errors.Is(err, ErrAborted) }
	if id := report.Replica; id >= 0 && id < len(r.failures) && own(r.failures[id]) {
		return r.failures[id]
	}
	for _, err := range r.failures {
		if own(err) {
			return err
		}
	}
	return native
}

// watch cancels the run when ctx ends; the returned function ends the watch.
func (r *run) watch() (stop func()) {
	if r.ctx.Done() == nil {
		return func() {}
	}
	over := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-r.ctx.Done():
			r.cancel()
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-gone
	}
}

// cancel ends this run, and never another one of the same strategy: before the first replica is in, the run
// may still wait for its turn, and when the last is out the next may have begun. In between, the lock keeps
// that last one in.
func (r *run) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entered > 0 && r.left < len(r.failures) {
		_ = r.strategy.Cancel() // fails only for NULL
	}
}

func (r *run) enter() (refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entered == 0 {
		r.refused = r.ctx.Err() != nil
	}
	r.entered++
	return r.refused
}

func (r *run) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left++
}
