// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: the R replicas of a strategy and their threads. A pool executes one run at a time.
//
// A replica is a thread that lives as long as the pool and sleeps between runs. It is never a oneTBB task,
// because oneTBB does not guarantee that tasks run concurrently.
//
// Pools nest: the logical devices of a replica (device_team.hpp), runs inside a merge function, and requests
// each have a pool of their own.
//
// The pool consists of parts, each with its own header, and none of them calls the pool: its facts, its members
// and their latest run, their groups, the threads of libdist and of the host, and a run's budget threads.
//
// Invariants:
// - Holding `lock_` is what entitles a thread to start a run or to access variables between runs. With host
//   threads, the lock is held only to enter or leave, and HostRun has the state of the run.
// - A run on library threads holds `lock_` until its outcome is known.
// - A run that fails while it waits for its turn, or before its functions start, still counts among the workers.
//   Otherwise their run numbers would diverge.
//
// | state   | `lock_` | entered by                                  | new runs                                    |
// |---------|---------|---------------------------------------------|---------------------------------------------|
// | idle    | open    | creation, the end of a run or turn          | start                                       |
// | run     | held    | run()                                       | wait                                        |
// | turn    | held    | take_turn()                                 | wait                                        |
// | overdue | open    | a deadline while functions are running      | fail until these functions have returned    |
// | closing | closed  | shut_down()                                 | are refused                                 |
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "core/run/budget_share.hpp"
#include "core/run/closing.hpp"
#include "core/run/host_threads.hpp"
#include "core/run/idle_handler.hpp"
#include "core/run/latest_run.hpp"
#include "core/run/library_threads.hpp"
#include "core/run/members.hpp"
#include "core/run/nesting.hpp"
#include "core/run/pool_facts.hpp"
#include "core/run/replica.hpp"
#include "core/run/run_groups.hpp"
#include "core/run/run_limits.hpp"
#include "core/run/run_lock.hpp"
#include "core/run/run_sight.hpp"
#include "core/run/worker_link.hpp"
#include "dist/types.h"

namespace dist {

class DeviceTeam;
class InnerPool;
struct DeviceMesh;

// The error for calls in a forked child.
Status in_forked_child() noexcept;

// The result of a merge function, which replica 0 leaves for its peers.
struct MergeOutcome {
  uint32_t round = 0;  // the round it belongs to; never equal to a round of another run
  ValueRef result;
  dist_status status = DIST_OK;
  ErrorRecord error;
};

class ReplicaPool : public PoolFacts {
 public:
  // Throws std::bad_alloc. Creates no thread.
  ReplicaPool(Memory& memory, Group& group, WaitGraph& graph, const Host& host, const PoolSettings& settings);
  // No replica may be running.
  ~ReplicaPool();
  ReplicaPool(const ReplicaPool&) = delete;
  ReplicaPool& operator=(const ReplicaPool&) = delete;

  Status start() noexcept;
  MergeOutcome& merge_outcome() noexcept { return merge_outcome_; }
  // The logical devices of a replica; NULL if it has none.
  DeviceTeam* devices_of(LocalReplica replica) const noexcept {
    if (settings().nesting.lent != nullptr) return settings().nesting.lent;
    return teams_.empty() ? nullptr : teams_[index(replica)];
  }

  // The host data of an instance.
  void* host_state() const noexcept { return members_.replica(0).host_state(); }
  // Only for the pool of an instance; see Replica::give_up().
  void give_up() noexcept {
    members_.replica(0).give_up();
    budget_.give_back();
  }

  // Groups of some replicas, created and destroyed between runs. `ids` must be ascending.
  Status create_group(std::span<const int32_t> ids, Subgroup** out);
  // For several workers: `ids` are global, and all workers call this in the same turn.
  Status create_group_in_turn(std::span<const int32_t> ids, Subgroup** out);
  // Not for groups of logical devices, which are destroyed with their team. Does nothing in a forked child.
  Status destroy_group(Subgroup* group) noexcept;
  LazyChannel& channel() noexcept { return groups_.channel(); }
  bool has_groups() const noexcept { return !groups_.some().empty(); }
  Subgroups& groups() noexcept { return groups_.some(); }
  // The member's function continues on another thread; see RunGroups.
  void thread_comes(int rank, bool own) noexcept { groups_.thread_comes(rank, own); }

  // The pool for runs that a merge function of this pool starts. It uses the calling thread and creates the
  // others.
  Status inner(ReplicaPool** out);
  // Creates another pool of the same replicas with the given kind of threads. The caller destroys it.
  Status beside(int threads, InnerPool** out) const;
  // Creates the pool of a replica's logical devices. The caller destroys it.
  Status beneath(LocalReplica replica, DeviceTeam& team, InnerPool** out) const;

  // Creates a pool with a single replica, for requests. Its runs execute on the thread of that replica, never
  // at the same time as runs of this pool. The caller destroys it.
  Status instance(LocalReplica replica, InnerPool** out) const;
  // For logical devices: sets the run that contains this pool's runs.
  void run_inside(const OuterRun& outer) noexcept { outer_ = &outer; }

  // Must be called on a member's thread: the version of a series that its run sees.
  Status see(Versions& series, Version** out) const noexcept {
    const Sight here = sight_.here();
    return here.pins->see(here.run, series, out);
  }

  // Lets `handler` use the replicas between runs. It must live as long as the pool. The replica threads call
  // its serve() from now on. `call` is the host's function, for messages.
  Status let_to(IdleHandler& handler, const char* call) noexcept;
  // The idle handler's notification that replicas may be free: waiting host threads check again.
  void handler_gives() noexcept { changed_.advance(); }
  // See LibraryThreads.
  Status replace_thread(LocalReplica replica) noexcept { return threads_.replace(replica); }
  const WaitPolicy& policy() const noexcept { return group_.policy(); }
  // The error for runs that are refused because shut_down() has begun.
  Status shutting_down() const noexcept { return closing_.error(); }
  bool closing() const noexcept { return closing_.begun(); }

