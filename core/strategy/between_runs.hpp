// SPDX-License-Identifier: Apache-2.0
// BetweenRuns: a turn between the runs of a strategy, in which cross-replica code reads or writes variables.
//
// Invariant: once begin() has taken a turn, no run is in progress until the object is destroyed, so nobody sees
// a partially updated value. With several workers, the operations of the turn that need other workers form
// one run of theirs, which ends with the turn.
#pragma once

#include <optional>

#include "core/base/status.hpp"
#include "core/run/current.hpp"
#include "core/strategy/scope.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/value.hpp"

namespace dist {

class BetweenRuns {
 public:
  BetweenRuns() noexcept = default;
  ~BetweenRuns();
  BetweenRuns(const BetweenRuns&) = delete;
  BetweenRuns& operator=(const BetweenRuns&) = delete;

  // Waits for the current run, at most for the strategy's timeout. Does not wait inside a merge function of
  // the strategy, or inside a host callback that is called during such a turn.
  Status begin(Strategy& strategy, const char* call) noexcept;
  // Begins a turn only if `value` contains a variable, or if other workers take part in the operation. They
  // learn when and how it has ended.
  Status begin_for(const Value* value, Strategy& strategy, const char* call) noexcept;
  // Begins a turn only if other workers take part; then they take it together.
  Status begin_among_workers(Strategy& strategy, const char* call) noexcept;
  // False if no turn was needed.
  bool has_begun() const noexcept { return pool_ != nullptr; }

 private:
  void note(const Strategy& strategy, const char* call) noexcept {
    if (!in_progress_) in_progress_.emplace(strategy, call);
  }

  std::optional<CallInProgress> in_progress_;
  ReplicaPool* pool_ = nullptr;
  uint64_t failures_ = 0;  // on this thread, at the begin
  const ReplicaPool* before_ = nullptr;
};

// InTurnOf: while a host callback runs for several copies at the same time, lets other threads share the turn
// of the thread that began it.
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
