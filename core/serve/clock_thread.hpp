// SPDX-License-Identifier: Apache-2.0
// The thread that ends queued requests whose deadline has expired and replaces the threads of stuck functions.
//
// | the thread is | deadlines are watched by |
// |---|---|
// | not started | threads that wait for a request, in help_and_left() |
// | running | the thread, until the next deadline or until the alarm rings |
// | stopped | nobody |
//
// Invariant: once it was started, only this thread watches deadlines.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/host.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/status.hpp"
#include "core/comm/word.hpp"
#include "core/run/replica_pool.hpp"
#include "core/serve/replacements.hpp"
#include "core/serve/withdrawals.hpp"

namespace dist {

class ClockThread {
 public:
  // `alarm` is rung when the next deadline is earlier than planned.
  ClockThread(const ReplicaPool& pool, const Host& host, Word& alarm, Withdrawals& withdrawals,
              Replacements& replacements) noexcept
      : pool_(pool), host_(host), alarm_(alarm), withdrawals_(withdrawals), replacements_(replacements) {}
  ~ClockThread() { stop(); }
  ClockThread(const ClockThread&) = delete;
  ClockThread& operator=(const ClockThread&) = delete;

  // Starts the thread on first use.
  Status need() noexcept;
  bool runs() const noexcept { return runs_.load(std::memory_order_acquire); }
  // For waiting threads: does the thread's work if there is none. Returns how long to sleep: until the next
  // deadline, or at most until `end_ns` of the host's clock (0: none). < 0: no limit.
  int64_t help_and_left(int64_t end_ns) noexcept;
  // Deadlines are ignored from now on.
  void stop() noexcept;

 private:
  static void* run(void* self);
  void watch() noexcept;

  const ReplicaPool& pool_;
  const Host& host_;
  Word& alarm_;
  Withdrawals& withdrawals_;
  Replacements& replacements_;
  std::mutex starting_;
  Thread thread_;
  std::atomic<bool> runs_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace dist
