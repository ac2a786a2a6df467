// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"libdist.example/dist/internal/cdist"
)

// InstancesOptions are the choices of OpenInstances; zero fields mean the default.
type InstancesOptions struct {
	// CreateState makes the state of an instance, on its thread: InstanceState gives it to each request's function. An
	// error, and the instances do not open. nil: they have no state.
	CreateState func(r *Replica) (any, error)
	// DestroyState ends it, on the same thread, when the instances close. nil: nothing is done at its end.
	DestroyState func(state any)
	// WarmUp is called once on each instance, after CreateState, before it gets requests. nil: nothing.
	WarmUp func(r *Replica) error

	MaxQueued int           // requests that no instance has begun; one more is refused; 0: 1024
	Spin      time.Duration // how long a free instance looks for the next request before it sleeps; 0: 60 us; < 0: not at all
	// HelperThreads: with Goroutines, whether libdist may start the thread that watches deadlines. Else it always may.
	HelperThreads bool
	// Stuck is how long after its deadline or cancel a request's function may go on before its replica gets another thread,
	// which makes a state of its own and warms up; 0: that is never done. A batcher's step may go on as long after one of its
	// items was to end: then all items of its instance end, with ErrUnavailable where they were not to. Not with Goroutines.
	Stuck       time.Duration
	MaxReplaced int // how often that may be done; 0: 4 times
}

// instances are the program's functions of one OpenInstances, until the last state has ended.
type instances struct {
	options  InstancesOptions
	token    int64
	failures failures

	mu   sync.Mutex
	live int  // states
	over bool // no state comes any more
}

// instanceState is the state of an instance, as libdist has its token.
type instanceState struct{ state any }

// end says that no state is made any more; those that are there may outlive it inside a function.
func (i *instances) end() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	i.forgetUnused()
}

func (i *instances) forgetUnused() {
	if i.over && i.live == 0 {
		forget(i.token)
	}
}

// call runs one of the program's functions as an instance, and gives the status that libdist passes on.
func (i *instances) call(native int64, fn func(r *Replica) error) (status int) {
	s := strategyOf(cdist.Dist_replica_strategy(native))
	if err := s.alone(newReplica(native, s, &i.failures), fn); err != nil {
		return i.failures.fail(err)
	}
	return 0
}

// alone calls a function of a replica that has no peers, and that has C's frames below it.
func (s *Strategy) alone(r *Replica, fn func(r *Replica) error) error {
	s.inside.enter(r.id)
	defer s.hasLeft()
	defer s.inside.leave(r.id)
	defer r.end()
	if s.hop {
		return onGoroutine(r.native, r.id, func() error { return fn(r) })
	}
	return onNative(r.id, func() error { return fn(r) })
}

// Create_state is what libdist calls on an instance's thread.
func (callbacks) Create_state(token, replica int64) int64 {
	i := registered[*instances](token)
	if i == nil {
		return -int64(tell(errTooLate))
	}
	var made any
	if status := i.call(replica, func(r *Replica) (err error) {
		made, err = i.options.CreateState(r)
		return err
	}); status != 0 {
		return -int64(status)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.live++
	return register(&instanceState{made})
}

// Destroy_state ends what Create_state has made; what the program's function does wrong stays there.
func (callbacks) Destroy_state(token, state int64) {
	held := registered[*instanceState](state)
	forget(state)
	i := registered[*instances](token)
	if i == nil || held == nil {
		return
	}
	if i.options.DestroyState != nil {
		_ = onNative(-1, func() error {
			i.options.DestroyState(held.state)
			return nil
		})
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.live--
	i.forgetUnused()
}

// Warm_up is called after Create_state.
func (callbacks) Warm_up(token, replica int64) int {
	i := registered[*instances](token)
	if i == nil {
		return tell(errTooLate)
	}
	return i.call(replica, i.options.WarmUp)
}

// OpenInstances makes the replicas ready for requests: each makes its state and warms up. The first Submit does it with the
// default options where nobody has. With Goroutines the instances are those that call Serve, and each makes its state there.
//
// It waits until runs that came before have ended and all instances are ready. What CreateState or WarmUp returned comes
// back as it was, of the lowest replica that failed. Where the caller of Run is replica 0, the default, no instance can be
// opened: Options.Threads is LibraryThreads then, or Goroutines. CloseInstances ends them, and so does Shutdown.
func (s *Strategy) OpenInstances(options InstancesOptions) error {
	var u uses
	defer u.end()
	strategy := u.busy(s)
	if u.err != nil {
		return u.err
	}
	native := cdist.NewDist_instances_options()
	defer cdist.DeleteDist_instances_options(native)
	native.SetMax_queued(int64(options.MaxQueued))
	native.SetSpin_ns(int64(options.Spin))
	native.SetHelper_threads(intOf(options.HelperThreads))
	native.SetStuck_ns(int64(options.Stuck))
	native.SetMax_replaced(u.int32("InstancesOptions.MaxReplaced", options.MaxReplaced))
	if u.err != nil {
		return u.err
	}
	if s == nil {
		return fromNative(cdist.Dist_instances_open(0, native))
	}
	i := &instances{options: options}
	i.token = register(i)
	native.Set_functions(i.token, intOf(options.CreateState != nil), intOf(options.WarmUp != nil))
	if err := i.failures.own(cdist.Dist_instances_open(strategy, native)); err != nil {
		i.end()
		return err
	}
	s.held.opens(i)
	return nil
}

// opens keeps the functions of instances that have opened; those before them have closed.
func (h *holdings) opens(i *instances) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.instances.end()
	h.instances = i
}

// endsStates says whether functions of the program's run when the strategy ends.
func (h *holdings) endsStates() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.instances != nil && h.instances.options.DestroyState != nil
}

