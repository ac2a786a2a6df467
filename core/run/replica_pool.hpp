// SPDX-License-Identifier: Apache-2.0
// ReplicaPool: R replicas and the threads that run them.
//
// A replica is a thread of its own that lives as long as the pool and sleeps between runs; never a task of
// oneTBB, which promises no concurrency. A run is one number: the caller publishes it, each thread runs the
// body and publishes the number as finished. Where replicas are made of logical devices, each has a pool of
// its own beneath, with those as members (device_team.hpp).
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "core/run/budget.hpp"
#include "core/run/placement.hpp"
#include "core/run/replica.hpp"
#include "core/run/run_lock.hpp"
#include "core/run/run_pins.hpp"
#include "core/run/subgroups.hpp"
#include "core/run/tenant.hpp"
#include "core/run/worker_link.hpp"
#include "dist/types.h"

namespace dist {

class DeviceTeam;
class InnerPool;
struct DeviceMesh;

// The moment of the host's clock at which a time-out is over; the last one there is, where it never comes.
int64_t deadline_after(int64_t start_ns, int64_t timeout_ns) noexcept;

// The error that a forked child gets.
Status in_forked_child() noexcept;

class Strategy;

// What a run calls on every replica. It may throw nothing but the system's forced unwind (pthread_exit). The
// pool keeps a copy, for replicas that begin late, past the run's deadline.
struct Body {
  dist_status (*call)(Replica& replica, const Body& self);
  void* context;
  void (*function)() = nullptr;  // the host's, where it is all that `call` needs beside the context
  // Called once before the replicas start, where the context may have to outlive the run's caller; NULL: not
  // needed.
  void (*about_to_start)(void* context) = nullptr;
};

// What ends a run before its functions have returned.
struct RunLimits {
  int64_t timeout_ns = 0;         // of waiting for earlier runs and of the run; 0: none
  Cancel* cancel = nullptr;       // NULL: none
  const char* call = "dist_run";  // the function that the host called, in messages
  int64_t deadline_ns = 0;        // where timeout_ns began earlier: when it is over; 0: it begins now
  bool uncounted = false;         // it takes no thread of a budget
  const std::atomic<bool>* cancel_asked =
      nullptr;  // that it is to end, from before it could be cancelled; NULL: no
};

// What replica 0 leaves for its peers after a merge function.
struct MergeOutcome {
  uint32_t round = 0;  // that it belongs to; an earlier run's matches none
  ValueRef result;
  dist_status status = DIST_OK;
  ErrorRecord error;
};

class ReplicaPool {
 public:
  struct Options {
    int num_replicas;
    int threads;  // DIST_THREADS_...
    int usable_cpus;
    int64_t timeout_ns;  // how long dist_replica_enter() and dist_replica_leave() wait
    ChannelHome channels;
    FlightRecorder* recorder;
    Strategy* owner;  // lies above: it is handed out, and nothing of it is known here
    Counted* keeper;  // the same, for threads that it must outlive
    bool alone;       // there is one replica by kind, and what it reduces or gathers is given back as it is
    const DeviceMesh* devices = nullptr;       // what each replica is made of; NULL: of nothing but itself
    LocalReplica part_of = kNoLocalReplica;    // the replica that all of these are logical devices of
    LocalReplica instance = kNoLocalReplica;   // the replica that the only member is, alone
    DeviceTeam* lent = nullptr;                // its logical devices, which are another pool's
    Naming naming;                             // of the members
    DeviceTeam* team = nullptr;                // that these are
    const Placement* placement = nullptr;      // of replicas and their logical devices; NULL: anywhere
    const ReplicaPool* outer = nullptr;        // in whose runs these are inside; NULL: none
    std::size_t stack_bytes = 0;               // of each library thread; 0: the system's default
    int64_t bytes_per_pack = 0;                // of planned lists; 0: all
    int32_t numerics = DIST_NUMERICS_ORDERED;  // of reductions that do not say
    bool no_helpers = false;        // no thread of oneTBB's takes part in a member's loops, or in works
    Executor executor;              // of the host's, for loops
    WorkerLink* workers = nullptr;  // to the other workers, where there are any
    BudgetParty* party = nullptr;   // as which runs take threads of a budget; NULL: they are not counted
    ReplicaCount replicas{num_replicas};  // and in all workers
    bool move_host_threads = false;       // from a CPU that a peer is on
  };

