// SPDX-License-Identifier: Apache-2.0
// The phase of a strategy's instances, and the word on which threads wait until the phase or a count has changed.
//
// | phase | requests | instances |
// |---|---|---|
// | kNever | refused, because the instances were never opened | none |
// | kOpening | refused | create their states |
// | kOpen | accepted | serve |
// | kClosing | refused; accepted ones run to completion | serve |
// | kEnding | refused | destroy their states |
// | kClosed | refused, until the instances are opened again | none |
//
// After refuse_all(), requests and runs are refused in every phase.
//
// Invariant: a thread that changes something that wait_until() may check calls changed() afterwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/host.hpp"
#include "core/base/status.hpp"
#include "core/comm/word.hpp"
#include "core/serve/endings.hpp"
#include "core/serve/short_lock.hpp"

namespace dist {

enum class Phase : uint8_t { kNever, kOpening, kOpen, kClosing, kEnding, kClosed };

class Lifecycle {
 public:
  Lifecycle() noexcept = default;
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;

  Phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }
  // Ordered with set() and with the counts of accepted items.
  bool is_open() const noexcept { return phase_.load(std::memory_order_seq_cst) == Phase::kOpen; }
  const char* name() const noexcept;
  // Why nothing is accepted in this phase; OK if it is kOpen.
  Status refusal(const char* call) const noexcept;
  // Must be called under the mutex that protects the queue.
  void set(Phase phase) noexcept {
    // seq_cst: delivered() reads it.
    phase_.store(phase, std::memory_order_seq_cst);
  }

  void refuse_all() noexcept { refused_.store(true, std::memory_order_relaxed); }
  bool refuses_all() const noexcept { return refused_.load(std::memory_order_relaxed); }

  // The lock of a thread that opens or closes the instances. Not owned if another thread does.
  std::unique_lock<std::mutex> try_lock_to_change() noexcept;
  std::unique_lock<std::mutex> lock_to_change() noexcept { return std::unique_lock(changing_); }

  void changed() noexcept { changed_.advance(); }
  // Counts a future whose completion was published and whose host was notified.
  void delivered(Endings& by) noexcept {
    // seq_cst: a closing thread first sets the phase, and then counts.
    by.delivered.fetch_add(1, std::memory_order_seq_cst);
    if (!is_open()) [[unlikely]]
      changed();
  }
  // Waits until holds(), which is called under `mutex`, returns true. Returns false if the deadline (0: none)
  // expires.
  template <class Holds>
  bool wait_until(ShortLock& mutex, const Host& host, const WaitPolicy& policy, int64_t deadline_ns,
                  Holds&& holds) noexcept {
    for (;;) {
      // The acquire keeps this load before the check, so a later change ends the wait.
      const uint32_t seen = changed_.value.load(std::memory_order_acquire);
      {
        const std::lock_guard lock(mutex);
        if (holds()) return true;
      }
      const int64_t left = deadline_ns == 0 ? -1 : deadline_ns - host.now_ns();
      if (deadline_ns != 0 && left <= 0) return false;
      const auto news = [&] { return changed_.value.load(std::memory_order_seq_cst) != seen; };
      if (!spin_until(policy, news)) changed_.sleep(seen, host.slice_ns(left), policy, news);
    }
  }

 private:
  std::mutex changing_;
  std::atomic<Phase> phase_{Phase::kNever};
  std::atomic<bool> refused_{false};
  Word changed_;  // counts changes
};

}  // namespace dist
