// SPDX-License-Identifier: Apache-2.0
// Replaces the thread of a function that does not return although its request's deadline has expired or it was
// cancelled. The replica gets a new thread with its own pool and state. The stuck function keeps the old ones,
// and its thread destroys them when the function returns.
//
// | step | the instance | the function |
// |---|---|---|
// | found stuck | runs it | runs |
// | abandoned | waits for a new thread, and counts as busy | runs; its request has ended |
// | replaced | serves on the new thread | runs, counted in `stuck_` |
// | returned | | its thread ends |
//
// Invariant: only the clock thread calls replace_stuck().
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/replica_pool.hpp"
#include "core/serve/batcher_list.hpp"
#include "core/serve/dispatcher.hpp"
#include "core/serve/instances_options.hpp"
#include "core/serve/lifecycle.hpp"

namespace dist {

class Replacements {
 public:
  // `keeps` must stay allocated as long as a stuck function runs. `by` counts the requests that end here.
  Replacements(Counted& keeps, ReplicaPool& pool, const Host& host, const InstancesOptions& options,
               Dispatcher& dispatcher, BatcherList& batchers, Lifecycle& lifecycle, Endings& by) noexcept
      : keeps_(keeps),
        pool_(pool),
        host_(host),
        options_(options),
        dispatcher_(dispatcher),
        batchers_(batchers),
        lifecycle_(lifecycle),
        by_(by) {}
  Replacements(const Replacements&) = delete;
  Replacements& operator=(const Replacements&) = delete;

  // Replaces the threads of stuck functions, and returns when to check again; 0: when the alarm rings.
  int64_t replace_stuck() noexcept;

  // ---- Under the dispatcher's mutex ----
  // The instances are being opened: the limit on replacements starts anew.
  void begin() noexcept { replaced_ = 0; }
  uint64_t replaced_ever() const noexcept { return static_cast<uint64_t>(replaced_ever_); }

  // The number of functions that still run on threads that have been replaced.
  int stuck() const noexcept { return stuck_.load(std::memory_order_acquire); }

 private:
  struct Replacement;
  Status prepare(const Instance& at, Replacement& out) noexcept;
  ErrorRecord why_stuck(const Instance& at, Request& running) const noexcept;
  bool leave_alone(Instance& at, Replacement& with) noexcept;
  Status put_in_place(Instance& at) noexcept;
  void replace(Instance& at) noexcept;
  void record_left(Instance& at, const Request& request, dist_status status) noexcept;

  Counted& keeps_;
  ReplicaPool& pool_;
  const Host& host_;
  const InstancesOptions& options_;
  Dispatcher& dispatcher_;
  BatcherList& batchers_;
  Lifecycle& lifecycle_;
  Endings& by_;
  int32_t replaced_ = 0;  // since opening
  int64_t replaced_ever_ = 0;
  std::atomic<int> stuck_{0};
};

}  // namespace dist
