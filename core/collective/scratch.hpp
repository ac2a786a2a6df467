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
  // Even with the most contributions, pointers and weights leave room for elements.
  static constexpr std::size_t kBytes = std::size_t{19} << 10;
  static constexpr std::size_t kMostPointerBytes =
      (sizeof(void*) + sizeof(double)) * DIST_MAX_CONTRIBUTIONS + sizeof(void*) * DIST_MAX_REPLICAS;
  static_assert(kMostPointerBytes < kBytes);

  Scratch() noexcept {}  // NOLINT(modernize-use-equals-default): the room is not written
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // How many bytes take() takes.
  template <class T>
  static constexpr std::size_t bytes_of(std::size_t count) noexcept {
    return (count * sizeof(T) + kAlign - 1) / kAlign * kAlign;
  }
  // Room for `count` objects, which are not constructed. The caller checks with left() that there is room.
  template <class T>
  T* take(std::size_t count) noexcept {
    auto* const taken = reinterpret_cast<T*>(room_ + used_);
    used_ += bytes_of<T>(count);
    return taken;
  }
  std::size_t left() const noexcept { return kBytes - std::min(used_, kBytes); }

  // give_back(mark()) gives back everything that has been taken since that mark().
  std::size_t mark() const noexcept { return used_; }
  void give_back(std::size_t mark) noexcept { used_ = mark; }

 private:
  static constexpr std::size_t kAlign = 64;

  std::size_t used_ = 0;
  alignas(kAlign) std::byte room_[kBytes];
};

}  // namespace dist
