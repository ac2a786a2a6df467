// SPDX-License-Identifier: Apache-2.0
#include "core/serve/completions.hpp"

#include <utility>

#include "core/serve/request.hpp"

namespace dist {

void Completions::add(Request& request) noexcept {
  request.next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      const bool was_empty = first_ == nullptr;
      (was_empty ? first_ : last_->next) = &request;
      last_ = &request;
      if (was_empty && descriptor_.is_open()) descriptor_.set();
      // Under the lock: who takes the request may destroy this queue next.
      changed_.advance();
      return;
    }
  }
  request.let_go();
}

Request* Completions::take() noexcept {
  const std::lock_guard lock(mutex_);
  if (first_ == nullptr) return nullptr;
  Request* const request = std::exchange(first_, first_->next);
  if (first_ == nullptr && descriptor_.is_open()) descriptor_.clear();
  return request;
}

Request* Completions::next(int64_t timeout_ns) noexcept {
  Request* request = take();
  if (request != nullptr || timeout_ns == 0) return request;
  const int64_t start = steady_now_ns();
  for (;;) {
    // acquire keeps this before take(): what comes later ends the sleep.
    const uint32_t seen = changed_.value.load(std::memory_order_acquire);
    if ((request = take()) != nullptr) return request;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return first_ != nullptr ? std::exchange(first_, first_->next) : nullptr;
    }
    const int64_t left = timeout_ns < 0 ? -1 : timeout_ns - (steady_now_ns() - start);
    if (timeout_ns >= 0 && left <= 0) return nullptr;
    const auto changed = [&] { return changed_.value.load(std::memory_order_seq_cst) != seen; };
    if (!spin_until(WaitPolicy{}, changed)) changed_.sleep(seen, left, WaitPolicy{}, changed);
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
  Request* left;
  {
    const std::lock_guard lock(mutex_);
    closed_ = over_ = true;
    left = std::exchange(first_, nullptr);
    changed_.advance();
  }
  while (left != nullptr) std::exchange(left, left->next)->let_go();
}

}  // namespace dist
