// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// registry has what libdist was given a token for: the functions of the program's that it may call, and the program's
// own objects. A token is never used again.
var registry struct {
	entries sync.Map // int64 to what was registered
	last    atomic.Int64
}

func register(entry any) (token int64) {
	token = registry.last.Add(1)
	registry.entries.Store(token, entry)
	return token
}

// registerIf is register of a function's call; 0, which is NULL, where there is no function.
func registerIf(given bool, entry any) (token int64) {
	if !given {
		return 0
	}
	return register(entry)
}

func forget(token int64) { registry.entries.Delete(token) }

// registered is what a token stands for; the zero T where it stands for nothing or something else.
func registered[T any](token int64) T {
	entry, _ := registry.entries.Load(token)
	t, _ := entry.(T)
	return t
}

func init() { cdist.Set_callbacks(cdist.NewDirectorCallbacks(callbacks{})) }

// callbacks is what libdist calls, on any of its threads (by SWIG's director). Nothing may unwind out of it.
type callbacks struct{}

var errGoexit = newError(ErrUnknown, "the function ended by runtime.Goexit, as t.FailNow does")

// protect calls fn and makes an error of its panic.
func protect(replica int, fn func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Replica: replica, Value: value, Stack: debug.Stack(), LogicalDevice: -1}
		}
	}()
	return fn()
}

// onNative is protect for a function that has C's frames below it, from which runtime.Goexit leads nowhere. On a thread of
// libdist's it would end the process without a word. On the caller's goroutine it would first call the deferred
// functions of that one, while libdist still stands below them: they must not run.
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

// endOfGoexit ends the process with words, on a goroutine that has no frames of C's, and keeps this one where it is.
func endOfGoexit() {
	go panic("dist: a function that libdist called ended by runtime.Goexit (t.FailNow does), below which C waits for it: " +
		"replica functions survive that with Options.HopGoroutine")
	select {}
}

// onGoroutine is protect on a goroutine of its own, which runtime.Goexit ends alone, and whose thread takes the place of
// the one that libdist called: that is where the replica's handle is good.
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

// failures keeps what functions of the program's returned, until the calls that they were for come back.
type failures struct {
	mu   sync.Mutex
	list []failure
}

type failure struct {
	err  error
	code Code
	text string
}

// callback calls a function of the program's and gives the status that libdist passes on.
func (f *failures) callback(fn func() error) int {
	err := onNative(-1, fn)
	if err == nil {
		return 0
	}
	return f.fail(err)
}

// lend is callback for a function that gets tensors of libdist's, which end with it.
func (f *failures) lend(fn func(owner *object) error) int {
	return f.callback(func() error { return borrow(fn) })
}

// makes is callback for a function that makes a value, which libdist takes over: a handle, or the negative of a status.
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

// fail keeps err and tells libdist of it.
func (f *failures) fail(err error) int {
	status := tell(err)
	text, _ := wordsOf(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) == mostFailures { // of calls long over
		f.list = append(f.list[:0], f.list[mostFailures/2:]...)
	}
	f.list = append(f.list, failure{err, Code(status), text})
	return status
}

const mostFailures = 2 * MaxReplicas

// maxTextBytes is where dist_fail() cuts a text.
const maxTextBytes = 1023

// own is the program's own error where that is what libdist reports, else libdist's.
func (f *failures) own(native error) error {
	native = fromNative(native)
	if report, ok := native.(*Error); ok {
		if own := f.reason(report); own != nil {
			return own
		}
	}
	return native
}

// reason is the program's own error where that is what a report speaks of; nil: it is not.
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

// Release is called when libdist no longer uses what a token stands for.
func (callbacks) Release(token int64) {
	if released := registered[interface{ release() }](token); released != nil {
		released.release()
	}
	forget(token)
}

// logger takes a strategy's log lines.
type logger func(level LogLevel, message string)

// Log passes a line on; what the program's logger does wrong stays there.
func (callbacks) Log(token int64, level int, message string) {
	if log := registered[logger](token); log != nil {
		_ = onNative(-1, func() error {
			log(LogLevel(level), message)
			return nil
		})
	}
}