// CloseInstances ends the serving: from now on Submit fails with ErrUnavailable, what was accepted runs to its end, and then
// each instance ends its state. Afterwards they may be opened again.
//
// Requests that have not ended at the end of ctx are cancelled: those that are queued at once, and those whose functions
// run as by Request.Cancel. The error then has ErrDeadlineExceeded, or ErrCancelled, with the context's, and says how many
// they were. A function that does not heed that is waited for, but where ctx has a deadline, a moment longer than that.
func (s *Strategy) CloseInstances(ctx context.Context) error {
	var u uses
	defer u.end()
	strategy := u.busy(s)
	if u.err != nil {
		return u.err
	}
	ctx = contextOr(ctx)
	if ctx.Done() == nil {
		return s.closeInstances(strategy, int64(NoTimeout))
	}
	timeout := int64(NoTimeout)
	if deadline, dated := ctx.Deadline(); dated {
		timeout = int64(max(time.Until(deadline), 0))
	} else if ctx.Err() != nil {
		timeout = 0
	}
	var cancelled atomic.Int64
	asked := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(asked)
		cancelled.Add(cancelRequests(s))
	})
	err := s.closeInstances(strategy, timeout)
	if !stop() {
		<-asked
	}
	report, ok := err.(*Error)
	if n := cancelled.Load(); err == nil && n > 0 {
		return endedBefore(ctx, fmt.Sprintf("%d requests had not ended at the end of the context, and were cancelled", n))
	} else if ok && report.Code == ErrDeadlineExceeded {
		if report.cause = context.DeadlineExceeded; ctx.Err() != nil {
			report.Code, report.cause = codeOf(ctx.Err()), why(ctx)
		}
	}
	return err
}

// closeInstances returns when those who wait for requests have been told of all that have ended.
func (s *Strategy) closeInstances(native, timeout int64) error {
	var accepted []arrival
	eachArrival(s, func(a arrival) { accepted = append(accepted, a) })
	if err := fromNative(cdist.Dist_instances_close(native, timeout)); err != nil {
		s.settle()
		return err
	}
	for _, a := range accepted { // all have ended
		_, done := a.of()
		<-done
	}
	return nil
}

// Serve makes the calling goroutine instance id of a strategy with Goroutines, locked to its thread, until the instances
// close: CloseInstances, Shutdown. Where none are open, it opens them with the default options. What CreateState or WarmUp
// returned comes back as it was.
func (s *Strategy) Serve(id int) error {
	var u uses
	native, id := u.running(s), u.int32("id", id)
	defer u.end()
	if u.err != nil {
		return u.err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := fromNative(cdist.Dist_serve(native, id))
	if report, ok := err.(*Error); ok && s != nil {
		if own := s.held.reason(report); own != nil {
			return own
		}
	}
	return err
}

// reason is the error of the instances' functions that a report speaks of; nil: it speaks of none.
func (h *holdings) reason(report *Error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.instances == nil {
		return nil
	}
	return h.instances.failures.reason(report)
}

// InstanceState is what CreateState made for this instance; nil: it has none, or the function is no request's.
func (r *Replica) InstanceState() any {
	if r == nil || r.ended.Load() {
		return nil
	}
	if held := registered[*instanceState](cdist.Dist_instance_state(r.native)); held != nil {
		return held.state
	}
	return nil
}

// InstanceState is what CreateState made for this instance, of the type that it has; the zero T where it has another one, or
// none.
func InstanceState[T any](r *Replica) T {
	state, _ := r.InstanceState().(T)
	return state
}

// Check says whether the function that this replica runs is to end: nil while it may go on. A long function asks it now and
// then, where it calls no collectives, which find out for themselves.
func (r *Replica) Check() error {
	if err := r.check(); err != nil {
		return err
	}
	return r.told(cdist.Dist_replica_check(r.handle()))
}
