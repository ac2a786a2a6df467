// SPDX-License-Identifier: Apache-2.0
// BetweenRuns: a turn between the strategy's runs, in which the cross-replica context reads or writes
// variables. While it lives no run is under way, so that nobody sees half of a value. Over several workers, what then
// needs others is a run of theirs, which ends with it.
#pragma once

#include "core/base/status.hpp"
#include "core/run/current.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/value.hpp"

namespace dist {

class BetweenRuns {
 public:
  BetweenRuns() noexcept = default;
  ~BetweenRuns();
  BetweenRuns(const BetweenRuns&) = delete;
  BetweenRuns& operator=(const BetweenRuns&) = delete;

  // Waits for the run that is under way, at most the strategy's timeout. Inside a merge function of the
  // strategy, and inside a host's function that is called in such a turn, there is nothing to wait for.
  Status begin(Strategy& strategy, const char* call) noexcept;
  // The same where a variable is part of the value, or where other workers take part in the operation: they hear when
  // it has ended, and how.
  Status begin_for(const Value* value, Strategy& strategy, const char* call) noexcept;
  // Where other workers take part, a turn of all of them.
  Status begin_among_workers(Strategy& strategy, const char* call) noexcept;
  // False: there was nothing to wait for.
  bool has_begun() const noexcept { return pool_ != nullptr; }

 private:
  ReplicaPool* pool_ = nullptr;
  uint64_t failures_ = 0;  // on this thread, before
  const ReplicaPool* before_ = nullptr;
};

// InTurnOf: while a host's function is called for several copies at the same time, on other threads too,
// these are in the turn of the thread that began it.
class InTurnOf {
 public:
  explicit InTurnOf(const ReplicaPool* turn) noexcept
      : before_(current().turn), shared_(current().turn_shared) {
    current().turn = turn;
    current().turn_shared = true;
  }
  ~InTurnOf() {
    current().turn = before_;
    current().turn_shared = shared_;
  }
  InTurnOf(const InTurnOf&) = delete;
  InTurnOf& operator=(const InTurnOf&) = delete;

 private:
  const ReplicaPool* const before_;
  const bool shared_;
};

}  // namespace dist
