// SPDX-License-Identifier: Apache-2.0
// MessagePool: caches the memory of large messages. Faulting in fresh pages costs about as much as copying
// the message into them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>

#include "core/base/memory.hpp"

namespace dist {

class MessagePool final : public Counted {
 public:
  static constexpr std::size_t kAlign = 64;
  // Smaller messages are allocated separately.
  static constexpr std::size_t kLeastBytes = std::size_t{256} << 10;
  // Limit for unused memory in the pool.
  static constexpr std::size_t kMostKeptBytes = std::size_t{40} << 20;

  explicit MessagePool(Memory& memory) noexcept : Counted(memory) {}

  // Returns NULL if no memory is left. Pass *capacity to give().
  std::byte* take(std::size_t bytes, std::size_t* capacity) noexcept {
    {
      const std::scoped_lock lock(mutex_);
      // Take the smallest block that is large enough, unless it is much too large.
      Block* best = nullptr;
      for (Block& each : blocks_) {
        if (each.capacity < bytes || each.capacity > 2 * bytes) continue;
        if (best == nullptr || each.capacity < best->capacity) best = &each;
      }
      if (best != nullptr) {
        *capacity = best->capacity;
        kept_ -= best->capacity;
        best->capacity = 0;
        return best->data;
      }
    }
    constexpr std::size_t kGrain = std::size_t{64} << 10;
    *capacity = (bytes + kGrain - 1) / kGrain * kGrain;
    return static_cast<std::byte*>(memory().try_allocate(*capacity, kAlign));
  }
  void give(std::byte* data, std::size_t capacity) noexcept {
    {
      const std::scoped_lock lock(mutex_);
      Block* const place =
          std::find_if(blocks_.begin(), blocks_.end(), [](const Block& each) { return each.capacity == 0; });
      if (place != blocks_.end() && capacity <= kMostKeptBytes - kept_) {
        *place = {data, capacity};
        kept_ += capacity;
        return;
      }
    }
    memory().free(data, capacity, kAlign);
  }

 private:
  struct Block {
    std::byte* data = nullptr;
    std::size_t capacity = 0;  // 0: no block
  };
  ~MessagePool() override {
    for (const Block& each : blocks_) {
      if (each.capacity != 0) memory().free(each.data, each.capacity, kAlign);
    }
  }

  std::mutex mutex_;
  std::array<Block, 16> blocks_;
  std::size_t kept_ = 0;
};

}  // namespace dist
