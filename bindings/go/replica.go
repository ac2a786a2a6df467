// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	"libdist.example/dist/internal/cdist"
)

// ReduceOp says how contributions become one.
type ReduceOp int

// The operators of AllReduce.
const (
	Sum  ReduceOp = 1
	Mean ReduceOp = 2
	Min  ReduceOp = 3
	Max  ReduceOp = 4
	Prod ReduceOp = 5
)

// Element is what a tensor may hold.
type Element interface {
	~float32 | ~float64 | ~complex64 |
		~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64
}

// Replica is one copy of the replica function: its id, and its side of every collective. It is valid inside
// the function that received it; afterwards its collectives fail with ErrFailedPrecondition.
type Replica struct {
	native   cdist.Replica
	id       int
	replicas int
	ended    atomic.Bool
}

// ID is this replica's id in 0 .. NumReplicas()-1, its rank in every collective.
func (r *Replica) ID() int { return r.id }

// NumReplicas is how many replicas are in sync.
func (r *Replica) NumReplicas() int { return r.replicas }

// Option is a rare choice for one collective: Tag or Timeout.
type Option struct {
	tag     string
	timeout time.Duration
}

// Tag names a collective in reports; it must be equal on all replicas.
func Tag(tag string) Option { return Option{tag: tag} }

// Timeout bounds one collective's wait for a peer; < 0: no limit.
func Timeout(timeout time.Duration) Option { return Option{timeout: timeout} }

func merge(options []Option) (all Option) {
	for _, o := range options {
		if o.tag != "" {
			all.tag = o.tag
		}
		if o.timeout != 0 {
			all.timeout = o.timeout
		}
	}
	return all
}

// AllReduce reduces data over all replicas, in place: afterwards every replica holds op over all of them.
// Results fold from left to right by replica id: the same bits on every replica and in every run. Mean needs
// a floating-point or complex type.
func AllReduce[T Element](r *Replica, op ReduceOp, data []T, options ...Option) error {
	if err := r.check(); err != nil {
		return err
	}
	o := merge(options)
	return fromNative(r.native.All_reduce(int32Of(int(op)), dtypeOf[T](), bytesOf(data), int64(len(data)), o.tag,
		int64(o.timeout)))
}

// Broadcast gives every replica the root's data.
func Broadcast[T Element](r *Replica, root int, data []T, options ...Option) error {
	if err := r.check(); err != nil {
		return err
	}
	o := merge(options)
	return fromNative(r.native.Broadcast(int32Of(root), dtypeOf[T](), bytesOf(data), int64(len(data)), o.tag,
		int64(o.timeout)))
}

// Barrier returns when every replica has come. What each wrote before, all can read after.
func (r *Replica) Barrier(options ...Option) error {
	if err := r.check(); err != nil {
		return err
	}
	o := merge(options)
	return fromNative(r.native.Barrier(o.tag, int64(o.timeout)))
}

func (r *Replica) check() error {
	if r == nil || r.native == nil {
		return newError(ErrInvalidArgument, "the replica is nil: use the one that the replica function received")
	}
	if r.ended.Load() {
		return newError(ErrFailedPrecondition, "the replica's run has ended: use it only inside its function")
	}
	return nil
}

// bytesOf is the slice's memory; the generated layer keeps it alive and in place during the call.
func bytesOf[T Element](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), uintptr(len(data))*unsafe.Sizeof(data[0]))
}

// dtypeOf is T as a dist_dtype.
func dtypeOf[T Element]() int {
	switch reflect.TypeOf((*T)(nil)).Elem().Kind() {
	case reflect.Float32:
		return dtypeF32
	case reflect.Float64:
		return dtypeF64
	case reflect.Complex64:
		return dtypeComplex64
	case reflect.Int8:
		return dtypeI8
	case reflect.Uint8:
		return dtypeU8
	case reflect.Int16:
		return dtypeI16
	case reflect.Uint16:
		return dtypeU16
	case reflect.Int32:
		return dtypeI32
	case reflect.Uint32:
		return dtypeU32
	case reflect.Int64:
		return dtypeI64
	case reflect.Uint64:
		return dtypeU64
	}
	return 0 // no other kind is an Element
}

const (
	dtypeF32       = 3
	dtypeF64       = 4
	dtypeI8        = 5
	dtypeU8        = 6
	dtypeI16       = 7
	dtypeU16       = 8
	dtypeI32       = 9
	dtypeU32       = 10
	dtypeI64       = 11
	dtypeU64       = 12
	dtypeComplex64 = 13
)
