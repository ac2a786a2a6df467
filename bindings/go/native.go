// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"unsafe"

	"libdist.example/dist/internal/cdist"
)

// C code of the program's own, an engine for example, takes libdist's handles and gives its statuses. By these a Go program
// calls it with cgo, on the handles that this package has:
//
//	var made *C.engine
//	err := strategy.Native(func(native unsafe.Pointer) error {
//		return dist.CallC(func() int32 {
//			return int32(C.engine_create((*C.dist_strategy)(native), &made))
//		})
//	})

// Native calls fn with the strategy's dist_strategy, which is there for the time of the call. What C makes of it ends before
// the strategy does.
func (s *Strategy) Native(fn func(native unsafe.Pointer) error) error {
	if s == nil || fn == nil {
		return newError(ErrInvalidArgument, "the strategy or fn is nil: New makes a strategy, fn has C code use its handle")
	}
	var u uses
	defer u.end()
	native := u.busy(s)
	if u.err != nil {
		return u.err
	}
	return fn(pointer(native))
}

// Native is the replica's dist_replica, which is there until its function has returned, for the thread that this runs on; nil
// afterwards, and for nil.
func (r *Replica) Native() unsafe.Pointer {
	if r == nil || r.ended.Load() {
		return nil
	}
	return pointer(r.native)
}

// CallC calls C code, on one thread, that gives a dist_status, and makes an error of that: an *Error of what dist_last_error()
// says there; nil for DIST_OK.
func CallC(call func() (status int32)) error {
	if call == nil {
		return newError(ErrInvalidArgument, "call is nil: pass the function that calls C")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if status := call(); status != 0 {
		return fromNative(cdist.Told(int(status)))
	}
	return nil
}
