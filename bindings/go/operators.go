// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"sync"
	"unsafe"
)

// operators are functions of the program that compute for a collective, on several threads at the same time.
// They cannot return errors to C, so the first panic is kept and becomes the error of the call.
type operators struct {
	operator     ReduceOperator
	elementBytes int64 // of the operator's elements; 0: the dtype's
	apply        ApplyFunc

	mu     sync.Mutex
	failed error
}

func (o *operators) call(fn func()) {
	err := onNative(-1, func() error {
		fn()
		return nil
	})
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.failed == nil {
			o.failed = err
		}
	}
}

// begin discards the panic of a previous call.
func (o *operators) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = nil
}

// own returns the operator's panic, or else libdist's error.
func (o *operators) own(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return o.failed
	}
	return fromNative(err)
}

// Reduce is called by libdist for ReduceUser.
func (callbacks) Reduce(token, acc, in, count int64, dtype int) {
	user := registered[interface{ self() *operators }](token).self()
	size := int64(DType(dtype).Size())
	bytes := count * size
	if user.elementBytes > 0 {
		bytes = count * user.elementBytes
	}
	user.call(func() {
		shape := []int{int(bytes / size)}
		user.operator(RawTensor{DType: DType(dtype), Shape: shape, Data: memoryAt(acc, bytes)},
			RawTensor{DType: DType(dtype), Shape: shape, Data: memoryAt(in, bytes)})
	})
}

func (o *operators) self() *operators { return o }

// A Block is a part of one tensor for an [ApplyFunc]: its elements First to First+Count-1.
type Block struct {
	Tensor    int // index in the list
	First     int64
	Count     int64
	DType     DType
	Gradient  RawTensor   // reduced, and scaled by gradient clipping; Count elements
	Parameter RawTensor   // to be updated in place; Count elements
	States    []RawTensor // to be updated in place; Count elements each
}

// ApplyFunc updates a parameter from its gradient. libdist calls it on several blocks at the same time. It
// must not call libdist. If it panics, [Replica.ReduceApply] returns the panic as an error.
type ApplyFunc = func(block Block)

// Apply is called by libdist for the function of ApplyOptions.
func (callbacks) Apply(token, tensor, first, count int64, dtype int, gradient, parameter int64, numStates int,
	states int64) {
	user := registered[interface{ self() *operators }](token).self()
	raw := func(address int64) RawTensor {
		return RawTensor{DType: DType(dtype), Shape: []int{int(count)},
			Data: memoryAt(address, count*int64(DType(dtype).Size()))}
	}
	user.call(func() {
		block := Block{Tensor: int(tensor), First: first, Count: count, DType: DType(dtype),
			Gradient: raw(gradient), Parameter: raw(parameter)}
		if numStates > 0 {
			for _, address := range unsafe.Slice((*int64)(pointer(states)), numStates) {
				block.States = append(block.States, raw(address))
			}
		}
		user.apply(block)
	})
}
