// SPDX-License-Identifier: Apache-2.0
#include "core/run/pool_facts.hpp"

namespace dist {

// A logical device uses the data of its replica, and an instance those of its own.
Replica::Place PoolFacts::place_of(int rank) const noexcept {
  const PoolSettings::Nesting& nesting = settings_.nesting;
  const bool alone = nesting.instance != kNoLocalReplica;
  const LocalReplica own = alone ? nesting.instance : LocalReplica{rank};
  return {rank, nesting.part_of != kNoLocalReplica ? nesting.part_of : own, settings_.naming.name(rank),
          alone};
}

Recorder& PoolFacts::recorder_of(int rank) const noexcept {
  const LocalReplica instance = settings_.nesting.instance;
  return recorder()[instance != kNoLocalReplica ? instance : LocalReplica{rank}];
}

int PoolFacts::cpu_of(int rank) const noexcept {
  const Placement* const placement = settings_.threads.placement;
  if (placement == nullptr) return -1;
  const LocalReplica part_of = settings_.nesting.part_of;
  return part_of != kNoLocalReplica ? placement->cpu_of(part_of, rank)
                                    : placement->cpu_of(LocalReplica{rank}, 0);
}

Replica::Loops PoolFacts::loops_of(int rank) const noexcept {
  const PoolSettings::Threads& threads = settings_.threads;
  if (threads.no_helpers) return {1, nullptr, Bounds::kOwn, threads.executor};
  const int share = std::max(1, threads.usable_cpus / settings_.num_replicas);
  if (threads.placement == nullptr) return {share, nullptr, Bounds::kOwn, threads.executor};
  const bool devices = settings_.nesting.part_of != kNoLocalReplica;
  return {share, threads.placement->loops_of(place_of(rank).local, devices ? rank : 0, share),
          threads.placement->bounds(), threads.executor};
}

}  // namespace dist
