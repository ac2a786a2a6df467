// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"fmt"
	"runtime"
	"sync"
)

// object owns a native object. The native object is destroyed when Close has been called and no call uses it
// any more, or when the garbage collector finds the Go object unreachable.
type object struct {
	mu      sync.Mutex
	native  int64
	users   int // calls that hold native
	closed  bool
	lazy    bool               // the native object ends when nothing refers to o any more, closed or not
	destroy func(native int64) // nil: borrowed
	forget  func(native int64) // called in place of destroy by the garbage collector; nil = destroy
	cleanup runtime.Cleanup
	owner   any        // kept alive as long as the object
	given   *attached  // functions in the options with which it was created: they end after it
	idle    *sync.Cond // of mu: signalled when a use ends or ending changes; nil = nothing waits
	ending  bool       // Close waits for the uses to end, and new uses wait for its result
	shut    bool       // new uses are refused
}

// ending is the data that a cleanup needs when the object itself is gone.
type ending struct {
	native int64
	forget func(int64)
	owner  any // ends later
}

// open makes o the owner of native. o must be part of an object on the heap.
func (o *object) open(native int64, destroy func(int64), owner any) {
	o.native, o.destroy, o.owner = native, destroy, owner
	if destroy != nil {
		nativeMemory.bound()
		forget := destroy
		if o.forget != nil {
			forget = o.forget
		}
		if only, given := forget, o.given; given != nil {
			forget = func(native int64) {
				only(native)
				given.end()
			}
		}
		o.cleanup = runtime.AddCleanup(o, func(e ending) {
			e.forget(e.native)
			runtime.KeepAlive(e.owner)
		}, ending{native, forget, owner})
	}
}

// take begins a use. It returns false if the object is closed.
func (o *object) take() (native int64, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.takeLocked()
}

// takeLocked is take for a holder of o.mu.
func (o *object) takeLocked() (native int64, open bool) {
	for o.ending && !o.shut {
		o.idle.Wait()
	}
	if o.closed || o.shut {
		return 0, false
	}
	o.users++
	return o.native, true
}

// drop ends a use.
func (o *object) drop() {
	o.mu.Lock()
	end := o.dropLocked()
	o.mu.Unlock()
	if end {
		o.end()
	}
}

// dropLocked is drop for a holder of o.mu. It reports whether the holder must call end, without the lock.
func (o *object) dropLocked() (end bool) {
	o.users--
	if o.idle != nil {
		o.idle.Broadcast()
	}
	return o.closed && o.users == 0
}

func (o *object) inUse() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.users
}

// waitable allows a holder of o.mu to wait for the end of uses.
func (o *object) waitable() {
	if o.idle == nil {
		o.idle = sync.NewCond(&o.mu)
	}
}

// close destroys the native object, at once or after the calls that use it.
func (o *object) close() {
	o.mu.Lock()
	end := !o.closed && o.users == 0
	o.closed = true
	o.mu.Unlock()
	if end {
		o.end()
	}
}

// endBy destroys the native object with a call that may wait for callbacks. These must not wait for the lock
// or keep the object in use. endBy waits for calls that use the object. If the call fails, the object is
// unchanged.
func (o *object) endBy(destroy func(native int64) error) (ended bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.shut {
		return false, nil
	}
	o.shut = true
	o.waitable()
	for o.users > 0 {
		o.idle.Wait()
	}
	o.mu.Unlock()
	err = destroy(o.native)
	o.mu.Lock()
	o.shut = false
	if err != nil {
		return false, fromNative(err)
	}
	o.closed = true
	o.cleanup.Stop()
	o.given.end()
	return true, nil
}

func (o *object) end() {
	if o.destroy != nil && !o.lazy {
		o.cleanup.Stop()
		o.destroy(o.native)
		o.given.end()
	}
}

// surrender transfers the native object to a new owner.
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

// uses holds everything that one libdist call uses: handles, pinned memory, and the first error in its
// arguments.
type uses struct {
	err     error
	few     [4]*object
	held    []*object
	run     *Strategy // held by running; nil: none
	given   *attached // nil: none
	pins    runtime.Pinner
	numbers []int64
}

// take holds an object for the call. what names the object in the error if it is closed.
func (u *uses) take(o *object, what string) int64 {
	if u.err != nil {
		return 0
	}
	native, open := o.take()
	if !open {
		u.err = errClosed(what)
		return 0
	}
	if u.held == nil {
		u.held = u.few[:0]
	}
	u.held = append(u.held, o)
	return native
}

// takeMade is take for an object of the program, which may have declared it instead of making it.
func (u *uses) takeMade(o *object, what string) int64 {
	native := u.take(o, what)
	if native == 0 {
		u.fail(newError(ErrInvalidArgument, "the %s is a zero value: make one with its constructor", what))
	}
	return native
}

