// SPDX-License-Identifier: Apache-2.0
// Copies a range of a region's elements between a tensor, which may be strided, and contiguous bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/tensor.hpp"

namespace dist {

// The part of a tensor that begins `at` steps along an axis and is `along` steps long; at < 0: the whole
// tensor. Its elements are counted in row-major order.
class TensorPart {
 public:
  TensorPart(const dist_tensor& tensor, int32_t axis, int64_t at, int64_t along) noexcept
      : data_(static_cast<std::byte*>(tensor.data)), size_(dtype_size(tensor.dtype)) {
    strides_ = strides_of(tensor, made_);
    std::copy_n(tensor.shape, tensor.ndim, shape_);
    if (at >= 0) {
      shape_[axis] = along;
      data_ += at * strides_[axis] * static_cast<int64_t>(size_);
    }
    outer_ = tensor.ndim;
    while (outer_ > 0 && (shape_[outer_ - 1] == 1 || strides_[outer_ - 1] == static_cast<int64_t>(run_))) {
      run_ *= static_cast<std::size_t>(shape_[--outer_]);
    }
  }

  void read(std::size_t first, std::size_t count, std::byte* to) const noexcept {
    for_runs(first, count, [&](const std::byte* from, std::size_t bytes) {
      std::memcpy(to, from, bytes);
      to += bytes;
    });
  }
  void write(std::size_t first, std::size_t count, const std::byte* from) const noexcept {
    for_runs(first, count, [&](std::byte* to, std::size_t bytes) {
      std::memcpy(to, from, bytes);
      from += bytes;
    });
  }

  // The address of these elements if they are contiguous; otherwise NULL.
  std::byte* side_by_side(std::size_t first, std::size_t count) const noexcept {
    return outer_ == 0 && first + count <= run_ ? data_ + first * size_ : nullptr;
  }

  void clear(std::size_t count) const noexcept {
    for_runs(0, count, [](std::byte* to, std::size_t bytes) { std::memset(to, 0, bytes); });
  }

 private:
  template <class Copy>
  void for_runs(std::size_t first, std::size_t count, Copy&& copy) const noexcept {
    if (count == 0) return;
    // The start of the run that contains `first`, and then of each following run.
    int64_t at[DIST_MAX_NDIM];
    int64_t offset = 0;
    std::size_t rest = first / run_;
    for (int32_t i = outer_ - 1; i >= 0; --i) {
      const auto size = static_cast<std::size_t>(shape_[i]);
      at[i] = static_cast<int64_t>(rest % size);
      offset += at[i] * strides_[i];
      rest /= size;
    }
    for (std::size_t begin = first % run_;; begin = 0) {
      const std::size_t n = std::min(count, run_ - begin);
      copy(data_ + (offset + static_cast<int64_t>(begin)) * static_cast<int64_t>(size_), n * size_);
      count -= n;
      if (count == 0) return;
      for (int32_t i = outer_ - 1; i >= 0; --i) {
        offset += strides_[i];
        if (++at[i] < shape_[i]) break;
        offset -= at[i] * strides_[i];
        at[i] = 0;
      }
    }
  }

  std::byte* data_;
  std::size_t size_;
  std::size_t run_ = 1;  // number of elements in a contiguous run
  int32_t outer_ = 0;    // number of dimensions around such a run
  int64_t shape_[DIST_MAX_NDIM];
  int64_t made_[DIST_MAX_NDIM];
  const int64_t* strides_;
};

}  // namespace dist
