// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: creating the pools nested in this one, for runs inside merge functions, logical devices and
// requests.
#include <algorithm>

#include "core/run/device_team.hpp"
#include "core/run/inner_pool.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {

// Called only by replica 0 in its merge function, so never concurrently.
Status ReplicaPool::inner(ReplicaPool** out) {
  InnerPool* made = inner_.load(std::memory_order_acquire);
  if (made == nullptr) {
    if (closing_.begun(std::memory_order_relaxed)) return shutting_down();
    if (threads() == DIST_THREADS_HOST && num_replicas() > 1) {
      return failed_precondition(
          "a run inside a merge function needs library threads, because the replicas' threads wait. A "
          "strategy with `DIST_THREADS_HOST` has none.");
    }
    if (workers() != nullptr) {
      return fail(DIST_UNIMPLEMENTED,
                  "a run inside a merge function is not supported across several workers. Return from the "
                  "merge function first.");
    }
    PoolSettings inside = settings();
    inside.threads.kind = DIST_THREADS_CALLER;
    inside.nesting.outer = &groups_.as_outer();
    inside.party = nullptr;
    DIST_TRY(InnerPool::create(memory(), group_.policy(), host(), inside, &made));
    nesting_.set_inner(*made);
    inner_.store(made, std::memory_order_release);
  }
  *out = &made->pool();
  return kOk;
}

Status ReplicaPool::beside(int threads, InnerPool** out) const {
  PoolSettings inside = settings();
  inside.threads.kind = threads;
  inside.party = nullptr;
  return InnerPool::create(memory(), group_.policy(), host(), inside, out);
}

// Runs of this pool are requests, so its insiders wait for nothing here.
Status ReplicaPool::instance(LocalReplica replica, InnerPool** out) const {
  PoolSettings inside = settings();
  inside.num_replicas = 1;
  inside.threads.usable_cpus = std::max(1, settings().threads.usable_cpus / num_replicas());
  inside.threads.kind = DIST_THREADS_CALLER;
  inside.collectives.alone = false;
  inside.nesting.devices = nullptr;
  inside.nesting.instance = replica;
  inside.nesting.lent = devices_of(replica);
  inside.naming.first = GlobalReplica{number(naming().first) + static_cast<int32_t>(replica)};
  inside.naming.request = true;
  inside.nesting.outer = nullptr;
  return InnerPool::create(memory(), group_.policy(), host(), inside, out);
}

// The replica's own thread is logical device 0. All devices of all replicas may run at the same time and
// share the CPUs.
Status ReplicaPool::beneath(LocalReplica replica, DeviceTeam& team, InnerPool** out) const {
  const int n = settings().nesting.devices->num_devices;
  const int share = std::max(1, settings().threads.usable_cpus / num_replicas());
  PoolSettings inside = settings();
  inside.num_replicas = n;
  inside.replicas = ReplicaCount(n);
  inside.workers = nullptr;
  inside.threads.kind = DIST_THREADS_CALLER;
  inside.threads.usable_cpus = share;
  inside.collectives.alone = false;
  inside.nesting.devices = nullptr;
  inside.nesting.part_of = replica;
  inside.naming.whole = naming().name(static_cast<int>(replica)).replica;
  inside.nesting.team = &team;
  inside.party = nullptr;
  inside.nesting.outer = &groups_.as_outer();
  WaitPolicy policy = group_.policy();
  policy.oversubscribed = n * num_replicas() > settings().threads.usable_cpus;
  policy.stripes = std::min(n, share);
  return InnerPool::create(memory(), policy, host(), inside, out);
}

}  // namespace dist
