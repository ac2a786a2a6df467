// SPDX-License-Identifier: Apache-2.0
#include "core/run/subgroups.hpp"

#include <algorithm>

namespace dist {

Subgroup* Subgroups::create(ReplicaPool& pool, const int32_t* ids, int size, WaitPolicy policy,
                            const Host& host, int64_t timeout_ns, const ChannelHome& home) {
  policy.lanes = std::min(policy.lanes, size);
  const std::lock_guard lock(mutex_);
  all_.reserve(all_.size() + 1);
  const Membership membership{latest_number_ + 1, ids, &graph_, part_of_, keeper_};
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

void Subgroups::leave(int32_t replica, Status returned, const ErrorRecord& failure) noexcept {
  for (Subgroup* each : all_) {
    const int rank = each->group.rank(replica);
    if (rank >= 0) each->group.leave(rank, returned, failure);
  }
}

void Subgroups::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  for (Subgroup* each : all_) each->group.cancel();
}

}  // namespace dist
