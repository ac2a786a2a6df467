// SPDX-License-Identifier: Apache-2.0
// PoolFacts: the facts about a pool of replicas that never change, and what follows from them.
//
// Invariant: nothing here changes after the pool's creation, so every thread may read it at any time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/async/channel.hpp"
#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/replicas.hpp"
#include "core/run/budget.hpp"
#include "core/run/placement.hpp"
#include "core/run/replica.hpp"
#include "core/trace/recorder.hpp"
#include "dist/types.h"

namespace dist {

class DeviceTeam;
class WorkerLink;
struct DeviceMesh;
struct OuterRun;

struct PoolSettings {
  // The threads that run the members' functions, and the members' loops.
  struct Threads {
    int kind = DIST_THREADS_CALLER;        // DIST_THREADS_...
    int usable_cpus = 1;                   // for all members
    const Placement* placement = nullptr;  // CPUs of replicas and logical devices; NULL: any
    std::size_t stack_bytes = 0;           // for each library thread; 0: system default
    bool no_helpers = false;               // oneTBB threads do not help with a member's loops or works
    bool move_host_threads = false;        // away from a CPU that a peer uses
    Executor executor;                     // the host's, for loops
  };
  struct Collectives {
    ChannelHome channels;
    int64_t bytes_per_pack = 0;                      // for planned lists; 0: no limit
    dist_numerics numerics = DIST_NUMERICS_ORDERED;  // for reductions that do not specify it
    bool alone = false;  // one replica by kind: reductions and gathers return their input
  };
  // How pools contain each other.
  struct Nesting {
    const OuterRun* outer = nullptr;          // the run outside; NULL: these runs are not nested
    const DeviceMesh* devices = nullptr;      // logical devices of each replica; NULL: none
    LocalReplica part_of = kNoLocalReplica;   // set if the members are logical devices: their replica
    DeviceTeam* team = nullptr;               // then, their team
    LocalReplica instance = kNoLocalReplica;  // set if the pool is an instance's: its replica
    DeviceTeam* lent = nullptr;  // then, that replica's devices, owned by another pool; NULL: none
  };

  int num_replicas = 0;      // members of the pool
  ReplicaCount replicas{0};  // in this worker and in all workers
  Naming naming;             // of the members, for messages
  int64_t timeout_ns = 0;    // how long dist_replica_enter() and dist_replica_leave() wait
  FlightRecorder* recorder = nullptr;
  Counted* keeper = nullptr;      // what the pool belongs to; kept alive for threads that outlive the pool
  WorkerLink* workers = nullptr;  // NULL if there is no other worker
  BudgetParty* party = nullptr;   // the user of the budget; NULL: no budget
  Threads threads;
  Collectives collectives;
  Nesting nesting;
};

class PoolFacts {
 public:
  PoolFacts(Memory& memory, const Host& host, const PoolSettings& settings) noexcept
      : memory_(memory),
        host_(host),
        settings_(settings),
        caller_in_the_way_(settings.threads.kind == DIST_THREADS_LIBRARY &&
                           settings.num_replicas + 1 > settings.threads.usable_cpus) {}

  Memory& memory() const noexcept { return memory_; }
  const Host& host() const noexcept { return host_; }
  const PoolSettings& settings() const noexcept { return settings_; }
  const Naming& naming() const noexcept { return settings_.naming; }
  Counted& keeper() const noexcept { return *settings_.keeper; }
  // Whether both pools belong to the same strategy.
  bool belongs_with(const PoolFacts& other) const noexcept {
    return settings_.keeper == other.settings_.keeper;
  }
  FlightRecorder& recorder() const noexcept { return *settings_.recorder; }
  // NULL if there is no other worker.
  WorkerLink* workers() const noexcept { return settings_.workers; }

  int num_replicas() const noexcept { return settings_.num_replicas; }
  ReplicaCount replicas() const noexcept { return settings_.replicas; }
  // The id of a member.
  int32_t name_of(int rank) const noexcept { return settings_.naming.name(rank).number(); }
  // The team whose devices are the members; NULL if the members are replicas.
  DeviceTeam* team() const noexcept { return settings_.nesting.team; }
  Replica::Place place_of(int rank) const noexcept;
  // The recorder of a member.
  Recorder& recorder_of(int rank) const noexcept;

  int threads() const noexcept { return settings_.threads.kind; }
  // The first member that has a library thread, unless the host lends all threads.
  int first_library_replica() const noexcept { return threads() == DIST_THREADS_CALLER ? 1 : 0; }
  int64_t timeout_ns() const noexcept { return settings_.timeout_ns; }
  // Whether the caller of a run, who only waits, has no CPU besides those of the replicas. Then it and the idle
  // replicas yield after every look, because each of them may have the CPU that the other one needs.
  bool caller_in_the_way() const noexcept { return caller_in_the_way_; }
  // The CPUs that its threads may use; NULL: those of the thread that creates them.
  const CpuSet* cpus() const noexcept {
    return settings_.threads.placement == nullptr ? nullptr : settings_.threads.placement->within();
  }
  // The CPU that a member's library thread is bound to; -1: none.
  int cpu_of(int rank) const noexcept;
  Replica::Loops loops_of(int rank) const noexcept;
  // The number of budget threads that a run takes.
  int budget_share() const noexcept {
    return std::max(1, std::min(num_replicas(), settings_.threads.usable_cpus));
  }

  // The default for the approximate size of a pack of a planned list; 0: no limit.
  int64_t bytes_per_pack() const noexcept { return settings_.collectives.bytes_per_pack; }
  // The default DIST_NUMERICS_... of reductions.
  dist_numerics numerics() const noexcept { return settings_.collectives.numerics; }
  bool alone() const noexcept { return settings_.collectives.alone; }

 private:
  Memory& memory_;
  const Host host_;
  const PoolSettings settings_;
  const bool caller_in_the_way_;
};

}  // namespace dist
