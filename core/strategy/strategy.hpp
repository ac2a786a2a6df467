// SPDX-License-Identifier: Apache-2.0
// Strategy: the replicas of one program, their group, their threads and the memory that all of it lives in.
#pragma once

#include <atomic>
#include <mutex>
#include <span>

#include "core/base/arena.hpp"
#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/resolver.hpp"
#include "core/cross_replica/communication.hpp"
#include "core/cross_replica/cross_device.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/strategy/devices.hpp"
#include "core/strategy/formation.hpp"
#include "core/strategy/host_strategy.hpp"
#include "core/strategy/mesh.hpp"
#include "core/strategy/worker_network.hpp"
#include "core/value/replica_numbers.hpp"
#include "core/value/variable_registry.hpp"
#include "dist/types.h"

namespace dist {

class Instances;

struct StrategyOptions {
  int32_t kind = DIST_STRATEGY_MIRRORED;
  int32_t num_replicas = 0;  // 0: usable CPUs
  int32_t threads = DIST_THREADS_CALLER;
  int32_t placement = DIST_PLACEMENT_FREE;
  int64_t timeout_ns = 0;  // 0: kDefaultTimeoutNs; < 0: none
  dist_allocator allocator{};
  Host host;
  std::span<const char* const> devices;  // in replica order; none: CPU:0 ...
  const char* parameter_device = nullptr;
  Communication communication;
  CrossDevice* cross_device = nullptr;  // NULL: the default
  ClusterResolver* cluster_resolver = nullptr;
  HostStrategy functions;   // of the host's own strategy
  MeshOptions mesh;         // of the mesh strategy
  int64_t stack_bytes = 0;  // of each library thread; 0: the system's default
  int64_t async_bytes = 0;  // AsyncMemory's limit; 0: its default
  int32_t numerics = DIST_NUMERICS_ORDERED;
  // Of the multi-worker strategy.
  Network* network = nullptr;  // how the other workers are reached; NULL: as `transport` says
  int32_t transport = DIST_TRANSPORT_AUTO;
  std::span<const int32_t> replicas_of_workers;  // of each; none: all have as many as this one
  int64_t staging_bytes = 0;                     // 0: WorkerMeeting's default
  int32_t reform = DIST_REFORM_EXPLICIT;
  Budget* budget = nullptr;       // NULL: none
  Executor executor;              // of the host's, for loops
  bool helper_threads = false;    // oneTBB's, also where replicas are the host's
  std::span<const int32_t> cpus;  // where its threads may be; none: where the calling one may
  bool move_host_threads = false;
  int32_t recorded_events = 0;  // of each replica; 0: Recorder's default
};

// The one-device and default strategies, and one with parameter servers.
constexpr bool has_one_replica(int32_t kind) noexcept {
  return kind == DIST_STRATEGY_ONE_DEVICE || kind == DIST_STRATEGY_DEFAULT ||
         kind == DIST_STRATEGY_PARAMETER_SERVER;
}

// What the host has made of a strategy and ends before it: a coordinator, of which strategies know nothing.
struct Companion {
  std::mutex mutex;
  void* object = nullptr;
  int holders = 0;
};

inline constexpr int64_t kDefaultTimeoutNs = 600'000'000'000;

// What a strategy was made from: the options, and what the system allowed at that moment.
struct StrategyOrigin {
  int32_t num_replicas;  // as asked
  int32_t kind;
  int32_t threads;
  int32_t placement;
  bool chose_cpus;  // by the options, and not by the affinity mask of whoever created it
  CpuSet cpus;
  int allowed_cpus;     // how many these are
  double cpu_quota;     // of the cgroup, in CPUs; 0: none
  int64_t stack_bytes;  // of library threads, as asked
  bool move_host_threads;
};

// Counted: its host has one reference. Threads that are inside when the host gives it up have one each.
class Strategy final : public Counted {
 public:
  static Status create(const StrategyOptions& options, Strategy** out);
  // Ends the strategy, unless a run is under way.
  static Status destroy(Strategy* strategy) noexcept;
  // Ends it whatever its replicas do. Where some are still inside after `timeout_ns` (< 0: no limit),
  // DEADLINE_EXCEEDED names them, and the last one to return frees the strategy.
  static Status shut_down(Strategy* strategy, int64_t timeout_ns) noexcept;

