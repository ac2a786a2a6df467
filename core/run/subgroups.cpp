// SPDX-License-Identifier: Apache-2.0
#include "core/run/subgroups.hpp"

#include <algorithm>

#include "core/run/replica.hpp"

namespace dist {

Status member_of(Subgroup& subgroup, Replica& replica, const char* tag, int64_t timeout_ns, const char* call,
                 std::optional<Member>* out) noexcept {
  if (&subgroup.pool != &replica.pool()) {
    return invalid_argument("%s(): options->group belongs to another strategy", call);
  }
  const int rank = subgroup.here ? subgroup.here->group.rank(replica.rank()) : -1;
  if (rank < 0) {
    return invalid_argument("%s(): replica %d is no member of options->group", call, replica.name().number());
  }
  out->emplace(replica.member(subgroup.here->group, rank, tag, timeout_ns, subgroup.meeting()));
  return kOk;
}

Status check_ids(std::span<const int32_t> ids, int num_replicas) noexcept {
  const std::size_t n = ids.size();
  if (n < 1 || n > static_cast<std::size_t>(num_replicas)) {
    return invalid_argument("dist_group_create(): n is %zu; a group has 1 to %d replicas", n, num_replicas);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (ids[i] < 0 || ids[i] >= num_replicas) {
      return invalid_argument(
          "dist_group_create(): replica_ids[%zu] is %d; this strategy's replicas are 0 to %d", i, ids[i],
          num_replicas - 1);
    }
    if (i != 0 && ids[i] <= ids[i - 1]) {
      return invalid_argument("dist_group_create(): replica_ids[%zu] is %d after %d; ids must ascend", i,
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
  return new (memory_.allocate(sizeof(Subgroup), alignof(Subgroup))) Subgroup(pool, memory_, number);
}

void Subgroups::fill(Subgroup& made, std::span<const int32_t> seats, const Making& making, WorkerLink* link,
                     const GroupShape* shape) {
  const int size = static_cast<int>(seats.size());
  WaitPolicy policy = making.policy;
  policy.lanes = std::min(policy.lanes, size);
  made.here.emplace(memory_, size, policy, making.host, making.timeout_ns,
                    Membership{made.number, seats.data(), &graph_, naming_, keeper_}, making.home, link,
                    shape);
}

Subgroup* Subgroups::create(ReplicaPool& pool, std::span<const int32_t> seats, const Making& making) {
  Subgroup* const made = make_empty(pool, latest_number_ + 1);
  try {
    fill(*made, seats, making, nullptr, nullptr);
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
    if (shape.is_here()) fill(*made, shape.seats, making, &link, &shape);
  } catch (...) {
    unmake(made);
    throw;
  }
  return made;
}

// There is room for it.
void Subgroups::keep(Subgroup* made) noexcept {
  const std::lock_guard lock(mutex_);
  all_.push_back(made);
  latest_number_ = made->number;
}

void Subgroups::unmake(Subgroup* made) noexcept {
  made->~Subgroup();
  memory_.free(made, sizeof(Subgroup), alignof(Subgroup));
}

// Of those that are kept, or of one that is not.
void Subgroups::destroy(Subgroup* subgroup) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(all_, subgroup);
  unmake(subgroup);
}

void Subgroups::leave(int seat, Status returned, const ErrorRecord& failure) noexcept {
  for (Subgroup* each : all_) {
    const int rank = each->here ? each->here->group.rank(seat) : -1;
    if (rank < 0) continue;
    each->here->group.leave(rank, returned, failure);
    if (each->here->others) each->here->others->leave(returned, failure);
  }
}

void Subgroups::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  each_here([](Subgroup::Here& here) { here.group.cancel(); });
}

}  // namespace dist
