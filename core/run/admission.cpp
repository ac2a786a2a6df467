// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: acquiring and releasing the budget threads of a run (budget.hpp).
#include <algorithm>

#include "core/base/text.hpp"
#include "core/run/current.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {

bool ReplicaPool::is_inside_function() noexcept {
  const Current& here = current();
  return here.replica != nullptr || here.detached != nullptr || here.turn != nullptr;
}

// Called after the run's groups have begun and its cancel object is linked.
Status ReplicaPool::take_threads(const RunLimits& limits, const RunDeadline& deadline) noexcept {
  Budget& budget = settings().party->budget();
  if (budget.ask(*ticket_)) return kOk;
  if (limits.cancel_asked != nullptr && limits.cancel_asked->load(std::memory_order_seq_cst)) {
    budget.leave(*ticket_);
    return cancelled_early("dist_request_cancel()");
  }
  const auto told = [&] {
    return ticket_->has_turn() || group_.cancelled() || closing_.begun(std::memory_order_seq_cst);
  };
  bool late = false;
  // Do not spin: that would take a CPU from the threads that have the budget.
  while (!told() && !late) {
    const uint32_t seen = changed_.value.load(std::memory_order_acquire);
    const int64_t left = deadline.at_ns == 0 ? -1 : deadline.at_ns - host().now_ns();
    late = deadline.at_ns != 0 && left <= 0;
    if (!late) changed_.sleep(seen, host().slice_ns(left), WaitPolicy{}, told);
  }
  if (ticket_->has_turn()) return kOk;
  const Budget::State state = budget.state();
  budget.leave(*ticket_);
  if (group_.cancelled() && !closing_.begun()) return cancelled_early(group_.cancel_reason());
  if (!late) return shutting_down();
  return fail(
      DIST_DEADLINE_EXCEEDED,
      "`%s()`: %d of the budget's %d threads were not available within %s: %d are in use, and %d runs "
      "and requests wait",
      limits.call, std::min(ticket_->wants(), state.threads), state.threads,
      DurationText(deadline.given_ns).text, state.used, state.waiting);
}

void ReplicaPool::give_threads_back() noexcept {
  if (ticket_) settings().party->budget().leave(*ticket_);
}

}  // namespace dist
