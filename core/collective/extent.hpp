// SPDX-License-Identifier: Apache-2.0
// Extent: the memory range of a tensor.
#pragma once

#include <cstddef>

#include "core/base/tensor.hpp"
#include "core/collective/call.hpp"
#include "dist/types.h"

namespace dist {

// The memory of a dense tensor. It is empty for a strided tensor, because other tensors' elements may lie in
// the gaps.
struct Extent {
  const void* data = nullptr;
  std::size_t bytes = 0;

  Extent() = default;
  Extent(const void* at, std::size_t size) noexcept : data(at), bytes(size) {}
  explicit Extent(const dist_tensor& tensor, bool strided) noexcept {
    if (strided && tensor.strides != nullptr) return;
    data = tensor.data;
    bytes = elements_of(tensor) * dtype_size(tensor.dtype);
  }
  bool operator==(const Extent& other) const noexcept { return data == other.data && bytes == other.bytes; }
  bool meets(const Extent& other) const noexcept {
    return bytes != 0 && other.bytes != 0 && overlap(data, bytes, other.data, other.bytes);
  }
};

}  // namespace dist
