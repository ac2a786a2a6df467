// SPDX-License-Identifier: Apache-2.0
// RunGroups: everything in which the members of a pool meet. A run begins it and ends it as a whole.
//
// Invariant: whatever ends the run ends it in every group, among the workers, and in all nested runs.
//
// | state | entered by            | collectives of the members                          |
// |-------|-----------------------|-----------------------------------------------------|
// | begun | begin()               | meet                                                |
// | ended | cancel(), condemn()   | fail until the next begin()                         |
#pragma once

#include <cstdint>

#include "core/async/channel.hpp"
#include "core/base/memory.hpp"
#include "core/comm/group.hpp"
#include "core/run/nesting.hpp"
#include "core/run/pool_facts.hpp"
#include "core/run/subgroups.hpp"

namespace dist {

class RunGroups {
 public:
  RunGroups(const PoolFacts& facts, Group& group, WaitGraph& graph, Nesting& nesting, const RunSight& sight);

  Group& whole() const noexcept { return group_; }  // of all members
  LazyChannel& channel() noexcept { return channel_; }
  Subgroups& some() noexcept { return subgroups_; }  // of some members
  const Subgroups& some() const noexcept { return subgroups_; }
  Nesting& nesting() const noexcept { return nesting_; }
  // The run as nested runs see it.
  const OuterRun& as_outer() const noexcept { return as_outer_; }

  // The nested runs come first. If cancel() is called in between, it ends the device runs of the run that is about to
  // begin, so it is not lost.
  void begin(const RunDeadline& deadline) noexcept {
    nesting_.begin_run(as_outer_);
    channel_.begin_run();
    group_.begin_run(deadline);
    subgroups_.begin_run(deadline);
  }
  // Callable from any thread. With a reason, cancel() applies only to a run in progress.
  void cancel(const char* reason) noexcept;
  void condemn(const ErrorRecord& why) noexcept;
  // A member's function of that run of whole() has returned.
  void leave(int rank, uint32_t group_run, Status status, const ErrorRecord& failure) noexcept {
    group_.leave(rank, group_run, status, failure);
    subgroups_.leave(rank, status, failure);
  }

  // Lets a member move to a CPU of its own if it meets a peer on its CPU.
  void keep_apart(int rank) noexcept;
  // The member's function continues on another thread: a host thread, or (`own`) the one that it started on.
  void thread_comes(int rank, bool own) noexcept;

 private:
  const PoolFacts& facts_;
  Group& group_;
  LazyChannel channel_;  // for the group of all members
  Subgroups subgroups_;
  Nesting& nesting_;
  const OuterRun as_outer_;
};

}  // namespace dist