  // Ends the current run of a pool that is nested in another one's run. Callable from any thread.
  void cancel_from_outside(const char* reason) noexcept;
  // Whether a function of a run that is part of that run is still running.
  bool is_inside(const Sight& of) const noexcept {
    return sight_.is_inside(of) && (!members_.all_finished(latest_.started()) || nesting_.is_inside(of));
  }

  // Ends the current run and all runs nested in it. Callable from any thread.
  void cancel() noexcept { cancel(nullptr); }
  // With a reason, it applies only to a run in progress.
  void cancel(const char* reason) noexcept;
  // Ends the run with the report of a failure elsewhere.
  void condemn(const ErrorRecord& why) noexcept { groups_.condemn(why); }

  // Returns OK if neither this pool nor a nested one has a run in progress or a function that is still
  // running. `call` is the host's function, for messages, and `advice` tells the user what to do.
  Status check_idle(const char* call, const char* advice) noexcept;

  // Refuses new runs, ends those that wait or are in progress, waits for their functions until `deadline_ns`
  // of the host's clock (0: no limit), and ends the threads. A thread that is still inside a function then
  // holds a reference to the keeper until it returns. `inside` receives the list of these functions, or "".
  // `call` is a literal that names the host's call.
  void shut_down(int64_t deadline_ns, std::span<char> inside, const char* call) noexcept;
  // The first steps of it: no run starts any more, and calls that wait for a run fail.
  void refuse_runs(const char* call) noexcept;
  void close_queue(const char* call) noexcept;

  // Ends the library threads; see LibraryThreads. Afterwards the idle handler's state and then the pool may be destroyed.
  void end_threads() noexcept { threads_.end(); }

  // Runs the body on every replica, in the order of the calls. With a timeout, it may return while functions
  // are still running; the pool then refuses runs until they have returned.
  Status run(const Body& body, const RunLimits& limits);

  // ---- Requests: see InnerPool ----
  Members& members() noexcept { return members_; }
  LatestRun& latest_run() noexcept { return latest_; }
  bool has_pins() const noexcept { return sight_.has_pins(); }
  // The outcome of a run that call_alone() has executed. Releases the versions that it has seen.
  Status end_alone() noexcept;

  // The budget user that the calling thread waits for as an insider; NULL if the thread is not inside a
  // callback, or if there is no budget.
  BudgetParty* insider() const noexcept {
    return settings().party != nullptr && is_inside_function() ? settings().party : nullptr;
  }

  // Takes a turn between runs: waits for the current run, at most for the strategy's timeout, and holds off
  // the next one until end_turn().
  Status take_turn(const char* call) noexcept;
  void end_turn() noexcept;

  // For DIST_THREADS_HOST.
  Status enter(GlobalReplica replica, Replica** out) noexcept;
  Status leave(Replica& replica, Status status) noexcept;
  // The replica's thread ends inside its run.
  void abandon(Replica& replica) noexcept;

 private:
  class Holding;
  class AllReplicas;
  class CancelLink;

  Subgroups::Making making() const noexcept;
  static bool is_inside(const IdleHandler* handler, int rank) noexcept {
    return handler != nullptr && handler->is_inside(rank);
  }
  void perform_on_caller();
  Status make_teams() noexcept;
  void begin_groups(const RunDeadline& deadline) noexcept;
  void begin_groups_inside(const RunDeadline& deadline) noexcept;
  template <bool kCounted>
  Status run_as(const Body& body, const RunLimits& limits);
  Status await_turn(const RunLimits& limits, int64_t deadline_ns) noexcept;
  static bool is_inside_function() noexcept;
  Status check_all_out() noexcept;
  bool await_callers(int64_t deadline_ns) noexcept;
  void list_handled(std::span<char> inside) const noexcept;
  RunDeadline deadline_of(const RunLimits& limits) const noexcept;
  Status overdue() noexcept;
  Status over(Status outcome) noexcept;
  void tell_workers(Status outcome) noexcept;
  Status refused(Status why) noexcept;
  Status owed(Status why) noexcept;
  Status take_turn_of_library(const char* call, int64_t deadline_ns) noexcept;
  bool idle_locked() const noexcept;
  Status check_idle_locked(const char* call, const char* advice) const noexcept;

  LatestRun latest_;
  Group& group_;
  Nesting nesting_;
  RunSight sight_;
  RunGroups groups_;
  Members members_;
  std::atomic<IdleHandler*> idle_handler_{nullptr};  // uses the replicas between runs; may be NULL
  Closing closing_;
  LibraryThreads threads_;
  RunLock lock_;  // held for a run; with host threads, for entering and leaving
  // Counts changes that host threads and runs without budget threads wait for.
  alignas(kApart) Word changed_;
  BudgetShare budget_;
  HostThreads host_threads_;
  const OuterRun* outer_;  // the run outside; NULL: these runs are not nested
  WaitGraph& graph_;
  bool overdue_ = false;                    // the latest run was abandoned while functions were running
  std::atomic<InnerPool*> inner_{nullptr};  // created on first use
  std::mutex beginning_;  // serializes the begin of a nested run with a cancellation of the outer one
  std::pmr::vector<DeviceTeam*> teams_;  // by replica, if they have logical devices
  MergeOutcome merge_outcome_;
  IdleHandler* lender_ = nullptr;          // gave the replicas to the current turn; NULL: none
  std::atomic<bool> lock_in_turn_{false};  // take_turn() holds lock_
};

}  // namespace dist
