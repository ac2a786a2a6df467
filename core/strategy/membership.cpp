// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/membership.hpp"

#include <utility>

namespace dist {
namespace {

Naming naming_of(const WorkerPlace& worker) noexcept {
  return {.first = worker.count().first(), .home = worker.num_workers() > 1 ? worker.number() : -1};
}

}  // namespace

Membership::Membership(Memory& memory, Strategy& owner, const Plan& plan, WorkerPlace worker,
                       WorkerLink::Connection connection, const Change& change)
    : Counted(memory),
      change_(change),
      worker_(std::move(worker)),
      wait_graph_(memory, plan.num_replicas),
      group_(memory, plan.num_replicas, plan.policy, plan.host, plan.timeout_ns,
             GroupMembers{0, nullptr, &wait_graph_, naming_of(worker_), plan.pool.keeper}),
      progress_(memory, plan.pool.threads.usable_cpus, plan.pool.threads.placement->within(),
                plan.pool.threads.placement->bounds()),
      // Only one of alone_ and workers_ takes the connection: workers_ exists if there are several workers.
      alone_(worker_.num_workers() > 1 ? WorkerLink::Connection()
                                       : WorkerLink::Connection(std::move(connection))),
      readers_(plan.num_replicas),
      recorder_(memory, worker_.count(), {worker_.number(), worker_.num_workers()}, plan.recorded_events),
      // NOLINTNEXTLINE(bugprone-use-after-move, clang-analyzer-cplusplus.Move)
      pool_(memory, group_, wait_graph_, plan.host, pool_settings(owner, plan, std::move(connection))) {}

PoolSettings Membership::pool_settings(Strategy& owner, const Plan& plan, WorkerLink::Connection connection) {
  Arena* const helpers = plan.pool.threads.no_helpers ? nullptr : &progress_;
  PoolSettings wanted = plan.pool;
  readers_.no_helpers = plan.pool.threads.no_helpers;
  if (const CpuSet* const cpus = plan.pool.threads.placement->within(); cpus != nullptr) {
    readers_.on_cpus = true;
    readers_.cpus = *cpus;
  }
  if (worker_.num_workers() > 1) {
    workers_.emplace(memory(), group_, plan.host, std::move(connection),
                     WorkerLink::Options{worker_.me, worker_.replicas, worker_.numbers, plan.timeout_ns,
                                         wanted.collectives.channels.cache_bytes, plan.staging_bytes,
                                         wanted.collectives.bytes_per_pack, helpers, recorder_.outside()});
    steps_ = make_counted<WorkerSteps>(memory(), owner);
    readers_.me = worker_.me;
    readers_.workers = make_counted<WorkerLayout>(memory(), std::span<const int>(worker_.replicas));
    readers_.steps = Ref<Steps>::share(steps_.get());
    wanted.collectives.channels.crossings = &workers_->crossings();
  }
  wanted.collectives.channels.helpers = helpers;
  wanted.recorder = &recorder_;
  wanted.replicas = worker_.count();
  wanted.naming = naming_of(worker_);
  wanted.workers = workers();
  return wanted;
}

}  // namespace dist
