// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"unsafe"

	"libdist.example/dist/internal/cdist"
)

// A tensor crosses as numbers, as dist.i has it: address, dtype, ndim, whether strides follow, shape, strides.
const (
	numbersBefore = 4
	mostNumbers   = numbersBefore + 2*MaxNDim
)

// noTensor describes a nil Array in a list, which libdist rejects.
var noTensor = []int64{0, 0, 0, 0}

// tensors packs a list, whose memory stays pinned until u.end. nil stays nil, which stands for NULL.
func (u *uses) tensors(list []Array) []int64 {
	if list == nil {
		return nil
	}
	numbers := make([]int64, 0, 8*len(list)+1)
	for _, a := range list {
		numbers = u.pack(numbers, a)
	}
	return numbers
}

// tensor packs one tensor. nil stays nil, which stands for NULL.
func (u *uses) tensor(a Array) []int64 {
	if a == nil {
		return nil
	}
	return u.pack(make([]int64, 0, 8), a)
}

func (u *uses) pack(numbers []int64, a Array) []int64 {
	if a == nil {
		return append(numbers, noTensor...)
	}
	raw := a.Raw()
	if raw.owner != nil {
		u.take(raw.owner, "memory that this tensor is a view of")
	}
	u.fail(raw.check())
	if u.err != nil {
		return nil
	}
	var address int64
	if len(raw.Data) > 0 {
		u.pins.Pin(&raw.Data[0])
		address = int64(uintptr(unsafe.Pointer(&raw.Data[0])))
	}
	numbers = append(numbers, address, int64(int32Of(int(raw.DType))), int64(len(raw.Shape)),
		int64(intOf(raw.Strides != nil)))
	for _, size := range raw.Shape {
		numbers = append(numbers, int64(size))
	}
	for _, stride := range raw.Strides {
		numbers = append(numbers, int64(stride))
	}
	return numbers
}

// pointer converts an address that was passed as a number.
func pointer(address int64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// unpack returns a tensor from its numbers: a view of libdist memory, which owner keeps alive.
func unpack(numbers []int64, owner *object) RawTensor {
	ndim := int(numbers[2])
	raw := RawTensor{DType: DType(numbers[1]), Shape: intsOf(numbers[numbersBefore : numbersBefore+ndim]), owner: owner}
	if numbers[3] != 0 {
		raw.Strides = intsOf(numbers[numbersBefore+ndim : numbersBefore+2*ndim])
	}
	if elements, err := raw.extent(); err == nil && elements > 0 && numbers[0] != 0 {
		raw.Data = unsafe.Slice((*byte)(pointer(numbers[0])), elements*int64(raw.DType.Size()))
	}
	return raw
}

func intsOf(numbers []int64) []int {
	ints := make([]int, len(numbers))
	for i, n := range numbers {
		ints[i] = int(n)
	}
	return ints
}

// tensorAt returns tensor index at an address that a callback received. It is valid during the callback,
// which owner represents.
func tensorAt(address, index int64, owner *object) RawTensor {
	numbers := make([]int64, mostNumbers)
	cdist.Tensor_at(address, index, numbers)
	return unpack(numbers, owner)
}

func tensorsAt(address, n int64, owner *object) []RawTensor {
	tensors := make([]RawTensor, n)
	for i := range tensors {
		tensors[i] = tensorAt(address, int64(i), owner)
	}
	return tensors
}

// memoryAt returns n bytes at an address that a callback received.
func memoryAt(address, n int64) []byte {
	if address == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(address)), n)
}
