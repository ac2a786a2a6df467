// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"

	"libdist.example/dist/internal/cdist"
)

// The functions below use the state of the calling thread, such as tf.distribute's current strategy. In Go they are
// useful if the goroutine keeps its thread: in a callback of libdist, inside Scope, and after runtime.LockOSThread.

// Scope runs fn in the strategy's scope, in cross-replica context, with the goroutine locked to its thread.
// Scopes of the same strategy can be nested. Inside a scope, functions of other strategies are rejected.
func (s *Strategy) Scope(fn func() error) (err error) {
	return s.during(fn, cdist.Dist_scope_enter, cdist.Dist_scope_exit)
}

// during runs fn between two calls on one thread. It makes the second call even if fn panics or calls
// runtime.Goexit.
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

// EnterScope enters the strategy's scope on the calling thread until [Strategy.ExitScope], and locks the
// goroutine to this thread. [Strategy.Scope] does both.
func (s *Strategy) EnterScope() error {
	return s.lock(cdist.Dist_scope_enter)
}

// ExitScope exits the scope that this thread entered last.
func (s *Strategy) ExitScope() error {
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

// Colocate runs fn while variables that its thread creates are declared to be on the device of another
// variable (TensorFlow: colocate_vars_with). This does not change where variables are placed; it only checks
// that colocation is possible. Call it inside the strategy's scope or a run.
func (s *Strategy) Colocate(with *Value, fn func() error) error {
	return s.during(fn, func(native int64) error { return s.colocate(native, with) }, cdist.Dist_colocate_exit)
}

// EnterColocation declares colocation like [Strategy.Colocate], until [Strategy.ExitColocation].
func (s *Strategy) EnterColocation(with *Value) error {
	return s.lock(func(native int64) error { return s.colocate(native, with) })
}

// ExitColocation undoes the latest [Strategy.EnterColocation] of this thread.
func (s *Strategy) ExitColocation() error {
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

// SetStrategy sets the strategy that is current on the calling thread outside scopes, until another one is
// set. nil, or a default strategy, removes it. Call [runtime.LockOSThread] before, and set another strategy
// before this one is closed.
func SetStrategy(s *Strategy) error {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_set_strategy(native))
}

// CurrentStrategy returns the strategy of the scope or function that this thread is in. Otherwise it returns the
// one set with [SetStrategy], or else the thread's default strategy, which is destroyed with the thread and
// cannot be closed. It returns nil if the default strategy could not be created.
func CurrentStrategy() *Strategy { return strategyOf(cdist.Dist_get_strategy()) }

// HasStrategy reports whether [CurrentStrategy] returns a strategy that is not a default strategy.
func HasStrategy() bool { return cdist.Dist_has_strategy() != 0 }

// InCrossReplicaContext reports whether this thread is in a merge function or a scope, or SetStrategy applies
// to it.
func InCrossReplicaContext() bool { return cdist.Dist_in_cross_replica_context() != 0 }

// CurrentReplica returns the replica whose function this thread is in. Outside all functions, it returns replica
// 0 of the thread's default strategy, which has no peers. In cross-replica context, it returns nil.
func CurrentReplica() *Replica { return replicaOf(cdist.Dist_get_replica()) }