  int32_t kind() const noexcept { return origin_.kind; }
  // How values and variables are placed: these strategies do it as another one does.
  int32_t layout() const noexcept {
    if (kind() == DIST_STRATEGY_PARAMETER_SERVER) return DIST_STRATEGY_ONE_DEVICE;
    return kind() == DIST_STRATEGY_MESH || kind() == DIST_STRATEGY_MULTI_WORKER_MIRRORED
               ? DIST_STRATEGY_MIRRORED
               : kind();
  }
  // TensorFlow's experimental_between_graph.
  bool between_graph() const noexcept {
    return kind() == DIST_STRATEGY_CENTRAL_STORAGE || kind() == DIST_STRATEGY_MULTI_WORKER_MIRRORED ||
           kind() == DIST_STRATEGY_PARAMETER_SERVER;
  }
  // Which workers take part: the same all the time but for reform().
  Formation& formation() const noexcept { return *formation_.load(std::memory_order_acquire); }
  ReplicaCount replicas() const noexcept { return formation().pool().replicas(); }
  // Where it is among the workers of its cluster; one alone has no link.
  const WorkerPlace& worker() const noexcept { return formation().worker(); }
  WorkerLink* workers() const noexcept { return formation().workers(); }
  // Whom its datasets are for.
  const Readers& readers() const noexcept { return formation().readers(); }
  ReplicaPool& pool() const noexcept { return formation().pool(); }
  Group& group() const noexcept { return formation().group(); }
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  const StrategyOrigin& origin() const noexcept { return origin_; }
  const FlightRecorder& recorder() const noexcept { return formation().recorder(); }
  VariableRegistry& variables() noexcept { return variables_; }
  const Devices& devices() const noexcept { return devices_; }
  // The name of a replica's device.
  Status device_of(GlobalReplica replica, const char** out_name) const noexcept;
  const Communication& communication() const noexcept { return communication_; }
  // Of the mesh strategy: which devices its replicas are made of (NULL: not known), and their axes.
  const DeviceAssignment* assignment() const noexcept { return assignment_.get(); }
  const DeviceMesh& mesh() const noexcept { return mesh_; }
  // What describes the cluster, or NULL.
  ClusterResolver* cluster_resolver() const noexcept { return cluster_resolver_.get(); }
  const AsyncMemory& async_memory() const noexcept { return async_memory_; }
  bool spmd() const noexcept { return spmd_; }
  const Placement& placement() const noexcept { return placement_; }
  // Whether oneTBB's threads may help.
  bool has_helpers() const noexcept { return !plan_.pool.no_helpers; }
  const Executor& executor() const noexcept { return plan_.pool.executor; }
  // NULL: none.
  const Budget* budget() const noexcept { return budget_ ? &budget_->budget() : nullptr; }
  CrossReplica cross_replica() noexcept {
    return {&memory(), replicas(), &arena_, layout(), cross_device_.get(), pool().numerics(), workers()};
  }

  // FAILED_PRECONDITION in a forked child, where the threads are not.
  Status check_process() const noexcept {
    if (!memory().forked()) [[likely]]
      return kOk;
    return in_forked_child();
  }
  // check_process(), and not inside a replica function. `call` is the function's name.
  Status check_cross_replica(const char* call) const noexcept;

  // The replicas' numbers, also in what was made before another formation.
  ReplicaNumbers& numbers() const noexcept { return *numbers_; }
  int32_t reform() const noexcept { return reform_; }
  Companion& companion() noexcept { return companion_; }
  // The replicas as those who answer requests, from when somebody asks for them. Throws std::bad_alloc.
  Instances& instances();
  // NULL: nobody has asked.
  Instances* known_instances() const noexcept { return serving_.load(std::memory_order_acquire); }
  // Another formation takes the place of this one, whose pool has been shut down: core/strategy/reform.hpp.
  Status enter(WorkerPlace worker, WorkerLink::Way way, const Formation::Change& change);
  // Which workers the cluster has, whichever take part.
  const WorkerPlace& cluster_place() const noexcept { return cluster_place_; }
  const WayOptions& way_options() const noexcept { return way_options_; }
  // Held by whoever re-forms it, waits for its worker 0, or ends it.
  std::mutex& reforming() noexcept { return reforming_; }
  // A wait that is no run's begins: from now on cancel() makes the answer true, and shut_down() for good.
  std::atomic<bool>& begin_wait() noexcept {
    // In this order, which is the other way round there: whichever comes first, what it says stays.
    wait_cancelled_ = false;
    if (ended_) wait_cancelled_ = true;
    return wait_cancelled_;
  }
  // Where there are workers, between runs: WorkerLink::hear_leader() until cancel(), or `cancel`, which may be NULL.
  Status hear_leader(const char* call, Cancel* cancel, uint32_t* out_announced) noexcept;
  // Any thread: ends the run that is under way, a reform(), or hear_leader().
  void cancel() noexcept {
    wait_cancelled_ = true;
    pool().cancel();
  }

  struct Plan;
  // For create().
  Strategy(Memory& memory, const StrategyOptions& options, const Plan& plan, Devices devices,
           WorkerPlace worker, WorkerLink::Way way);

 private:
  ~Strategy() override;
  Status check_companion(const char* call) noexcept;
  Formation::Plan formation_plan(const StrategyOptions& options, const Plan& plan) noexcept;

  const StrategyOrigin origin_;
  const int64_t timeout_ns_;
  const Devices devices_;
  const Communication communication_;
  const Ref<CrossDevice> cross_device_;
  const Ref<DeviceAssignment> assignment_;
  const Ref<ClusterResolver> cluster_resolver_;
  const Ref<BudgetParty> budget_;  // as which it stands in line there; NULL: there is none
  DeviceMesh mesh_;
  const bool spmd_;
  const int32_t reform_;
  const WayOptions way_options_;
  const WorkerPlace cluster_place_;
  const Placement placement_;
  Arena arena_;  // of functions called from outside
  AsyncMemory async_memory_;
  VariableRegistry variables_;
  Ref<ReplicaNumbers> numbers_;
  const Formation::Plan plan_;
  std::mutex reforming_;
  std::atomic<bool> wait_cancelled_{false};
  std::atomic<bool> ended_{false};  // by shut_down()
  Companion companion_;
  std::mutex beginning_to_serve_;
  Ref<Instances> instances_;
  std::atomic<Instances*> serving_{nullptr};
  // A thread that has just asked for the formation may be about to use it: it lives until there is the next but one.
  Ref<Formation> now_;
  Ref<Formation> before_;
  std::atomic<Formation*> formation_;
};

}  // namespace dist
