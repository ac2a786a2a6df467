// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"

	"libdist.example/dist/internal/cdist"
)

// The questions below are about the calling thread: tf.distribute's current strategy. In Go they make sense where the
// goroutine keeps its thread: in a function that libdist called, inside Scope, and after
// runtime.LockOSThread.

// Scope runs fn in the strategy's scope, in the cross-replica context, with the goroutine locked to its thread. Scopes
// of the same strategy may be inside each other. Inside, functions of other strategies are refused.
func (s *Strategy) Scope(fn func() error) (err error) {
	return s.during(fn, cdist.Dist_scope_enter, cdist.Dist_scope_exit)
}

// during is fn between two calls on one thread; the second one also where fn panics or calls runtime.Goexit.
func (s *Strategy) during(fn func() error, enter, exit func(int64) error) (err error) {
	if fn == nil {
		return newError(ErrInvalidArgument, "fn is nil: pass the function that runs in the scope")
	}
	var u uses
	defer u.end()
	native := u.busy(s)
	if u.err != nil {
		return u.err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := enter(native); err != nil {
		return fromNative(err)
	}
	defer func() {
		if left := exit(native); left != nil && err == nil {
			err = fromNative(left)
		}
	}()
	return fn()
}

// ScopeEnter puts the calling thread into the strategy's scope until ScopeExit; Scope does both. The goroutine is locked
// to its thread in between.
func (s *Strategy) ScopeEnter() error {
	return s.lock(cdist.Dist_scope_enter)
}

// ScopeExit leaves the scope that this thread has entered last.
func (s *Strategy) ScopeExit() error {
	return s.unlock(cdist.Dist_scope_exit)
}

func (s *Strategy) lock(enter func(int64) error) error {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return u.err
	}
	runtime.LockOSThread()
	if err := enter(native); err != nil {
		runtime.UnlockOSThread()
		return fromNative(err)
	}
	return nil
}

func (s *Strategy) unlock(exit func(int64) error) error {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return u.err
	}
	if err := exit(native); err != nil {
		return fromNative(err)
	}
	runtime.UnlockOSThread()
	return nil
}

// Colocate runs fn while variables that its thread makes are placed with another (TensorFlow: colocate_vars_with). They
// always are; what is checked is that they could be. Inside the strategy's scope or run.
func (s *Strategy) Colocate(with *Value, fn func() error) error {
	return s.during(fn, func(native int64) error { return s.colocate(native, with) }, cdist.Dist_colocate_exit)
}

// ColocateEnter begins what ColocateExit ends; Colocate does both.
func (s *Strategy) ColocateEnter(with *Value) error {
	return s.lock(func(native int64) error { return s.colocate(native, with) })
}

// ColocateExit ends what this thread's latest ColocateEnter began.
func (s *Strategy) ColocateExit() error {
	return s.unlock(cdist.Dist_colocate_exit)
}

func (s *Strategy) colocate(native int64, with *Value) error {
	var u uses
	defer u.end()
	value := u.value(with)
	if u.err != nil {
		return u.err
	}
	return cdist.Dist_colocate_enter(native, value)
}

// SetStrategy makes a strategy the calling thread's own outside scopes, until another is set; nil, or a default
// strategy: none any more. Call runtime.LockOSThread before, and set another before the strategy is closed.
func SetStrategy(s *Strategy) error {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_set_strategy(native))
}

// GetStrategy is the strategy of the scope or function that this thread is in, else that of SetStrategy, else the
// thread's default one, which ends with the thread and cannot be closed; nil where that could not be made.
func GetStrategy() *Strategy { return strategyOf(cdist.Dist_get_strategy()) }

// HasStrategy says whether GetStrategy is not a default strategy.
func HasStrategy() bool { return cdist.Dist_has_strategy() != 0 }

// InCrossReplicaContext is true in a merge function, in a scope, and after SetStrategy.
func InCrossReplicaContext() bool { return cdist.Dist_in_cross_replica_context() != 0 }

// GetReplica is the replica whose function this thread is in; outside of all, the thread's default strategy's replica
// 0, which meets nobody; nil in the cross-replica context.
func GetReplica() *Replica { return replicaOf(cdist.Dist_get_replica()) }
