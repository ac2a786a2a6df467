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
    if (options_.threads == DIST_THREADS_HOST && options_.num_replicas > 1) {
      return failed_precondition(
          "a run inside a merge function needs library threads, because the replicas' threads wait. A "
          "strategy with `DIST_THREADS_HOST` has none.");
    }
    if (options_.workers != nullptr) {
      return fail(DIST_UNIMPLEMENTED,
                  "a run inside a merge function is not supported across several workers. Return from the "
                  "merge function first.");
    }
    Options options = options_;
    options.threads = DIST_THREADS_CALLER;
    options.outer = this;
    options.party = nullptr;
    DIST_TRY(InnerPool::create(memory_, group_.policy(), host_, options, &made));
    inner_.store(made, std::memory_order_release);
  }
  *out = &made->pool();
  return kOk;
}

Status ReplicaPool::beside(int threads, InnerPool** out) const {
  Options options = options_;
  options.threads = threads;
  options.party = nullptr;
  return InnerPool::create(memory_, group_.policy(), host_, options, out);
}

// Runs of this pool are requests, so its insiders wait for nothing here.
Status ReplicaPool::instance(LocalReplica replica, InnerPool** out) const {
  Options options = options_;
  options.num_replicas = 1;
  options.usable_cpus = std::max(1, options_.usable_cpus / options_.num_replicas);
  options.threads = DIST_THREADS_CALLER;
  options.alone = false;
  options.devices = nullptr;
  options.instance = replica;
  options.lent = devices_of(replica);
  options.naming.first = GlobalReplica{number(options_.naming.first) + static_cast<int32_t>(replica)};
  options.naming.request = true;
  options.outer = nullptr;
  return InnerPool::create(memory_, group_.policy(), host_, options, out);
}

// The replica's own thread is logical device 0. All devices of all replicas may run at the same time and
// share the CPUs.
Status ReplicaPool::beneath(LocalReplica replica, DeviceTeam& team, InnerPool** out) const {
  const int n = options_.devices->num_devices;
  const int share = std::max(1, options_.usable_cpus / options_.num_replicas);
  Options options = options_;
  options.num_replicas = n;
  options.replicas = ReplicaCount(n);
  options.workers = nullptr;
  options.threads = DIST_THREADS_CALLER;
  options.usable_cpus = share;
  options.alone = false;
  options.devices = nullptr;
  options.part_of = replica;
  options.naming.whole = options_.naming.name(static_cast<int>(replica)).replica;
  options.team = &team;
  options.party = nullptr;
  options.outer = this;
  WaitPolicy policy = group_.policy();
  policy.oversubscribed = n * options_.num_replicas > options_.usable_cpus;
  policy.stripes = std::min(n, share);
  return InnerPool::create(memory_, policy, host_, options, out);
}

}  // namespace dist
