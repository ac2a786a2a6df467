// SPDX-License-Identifier: Apache-2.0
// Futures for reuse. Any thread takes and returns them without a lock.
//
// Submitting threads take from one list, and completing threads return to another one, which becomes the first
// when that is empty. So the two rarely need the same cache line.
#pragma once

#include <atomic>

#include "core/base/os/clock.hpp"
#include "core/comm/slot.hpp"
#include "core/serve/future.hpp"

namespace dist {

class Spares {
 public:
  Spares() noexcept = default;
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  // NULL: none, or another thread has taken the list and does not run at the moment. `*out_next` is the one that
  // take() will probably return next, for prefetching; may be NULL.
  Future* take(const Future** out_next) noexcept {
    // The list's own address stands for a list that another thread has taken for a moment.
    auto* const taken = reinterpret_cast<Future*>(&spare_);
    Future* first = spare_.exchange(taken, std::memory_order_acquire);
    *out_next = nullptr;
    for (int i = 0; first == taken; ++i) {
      if (i == kLooks) return nullptr;
      spin_pause();
      first = spare_.exchange(taken, std::memory_order_acquire);
    }
    if (first == nullptr && returned_.load(std::memory_order_relaxed) != nullptr)
      first = returned_.exchange(nullptr, std::memory_order_acquire);
    Future* const next = first == nullptr ? nullptr : first->next;
    spare_.store(next, std::memory_order_release);
    *out_next = next;
    return first;
  }
  // Returns a chain of unused futures.
  void put_back(Future& first, Future& last) noexcept {
    last.next = returned_.load(std::memory_order_relaxed);
    // release: the effects of all users come before its reuse.
    while (!returned_.compare_exchange_weak(last.next, &first, std::memory_order_release,
                                            std::memory_order_relaxed)) {
    }
  }

 private:
  static constexpr int kLooks = 64;

  alignas(kApart) std::atomic<Future*> spare_{nullptr};
  alignas(kApart) std::atomic<Future*> returned_{nullptr};
};

}  // namespace dist
