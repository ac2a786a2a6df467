// SPDX-License-Identifier: Apache-2.0
// BudgetShare: the threads that a pool's run takes from a budget (budget.hpp).
//
// Invariant: a run that waits for threads waits for nothing else, and takes them before its functions start.
//
// | state   | entered by                                  | left by                         |
// |---------|---------------------------------------------|---------------------------------|
// | none    | creation, give_back(), take() that failed   | ask(), take()                   |
// | waiting | ask() that returned false                   | admission, give_back()          |
// | taken   | ask() that returned true, take()            | give_back()                     |
//
// Without a budget, every run has its threads.
#pragma once

#include <optional>

#include "core/comm/group.hpp"
#include "core/run/budget.hpp"
#include "core/run/closing.hpp"
#include "core/run/pool_facts.hpp"
#include "core/run/run_limits.hpp"

namespace dist {

class BudgetShare {
 public:
  // `bell` is advanced when the share is admitted, and whoever ends a run that waits must advance it.
  BudgetShare(const PoolFacts& facts, const Group& group, const Closing& closing, Word& bell) noexcept;
  ~BudgetShare() { give_back(); }
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  // Returns whether the run has its threads. If not, the share waits for them.
  bool ask() noexcept { return !ticket_ || budget().ask(*ticket_); }
  // Waits until the run has its threads, the deadline expires or the run is ended. Must be called after the run's
  // groups have begun and its cancel object is linked, and only if there is a budget.
  Status take(const RunLimits& limits, const RunDeadline& deadline) noexcept;
  void give_back() noexcept {
    if (ticket_) budget().leave(*ticket_);
  }

 private:
  Budget& budget() const noexcept { return facts_.settings().party->budget(); }
  Status await(const RunLimits& limits, const RunDeadline& deadline) noexcept;

  const PoolFacts& facts_;
  const Group& group_;
  const Closing& closing_;
  Word& bell_;
  std::optional<Budget::Ticket> ticket_;
};

}  // namespace dist
