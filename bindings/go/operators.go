// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"sync"
	"unsafe"
)

// panics keeps the first panic of functions of the program that compute for a call, on several threads at the same
// time. They cannot return errors to C, so the panic becomes the error of the call.
type panics struct {
	mu     sync.Mutex
	failed error
}

func (p *panics) call(fn func()) {
	err := onNative(-1, func() error {
		fn()
		return nil
	})
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.failed == nil {
			p.failed = err
		}
	}
}

// begin discards the panic of a previous call.
func (p *panics) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = nil
}

// own returns the panic, or else libdist's error.
func (p *panics) own(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	return fromNative(err)
}

// ReduceOperator is a reduction operator of the program: acc[i] = op(acc[i], in[i]) for every element.
// libdist calls it on parts of tensors, from several threads at the same time. It must not call libdist, and
// its result must not depend on how a tensor is split. It cannot return an error; if it panics, the call that
// uses the operator fails with the panic as its error.
type ReduceOperator = func(acc, in RawTensor)

// reduceCall is the object behind the token of an operator.
type reduceCall struct {
	*panics
	fn           ReduceOperator
	elementBytes int64 // of the operator's elements; 0: the dtype's
}

// Reduce is called by libdist for an operator of the program.
func (callbacks) Reduce(token, acc, in, count int64, dtype int) {
	c := registered[*reduceCall](token)
	size := int64(DType(dtype).Size())
	bytes := count * size
	if c.elementBytes > 0 {
		bytes = count * c.elementBytes
	}
	c.call(func() {
		shape := []int{int(bytes / size)}
		c.fn(RawTensor{DType: DType(dtype), Shape: shape, Data: memoryAt(acc, bytes)},
			RawTensor{DType: DType(dtype), Shape: shape, Data: memoryAt(in, bytes)})
	})
}

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

// applyCall is the object behind the token of an ApplyFunc.
type applyCall struct {
	*panics
	fn ApplyFunc
}

// Apply is called by libdist for the function of ApplyOptions.
func (callbacks) Apply(token, tensor, first, count int64, dtype int, gradient, parameter int64, numStates int,
	states int64) {
	c := registered[*applyCall](token)
	raw := func(address int64) RawTensor {
		return RawTensor{DType: DType(dtype), Shape: []int{int(count)},
			Data: memoryAt(address, count*int64(DType(dtype).Size()))}
	}
	c.call(func() {
		block := Block{Tensor: int(tensor), First: first, Count: count, DType: DType(dtype),
			Gradient: raw(gradient), Parameter: raw(parameter)}
		if numStates > 0 {
			for _, address := range unsafe.Slice((*int64)(pointer(states)), numStates) {
				block.States = append(block.States, raw(address))
			}
		}
		c.fn(block)
	})
}
