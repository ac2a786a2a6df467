// SPDX-License-Identifier: Apache-2.0
// RunLock: a lock that callers get in the order in which they asked, for whole runs and for short sections.
//
// A caller that finds it open takes it by one exchange of a word. Any other caller joins a queue and sleeps
// on a word of its own. The lock never opens while somebody queues: the thread that unlocks hands it to the
// first in the queue, so that nobody who comes later can take it before. A caller that leaves the queue, for
// a deadline or a cancel, may find that it has been chosen already: then it holds the lock and passes it on.
//
// A thread that unlocks touches nothing of the lock after that (a wake-up takes only an address), and a
// caller that leaves the queue nothing after the mutex, which the thread that unlocks a lock with a queue
// takes too. So a thread that finds the lock open may free the object that it lies in.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/cancel.hpp"
#include "core/base/host.hpp"

namespace dist {

class RunLock {
 public:
  // How a wait ended: the lock is the caller's; or it is not, and why.
  enum class Wait { kLocked, kDeadline, kCancelled, kClosed };

  bool try_lock() noexcept {
    uint32_t open = kOpen;
    return state_.compare_exchange_strong(open, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // Waits until `deadline_ns` of the host's clock (0: for ever), or until `cancel` (NULL: nothing) is
  // signalled.
  Wait lock(const Host& host, int64_t deadline_ns, Cancel* cancel) noexcept;
  void lock() noexcept;
  void unlock() noexcept {
    uint32_t held = kHeld;
    if (state_.compare_exchange_strong(held, kOpen, std::memory_order_release, std::memory_order_relaxed))
      return;
    hand_on();
  }

  // For good: who queues leaves, and nobody queues any more, but for who ends what the lock lies in.
  void close() noexcept;
  // As lock(), for that one.
  Wait lock_last(const Host& host, int64_t deadline_ns) noexcept;
  // Who holds it lets go of `heir` instead of opening it. False: it was open, and is the caller's.
  bool bequeath(Counted& heir) noexcept;

 private:
  static constexpr uint32_t kOpen = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kQueued = 2;  // held, and others may wait: who unlocks looks at the queue

  struct Waiter final : Cancel::Link {
    enum : uint32_t { kWaiting, kChosen, kCancelled, kClosed };
    void cancelled(const char* reason) noexcept override;
    std::atomic<uint32_t> word{kWaiting};
    Waiter* next = nullptr;
    Waiter* previous = nullptr;
    bool queued = false;
  };

  enum class Joined { kQueued, kLocked, kClosed };

  Wait wait(const Host& host, int64_t deadline_ns, Cancel* cancel, bool last) noexcept;
  Joined join(Waiter& waiter, bool last) noexcept;
  bool mark() noexcept;
  bool leave(Waiter& waiter) noexcept;
  void take_out(Waiter& waiter) noexcept;
  void hand_on() noexcept;

  std::atomic<uint32_t> state_{kOpen};
  std::mutex mutex_;  // of the queue
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  Counted* heir_ = nullptr;
  bool closed_ = false;
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