  // Throws std::bad_alloc; makes no thread.
  ReplicaPool(Memory& memory, Group& group, WaitGraph& graph, const Host& host, const Options& options);
  // No replica is running.
  ~ReplicaPool();
  ReplicaPool(const ReplicaPool&) = delete;
  ReplicaPool& operator=(const ReplicaPool&) = delete;

  Status start() noexcept;
  Strategy* owner() const noexcept { return options_.owner; }
  FlightRecorder& recorder() const noexcept { return *options_.recorder; }
  // About how much a pack of a planned list has, where the call does not say; 0: all.
  int64_t bytes_per_pack() const noexcept { return options_.bytes_per_pack; }
  // DIST_NUMERICS_... of a reduction, where the call does not say.
  int32_t numerics() const noexcept { return options_.numerics; }
  bool alone() const noexcept { return options_.alone; }
  MergeOutcome& merge_outcome() noexcept { return merge_outcome_; }
  // The logical devices of a replica; NULL: it has none.
  DeviceTeam* devices_of(LocalReplica replica) const noexcept {
    if (options_.lent != nullptr) return options_.lent;
    return teams_.empty() ? nullptr : teams_[index(replica)];
  }
  // The team that the members are; NULL: they are replicas.
  DeviceTeam* team() const noexcept { return options_.team; }

  int num_replicas() const noexcept { return options_.num_replicas; }
  // The id of a member, and what the host keeps with it where it is an instance.
  int32_t name_of(int rank) const noexcept { return options_.naming.name(rank).number(); }
  void* host_state() const noexcept { return seats_[0].replica.host_state(); }
  // Of an instance's pool: Replica::give_up().
  void give_up() noexcept {
    seats_[0].replica.give_up();
    give_threads_back();
  }
  ReplicaCount replicas() const noexcept { return options_.replicas; }
  // NULL: there is no other worker.
  WorkerLink* workers() const noexcept { return options_.workers; }

  // Groups of some replicas, made and ended between runs.
  // `ids` ascend.
  Status create_group(std::span<const int32_t> ids, Subgroup** out);
  // Over several workers, of the ids of all of them, in a turn of all of them.
  Status create_group_in_turn(std::span<const int32_t> ids, Subgroup** out);
  // Not a group of logical devices, which ends with their team. In a forked child nothing is done.
  Status destroy_group(Subgroup* group) noexcept;
  LazyChannel& channel() noexcept { return channel_; }
  Memory& memory() noexcept { return memory_; }
  bool has_groups() const noexcept { return !subgroups_.empty(); }
  Subgroups& groups() noexcept { return subgroups_; }

  // The pool for runs that a merge function of this one begins: on its thread, and on as many more as it
  // takes.
  Status inner(ReplicaPool** out);
  // Another pool of the same replicas, on threads as said; the caller's to destroy.
  Status beside(int threads, InnerPool** out) const;
  // The pool of one replica's logical devices; the caller's to destroy.
  Status beneath(LocalReplica replica, DeviceTeam& team, InnerPool** out) const;

  // The pool of one replica alone, whose runs are its caller's: on the same thread as this one's, never at the same
  // time. The caller's to destroy.
  Status instance(LocalReplica replica, InnerPool** out) const;
  // Where these are logical devices: in whose runs theirs are inside.
  void run_inside(const ReplicaPool& outer) noexcept { outer_ = &outer; }

  // A member's thread: the version of a series that its run sees.
  Status see(Versions& series, Version** out) const noexcept {
    const Sight here = sight();
    return here.pins->see(here.run, series, out);
  }

