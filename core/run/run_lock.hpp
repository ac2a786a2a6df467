// SPDX-License-Identifier: Apache-2.0
// A FIFO lock for whole runs and for short critical sections.
//
// Without contention, locking takes one compare-and-swap. Otherwise the caller joins a queue and sleeps on a
// word of its own. While the queue is not empty the lock never opens: unlock() hands it to the first waiter,
// so no later caller can overtake. A waiter that leaves the queue because of a deadline or a cancellation may
// find that it was already chosen; it then owns the lock and passes it on.
//
// Invariant: a thread that finds the lock open may free the object that contains it. Therefore unlock()
// touches nothing of the lock after it has opened it or handed it over (a wake-up uses only the address), and
// a waiter that leaves the queue touches nothing after the mutex, which unlock() takes too while there is a
// queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/cancel.hpp"
#include "core/base/host.hpp"
#include "core/base/intrusive_list.hpp"

namespace dist {

class RunLock {
 public:
  // The result of waiting. Only kLocked means that the caller owns the lock.
  enum class Wait { kLocked, kDeadline, kCancelled, kClosed };

  bool try_lock() noexcept {
    uint32_t open = kOpen;
    return state_.compare_exchange_strong(open, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // Waits until `deadline_ns` of the host's clock (0: no limit) or until `cancel` (may be NULL) is signalled.
  Wait lock(const Host& host, int64_t deadline_ns, Cancel* cancel) noexcept;
  // Waits until the caller owns the lock, even after close(). For short critical sections, of objects whose lock nobody
  // keeps for good.
  void lock() noexcept;
  void unlock() noexcept {
    uint32_t held = kHeld;
    if (state_.compare_exchange_strong(held, kOpen, std::memory_order_release, std::memory_order_relaxed))
      return;
    hand_on();
  }

  // Permanently closes the queue: waiters leave it, and new callers are refused, except in lock_last().
  void close() noexcept;
  // Like lock(), but also works after close(). For the thread that destroys the containing object.
  Wait lock_last(const Host& host, int64_t deadline_ns) noexcept;
  // Makes the current owner release `heir` instead of opening the lock. Returns false if the lock was open;
  // the caller then owns it.
  bool bequeath(Counted& heir) noexcept;

 private:
  static constexpr uint32_t kOpen = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kQueued = 2;  // held, and there may be waiters: unlock() must look at the queue

  struct Waiter final : Cancel::Link, ListLink<RunLock> {
    enum : uint32_t { kWaiting, kChosen, kCancelled, kClosed };
    void cancelled(const char* reason) noexcept override;
    std::atomic<uint32_t> word{kWaiting};
    bool queued() const noexcept { return ListLink<RunLock>::linked(); }
  };

  enum class Joined { kQueued, kLocked, kClosed };

  Wait wait(const Host& host, int64_t deadline_ns, Cancel* cancel, bool last) noexcept;
  Joined join(Waiter& waiter, bool last) noexcept;
  bool mark() noexcept;
  bool leave(Waiter& waiter) noexcept;
  void hand_on() noexcept;

  std::atomic<uint32_t> state_{kOpen};
  std::mutex mutex_;  // protects the queue
  IntrusiveList<Waiter, RunLock> waiters_;
  Counted* heir_ = nullptr;
  bool closed_ = false;
};

// Owns a locked RunLock until the end of the scope.
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
