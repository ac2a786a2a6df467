// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"math"
	"reflect"
)

type dtype struct {
	name  string
	bytes int
}

// @every dtype
var dtypes = map[DType]dtype{
	F16: {"f16", 2}, BF16: {"bf16", 2}, F32: {"f32", 4}, F64: {"f64", 8}, I8: {"i8", 1}, U8: {"u8", 1},
	I16: {"i16", 2}, U16: {"u16", 2}, I32: {"i32", 4}, U32: {"u32", 4}, I64: {"i64", 8}, U64: {"u64", 8},
	Complex64: {"complex64", 8}, Bool: {"bool", 1},
}

// String returns libdist's name of the type, such as "f32", or "" for an unknown type.
func (d DType) String() string { return dtypes[d].name }

// Size returns the size of one element in bytes, or 0 for an unknown type.
func (d DType) Size() int { return dtypes[d].bytes }

// Float16 holds the bits of an IEEE 754 binary16 number.
type Float16 uint16

// BFloat16 holds the bits of a bfloat16 number: the upper half of a float32.
type BFloat16 uint16

// Element lists the element types of tensors.
type Element interface {
	~float32 | ~float64 | ~complex64 | ~bool |
		~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64
}

// DTypeOf returns the DType of a Go type. Types other than [Float16] and [BFloat16] are identified by their
// kind.
func DTypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) { // the common ones, without reflection
	case float32:
		return F32
	case float64:
		return F64
	case int32:
		return I32
	case int64:
		return I64
	case Float16:
		return F16
	case BFloat16:
		return BF16
	}
	return kinds[reflect.TypeFor[T]().Kind()]
}

// @every dtype but F16, BF16: Go has no kind for them, see Float16 and BFloat16
var kinds = map[reflect.Kind]DType{
	reflect.Float32: F32, reflect.Float64: F64, reflect.Complex64: Complex64, reflect.Bool: Bool,
	reflect.Int8: I8, reflect.Uint8: U8, reflect.Int16: I16, reflect.Uint16: U16,
	reflect.Int32: I32, reflect.Uint32: U32, reflect.Int64: I64, reflect.Uint64: U64,
}

// Float32 converts the number, exactly.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// ToBFloat16 rounds f to the nearest BFloat16, ties to even.
func ToBFloat16(f float32) BFloat16 {
	bits := math.Float32bits(f)
	if f != f {
		return BFloat16(bits>>16 | 0x40) // stays a NaN
	}
	return BFloat16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float32 converts the number, exactly.
func (h Float16) Float32() float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	case 0: // fraction * 2^-24
		magnitude := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(magnitude))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// ToFloat16 rounds f to the nearest Float16, ties to even.
func ToFloat16(f float32) Float16 {
	bits := math.Float32bits(f)
	sign, magnitude := uint16(bits>>16)&0x8000, bits&0x7fffffff
	switch {
	case magnitude > 0x7f800000:
		return Float16(sign | 0x7e00)
	case magnitude >= 0x477ff000: // rounds to 65536 or more
		return Float16(sign | 0x7c00)
	case magnitude < 0x38800000: // below 2^-14: the sum's last place is 2^-24
		rounded := math.Float32frombits(magnitude) + 0.5
		return Float16(sign | uint16(math.Float32bits(rounded)-math.Float32bits(0.5)))
	}
	rounded := magnitude + 0xfff + magnitude>>13&1
	return Float16(sign | uint16((rounded-112<<23)>>13))
}
