// SPDX-License-Identifier: Apache-2.0
// Wakes the threads that wait for one of several futures.
//
// Invariant: a thread exists as Waiting before it checks whether one has completed. So either the check sees a
// completion, or announce() sees the thread.
#pragma once

#include <atomic>

#include "core/comm/word.hpp"

namespace dist {

class AnyCompletion {
 public:
  // A thread that waits, unless `waits` is false.
  class Waiting {
   public:
    Waiting(AnyCompletion& any, bool waits) noexcept : any_(any), waits_(waits) {
      if (waits_) any_.waiting_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Waiting() {
      if (waits_) any_.waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    AnyCompletion& any_;
    const bool waits_;
  };

  // A future has completed.
  void announce() noexcept {
    if (waiting_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      completions_.advance();
  }
  // Counts the completions that were announced to waiting threads.
  Word& completions() noexcept { return completions_; }

 private:
  Word completions_;
  std::atomic<int> waiting_{0};
};

}  // namespace dist
