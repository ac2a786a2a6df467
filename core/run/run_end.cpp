// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: ending a run early, and determining its outcome.
#include <cstdio>

#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/run/device_team.hpp"
#include "core/run/inner_pool.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {
namespace {

// How long a run waits after its deadline for replicas to report it themselves: for those that wait in a collective,
// and need no more than a CPU; and for those that have just arrived there.
constexpr int64_t kReportGraceNs = 1'000'000'000;
constexpr int64_t kComingGraceNs = 2'000'000;
// How long the next run waits for functions that have been told to end.
constexpr int64_t kReturnGraceNs = 50'000'000;

}  // namespace

void ReplicaPool::cancel(const char* reason) noexcept {
  groups_.cancel(reason);
  if (IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire); handler != nullptr)
    handler->cancel(reason);
  if (threads() == DIST_THREADS_HOST) host_threads_.cancel(reason);
  // Threads that wait for a budget check again.
  if (settings().party != nullptr) changed_.advance();
}

// Its own runs may begin and end at the same time.
void ReplicaPool::cancel_from_outside(const char* reason) noexcept {
  const std::lock_guard lock(beginning_);
  cancel(reason);
}

// For a nested run: if the outer run has ended already, this one ends too; later ends are applied after the
// mutex.
void ReplicaPool::begin_groups_inside(const RunDeadline& deadline) noexcept {
  {
    const std::lock_guard lock(beginning_);
    begin_groups(deadline);
  }
  sight_.look_through(outer_->sight.here());
  if (outer_->group.cancelled()) cancel_from_outside(outer_->group.cancel_reason());
}

void ReplicaPool::begin_groups(const RunDeadline& deadline) noexcept {
  groups_.begin(deadline);
  if (team() != nullptr) team()->groups_have_begun();
}

// Must be called with the lock. Checks that all functions of an abandoned run have returned.
Status ReplicaPool::check_all_out() noexcept {
  if (!overdue_) return kOk;
  // Functions that were told to end need a moment to return.
  for (const int64_t start = steady_now_ns();
       !members_.all_finished() && steady_now_ns() - start < kReturnGraceNs;)
    yield_this_thread();
  if (!members_.all_finished()) {
    char inside[256];
    (void)members_.list_inside(latest_.number(), inside);
    return failed_precondition(
        "an earlier run reached its deadline, but these have not returned from their functions: %s. Wait for "
        "them.",
        inside);
  }
  overdue_ = false;
  return kOk;
}

Status ReplicaPool::overdue() noexcept {
  char inside[256];
  const int32_t still_inside = members_.list_inside(latest_.number(), inside);
  overdue_ = true;
  ErrorRecord late;
  late.code = DIST_DEADLINE_EXCEEDED;
  const DurationText given(group_.deadline().given_ns);
  std::snprintf(late.message, sizeof late.message,
                "the %s's deadline of %s expired. These have not returned from their functions: %s",
                naming().run(), given.text, inside);
  std::snprintf(late.expected, sizeof late.expected, "functions that return within %s", given.text);
  copy_text(late.received, "still inside its function");
  copy_text(late.hint, "The strategy rejects new runs until these functions have returned.");
  // Replicas that wait in a collective notice the deadline too, and know which peer is missing, so their
  // report is better. A replica that has just arrived may not be asleep yet.
  const int64_t start = steady_now_ns();
  int64_t passed = 0;
  while (passed < kComingGraceNs || (passed < kReportGraceNs && graph_.anyone_blocked())) {
    yield_this_thread();
    passed = steady_now_ns() - start;
  }
  condemn(late);
  late.inside = still_inside;
  return fail(late);
}

// A shutdown may have taken the lock for good. It uses none of the versions.
Status ReplicaPool::end_alone() noexcept {
  const Status outcome = members_.outcome();
  if (!sight_.has_pins()) return outcome;
  Unseen unseen;
  const bool locked = lock_.lock(Host{}, 0, nullptr) == RunLock::Wait::kLocked;
  sight_.let_go(unseen);
  if (locked) lock_.unlock();
  return outcome;
}

}  // namespace dist
