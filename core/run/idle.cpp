// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: operations that need an idle strategy: creating and destroying groups, and the check before a
// strategy is destroyed.
#include <cstdint>
#include <new>

#include "core/run/group_tag.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {
namespace {

[[gnu::cold]] Status not_a_number(int64_t number) noexcept {
  return fail(DIST_RESOURCE_EXHAUSTED,
              "the strategy has created %lld groups, which is the limit. Create a new strategy.",
              static_cast<long long>(number));
}

Status under_way(const char* call, const char* advice) noexcept {
  return failed_precondition("`%s()`: a run is in progress; %s", call, advice);
}

}  // namespace

Status ReplicaPool::check_idle(const char* call, const char* advice) noexcept {
  if (!lock_.try_lock()) return under_way(call, advice);
  const RunLockHolder holder(lock_);
  DIST_TRY(check_idle_locked(call, advice));
  // Device runs that were abandoned at their deadline may still have running functions.
  return nesting_.check_idle(call, advice);
}

// Must be called with the lock. If the replicas are library threads, functions can only be running if their
// run was abandoned at its deadline.
Status ReplicaPool::check_idle_locked(const char* call, const char* advice) const noexcept {
  if (idle_locked()) return kOk;
  if (threads() == DIST_THREADS_HOST) return under_way(call, advice);
  char inside[256];
  if (members_.list_inside(latest_.number(), inside) == 0) return kOk;  // they have returned just now
  return failed_precondition(
      "`%s()`: a run reached its deadline, but these have not returned from their functions: %s. Wait for "
      "them "
      "first.",
      call, inside);
}

bool ReplicaPool::idle_locked() const noexcept {
  if (threads() != DIST_THREADS_HOST) return !overdue_ || members_.all_finished();
  return host_threads_.idle();
}

Status ReplicaPool::create_group(std::span<const int32_t> ids, Subgroup** out) {
  DIST_TRY(check_ids(ids, num_replicas()));
  constexpr const char* kCall = "dist_group_create";
  constexpr const char* kAdvice = "create groups between runs";
  if (!lock_.try_lock()) return closing() ? shutting_down() : under_way(kCall, kAdvice);
  const RunLockHolder holder(lock_);
  DIST_TRY(check_idle_locked(kCall, kAdvice));
  *out = groups_.some().create(*this, ids, making());
  return kOk;
}

// Uses a number one above the largest that any worker has used. So a worker that failed after the others had
// created a group does not prevent the next one.
Status ReplicaPool::create_group_in_turn(std::span<const int32_t> ids, Subgroup** out) {
  WorkerLink& link = *workers();
  DIST_TRY(check_ids(ids, replicas().global()));
  const GroupTag tag(ids);
  int64_t number = groups_.some().latest_number();
  DIST_TRY(link.largest({&number, 1}, tag.text(), tag.digest()));
  if (number < 0 || number == INT32_MAX) return not_a_number(number);
  Subgroup* made = nullptr;
  try {
    const GroupShape shape(memory(), ids, link.communicator());
    made = groups_.some().make(*this, link, shape, static_cast<int32_t>(number) + 1, making());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
  // The group exists only when all workers have created it.
  if (const Status all_have = link.largest({&number, 1}, tag.text(), tag.digest()); !all_have.ok()) {
    groups_.some().destroy(made);
    return all_have;
  }
  groups_.some().keep(made);
  *out = made;
  return kOk;
}

Subgroups::Making ReplicaPool::making() const noexcept {
  return {group_.policy(), host(), timeout_ns(), settings().collectives.channels};
}

Status ReplicaPool::destroy_group(Subgroup* group) noexcept {
  if (team() != nullptr) {
    return failed_precondition(
        "`dist_group_destroy()`: this group of logical devices is owned by the strategy and ends with it");
  }
  // In a forked child, the group stays unchanged like its strategy.
  if (memory().forked()) return kOk;
  // The destruction of the strategy frees it.
  if (closing()) return kOk;
  constexpr const char* kCall = "dist_group_destroy";
  constexpr const char* kAdvice = "wait for it first";
  if (!lock_.try_lock()) return under_way(kCall, kAdvice);
  const RunLockHolder holder(lock_);
  if (group->here && group->here->group.held())
    return failed_precondition("`%s()`: the group still has works; `destroy` them first", kCall);
  DIST_TRY(check_idle_locked(kCall, kAdvice));
  groups_.some().destroy(group);
  return kOk;
}

}  // namespace dist
