// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_groups.hpp"

#include "core/run/worker_link.hpp"

namespace dist {

RunGroups::RunGroups(const PoolFacts& facts, Group& group, WaitGraph& graph, Nesting& nesting,
                     const RunSight& sight)
    : facts_(facts),
      group_(group),
      channel_(facts.memory(), group, facts.settings().collectives.channels,
               facts.workers() != nullptr ? &facts.workers()->communicator() : nullptr),
      subgroups_(facts.memory(), graph, facts.naming(), &facts.keeper()),
      nesting_(nesting),
      as_outer_{group, sight} {}

void RunGroups::cancel(const char* reason) noexcept {
  reason == nullptr ? group_.cancel() : group_.cancel(reason);
  subgroups_.cancel(reason);
  if (facts_.workers() != nullptr) facts_.workers()->cancel(reason);
  nesting_.cancel(reason);
}

void RunGroups::condemn(const ErrorRecord& why) noexcept {
  group_.condemn(why);
  subgroups_.condemn(why);
  if (facts_.workers() != nullptr) facts_.workers()->condemn(why);
  nesting_.condemn(why);
}

void RunGroups::keep_apart(int rank) noexcept {
  // In a nested run or a device run, the first member uses the thread of the outer one.
  const bool borrowed =
      facts_.threads() == DIST_THREADS_CALLER && rank == 0 && facts_.settings().nesting.outer != nullptr;
  const bool kept = facts_.cpu_of(rank) >= 0;
  group_.apart(rank).below =
      borrowed ? 0 : gives_way_below(rank, facts_.num_replicas(), facts_.threads(), kept);
  group_.apart(rank).within = facts_.cpus();
  thread_comes(rank, true);
}

void RunGroups::thread_comes(int rank, bool own) noexcept {
  const bool librarys =
      own && facts_.threads() != DIST_THREADS_HOST && rank >= facts_.first_library_replica();
  group_.apart(rank).moves = librarys || facts_.settings().threads.move_host_threads;
}

}  // namespace dist
