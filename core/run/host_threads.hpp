// SPDX-License-Identifier: Apache-2.0
// HostThreads: replicas on threads that the host lends. The first thread to enter opens a run, and the last one to leave
// ends it. HostRun has the states.
//
// A run is given up if it is not complete in time, or if it is cancelled before all replicas have entered. Threads that
// have left then return, threads that enter late get the run's report, and the next run begins when a thread that was in
// this one enters again.
//
// Invariant: the lock is held only to enter, to leave or to take a turn, and no host callback is called meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/word.hpp"
#include "core/run/closing.hpp"
#include "core/run/host_admission.hpp"
#include "core/run/host_run.hpp"
#include "core/run/latest_run.hpp"
#include "core/run/members.hpp"
#include "core/run/pool_facts.hpp"
#include "core/run/run_groups.hpp"
#include "core/run/run_lock.hpp"
#include "core/run/run_sight.hpp"

namespace dist {

class HostThreads {
 public:
  // The lower parts of a pool, which it shares with them.
  struct Parts {
    const PoolFacts& facts;
    RunLock& lock;
    LatestRun& latest;
    Members& members;
    RunGroups& groups;
    RunSight& sight;
    const Closing& closing;
    Word& changed;  // counts changes that waiting threads check for
  };
  // Throws std::bad_alloc.
  HostThreads(const Parts& parts, BudgetShare& budget, const std::atomic<IdleHandler*>& handler);

  Status enter(LocalReplica replica, Replica** out) noexcept;
  Status leave(Replica& replica, Status status) noexcept;
  // The replica's thread ends inside its run.
  void abandon(Replica& replica) noexcept;

  // Take and end a turn between runs. `call` is the host's function, for messages.
  Status take_turn(const char* call) noexcept;
  void end_turn() noexcept;
  // Must be called under the lock.
  bool idle() const noexcept { return run_.idle(); }

  // The groups of the run have been cancelled, which reaches the threads that are inside. The run ends when they have
  // left. If a replica has not entered and may never do so, the run is given up instead. `reason` may be NULL.
  void cancel(const char* reason) noexcept;
  // After Closing::begin(): waits until no thread is inside or the deadline has expired (of the host's clock; 0: none).
  // Then each thread that is inside gets a reference to the keeper, and `inside` lists them.
  void await_end(int64_t deadline_ns, std::span<char> inside) noexcept;

 private:
  template <class Holds>
  bool lock_when(Ref<Counted>& kept, Holds&& holds) noexcept;
  bool may_enter(int rank) noexcept;
  void open() noexcept;
  void close() noexcept;
  void stop_asking() noexcept;
  void depart(int rank, Status status) noexcept;
  void give_up(const ErrorRecord& why) noexcept;
  Counted* go(int rank) noexcept;
  bool has_finished(int rank) const noexcept;
  Status is_late() noexcept;
  void list_missing_members(std::span<char> text) const noexcept;
  void leave_alone(std::span<char> inside) noexcept;

  const Parts with_;
  HostAdmission admission_;
  HostRun run_;
  Word gone_;      // counts threads that have left since the shutdown began
  Unseen unseen_;  // versions that an ended run released under the lock
};

}  // namespace dist