  // From now on the replicas are the tenant's between runs; it lives as long as the pool. The threads come to it by
  // themselves. `call` is the host's function in messages.
  Status let_to(Tenant& tenant, const char* call) noexcept;
  // What it is told: the host's threads that wait for the replicas look again.
  void tenant_gives() noexcept { changed_.advance(); }
  // The replica gets another thread, while its own one is inside a function of the tenant's, or about to end: that one
  // comes back to nothing of the pool's. Called by the tenant.
  Status replace_thread(LocalReplica replica) noexcept;
  const Host& host() const noexcept { return host_; }
  // Where its threads may be; NULL: where whoever starts them may.
  const CpuSet* cpus() const noexcept {
    return options_.placement == nullptr ? nullptr : options_.placement->within();
  }
  const WaitPolicy& policy() const noexcept { return group_.policy(); }
  int threads() const noexcept { return options_.threads; }
  int64_t timeout_ns() const noexcept { return options_.timeout_ns; }
  // For runs that are refused: shut_down() has begun.
  Status shutting_down() const noexcept;
  bool closing() const noexcept { return closing_.load(std::memory_order_acquire); }

  // Any thread: ends the run that is under way, and those inside it.
  void cancel() noexcept { cancel(nullptr); }
  // With a reason: only while a run lasts.
  void cancel(const char* reason) noexcept;
  // The same with a report, of a failure elsewhere.
  void condemn(const ErrorRecord& why) noexcept;

  // OK where no run is under way and no function of one is inside, nor in the pools inside this one. `call`
  // is the function's name in messages, `advice` what to do.
  Status check_idle(const char* call, const char* advice) noexcept;

  // Refuses runs from now on, ends those that wait or are under way, waits for their functions until
  // `deadline_ns` of the host's clock (0: for ever), and ends the threads. Those that are still inside a
  // function then hold the keeper until they are out. `inside` is who they are, in words; "" where there are
  // none. `call`: who ends it, a literal.
  void shut_down(int64_t deadline_ns, std::span<char> inside, const char* call) noexcept;

  // No further run is started: threads that have done the latest one end now, the others by themselves. What the tenant
  // has of the pool's may go then, and the pool after it.
  void end_threads() noexcept;

  // Runs the body on every replica, after the runs that were asked for before. With a timeout it may return
  // while replicas are still inside; runs are refused until these are out.
  Status run(const Body& body, const RunLimits& limits);

  // ---- Budgets (admission.cpp) ----
  // How many threads of a budget a run takes.
  int budget_share() const noexcept;
  // As whom the calling thread waits for this strategy, or has something done there; NULL: it is in no function that
  // libdist called, or there is no budget.
  BudgetParty* insider() const noexcept {
    return options_.party != nullptr && is_inside_function() ? options_.party : nullptr;
  }

  // A turn among the runs for something else: waits for the one that is under way, at most the strategy's
  // timeout, and holds off the next.
  Status take_turn(const char* call) noexcept;
  void end_turn() noexcept;

  // Threads of the host.
  Status enter(GlobalReplica replica, Replica** out) noexcept;
  Status leave(Replica& replica, Status status) noexcept;
  // The replica's thread ends inside its run.
  void abandon(Replica& replica) noexcept;
  // A member's function goes on on another thread, which is the host's, or on its own one again.
  void thread_comes(int rank, bool own) noexcept;

