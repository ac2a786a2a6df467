// SPDX-License-Identifier: Apache-2.0
#include "core/serve/completions.hpp"

#include <utility>

#include "core/serve/eager_spin.hpp"
#include "core/serve/future.hpp"
#include "core/serve/instances.hpp"

namespace dist {

bool Completions::add(Future& future, bool last) noexcept {
  bool open = false;
  {
    const std::lock_guard lock(mutex_);
    open = !closed_;
    eager_.store(future.home().spins_eagerly(), std::memory_order_relaxed);
    future.comes_last = last;
    if (!open) future.arrived.store(last, std::memory_order_release);
    if (open && !std::exchange(future.lies_there, true)) {
      future.next = nullptr;
      const bool was_empty = first_ == nullptr;
      (was_empty ? first_ : last_->next) = &future;
      last_ = &future;
      if (was_empty && descriptor_.is_open()) descriptor_.set();
      // Under the lock, because the receiver may destroy this queue next.
      changed_.advance();
      return true;
    }
  }
  future.let_go();
  return open;
}

// Must be called under the mutex.
RequestHandle* Completions::take_first() noexcept {
  if (first_ == nullptr) return nullptr;
  Future* const future = std::exchange(first_, first_->next);
  future->lies_there = false;
  future->arrived.store(future->comes_last, std::memory_order_release);
  if (first_ == nullptr && descriptor_.is_open()) descriptor_.clear();
  return &future->arrival(future->comes_last);
}

RequestHandle* Completions::take() noexcept {
  const std::lock_guard lock(mutex_);
  return take_first();
}

RequestHandle* Completions::next(int64_t timeout_ns) noexcept {
  RequestHandle* arrival = take();
  if (arrival != nullptr || timeout_ns == 0) return arrival;
  const int64_t start = steady_now_ns();
  for (;;) {
    // The acquire keeps this load before take(), so a later arrival ends the sleep.
    const uint32_t seen = changed_.value.load(std::memory_order_acquire);
    if ((arrival = take()) != nullptr) return arrival;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return take_first();
    }
    const int64_t left = timeout_ns < 0 ? -1 : timeout_ns - (steady_now_ns() - start);
    if (timeout_ns >= 0 && left <= 0) return nullptr;
    const auto changed = [&] { return changed_.value.load(std::memory_order_seq_cst) != seen; };
    if (!spin_eagerly(eager_.load(std::memory_order_relaxed), WaitPolicy{}, changed))
      changed_.sleep(seen, left, WaitPolicy{}, changed);
  }
}

Status Completions::descriptor(int32_t* out) noexcept {
  const std::lock_guard lock(mutex_);
  if (!descriptor_.is_open()) {
    DIST_TRY(descriptor_.open());
    if (first_ != nullptr) descriptor_.set();
  }
  *out = descriptor_.number();
  return kOk;
}

void Completions::end() noexcept {
  const std::lock_guard lock(mutex_);
  over_ = true;
  changed_.advance();
}

void Completions::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = over_ = true;
    changed_.advance();
  }
  while (RequestHandle* const left = take()) left->future().let_go();
}

}  // namespace dist
