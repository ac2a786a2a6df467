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

// instances holds the functions of one OpenInstances call until the last state has been destroyed.
type instances struct {
	options  InstancesOptions
	given    *attached
	token    int64
	failures failures

	mu   sync.Mutex
	live int  // states
	over bool // no state comes any more
}

// instanceState is the state of an instance, which libdist knows by a token.
type instanceState struct{ state any }

// end declares that no more states will be created. Existing ones may live longer, inside a function that
// still runs.
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
		i.given.end()
	}
}

// call runs a function of the program as an instance and returns the status for libdist.
func (i *instances) call(native int64, fn func(r *Replica) error) (status int) {
	s := strategyOf(cdist.Dist_replica_strategy(native))
	if err := s.alone(newReplica(native, s, &i.failures), fn); err != nil {
		return i.failures.fail(err)
	}
	return 0
}

// alone calls a function of a replica that has no peers and that C code has called.
func (s *Strategy) alone(r *Replica, fn func(r *Replica) error) error {
	s.entered.enter(r.id)
	defer s.hasLeft()
	defer s.entered.leave(r.id)
	defer r.end()
	if s.hop {
		return onGoroutine(r.native, r.id, func() error { return fn(r) })
	}
	return onNative(r.id, func() error { return fn(r) })
}

// Create_state is called by libdist on an instance's thread.
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

// Destroy_state destroys what Create_state has created. It ignores panics of the program's function.
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

// OpenInstances prepares the replicas for requests: each instance creates its state and warms up. If the
// instances are not open, the first [Strategy.Submit] opens them with default options. With Threads
// [Goroutines], the instances are the goroutines that call [Strategy.Serve], and each creates its state
// there.
//
// OpenInstances blocks until earlier runs have ended and all instances are ready. If CreateState or WarmUp
// fails, it returns the error of the lowest replica that failed, unchanged. It fails if the strategy has the
// default Threads, with which the caller of Run is replica 0: set Options.Threads to [LibraryThreads] or
// [Goroutines]. [Strategy.CloseInstances] and [Strategy.Shutdown] close the instances.
func (s *Strategy) OpenInstances(options InstancesOptions) error {
	var u uses
	defer u.end()
	strategy := u.busy(s)
	if u.err != nil {
		return u.err
	}
	native := options.native(&u)
	defer cdist.DeleteDist_instances_options(native)
	if u.err != nil {
		return u.err
	}
	if strategy == 0 {
		return fromNative(cdist.Dist_instances_open(0, native))
	}
	i := &instances{options: options, given: u.keep()}
	i.token = register(i)
	native.Set_functions(i.token, intOf(options.CreateState != nil), intOf(options.WarmUp != nil))
	if err := i.failures.own(cdist.Dist_instances_open(strategy, native)); err != nil {
		i.end()
		return err
	}
	s.held.opens(i)
	return nil
}

// opens keeps the functions of open instances; earlier instances have closed.
func (h *holdings) opens(i *instances) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.instances.end()
	h.instances = i
}

// endsStates reports whether functions of the program run when the strategy ends.
func (h *holdings) endsStates() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.instances != nil && h.instances.options.DestroyState != nil
}

// CloseInstances stops serving. New calls of Submit fail with [ErrUnavailable], accepted requests run to
// completion, and then each instance destroys its state. The instances can be opened again afterwards.
//
// When ctx ends, libdist cancels the remaining requests: queued ones complete at once, and running ones are
// cancelled as with [Request.Cancel]. CloseInstances then fails with [ErrDeadlineExceeded] or [ErrCancelled];
// the error wraps that of the context and states how many requests were cancelled. If a running function
// ignores the cancellation, CloseInstances waits for it, unless ctx had a deadline; then it waits only a
// short time longer.
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

// closeInstances returns when all completed requests have been delivered.
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

// Serve makes the calling goroutine instance id of a strategy with Threads [Goroutines], locked to its
// thread, until [Strategy.CloseInstances] or [Strategy.Shutdown] closes the instances. If the instances are
// not open, it opens them with default options. If CreateState or WarmUp fails, Serve returns the error
// unchanged.
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
	if report, ok := err.(*Error); ok && s.orNil() != nil {
		if own := s.held.reason(report); own != nil {
			return own
		}
	}
	return err
}

// reason returns the error of the instances' functions that a report describes, or nil if there is none.
func (h *holdings) reason(report *Error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.instances == nil {
		return nil
	}
	return h.instances.failures.reason(report)
}

// InstanceState returns the state that CreateState created for this instance. It returns nil if there is
// none, or if the function does not serve a request.
func (r *Replica) InstanceState() any {
	if r == nil || r.ended.Load() {
		return nil
	}
	if held := registered[*instanceState](cdist.Dist_instance_state(r.native)); held != nil {
		return held.state
	}
	return nil
}

// InstanceState returns the state that CreateState created for this instance, as a T. It returns the zero T
// if there is no state or if the state has another type.
func InstanceState[T any](r *Replica) T {
	state, _ := r.InstanceState().(T)
	return state
}

// Check returns nil while the function that this replica runs may continue, and otherwise the reason why it
// should stop. Call it from time to time in long functions that call no collectives; collectives check by
// themselves.
func (r *Replica) Check() error {
	if err := r.check(); err != nil {
		return err
	}
	return r.told(cdist.Dist_replica_check(r.handle()))
}
