// SPDX-License-Identifier: Apache-2.0
// Iterates over corresponding elements of several tensors, such as values and their weights or predictions
// and labels. Elements are read as doubles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "dist/types.h"

namespace dist {

// Reads an element as a double. This is exact except for 64-bit integers beyond 2^53.
using ReadElement = double (*)(const std::byte* element) noexcept;
// NULL for complex64.
ReadElement read_element(dist_dtype dtype) noexcept;
// The element's bits, sign-extended to 64 bits. Only for integer dtypes.
uint64_t read_integer(dist_dtype dtype, const std::byte* element) noexcept;

// A tensor prepared for iteration: its data, and its strides in bytes.
struct Walked {
  const std::byte* data = nullptr;
  std::array<int64_t, DIST_MAX_NDIM> strides{};
};
Walked walked(const dist_tensor& tensor) noexcept;

// Broadcasts `weights` to a tensor with `ndim` dimensions `shape`: a scalar applies to all elements, and
// weights are repeated along a dimension in which they have size 1 and along a missing last dimension. An
// additional last dimension of size 1 is dropped. `what` names the weighted tensor in messages.
Status stretch_weights(const dist_tensor& weights, int32_t ndim, const int64_t* shape, const char* what,
                       Walked* out) noexcept;

// Calls body(pointers to the elements of each tensor) in row-major order. If the shape is empty, accesses no
// data.
template <std::size_t N, class Body>
void for_each_element(int32_t ndim, const int64_t* shape, const std::array<const Walked*, N>& tensors,
                      const Body& body) {
  for (int32_t d = 0; d < ndim; ++d) {
    if (shape[d] == 0) return;
  }
  std::array<const std::byte*, N> at;
  for (std::size_t i = 0; i < N; ++i) at[i] = tensors[i]->data;
  std::array<int64_t, DIST_MAX_NDIM> index{};
  for (;;) {
    body(at);
    int32_t d = ndim - 1;
    for (; d >= 0; --d) {
      const bool more = ++index[static_cast<std::size_t>(d)] < shape[d];
      const int64_t steps = more ? 1 : 1 - shape[d];
      for (std::size_t i = 0; i < N; ++i) at[i] += steps * tensors[i]->strides[static_cast<std::size_t>(d)];
      if (more) break;
      index[static_cast<std::size_t>(d)] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace dist
