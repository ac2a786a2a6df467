// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// registry maps the tokens that libdist has to callbacks and other objects of the program. A token never stands
// for another object later.
var registry struct {
	entries sync.Map // from int64 to the registered objects
	last    atomic.Int64
	// Some of the entries, by the low bits of their tokens, so that a callback finds them without a hash.
	recent [64]atomic.Pointer[registration]
}

type registration struct {
	token int64
	entry any
}

func recent(token int64) *atomic.Pointer[registration] {
	return &registry.recent[token%int64(len(registry.recent))]
}

func register(entry any) (token int64) {
	token = registry.last.Add(1)
	registry.entries.Store(token, entry)
	recent(token).Store(&registration{token, entry})
	return token
}

// registerIf registers the functions of a call, or returns 0, which stands for NULL, if there is no function.
func registerIf(given bool, entry any) (token int64) {
	if !given {
		return 0
	}
	return register(entry)
}

func forget(token int64) {
	registry.entries.Delete(token)
	if known := recent(token).Load(); known != nil && known.token == token {
		recent(token).CompareAndSwap(known, nil)
	}
}

// registered returns the object of a token, or the zero T if there is none or it has another type.
func registered[T any](token int64) T {
	if known := recent(token).Load(); known != nil && known.token == token {
		t, _ := known.entry.(T)
		return t
	}
	entry, _ := registry.entries.Load(token)
	t, _ := entry.(T)
	return t
}

func init() { cdist.SetCallbacks(callbacks{}) }

// callbacks receives the calls of libdist, on any of its threads, through a SWIG director. No panic may
// escape from it.
type callbacks struct{}

var errGoexit = newError(ErrUnknown, "the function ended by runtime.Goexit, as t.FailNow does")

// protect calls fn and turns a panic into an error.
func protect(replica int, fn func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Replica: replica, Value: value, Stack: debug.Stack(), LogicalDevice: -1}
		}
	}()
	return fn()
}

// onNative is protect for a function that C code has called, through which runtime.Goexit cannot unwind. On a
// libdist thread it would end the process without a message. On the caller's goroutine it would first run the
// goroutine's deferred functions while libdist is still on its stack, which must not happen.
func onNative(replica int, fn func() error) error {
	returned := false
	defer func() {
		if !returned {
			endOfGoexit()
		}
	}()
	err := protect(replica, fn)
	returned = true
	return err
}

// endOfGoexit ends the process with a message, from a goroutine without C frames, and blocks this goroutine.
func endOfGoexit() {
	go panic("dist: a function that libdist called ended by runtime.Goexit (t.FailNow does), below which C waits for it: " +
		"replica functions survive that with Options.HopGoroutine")
	select {}
}

// onGoroutine is protect on a goroutine of its own, so that runtime.Goexit ends only that goroutine. Its
// thread replaces the one that libdist called as the thread on which the replica's handle is valid.
func onGoroutine(native int64, replica int, fn func() error) error {
	if err := cdist.Dist_replica_detach(native); err != nil {
		return fromNative(err)
	}
	result := make(chan error, 1)
	go func() {
		var err error = errGoexit
		defer func() { result <- err }()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if refused := cdist.Dist_replica_attach(native); refused != nil {
			err = fromNative(refused)
			return
		}
		defer cdist.Dist_replica_detach(native)
		err = protect(replica, fn)
	}()
	err := <-result
	if refused := cdist.Dist_replica_attach(native); refused != nil && err == nil {
		return fromNative(refused)
	}
	return err
}

// failures keeps the errors that callbacks returned until the calls that used them return.
type failures struct {
	some atomic.Bool
	mu   sync.Mutex
	list []failure
}

type failure struct {
	err  error
	code Code
	text string
}

// callback calls a function of the program and returns the status for libdist.
func (f *failures) callback(fn func() error) int {
	err := onNative(-1, fn)
	if err == nil {
		return 0
	}
	return f.fail(err)
}

// lend is callback for a function that receives tensors of libdist, which are valid during the call.
func (f *failures) lend(fn func(owner *object) error) int {
	return f.callback(func() error { return borrow(fn) })
}

// makes is callback for a function that creates a value, whose ownership passes to libdist. It returns a
// handle, or the negative of a status.
func (f *failures) makes(fn func() (*Value, error)) int64 {
	var native int64
	if status := f.callback(func() error {
		v, err := fn()
		if err == nil {
			native, err = v.handOver()
		}
		return err
	}); status != 0 {
		return -int64(status)
	}
	return native
}

// fail keeps err and reports it to libdist.
func (f *failures) fail(err error) int {
	status := tell(err)
	text, _ := wordsOf(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) == mostFailures { // of calls long over
		f.list = append(f.list[:0], f.list[mostFailures/2:]...)
	}
	f.list = append(f.list, failure{err, Code(status), text})
	f.some.Store(true)
	return status
}

const mostFailures = 512

// maxTextBytes is the length to which libdist truncates the message of a callback's error.
const maxTextBytes = 1023

// own returns the program's own error if libdist reports that one, and otherwise libdist's.
func (f *failures) own(native error) error {
	native = fromNative(native)
	if f == nil {
		return native
	}
	if report, ok := native.(*Error); ok {
		if own := f.reason(report); own != nil {
			return own
		}
	}
	return native
}

// reason returns the program's own error that a report describes, or nil if there is none.
func (f *failures) reason(report *Error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.list) - 1; i >= 0; i-- {
		text := f.list[i].text
		if len(text) > maxTextBytes && len(report.told) <= len(text) {
			text = text[:len(report.told)]
		}
		if f.list[i].code == report.Code && text == report.told {
			return f.list[i].err
		}
	}
	return nil
}

// Release is called when libdist no longer uses the object of a token.
func (callbacks) Release(token int64) {
	if released := registered[interface{ release() }](token); released != nil {
		released.release()
	}
	forget(token)
}

// logger receives a strategy's log lines.
type logger func(level LogLevel, message string)

// Log passes on a log line. It ignores panics of the program's logger.
func (callbacks) Log(token int64, level int, message string) {
	if log := registered[logger](token); log != nil {
		_ = onNative(-1, func() error {
			log(LogLevel(level), message)
			return nil
		})
	}
}
