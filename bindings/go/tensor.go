// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"unsafe"
)

// A Tensor is a view of a slice: Shape[i] elements in dimension i, Strides[i] elements apart.
type Tensor[T Element] struct {
	Data    []T
	Shape   []int // nil = one dimension with all of Data; []int{} (Scalar) = no dimensions, one element
	Strides []int // nil = row-major without gaps; must not be negative

	owner *object // owner of memory of libdist
}

// Of returns a tensor of a slice, with the given dimensions. Without dimensions, the tensor has one, with all
// elements.
func Of[T Element](data []T, shape ...int) Tensor[T] { return Tensor[T]{Data: data, Shape: shape} }

// Scalar returns a tensor without dimensions. A call that writes to the tensor stores the result in Data[0].
func Scalar[T Element](value T) Tensor[T] { return Tensor[T]{Data: []T{value}, Shape: []int{}} }

// Len returns the number of elements of the tensor.
func (t Tensor[T]) Len() int {
	if t.Shape == nil {
		return len(t.Data)
	}
	n := 1
	for _, size := range t.Shape {
		n *= size
	}
	return n
}

// Array is a tensor of any element type: a [Tensor] or a [RawTensor].
type Array interface {
	// Raw is the tensor by its bytes, without a copy.
	Raw() RawTensor
}

// A RawTensor is a tensor whose element type is known only at run time.
type RawTensor struct {
	DType   DType
	Shape   []int  // []int{} = no dimensions, one element; never nil in tensors that libdist returns
	Strides []int  // in elements; nil = row-major without gaps
	Data    []byte // elements, in the byte order of the machine

	owner *object
}

// Raw returns t.
func (t RawTensor) Raw() RawTensor { return t }

// Raw returns the tensor as a [RawTensor], without copying it.
func (t Tensor[T]) Raw() RawTensor {
	raw := RawTensor{DType: DTypeOf[T](), Shape: t.Shape, Strides: t.Strides, Data: bytesOf(t.Data), owner: t.owner}
	if raw.Shape == nil {
		raw.Shape = []int{len(t.Data)}
	}
	return raw
}

// As returns a tensor of any type as a tensor of T, without copying it. It fails with [ErrInvalidArgument] if
// the tensor has another element type.
func As[T Element](a Array) (Tensor[T], error) {
	if a == nil {
		return Tensor[T]{}, newError(ErrInvalidArgument, "the tensor is nil")
	}
	raw := a.Raw()
	if err := raw.check(); err != nil {
		return Tensor[T]{}, err
	}
	if want := DTypeOf[T](); raw.DType != want {
		return Tensor[T]{}, newError(ErrInvalidArgument, "the tensor has elements of %v, not %v", raw.DType, want)
	}
	return Tensor[T]{Data: slice[T](raw.Data), Shape: raw.Shape, Strides: raw.Strides, owner: raw.owner}, nil
}

// bytesOf returns the memory of a slice.
func bytesOf[T Element](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), uintptr(len(data))*unsafe.Sizeof(data[0]))
}

// slice is the inverse of bytesOf.
func slice[T Element](data []byte) []T {
	if len(data) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), uintptr(len(data))/unsafe.Sizeof(zero))
}

// copied returns a row-major copy in Go memory of a tensor in libdist memory.
func (t RawTensor) copied() RawTensor {
	size := t.DType.Size()
	elements := 1
	for _, n := range t.Shape {
		elements *= n
	}
	out := RawTensor{DType: t.DType, Shape: t.Shape, Data: aligned(elements * size)}
	if t.Strides == nil {
		copy(out.Data, t.Data)
		return out
	}
	index := make([]int, len(t.Shape))
	for to := 0; to < len(out.Data); to += size {
		from := 0
		for d := range index {
			from += index[d] * t.Strides[d]
		}
		copy(out.Data[to:to+size], t.Data[from*size:])
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < t.Shape[d] {
				break
			}
			index[d] = 0
		}
	}
	return out
}

// aligned returns memory that is aligned for any element type.
func aligned(bytes int) []byte {
	if bytes == 0 {
		return nil
	}
	words := make([]uint64, (bytes+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), bytes)
}

// extent returns the number of elements from the first one to the end of the last one. It is negative if a
// size is negative, which libdist rejects.
func (t RawTensor) extent() (elements int64, err error) {
	const most = int64(1) << 50 // stays an int64 when multiplied by a size of an element
	last, count := int64(0), int64(1)
	for d := len(t.Shape) - 1; d >= 0; d-- {
		size, stride := int64(t.Shape[d]), count
		if t.Strides != nil {
			stride = int64(t.Strides[d])
		}
		if size < 0 {
			return -1, nil
		}
		if stride < 0 {
			return 0, newError(ErrInvalidArgument, "the tensor has a negative stride: lay it out forwards")
		}
		if size > most || stride > most || size > 0 && count > most/size || size > 1 && stride > most/(size-1) {
			return 0, newError(ErrInvalidArgument, "the tensor's shape %v is larger than any memory", t.Shape)
		}
		count *= size
		if last += (size - 1) * stride; last > most {
			return 0, newError(ErrInvalidArgument, "the tensor's shape %v is larger than any memory", t.Shape)
		}
	}
	if count == 0 {
		return 0, nil
	}
	return last + 1, nil
}

// check rejects a tensor whose shape exceeds its slice, or whose elements are not aligned.
func (t RawTensor) check() error {
	if size := t.DType.Size(); size > 0 && len(t.Data) > 0 && uintptr(unsafe.Pointer(&t.Data[0]))%uintptr(size) != 0 &&
		t.DType != Complex64 {
		return newError(ErrInvalidArgument, "the tensor's bytes begin at an address that no %v has", t.DType)
	}
	if len(t.Shape) > MaxNDim {
		return newError(ErrInvalidArgument, "the tensor has %d dimensions: at most %d", len(t.Shape), MaxNDim)
	}
	if t.Strides != nil && len(t.Strides) != len(t.Shape) {
		return newError(ErrInvalidArgument, "the tensor has %d strides for %d dimensions", len(t.Strides), len(t.Shape))
	}
	elements, err := t.extent()
	if err != nil {
		return err
	}
	if size := int64(t.DType.Size()); size > 0 && elements > int64(len(t.Data))/size {
		return newError(ErrInvalidArgument, "the tensor's shape %v needs %d elements, its slice has %d",
			t.Shape, elements, int64(len(t.Data))/size)
	}
	return nil
}
