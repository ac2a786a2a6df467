// SPDX-License-Identifier: Apache-2.0
// collective.h: groups of some replicas.
#include "capi/guard.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

Status check_ids(const int32_t* ids, std::size_t n, int32_t num_replicas) noexcept {
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

}  // namespace

dist_status dist_group_create(dist_strategy* strategy, const int32_t* replica_ids, size_t n,
                              dist_group** out_group) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_group_create", "strategy"));
    DIST_TRY(require(replica_ids, "dist_group_create", "replica_ids"));
    DIST_TRY(require(out_group, "dist_group_create", "out_group"));
    Strategy& owner = unwrap(strategy);
    DIST_TRY(owner.check_cross_replica("dist_group_create"));
    DIST_TRY(check_ids(replica_ids, n, owner.num_replicas()));
    Subgroup* group = nullptr;
    DIST_TRY(owner.pool().create_group(replica_ids, static_cast<int>(n), &group));
    *out_group = wrap(group);
    return kOk;
  });
}

dist_status dist_group_destroy(dist_group* group) {
  if (group == nullptr) return DIST_OK;
  if (unwrap(group)->pool.team() != nullptr) {
    return failed_precondition(
               "dist_group_destroy(): this group of logical devices is the strategy's, and ends with it")
        .code();
  }
  // In a child nobody meets in it: it stays as it is, as its strategy does.
  if (unwrap(group)->pool.memory().forked()) return DIST_OK;
  return unwrap(group)->pool.destroy_group(unwrap(group)).code();
}

int32_t dist_group_size(const dist_group* group) {
  return group == nullptr ? 0 : unwrap(group)->group.size();
}

int32_t dist_group_rank(const dist_group* group, int32_t replica_id) {
  return group == nullptr ? -1 : unwrap(group)->group.rank(replica_id);
}
