// SPDX-License-Identifier: Apache-2.0
#include "core/run/works.hpp"

#include "core/async/channel.hpp"
#include "core/async/plan.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {
namespace {

LazyChannel& channel_of(Replica& replica, const Subgroup* group) noexcept {
  return group == nullptr ? replica.pool().channel() : const_cast<Subgroup*>(group)->here->channel;
}

Status plan(Replica& replica, const Member& member, Call& call, const Later& later, Ref<Work>* out) {
  const int64_t bytes_per_pack =
      later.bytes_per_pack != 0 ? later.bytes_per_pack : replica.pool().bytes_per_pack();
  DIST_TRY(PlannedWork::create(replica.pool().memory(), member, call, replica.works(),
                               channel_of(replica, later.group).home(), bytes_per_pack, out));
  (*out)->end_by(later.cancel);
  return kOk;
}

}  // namespace

Status begin(Replica& replica, const Member& member, Call& call, const Later& later, Ref<Work>* out) {
  if (later.planned) return plan(replica, member, call, later, out);
  return channel_of(replica, later.group).get().issue(member, call, replica.works(), later.cancel, out);
}

// Without oneTBB threads, works advance only when their members call libdist.
void advance_works(Replica& replica) noexcept {
  if (replica.pool().channel().home().helpers == nullptr) replica.works().advance();
}

}  // namespace dist
