// SPDX-License-Identifier: Apache-2.0
// Element types and tensor views: their names and sizes, and the validation that every view from outside
// passes once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "dist/types.h"

namespace dist {

// Dtypes are numbered from 1.
inline constexpr dist_dtype kLastDtype = DIST_BOOL;
// By the dtype's number. @every dtype
inline constexpr auto kDtypeSizes = [] {
  std::array<uint8_t, kLastDtype + 1> sizes{};
  sizes[DIST_I8] = sizes[DIST_U8] = sizes[DIST_BOOL] = 1;
  sizes[DIST_F16] = sizes[DIST_BF16] = sizes[DIST_I16] = sizes[DIST_U16] = 2;
  sizes[DIST_F32] = sizes[DIST_I32] = sizes[DIST_U32] = 4;
  sizes[DIST_F64] = sizes[DIST_I64] = sizes[DIST_U64] = sizes[DIST_COMPLEX64] = 8;
  return sizes;
}();
// Size of an element in bytes; 0 for an unknown dtype.
inline std::size_t dtype_size(dist_dtype dtype) noexcept {
  return kDtypeSizes[static_cast<std::size_t>(dtype > 0 && dtype <= kLastDtype ? dtype : 0)];
}
// "f32"; "no dtype" for an unknown number.
const char* dtype_name(dist_dtype dtype) noexcept;
bool dtype_is_floating(dist_dtype dtype) noexcept;  // f16, bf16, f32, f64, complex64
bool dtype_is_integer(dist_dtype dtype) noexcept;   // signed and unsigned, not bool
// The dtype of a mean: f64 for 32- and 64-bit integers, f32 for smaller ones, otherwise the dtype itself.
dist_dtype dtype_of_mean(dist_dtype dtype) noexcept;

// "SUM"; "no op" for an unknown number.
const char* op_name(dist_reduce_op op) noexcept;
// Validates a DIST_NUMERICS_....
Status check_numerics(dist_numerics numerics) noexcept;
// Returns OK if `op` can reduce `dtype`; the message lists the ops that can.
Status check_op(dist_reduce_op op, dist_dtype dtype) noexcept;

// The measures of a validated tensor.
struct TensorSize {
  int64_t elements = 0;
  std::size_t bytes = 0;   // of its elements, without gaps
  bool contiguous = true;  // row-major without gaps; empty tensors count, strides of size 1 do not matter
};

// Validates a view that is read: dtype, ndim, sizes, non-NULL data if there are elements, and that every
// element has a valid address. Strides may be negative, or 0, in which case elements share an address. `what`
// begins the message: "in[2]".
Status check_tensor(const dist_tensor& tensor, const char* what, TensorSize* out) noexcept;
// Validates a view that is written, which also requires that no two elements share an address. Each stride
// must step over everything that the dimensions with smaller strides span; other interlocking layouts are
// rejected, because checking them is slow.
Status check_output(const dist_tensor& tensor, const char* what, TensorSize* out) noexcept;

// Whether two nonempty views may have an address in common. Returns false only if they certainly do not,
// because they are disjoint or interlock (even and odd elements).
bool may_share_memory(const dist_tensor& a, const dist_tensor& b) noexcept;

// Number of elements of a validated tensor.
inline std::size_t elements_of(const dist_tensor& tensor) noexcept {
  std::size_t elements = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) elements *= static_cast<std::size_t>(tensor.shape[i]);
  return elements;
}

bool same_shape(const dist_tensor& a, const dist_tensor& b) noexcept;

// The strides of a nonempty tensor, computed if they are not given.
const int64_t* strides_of(const dist_tensor& tensor, int64_t (&made)[DIST_MAX_NDIM]) noexcept;

// "f32[3, 4]", truncated to `size`.
void describe(const dist_tensor& tensor, char* text, std::size_t size) noexcept;

// Copies elements between tensors of equal shape and dtype, each with its own strides.
void copy_elements(const dist_tensor& from, const dist_tensor& to) noexcept;

}  // namespace dist