 private:
  // A library's thread is joined; or it is left alone, and lets go of the keeper at its end. Its life is apart from its
  // seat, which may get another thread.
  enum : uint32_t { kOwned, kOrphan, kEnded };
  struct Life;
  struct alignas(kApart) Seat {
    Seat(Memory& memory, ReplicaPool& pool, Group& group, Recorder& recorder, const Replica::Place& place,
         const Replica::Loops& loops, std::size_t cache_bytes, WipedWords::Word* here,
         WorkerMeeting* meeting) noexcept
        : replica(memory, pool, group, recorder, place, loops, cache_bytes, here, meeting) {}
    Replica replica;
    alignas(kApart) Word finished;  // the latest run whose function has returned
    dist_status result = DIST_OK;
    uint32_t entered = 0;                  // the latest run that it took part in
    Counted* keeps = nullptr;              // what a host's thread holds while it is inside, after shut_down()
    bool occupied = false;                 // a host's thread has entered and is not yet back from leaving
    bool thread_ended = false;             // inside a run, by pthread_exit()
    std::atomic<bool> with_tenant{false};  // the thread has found the tenant
    Thread thread;
    Life* life = nullptr;  // of the thread, where it is the library's
    ErrorRecord error;
  };
  class Turn;
  class Holding;
  class AllReplicas;
  class CancelLink;

  // Whose pins a run sees, and as which run of that pool.
  struct Sight {
    RunPins* pins;
    uint32_t run;
  };
  Sight sight() const noexcept {
    if (options_.outer == nullptr) return {&pins_, run_};
    return {seen_in_.load(std::memory_order_relaxed), seen_as_.load(std::memory_order_relaxed)};
  }
  bool is_inside(const Sight& of) const noexcept;
  bool is_inside_below(const Sight& of) const noexcept;
  void let_go(Unseen& out) noexcept;
  Seat& seat(const Replica& replica) const noexcept { return seats_[replica.rank()]; }
  Subgroups::Making making() const noexcept;
  int first_library_replica() const noexcept { return options_.threads == DIST_THREADS_CALLER ? 1 : 0; }
  static void* thread_main(void* argument);
  void serve(Seat& seat);
  bool await_run(Seat& seat, uint32_t seen);
  static bool is_inside(const Tenant* tenant, int rank) noexcept {
    return tenant != nullptr && tenant->is_inside(rank);
  }
  void bury(Seat& seat) noexcept;
  void perform(Seat& seat);
  void perform_on_caller();
  void conclude(Seat& seat, Status status, uint64_t failures_before) noexcept;
  Status drain(Seat& seat, Status returned) noexcept;
  Status start_thread_of(Seat& seat) noexcept;
  Status make_teams() noexcept;
  void cancel_from_outside(const char* reason) noexcept;
  void begin_groups(const RunDeadline& deadline) noexcept;
  void begin_groups_inside(const RunDeadline& deadline) noexcept;
  template <bool kCounted>
  Status run_as(const Body& body, const RunLimits& limits);
  Status await_turn(const RunLimits& limits, int64_t deadline_ns) noexcept;
  Status cancelled_early(const char* reason) const noexcept;
  static bool is_inside_function() noexcept;
  Status take_threads(const RunLimits& limits, const RunDeadline& deadline) noexcept;
  void give_threads_back() noexcept;
  Status check_all_out() noexcept;
  void tell_teams(const Seat& failed) noexcept;
  bool of_devices() const noexcept { return options_.part_of != kNoLocalReplica; }
  int cpu_of(int rank) const noexcept;
  void keep_apart(int rank) noexcept;
  Replica::Loops loops_of(LocalReplica replica, int rank) const noexcept;
  Status revive() noexcept;
  Status restart(Seat& seat) noexcept;
  bool await_finished(Seat& seat, int64_t deadline_ns) noexcept;
  bool all_finished(uint32_t run) const noexcept;
  bool all_finished() const noexcept { return all_finished(run_); }
  Status outcome() const noexcept;
  // "replicas 1, 3", "logical device 1 of replica 0", and how many these are; "": none.
  using Members = std::bitset<DIST_MAX_REPLICAS>;
  int32_t list_members(const Members& members, char* text, std::size_t size) const noexcept;
  // Whose functions have not returned.
  int32_t list_inside(uint32_t run, char* text, std::size_t size) const noexcept;
  void refuse_runs() noexcept;
  bool await_callers(int64_t deadline_ns) noexcept;
  void await_host_threads(int64_t deadline_ns, std::span<char> inside) noexcept;
  void leave_host_threads(std::span<char> inside) noexcept;
  void list_tenants(std::span<char> inside) const noexcept;
  void end_thread(Seat& seat) noexcept;
  bool leave_alone(Seat& seat) noexcept;
  Counted* go(Seat& seat) noexcept;
  RunDeadline deadline_of(const RunLimits& limits) const noexcept;
  Status overdue() noexcept;
  Status over(Status outcome) noexcept;
  void tell_workers(Status outcome) noexcept;
  Status refused(Status why) noexcept;
  Status owed(Status why) noexcept;
  void depart(Seat& seat, Status status) noexcept;
  template <class Holds>
  bool lock_when(Ref<Counted>& kept, Holds&& holds) noexcept;
  void list_missing(char* text, std::size_t size) const noexcept;
  void give_up_run(const ErrorRecord& why) noexcept;
  Status run_is_late() noexcept;
  bool may_enter(const Seat& seat) noexcept;
  bool may_open() noexcept;
  void close_run() noexcept;
  void open_run() noexcept;
  void stop_asking() noexcept;
  void cancel_host_run(const char* reason) noexcept;
  Status take_turn_of_host(const char* call) noexcept;
  Status take_turn_of_library(const char* call, int64_t deadline_ns) noexcept;
  bool idle_locked() const noexcept;
  Status check_idle_locked(const char* call, const char* advice) const noexcept;

