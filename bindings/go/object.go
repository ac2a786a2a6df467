// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"sync"
)

// object is a native object behind one of Go's: it ends when Close was called and no call uses it any more, or when
// the garbage collector finds what it is a part of.
type object struct {
	mu      sync.Mutex
	native  int64
	users   int // calls that hold native
	closed  bool
	destroy func(native int64) // nil: borrowed
	cleanup runtime.Cleanup
	owner   any // what must live as long
}

// ending is what a cleanup needs once the object itself is gone.
type ending struct {
	native  int64
	destroy func(int64)
	owner   any // ends later
}

// open makes o the owner of native; o must be part of an object on the heap.
func (o *object) open(native int64, destroy func(int64), owner any) {
	o.native, o.destroy, o.owner = native, destroy, owner
	if destroy != nil {
		o.cleanup = runtime.AddCleanup(o, func(e ending) {
			e.destroy(e.native)
			runtime.KeepAlive(e.owner)
		}, ending{native, destroy, owner})
	}
}

// take begins a use; false: it is closed.
func (o *object) take() (native int64, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, false
	}
	o.users++
	return o.native, true
}

// drop ends a use.
func (o *object) drop() {
	o.mu.Lock()
	o.users--
	end := o.closed && o.users == 0
	o.mu.Unlock()
	if end {
		o.end()
	}
}

// close ends the object, at once or after the calls that use it.
func (o *object) close() {
	o.mu.Lock()
	end := !o.closed && o.users == 0
	o.closed = true
	o.mu.Unlock()
	if end {
		o.end()
	}
}

func (o *object) end() {
	if o.destroy != nil {
		o.cleanup.Stop()
		o.destroy(o.native)
	}
}

// surrender takes the native object away from o, for who takes it over.
func (o *object) surrender() (native int64, whole bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.users > 0 || o.destroy == nil {
		return 0, false
	}
	o.closed = true
	o.cleanup.Stop()
	return o.native, true
}

// uses is what one call of libdist holds: handles, pinned memory, and the first thing that was wrong with them.
type uses struct {
	err     error
	few     [4]*object
	held    []*object
	pins    runtime.Pinner
	numbers []int64
}

// take holds an object for the call; `what` names it where it is closed.
func (u *uses) take(o *object, what string) int64 {
	if u.err != nil {
		return 0
	}
	native, open := o.take()
	if !open {
		u.err = newError(ErrFailedPrecondition, "the %s is closed: make a new one", what)
		return 0
	}
	if u.held == nil {
		u.held = u.few[:0]
	}
	u.held = append(u.held, o)
	return native
}

// end lets go of everything.
func (u *uses) end() {
	for _, o := range u.held {
		o.drop()
	}
	u.held = nil
	u.pins.Unpin()
}

func (u *uses) fail(err error) {
	if u.err == nil {
		u.err = err
	}
}

// The handles of arguments; nil is NULL, of which libdist says what it has to say.

func (u *uses) strategy(s *Strategy) int64 {
	if s == nil {
		return 0
	}
	return u.take(&s.object, "strategy")
}

func (u *uses) value(v *Value) int64 {
	if v == nil {
		return 0
	}
	return u.take(&v.object, "value")
}

func (u *uses) variable(v *Variable) int64 {
	if v == nil {
		return 0
	}
	return u.take(&v.object, "variable")
}

// values are the handles of a list.
func (u *uses) values(list []*Value) []int64 {
	handles := make([]int64, len(list))
	for i, v := range list {
		handles[i] = u.value(v)
	}
	return handles
}

// adopt makes a *Value of a result; 0 is none.
func adopt(native int64, err error) (*Value, error) {
	if err != nil {
		return nil, fromNative(err)
	}
	return ownValue(native), nil
}
