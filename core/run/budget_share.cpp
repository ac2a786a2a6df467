// SPDX-License-Identifier: Apache-2.0
#include "core/run/budget_share.hpp"

#include <algorithm>

namespace dist {

BudgetShare::BudgetShare(const PoolFacts& facts, const Group& group, const Closing& closing,
                         Word& bell) noexcept
    : facts_(facts), group_(group), closing_(closing), bell_(bell) {
  if (facts.settings().party != nullptr)
    ticket_.emplace(facts.settings().party->place(), facts.budget_share(), bell);
}

Status BudgetShare::take(const RunLimits& limits, const RunDeadline& deadline) noexcept {
  if (ask()) return kOk;
  if (limits.cancel_asked != nullptr && limits.cancel_asked->load(std::memory_order_seq_cst)) {
    give_back();
    return cancelled_early(facts_.naming(), "dist_request_cancel()");
  }
  return await(limits, deadline);
}

Status BudgetShare::await(const RunLimits& limits, const RunDeadline& deadline) noexcept {
  const Host& host = facts_.host();
  const auto told = [&] {
    return ticket_->has_turn() || group_.cancelled() || closing_.begun(std::memory_order_seq_cst);
  };
  bool late = false;
  // Do not spin: that would take a CPU from the threads that have the budget.
  while (!told() && !late) {
    const uint32_t seen = bell_.value.load(std::memory_order_acquire);
    const int64_t left = deadline.at_ns == 0 ? -1 : deadline.at_ns - host.now_ns();
    late = deadline.at_ns != 0 && left <= 0;
    if (!late) bell_.sleep(seen, host.slice_ns(left), WaitPolicy{}, told);
  }
  if (ticket_->has_turn()) return kOk;
  const Budget::State state = budget().state();
  give_back();
  if (group_.cancelled() && !closing_.begun())
    return cancelled_early(facts_.naming(), group_.cancel_reason());
  if (!late) return closing_.error();
  return fail(
      DIST_DEADLINE_EXCEEDED,
      "`%s()`: %d of the budget's %d threads were not available within %s: %d are in use, and %d runs "
      "and requests wait",
      limits.call, std::min(ticket_->wants(), state.threads), state.threads,
      DurationText(deadline.given_ns).text, state.used, state.waiting);
}

}  // namespace dist
