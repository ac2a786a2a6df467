// SPDX-License-Identifier: Apache-2.0
// The threads that serve instances besides the replicas. Each is started on first use, and only if the strategy may
// have threads of its own.
#pragma once

#include <atomic>

#include "core/serve/clock_thread.hpp"
#include "core/serve/teller.hpp"

namespace dist {

class Helpers {
 public:
  Helpers(Memory& memory, const ReplicaPool& pool, const Host& host, Lifecycle& lifecycle, Tally& tally,
          Dispatcher& dispatcher, Withdrawals& withdrawals, Replacements& replacements)
      : allowed_(pool.threads() != DIST_THREADS_HOST),
        alarm_(dispatcher.alarm()),
        clock_(pool, host, alarm_, withdrawals, replacements),
        teller_(memory, pool, lifecycle, tally.elsewhere()) {}
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  void allow(bool allowed) noexcept { allowed_.store(allowed, std::memory_order_relaxed); }
  // Starts the threads that a submission needs. `clock`: it needs the clock thread even without a deadline.
  Status need(const Submission& given, bool clock) noexcept {
    if (given.done == nullptr && (clock_.runs() || (!clock && given.timeout_ns <= 0))) [[likely]]
      return kOk;
    return start(given, clock);
  }
  ClockThread& clock() noexcept { return clock_; }
  Teller& teller() noexcept { return teller_; }
  const Teller& teller() const noexcept { return teller_; }
  // The earliest deadline has changed.
  void deadline_changed() noexcept { alarm_.advance(); }
  // Ends the threads after they have finished their work.
  void stop() noexcept {
    clock_.stop();
    teller_.stop();
  }

 private:
  Status start(const Submission& given, bool clock) noexcept;

  std::atomic<bool> allowed_;
  Word& alarm_;
  ClockThread clock_;
  Teller teller_;
};

}  // namespace dist
