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

void RunLock::lock() noexcept {
  // close() makes waiters leave the queue.
  while (lock_last(Host{}, 0) != Wait::kLocked) {
  }
}

RunLock::Wait RunLock::lock(const Host& host, int64_t deadline_ns, Cancel* cancel) noexcept {
  return try_lock() ? Wait::kLocked : wait(host, deadline_ns, cancel, false);
}

RunLock::Wait RunLock::lock_last(const Host& host, int64_t deadline_ns) noexcept {
  return try_lock() ? Wait::kLocked : wait(host, deadline_ns, nullptr, true);
}

RunLock::Wait RunLock::wait(const Host& host, int64_t deadline_ns, Cancel* cancel, bool last) noexcept {
  Waiter me;
  switch (join(me, last)) {
    case Joined::kQueued: break;
    case Joined::kLocked: return Wait::kLocked;
    case Joined::kClosed: return Wait::kClosed;
  }
  // acquire pairs with the release in hand_on(): makes the effects of earlier runs visible.
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
  const uint32_t word = me.word.load(std::memory_order_acquire);
  if (word == Waiter::kChosen) return Wait::kLocked;
  if (word == Waiter::kClosed) end = Wait::kClosed;
  if (!leave(me)) unlock();
  return end;
}

// Marks the lock as having a queue. Under the mutex, so that no thread finds the queue empty and opens a lock
// that is marked. Returns false if the lock was open; the caller then owns it.
bool RunLock::mark() noexcept {
  for (uint32_t state = kOpen;;) {
    if (state_.compare_exchange_weak(state, state == kOpen ? kHeld : kQueued, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      return state != kOpen;
    }
  }
}

RunLock::Joined RunLock::join(Waiter& waiter, bool last) noexcept {
  const std::lock_guard lock(mutex_);
  if (closed_ && !last) return Joined::kClosed;
  if (!mark()) return Joined::kLocked;
  waiters_.push_back(waiter);
  return Joined::kQueued;
}

void RunLock::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (Waiter& waiter : waiters_) {
    uint32_t waiting = Waiter::kWaiting;
    if (waiter.word.compare_exchange_strong(waiting, Waiter::kClosed, std::memory_order_relaxed))
      unpark_all(waiter.word);
  }
}

bool RunLock::bequeath(Counted& heir) noexcept {
  const std::lock_guard lock(mutex_);
  if (!mark()) return false;
  heir_ = &heir;
  return true;
}

// Returns false if the waiter had been chosen already.
bool RunLock::leave(Waiter& waiter) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (waiter.queued()) {
      waiters_.remove(waiter);
      return true;
    }
  }
  while (waiter.word.load(std::memory_order_acquire) != Waiter::kChosen) yield_this_thread();
  return false;
}

// The lock is marked as having a queue: hands it to the first waiter, or opens it if all have left.
void RunLock::hand_on() noexcept {
  for (;;) {
    Waiter* next;
    Counted* heir;
    {
      const std::lock_guard lock(mutex_);
      next = waiters_.pop_front();
      heir = next == nullptr ? heir_ : nullptr;
      // relaxed: the mutex orders it with joining threads. The lock is still held.
      if (waiters_.empty() && heir_ == nullptr) state_.store(kHeld, std::memory_order_relaxed);
    }
    if (heir != nullptr) return heir->release();
    if (next != nullptr) {
      // The waiter may destroy its word as soon as it reads this, so the wake-up uses only the address.
      const std::atomic<uint32_t>& word = next->word;
      next->word.store(Waiter::kChosen, std::memory_order_release);
      return unpark_all(word);
    }
    uint32_t held = kHeld;
    // Another waiter may have joined since.
    if (state_.compare_exchange_strong(held, kOpen, std::memory_order_release, std::memory_order_relaxed))
      return;
  }
}

}  // namespace dist