// end releases everything.
func (u *uses) end() {
	for _, o := range u.held {
		o.drop()
	}
	u.held = nil
	if u.run != nil {
		u.run.dropRun(nil)
		u.run = nil
	}
	u.given.end()
	u.given = nil
	u.pins.Unpin()
}

// attached is what the options of a call refer to: functions of the program, by tokens, and options of their own. It
// ends with the call, unless an object that the call creates keeps it. nil stands for nothing.
type attached struct {
	failures // of functions that return errors
	panics   // of functions that do not
	few      [2]int64
	tokens   []int64 // begin in few
	ends     []func()
}

func (a *attached) end() {
	if a == nil {
		return
	}
	for _, token := range a.tokens {
		forget(token)
	}
	for _, end := range a.ends {
		end()
	}
}

// begin discards the panic of a previous call.
func (a *attached) begin() {
	if a != nil {
		a.panics.begin()
	}
}

// own returns the error or panic of a function if libdist's error comes from it, and otherwise libdist's.
func (a *attached) own(err error) error {
	if a == nil {
		return fromNative(err)
	}
	return a.panics.own(a.failures.own(err))
}

func (u *uses) attach() *attached {
	if u.given == nil {
		u.given = &attached{}
	}
	return u.given
}

func (u *uses) failures() *failures { return &u.attach().failures }

func (u *uses) panics() *panics { return &u.attach().panics }

// token registers the object behind a function in options.
func (u *uses) token(entry any) int64 {
	token := register(entry)
	a := u.attach()
	if a.tokens == nil {
		a.tokens = a.few[:0]
	}
	a.tokens = append(a.tokens, token)
	return token
}

// later calls end when the call ends.
func (u *uses) later(end func()) {
	a := u.attach()
	a.ends = append(a.ends, end)
}

// keep returns the functions for an object that the call has created, which must end them; nil if there are none.
func (u *uses) keep() *attached {
	kept := u.given
	u.given = nil
	if kept != nil && kept.ends != nil {
		u.given = &attached{ends: kept.ends}
		kept.ends = nil
	}
	return kept
}

func errClosed(what string) error {
	return newError(ErrFailedPrecondition, "the %s is closed: make a new one", what)
}

func (u *uses) fail(err error) {
	if u.err == nil {
		u.err = err
	}
}

// text checks a text for C, which ends at a NUL: a text that contains a NUL is rejected.
func (u *uses) text(text string) string {
	u.fail(checkText(text))
	return text
}

// ifGiven sets a text, unless it is nil.
func (u *uses) ifGiven(text *string, set func(string)) {
	if text != nil {
		set(u.text(*text))
	}
}

// int32 checks a number that has 32 bits in C: a larger one is rejected under its name.
func (u *uses) int32(name string, n int) int {
	u.fail(checkInt32(name, n))
	return int32Of(n)
}

func (u *uses) int32s(name string, numbers []int) []int32 {
	if numbers == nil {
		return nil
	}
	all := make([]int32, len(numbers))
	for i, n := range numbers {
		all[i] = int32(u.int32(fmt.Sprintf("%s[%d]", name, i), n))
	}
	return all
}

func (u *uses) texts(texts []string) []string {
	for _, text := range texts {
		u.text(text)
	}
	return texts
}

// The handles of arguments. nil stands for NULL, which libdist rejects with its own message.

func (u *uses) strategy(s *Strategy) int64 {
	if s == nil {
		return 0
	}
	return u.take(&s.object, "strategy")
}

// busy is strategy for a call that runs callbacks, which may close the strategy.
func (u *uses) busy(s *Strategy) int64 {
	if s == nil {
		return 0
	}
	u.take(&s.functionsRun, "strategy")
	return u.take(&s.object, "strategy")
}

// running is strategy for a run. A caller that keeps the use does not call end, and calls dropRun later.
func (u *uses) running(s *Strategy) int64 {
	if s == nil || u.err != nil {
		return 0
	}
	native, err := s.takeRun(nil)
	if err != nil {
		u.err = err
		return 0
	}
	u.run = s
	return native
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
	switch owner := v.owner.(type) { // with which it ends
	case *Strategy:
		u.strategy(owner)
	case *Metric:
		u.metric(owner)
	}
	return u.take(&v.object, "variable")
}

// values returns the handles of a list.
func (u *uses) values(list []*Value) []int64 {
	handles := make([]int64, len(list))
	for i, v := range list {
		handles[i] = u.value(v)
	}
	return handles
}

// adopt returns the *Value of a result; nil for 0.
func adopt(native int64, err error) (*Value, error) {
	made := ownValue(native)
	if err != nil {
		made.Close() // the result of an operator that panicked
		return nil, fromNative(err)
	}
	return made, nil
}
