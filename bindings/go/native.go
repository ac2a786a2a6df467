// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"unsafe"

	"libdist.example/dist/internal/cdist"
)

// Native calls fn with the strategy's C handle, a pointer to dist_strategy, which is valid during the call. C
// code must release everything that it creates with the strategy before the strategy is closed.
//
// Together with [Replica.Native] and [CallC], it lets a Go program call C code that uses libdist, for example
// an engine, through cgo:
//
//	var made *C.engine
//	err := strategy.Native(func(native unsafe.Pointer) error {
//		return dist.CallC(func() int32 {
//			return int32(C.engine_create((*C.dist_strategy)(native), &made))
//		})
//	})
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

// Native returns the replica's C handle, a pointer to dist_replica. It is valid on the current thread until
// the replica's function returns. Native returns nil afterwards, and for a nil replica.
func (r *Replica) Native() unsafe.Pointer {
	if r == nil || r.ended.Load() {
		return nil
	}
	return pointer(r.native)
}

// CallC calls a function that calls C code and returns its status, a dist_status, locked to one thread. If
// the status is not 0, CallC returns an [*Error] with the error that libdist stored for that thread.
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
