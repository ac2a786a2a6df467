// SPDX-License-Identifier: Apache-2.0
// Scratch: the stack memory of a thread that does a piece of a collective: a pointer to each member's tensor,
// a weight for each, and room to fold or pack elements. They share one block, because a host thread may have
// a small stack. dist.h documents how much stack a call needs; most of it is this block.
#pragma once

#include <algorithm>
#include <cstddef>

#include "dist/types.h"

namespace dist {

class Scratch {
 public:
  // Even with the maximum number of contributions, the pointers and weights leave room for elements.
  static constexpr std::size_t kBytes = std::size_t{19} << 10;
  static constexpr std::size_t kMostPointerBytes =
      (sizeof(void*) + sizeof(double)) * DIST_MAX_CONTRIBUTIONS + sizeof(void*) * DIST_MAX_REPLICAS;
  static_assert(kMostPointerBytes < kBytes);

  Scratch() noexcept {}  // NOLINT(modernize-use-equals-default): the memory is not initialized
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // The number of bytes that take() uses.
  template <class T>
  static constexpr std::size_t bytes_of(std::size_t count) noexcept {
    return (count * sizeof(T) + kAlign - 1) / kAlign * kAlign;
  }
  // Returns room for `count` objects, which are not constructed. The caller must have checked left().
  template <class T>
  T* take(std::size_t count) noexcept {
    auto* const taken = reinterpret_cast<T*>(room_ + used_);
    used_ += bytes_of<T>(count);
    return taken;
  }
  std::size_t left() const noexcept { return kBytes - std::min(used_, kBytes); }

  // give_back(mark()) releases everything taken since that mark().
  std::size_t mark() const noexcept { return used_; }
  void give_back(std::size_t mark) noexcept { used_ = mark; }

 private:
  static constexpr std::size_t kAlign = 64;

  std::size_t used_ = 0;
  alignas(kAlign) std::byte room_[kBytes];
};

}  // namespace dist