  Memory& memory_;
  Group& group_;
  LazyChannel channel_;  // of the group of all replicas
  Subgroups subgroups_;
  WaitGraph& graph_;
  const Host host_;
  const Options options_;
  const ReplicaPool* outer_;  // in whose runs these are inside; NULL: none
  WipedWords here_;           // by replica: the thread that its function runs on
  Seat* seats_ = nullptr;
  int made_ = 0;          // seats constructed
  mutable RunPins pins_;  // where these runs are inside no other's
  // Where they are: what these see. Who ends another pool's run may look while one begins here.
  std::atomic<RunPins*> seen_in_{nullptr};
  std::atomic<uint32_t> seen_as_{0};
  RunLock lock_;                            // a run; with host threads: its entering and leaving
  bool overdue_ = false;                    // the latest run was left before all were out
  std::atomic<InnerPool*> inner_{nullptr};  // made when first asked for
  std::mutex starting_;                     // threads, which a tenant may replace beside a run's begin
  std::mutex beginning_;                    // of a run inside another one, against that one's cancel
  std::pmr::vector<DeviceTeam*> teams_;     // by replica, where replicas have logical devices
  std::atomic<bool> closing_{false};        // shut_down() has begun,
  const char* ender_ = "";                  // called by this
  Word gone_;                               // host threads that have left since
  MergeOutcome merge_outcome_;
  // What a run's begin tells the library's threads, in one cache line.
  alignas(kApart) Word started_;  // the latest run
  uint32_t run_ = 0;              // the latest run
  int caller_cpu_ = -1;           // where replica 0 was at its begin, if it is the caller
  Body body_{};
  std::atomic<Tenant*> tenant_{nullptr};  // who has the replicas between runs; NULL: nobody
  Tenant* lender_ = nullptr;              // from whom a turn has them; NULL: from nobody
  std::atomic<bool> stopping_{false};     // a thread that has done the latest run ends
  // Host threads.
  alignas(kApart) Word changed_;  // how often what follows has, in a way that somebody may wait for
  bool open_ = false;
  Tenant* run_lender_ = nullptr;  // from whom the open run, or one that is to be opened, has the replicas
  bool given_up_ = false;         // the open run
  std::atomic<bool> lock_in_turn_{false};  // the lock of runs is held by take_turn()
  bool turn_taken_ = false;
  int turns_wanted_ = 0;  // and not taken yet: no run begins before them
  int come_ = 0;
  int left_ = 0;
  Status outcome_;
  ErrorRecord outcome_error_;
  Unseen unseen_;                         // by a run that has ended under the lock
  std::optional<Budget::Ticket> ticket_;  // of the run, where there is a budget
};

}  // namespace dist
