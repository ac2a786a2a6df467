// SPDX-License-Identifier: Apache-2.0
// Scratch: the stack memory of a thread that does a piece of a collective. It holds a pointer to each
// member's tensor, a weight for each, and elements that are folded or packed. All of this shares one block,
// because a host thread may have a small stack. run.h states how much stack a call needs; most of it is
// this block.
#pragma once

#include <algorithm>
#include <cstddef>

#include "dist/types.h"

namespace dist {

class Scratch {
 public:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  // The usual size. With the pointers and weights of 1,024 contributions and the outputs of 256 members,
  // there is room left for elements.
  static constexpr std::size_t kBytes = std::size_t{19} << 10;
  // The room for elements if pointers and weights need more than that.
  static constexpr std::size_t kElementBytes = std::size_t{8} << 10;
  static constexpr std::size_t bytes_for(std::size_t pointer_bytes) noexcept {
    constexpr std::size_t kUsual = (sizeof(void*) + sizeof(double)) * 1024 + sizeof(void*) * 256;
    static_assert(kUsual < kBytes);
    return pointer_bytes <= kUsual ? kBytes : pointer_bytes + kElementBytes;
  }
  static constexpr std::size_t lines(std::size_t bytes) noexcept {
    return (bytes + sizeof(Line) - 1) / sizeof(Line);
  }

  // `room` has lines(bytes), which are not initialized.
  Scratch(Line* room, std::size_t bytes) noexcept : room_(room->bytes), bytes_(bytes) {}
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
  std::size_t left() const noexcept { return bytes_ - std::min(used_, bytes_); }

  // give_back(mark()) releases everything taken since that mark().
  std::size_t mark() const noexcept { return used_; }
  void give_back(std::size_t mark) noexcept { used_ = mark; }

 private:
  static constexpr std::size_t kAlign = alignof(Line);

  std::byte* const room_;
  const std::size_t bytes_;
  std::size_t used_ = 0;
};

}  // namespace dist
