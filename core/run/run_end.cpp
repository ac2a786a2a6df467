// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: ending a run early, and determining its outcome.
#include <cstdio>
#include <span>

#include "core/base/on_stack.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/run/device_team.hpp"
#include "core/run/inner_pool.hpp"
#include "core/run/member_lists.hpp"
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
  reason == nullptr ? group_.cancel() : group_.cancel(reason);
  subgroups_.cancel(reason);
  if (workers() != nullptr) workers()->cancel(reason);
  if (InnerPool* const inner = inner_.load(std::memory_order_acquire); inner != nullptr)
    inner->pool().cancel_from_outside(reason);
  for (DeviceTeam* const team : teams_) team->cancel(reason);
  if (settings().nesting.lent != nullptr) settings().nesting.lent->cancel(reason);
  if (IdleHandler* const handler = idle_handler_.load(std::memory_order_acquire); handler != nullptr)
    handler->cancel(reason);
  if (threads() == DIST_THREADS_HOST) cancel_host_run(reason);
  // Threads that wait for a budget check again.
  if (settings().party != nullptr) changed_.advance();
}

// For a pool nested in another one's run, because its own runs may begin and end at the same time.
void ReplicaPool::cancel_from_outside(const char* reason) noexcept {
  const std::lock_guard lock(beginning_);
  cancel(reason);
}

void ReplicaPool::condemn(const ErrorRecord& why) noexcept {
  group_.condemn(why);
  subgroups_.condemn(why);
  if (workers() != nullptr) workers()->condemn(why);
  for (DeviceTeam* const team : teams_) team->condemn(why);
  if (settings().nesting.lent != nullptr) settings().nesting.lent->condemn(why);
}

// For a nested run: if the outer run has ended already, this one ends too; later ends are applied after the
// mutex.
void ReplicaPool::begin_groups_inside(const RunDeadline& deadline) noexcept {
  {
    const std::lock_guard lock(beginning_);
    begin_groups(deadline);
  }
  sight_.look_through(outer_->sight());
  const Group& outer = outer_->group_;
  if (outer.cancelled()) cancel_from_outside(outer.cancel_reason());
}

// The teams come first. If cancel() is called in between, it ends the device runs of the run that is about to
// begin, so it is not lost.
void ReplicaPool::begin_groups(const RunDeadline& deadline) noexcept {
  for (DeviceTeam* const team : teams_) team->begin_run(*this);
  if (settings().nesting.lent != nullptr) settings().nesting.lent->begin_run(*this);
  channel_.begin_run();
  group_.begin_run(deadline);
  subgroups_.begin_run(deadline);
  if (team() != nullptr) team()->groups_have_begun();
}

// Whether a function of a run with the same pins and number is still running. A later run that has not
// started yet counts as running, which is safe.
bool ReplicaPool::is_inside(const Sight& of) const noexcept {
  if (!sight_.is_inside(of)) return false;
  return !all_finished(started_.value.load(std::memory_order_acquire)) || is_inside_below(of);
}

// The same for nested runs, which may have been abandoned at their own deadlines.
bool ReplicaPool::is_inside_below(const Sight& of) const noexcept {
  for (DeviceTeam* const team : teams_) {
    if (team->pool().is_inside(of)) return true;
  }
  if (settings().nesting.lent != nullptr && settings().nesting.lent->pool().is_inside(of)) return true;
  InnerPool* const inner = inner_.load(std::memory_order_acquire);
  return inner != nullptr && inner->pool().is_inside(of);
}

// Called when no function of this pool's runs is running.
void ReplicaPool::let_go(Unseen& out) noexcept {
  sight_.let_go(out, [this](const Sight& of) { return is_inside_below(of); });
}

int32_t ReplicaPool::list_inside(uint32_t run, std::span<char> text) const noexcept {
  // Collected first, because functions may return meanwhile.
  auto* const inside = DIST_ON_STACK(bool, num_replicas());
  for (int i = 0; i < num_replicas(); ++i)
    inside[i] = states_[i].finished.value.load(std::memory_order_acquire) != run;
  return list_members(naming(), {inside, static_cast<std::size_t>(num_replicas())}, text);
}

// Must be called with the lock. Checks that all functions of an abandoned run have returned.
Status ReplicaPool::check_all_out() noexcept {
  if (!overdue_) return kOk;
  // Functions that were told to end need a moment to return.
  for (const int64_t start = steady_now_ns(); !all_finished() && steady_now_ns() - start < kReturnGraceNs;)
    yield_this_thread();
  if (!all_finished()) {
    char inside[256];
    (void)list_inside(run_, inside);
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
  const int32_t still_inside = list_inside(run_, inside);
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

// The failure of the lowest replica that did not merely react to a peer; otherwise the report that all
// replicas got; otherwise whether the run was cancelled.
Status ReplicaPool::outcome() const noexcept {
  const ReplicaState* first = nullptr;
  for (int i = 0; i < num_replicas(); ++i) {
    const ReplicaState& state = states_[i];
    if (state.result == DIST_OK) continue;
    if (state.result != DIST_ABORTED) return fail(state.error);
    if (first == nullptr) first = &state;
  }
  if (first != nullptr) return fail(first->error);
  if (!group_.cancelled()) return kOk;
  const char* const reason = group_.cancel_reason();
  return fail(DIST_CANCELLED, "the %s was cancelled: %s", naming().run(),
              reason != nullptr ? reason : "dist_strategy_cancel()");
}

}  // namespace dist
