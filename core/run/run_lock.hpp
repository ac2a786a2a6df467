// SPDX-License-Identifier: Apache-2.0
// A lock with a deadline, for whole runs and for short sections.
#pragma once

#include "core/comm/word.hpp"

namespace dist {

// Who unlocks touches nothing of the lock after it is open (a wake-up takes its address only), so that
// whoever finds it open may end what it lies in.
class RunLock {
 public:
  bool try_lock() noexcept {
    uint32_t open = kOpen;
    return state_.compare_exchange_strong(open, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // False: `timeout_ns` is over (< 0: no limit).
  bool lock(int64_t timeout_ns) noexcept {
    if (try_lock()) return true;
    const int64_t start = steady_now_ns();
    (void)spin_until(WaitPolicy{}, [&] { return state_.load(std::memory_order_relaxed) == kOpen; });
    if (try_lock()) return true;
    // Whoever has slept takes the lock as one that others wait for: it cannot know that none does.
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kOpen) {
      const int64_t left = timeout_ns < 0 ? -1 : timeout_ns - (steady_now_ns() - start);
      if (timeout_ns >= 0 && left <= 0) return false;
      park(state_, kAwaited, left);
    }
    return true;
  }
  void unlock() noexcept {
    if (state_.exchange(kOpen, std::memory_order_release) == kAwaited) unpark_all(state_);
  }

 private:
  static constexpr uint32_t kOpen = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kAwaited = 2;

  std::atomic<uint32_t> state_{kOpen};
};

// Holds a lock that was taken, to the end of the scope.
class RunLockHolder {
 public:
  explicit RunLockHolder(RunLock& lock) noexcept : lock_(lock) {}
  ~RunLockHolder() { lock_.unlock(); }
  RunLockHolder(const RunLockHolder&) = delete;
  RunLockHolder& operator=(const RunLockHolder&) = delete;

 private:
  RunLock& lock_;
};

}  // namespace dist
