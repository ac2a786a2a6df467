// SPDX-License-Identifier: Apache-2.0
// Scratch: what a thread works with while it does a piece of a collective, on its stack: a pointer to each
// member's tensor, a weight for each, and room to fold or pack elements in. One block for all of them, which
// share it as they need, since a host's thread may have a small stack: dist.h says how much a call takes of
// it, and this block is most of that.
#pragma once

#include <algorithm>
#include <cstddef>

#include "dist/types.h"

namespace dist {

class Scratch {
 public:
  // The pointers and weights of as many contributions as there can be leave room for elements.
  static constexpr std::size_t kBytes = std::size_t{19} << 10;
  static constexpr std::size_t kMostPointerBytes =
      (sizeof(void*) + sizeof(double)) * DIST_MAX_CONTRIBUTIONS + sizeof(void*) * DIST_MAX_REPLICAS;
  static_assert(kMostPointerBytes < kBytes);

  Scratch() noexcept {}  // NOLINT(modernize-use-equals-default): nothing is written, however it is made
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // What take() takes.
  template <class T>
  static constexpr std::size_t bytes_of(std::size_t count) noexcept {
    return (count * sizeof(T) + kAlign - 1) / kAlign * kAlign;
  }
  // Room for `count` plain things, as long as there is some: left().
  template <class T>
  T* take(std::size_t count) noexcept {
    auto* const taken = reinterpret_cast<T*>(room_ + used_);
    used_ += bytes_of<T>(count);
    return taken;
  }
  std::size_t left() const noexcept { return kBytes - std::min(used_, kBytes); }

  // Where the next take() begins: give_back(mark) lets go of what has been taken since.
  std::size_t mark() const noexcept { return used_; }
  void give_back(std::size_t mark) noexcept { used_ = mark; }

 private:
  static constexpr std::size_t kAlign = 64;

  std::size_t used_ = 0;
  alignas(kAlign) std::byte room_[kBytes];
};

}  // namespace dist
