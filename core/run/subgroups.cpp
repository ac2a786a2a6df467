// SPDX-License-Identifier: Apache-2.0
#include "core/run/subgroups.hpp"

#include <algorithm>

#include "core/run/replica.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {

Status member_of(Subgroup& subgroup, Replica& replica, const char* tag, int64_t timeout_ns, const char* call,
                 std::optional<Member>* out) noexcept {
  if (&subgroup.pool != &replica.pool()) {
    return invalid_argument("`%s()`: `options->group` belongs to another strategy", call);
  }
  const int rank = subgroup.here ? subgroup.here->group.rank(replica.rank()) : -1;
  if (rank < 0) {
    return invalid_argument("`%s()`: replica %d is not a member of `options->group`", call,
                            replica.name().number());
  }
  subgroup.pool.groups().open(subgroup, replica.group());
  out->emplace(replica.member(subgroup.here->group, rank, tag, timeout_ns, subgroup.communicator()));
  return kOk;
}

Status check_ids(std::span<const int32_t> ids, int num_replicas) noexcept {
  const std::size_t n = ids.size();
  if (n < 1 || n > static_cast<std::size_t>(num_replicas)) {
    return invalid_argument("`dist_group_create()`: a group has 1 to %d replicas, not %zu", num_replicas, n);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (ids[i] < 0 || ids[i] >= num_replicas) {
      return invalid_argument(
          "`dist_group_create()`: `replica_ids[%zu]` is %d, but this strategy's replicas are 0 to %d", i,
          ids[i], num_replicas - 1);
    }
    if (i != 0 && ids[i] <= ids[i - 1]) {
      return invalid_argument(
          "`dist_group_create()`: `replica_ids[%zu]` is %d, after %d. The ids must be in ascending order.", i,
          ids[i], ids[i - 1]);
    }
  }
  return kOk;
}

int Subgroup::rank(int32_t id) const noexcept {
  if (ids.empty()) return here->group.rank(id);
  const auto at = std::lower_bound(ids.begin(), ids.end(), id);
  return at != ids.end() && *at == id ? static_cast<int>(at - ids.begin()) : -1;
}

Subgroup* Subgroups::make_empty(ReplicaPool& pool, int32_t number) {
  const std::lock_guard lock(mutex_);
  all_.reserve(all_.size() + 1);
  open_.reserve(all_.capacity());
  return new (memory_.allocate(sizeof(Subgroup), alignof(Subgroup))) Subgroup(pool, memory_, number);
}

void Subgroups::fill(Subgroup& made, std::span<const int32_t> local_ranks, const Making& making,
                     WorkerLink* link, const GroupShape* shape) {
  const int size = static_cast<int>(local_ranks.size());
  WaitPolicy policy = making.policy;
  policy.stripes = std::min(policy.stripes, size);
  made.here.emplace(memory_, size, policy, making.host, making.timeout_ns,
                    GroupMembers{made.number, local_ranks.data(), &graph_, naming_, keeper_}, making.home,
                    link, shape);
}

Subgroup* Subgroups::create(ReplicaPool& pool, std::span<const int32_t> local_ranks, const Making& making) {
  Subgroup* const made = make_empty(pool, latest_number_ + 1);
  try {
    fill(*made, local_ranks, making, nullptr, nullptr);
  } catch (...) {
    unmake(made);
    throw;
  }
  keep(made);
  return made;
}

Subgroup* Subgroups::make(ReplicaPool& pool, WorkerLink& link, const GroupShape& shape, int32_t number,
                          const Making& making) {
  Subgroup* const made = make_empty(pool, number);
  try {
    made->ids.assign(shape.ids.begin(), shape.ids.end());
    if (shape.is_here()) fill(*made, shape.local_ranks, making, &link, &shape);
  } catch (...) {
    unmake(made);
    throw;
  }
  return made;
}

