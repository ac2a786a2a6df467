// SPDX-License-Identifier: Apache-2.0
// Walk: iterates over the elements of a strided tensor in row-major order; packs them into a dense buffer,
// and unpacks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dist/types.h"

namespace dist {

// Steps through a region of a strided tensor in row-major order, beginning with element `first`.
class Walk {
 public:
  Walk(const int64_t* shape, int32_t ndim, const int64_t* strides, std::size_t first) noexcept
      : shape_(shape), strides_(strides), ndim_(ndim) {
    for (int32_t i = ndim - 1; i >= 0; --i) {
      const auto size = static_cast<std::size_t>(shape[i]);
      at_[i] = static_cast<int64_t>(first % size);
      offset_ += at_[i] * strides[i];
      first /= size;
    }
  }
  int64_t offset() const noexcept { return offset_; }
  void next() noexcept {
    for (int32_t i = ndim_ - 1; i >= 0; --i) {
      offset_ += strides_[i];
      if (++at_[i] < shape_[i]) return;
      offset_ -= at_[i] * strides_[i];
      at_[i] = 0;
    }
  }

 private:
  const int64_t* shape_;
  const int64_t* strides_;
  int32_t ndim_;
  int64_t offset_ = 0;
  int64_t at_[DIST_MAX_NDIM];
};

// Copy `count` elements between a strided region and a dense buffer.
template <std::size_t kSize>
void gather_elements(Walk walk, const std::byte* from, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i, walk.next()) {
    std::memcpy(to + i * kSize, from + walk.offset() * static_cast<int64_t>(kSize), kSize);
  }
}
template <std::size_t kSize>
void scatter_elements(Walk walk, const std::byte* from, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i, walk.next()) {
    std::memcpy(to + walk.offset() * static_cast<int64_t>(kSize), from + i * kSize, kSize);
  }
}

inline void pack(Walk walk, const std::byte* from, std::byte* to, std::size_t count,
                 std::size_t size) noexcept {
  switch (size) {
    case 1: return gather_elements<1>(walk, from, to, count);
    case 2: return gather_elements<2>(walk, from, to, count);
    case 4: return gather_elements<4>(walk, from, to, count);
    default: return gather_elements<8>(walk, from, to, count);
  }
}

inline void unpack(Walk walk, const std::byte* from, std::byte* to, std::size_t count,
                   std::size_t size) noexcept {
  switch (size) {
    case 1: return scatter_elements<1>(walk, from, to, count);
    case 2: return scatter_elements<2>(walk, from, to, count);
    case 4: return scatter_elements<4>(walk, from, to, count);
    default: return scatter_elements<8>(walk, from, to, count);
  }
}

}  // namespace dist
