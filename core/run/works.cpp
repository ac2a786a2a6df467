// SPDX-License-Identifier: Apache-2.0
#include "core/run/works.hpp"

#include "core/async/channel.hpp"
#include "core/async/plan.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {
namespace {

LazyChannel& channel_of(Replica& replica, const Subgroup* group) noexcept {
  return group == nullptr ? replica.pool().channel() : const_cast<Subgroup*>(group)->channel;
}

}  // namespace

Status issue(Replica& replica, const Subgroup* group, const Member& member, Call& call, Cancel* cancel,
             Ref<Work>* out) {
  return channel_of(replica, group).get().issue(member, call, replica.works(), cancel, out);
}

Status plan(Replica& replica, const Subgroup* group, const Member& member, Call& call, int64_t bytes_per_pack,
            Cancel* cancel, Ref<Work>* out) {
  if (bytes_per_pack == 0) bytes_per_pack = replica.pool().bytes_per_pack();
  DIST_TRY(PlannedWork::create(replica.pool().memory(), member, call, replica.works(),
                               channel_of(replica, group).helpers(), bytes_per_pack, out));
  (*out)->end_by(cancel);
  return kOk;
}

// Without oneTBB's threads, work goes on when its members come by.
void advance_works(Replica& replica) noexcept {
  if (replica.pool().channel().helpers() == nullptr) replica.works().advance();
}

}  // namespace dist