// The capacity was reserved.
void Subgroups::keep(Subgroup* made) noexcept {
  const std::lock_guard lock(mutex_);
  all_.push_back(made);
  if (made->here && made->here->others) {
    open_.push_back(made);
    any_open_.store(true, std::memory_order_relaxed);
  }
  latest_number_ = made->number;
}

void Subgroups::unmake(Subgroup* made) noexcept {
  made->~Subgroup();
  memory_.free(made, sizeof(Subgroup), alignof(Subgroup));
}

// For a group that was added, or for one that was not.
void Subgroups::destroy(Subgroup* subgroup) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(all_, subgroup);
  std::erase(open_, subgroup);
  unmake(subgroup);
}

// A group is open in every run if works of an earlier run hold it, or if it has members on other workers,
// because these reach it without open().
void Subgroups::begin_run(const RunDeadline& deadline) noexcept {
  if (all_.empty()) return;
  // acquire pairs with the store in open_now() on a thread whose run has ended.
  const bool any_open = any_open_.load(std::memory_order_acquire);
  const std::lock_guard lock(mutex_);
  ++run_;
  deadline_ = deadline;
  end_ = End::kNone;
  if (!any_open) return;
  std::erase_if(open_, [](Subgroup* each) { return !each->here->others && !each->here->group.held(); });
  for (Subgroup* const each : open_) {
    each->here->channel.begin_run();
    each->here->group.begin_run(deadline);
    // relaxed: the start of the run makes it visible to members.
    each->opened.store(run_, std::memory_order_relaxed);
  }
  any_open_.store(!open_.empty(), std::memory_order_relaxed);
}

void Subgroups::open_now(Subgroup& subgroup, const Group& whole) noexcept {
  const std::lock_guard lock(mutex_);
  if (subgroup.opened.load(std::memory_order_relaxed) == run_) return;
  Group& group = subgroup.here->group;
  subgroup.here->channel.begin_run();
  group.begin_run(deadline_);
  open_.push_back(&subgroup);
  // seq_cst: a leaving replica first records that it has left and then checks this; this thread stores first
  // and then checks which replicas have left. At least one of them sees the other, and both apply the leave
  // under the mutex.
  any_open_.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!whole.has_left(group.local_rank(rank))) continue;
    const ErrorRecord* failure = nullptr;
    const Signature& departed = whole.departed(group.local_rank(rank), &failure);
    group.leave(rank, Status(departed.returned), failure != nullptr ? *failure : ErrorRecord{});
  }
  end_rounds(group);
  if (end_ == End::kNone && whole.cancelled()) group.cancel();
  subgroup.opened.store(run_, std::memory_order_release);
}

void Subgroups::leave(int local_rank, Status returned, const ErrorRecord& failure) noexcept {
  if (all_.empty()) return;
  // The replica has left the group of all replicas before this; see open_now().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!any_open_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  for (Subgroup* const each : open_) {
    Subgroup::Here& here = *each->here;
    const int rank = here.group.rank(local_rank);
    if (rank < 0) continue;
    if (!here.group.has_left(rank)) here.group.leave(rank, returned, failure);
    if (here.others) here.others->leave(returned, failure);
  }
}

void Subgroups::condemn(const ErrorRecord& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (end_ == End::kNone) {
    end_ = End::kCondemned;
    why_ = why;
  }
  for (Subgroup* const each : open_) each->here->group.condemn(why);
}

void Subgroups::cancel(const char* reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (end_ == End::kNone) {
    end_ = End::kCancelled;
    has_reason_ = reason != nullptr;
    if (has_reason_) copy_text(reason_, reason);
  }
  for (Subgroup* const each : open_)
    reason != nullptr ? each->here->group.cancel(reason) : each->here->group.cancel();
}

// Ends the rounds in the same way as those of groups that were open.
void Subgroups::end_rounds(Group& group) const noexcept {
  if (end_ == End::kCondemned) group.condemn(why_);
  if (end_ == End::kCancelled) has_reason_ ? group.cancel(reason_) : group.cancel();
}

}  // namespace dist
