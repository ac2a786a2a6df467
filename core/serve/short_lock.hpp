// SPDX-License-Identifier: Apache-2.0
// A mutex for sections of a few dozen instructions. Locking and unlocking are inlined and take one atomic
// operation each; a thread that finds the lock taken spins for about a microsecond before it sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/os/clock.hpp"
#include "core/base/os/park.hpp"

namespace dist {

class ShortLock {
 public:
  ShortLock() noexcept = default;
  ShortLock(const ShortLock&) = delete;
  ShortLock& operator=(const ShortLock&) = delete;

  void lock() noexcept {
    uint32_t open = kOpen;
    if (!state_.compare_exchange_strong(open, kHeld, std::memory_order_acquire, std::memory_order_relaxed))
        [[unlikely]]
      wait();
  }
  void unlock() noexcept {
    if (state_.exchange(kOpen, std::memory_order_release) == kSleepers) [[unlikely]]
      unpark_all(state_);
  }

 private:
  enum : uint32_t { kOpen, kHeld, kSleepers };  // kSleepers: held, and threads may be sleeping

  [[gnu::noinline, gnu::cold]] void wait() noexcept {
    for (int i = 0; i < kSpins; ++i) {
      uint32_t state = state_.load(std::memory_order_relaxed);
      if (state == kOpen &&
          state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire, std::memory_order_relaxed))
        return;
      spin_pause();
    }
    // This thread does not know whether others sleep as well, so it takes the lock as kSleepers.
    while (state_.exchange(kSleepers, std::memory_order_acquire) != kOpen) park(state_, kSleepers, -1);
  }
  static constexpr int kSpins = 64;

  std::atomic<uint32_t> state_{kOpen};
};

}  // namespace dist
