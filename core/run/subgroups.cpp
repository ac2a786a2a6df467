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
  const int rank = subgroup.group.rank(replica.rank());
  if (rank < 0) {
    return invalid_argument("%s(): replica %d is no member of options->group", call, replica.name().number());
  }
  out->emplace(replica.member(subgroup.group, rank, tag, timeout_ns));
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

Subgroup* Subgroups::create(ReplicaPool& pool, std::span<const int32_t> seats, WaitPolicy policy,
                            const Host& host, int64_t timeout_ns, const ChannelHome& home) {
  const int size = static_cast<int>(seats.size());
  policy.lanes = std::min(policy.lanes, size);
  const std::lock_guard lock(mutex_);
  all_.reserve(all_.size() + 1);
  const Membership membership{latest_number_ + 1, seats.data(), &graph_, naming_, keeper_};
  void* place = memory_.allocate(sizeof(Subgroup), alignof(Subgroup));
  Subgroup* made;
  try {
    made = new (place) Subgroup(pool, memory_, size, policy, host, timeout_ns, membership, home);
  } catch (...) {
    memory_.deallocate(place, sizeof(Subgroup), alignof(Subgroup));
    throw;
  }
  all_.push_back(made);
  ++latest_number_;
  return made;
}

void Subgroups::destroy(Subgroup* subgroup) noexcept {
  const std::lock_guard lock(mutex_);
  all_.erase(std::find(all_.begin(), all_.end(), subgroup));
  subgroup->~Subgroup();
  memory_.free(subgroup, sizeof(Subgroup), alignof(Subgroup));
}

void Subgroups::leave(int seat, Status returned, const ErrorRecord& failure) noexcept {
  for (Subgroup* each : all_) {
    const int rank = each->group.rank(seat);
    if (rank >= 0) each->group.leave(rank, returned, failure);
  }
}

void Subgroups::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  for (Subgroup* each : all_) each->group.cancel();
}

}  // namespace dist
