// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_lock.hpp"

#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"
#include "core/comm/word.hpp"

namespace dist {

void RunLock::Waiter::cancelled(const char*) noexcept {
  uint32_t waiting = kWaiting;
  if (word.compare_exchange_strong(waiting, kCancelled, std::memory_order_relaxed)) unpark_all(word);
}

void RunLock::lock() noexcept { (void)lock(Host{}, 0, nullptr); }

RunLock::Wait RunLock::lock(const Host& host, int64_t deadline_ns, Cancel* cancel) noexcept {
  if (try_lock()) return Wait::kLocked;
  Waiter me;
  if (!join(me)) return Wait::kLocked;
  // acquire: for hand_on()'s release, what the runs before have left.
  const auto told = [&] { return me.word.load(std::memory_order_acquire) != Waiter::kWaiting; };
  Wait end = Wait::kCancelled;
  {
    const CancelScope scope(cancel, me);
    bool waiting = !scope.late() && !spin_until(WaitPolicy{}, told);
    while (waiting) {
      const int64_t left = deadline_ns == 0 ? -1 : deadline_ns - host.now_ns();
      if (deadline_ns != 0 && left <= 0) {
        end = Wait::kDeadline;
        break;
      }
      park(me.word, Waiter::kWaiting, host.slice_ns(left));
      waiting = !told();
    }
  }
  if (me.word.load(std::memory_order_acquire) == Waiter::kChosen) return Wait::kLocked;
  if (!leave(me)) unlock();
  return end;
}

// False: it opened meanwhile, and is the caller's.
bool RunLock::join(Waiter& waiter) noexcept {
  const std::lock_guard lock(mutex_);
  // Under the mutex nobody sees the queue empty who would open a lock that is marked as queued for.
  for (uint32_t state = kOpen;;) {
    if (state_.compare_exchange_weak(state, state == kOpen ? kHeld : kQueued, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      if (state == kOpen) return false;
      break;
    }
  }
  waiter.previous = last_;
  (last_ == nullptr ? first_ : last_->next) = &waiter;
  last_ = &waiter;
  waiter.queued = true;
  return true;
}

// False: it had been chosen already.
bool RunLock::leave(Waiter& waiter) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (waiter.queued) {
      take_out(waiter);
      return true;
    }
  }
  while (waiter.word.load(std::memory_order_acquire) != Waiter::kChosen) yield_this_thread();
  return false;
}

void RunLock::take_out(Waiter& waiter) noexcept {
  (waiter.previous == nullptr ? first_ : waiter.previous->next) = waiter.next;
  (waiter.next == nullptr ? last_ : waiter.next->previous) = waiter.previous;
  waiter.queued = false;
}

// The lock is marked as queued for: gives it to the first, or opens it where all have left.
void RunLock::hand_on() noexcept {
  Waiter* next;
  do {
    {
      const std::lock_guard lock(mutex_);
      next = first_;
      if (next != nullptr) take_out(*next);
      // relaxed: the mutex orders it with those who join. The lock is still held.
      if (first_ == nullptr) state_.store(kHeld, std::memory_order_relaxed);
    }
    if (next != nullptr) {
      // Its word may be gone once it reads this: the wake-up takes the address alone.
      const std::atomic<uint32_t>& word = next->word;
      next->word.store(Waiter::kChosen, std::memory_order_release);
      unpark_all(word);
      return;
    }
    uint32_t held = kHeld;
    // Somebody may have joined since.
    if (state_.compare_exchange_strong(held, kOpen, std::memory_order_release, std::memory_order_relaxed))
      return;
  } while (true);
}

}  // namespace dist
