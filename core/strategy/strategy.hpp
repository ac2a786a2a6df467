// SPDX-License-Identifier: Apache-2.0
// Strategy: the replicas of one program, with their group, threads and memory. It is created from checked
// options and connects the parts; each part has its own header.
//
// Invariants:
// - Everything that depends on the set of workers is in the Membership. Everything here is fixed at creation,
//   except what is atomic or has a mutex.
// - The host owns one reference. Threads that are still inside when the host destroys the strategy own one
//   each, and the last one frees it.
// - reforming_ is held by a thread that replaces the membership, waits for worker 0, or ends the strategy.
#pragma once

#include <atomic>
#include <mutex>
#include <span>

#include "core/base/arena.hpp"
#include "core/base/host.hpp"
#include "core/base/live_handles.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/resolver.hpp"
#include "core/cross_replica/communication.hpp"
#include "core/cross_replica/cross_device.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/strategy/devices.hpp"
#include "core/strategy/host_strategy.hpp"
#include "core/strategy/membership.hpp"
#include "core/strategy/mesh.hpp"
#include "core/strategy/worker_network.hpp"
#include "core/value/replica_numbers.hpp"
#include "core/value/variable_registry.hpp"
#include "dist/types.h"

namespace dist {

class Instances;

struct StrategyOptions {
  dist_strategy_kind kind = DIST_STRATEGY_MIRRORED;
  int32_t num_replicas = 0;  // 0: number of usable CPUs
  dist_threads threads = DIST_THREADS_CALLER;
  dist_placement placement = DIST_PLACEMENT_FREE;
  int64_t timeout_ns = 0;  // 0: kDefaultTimeoutNs; < 0: none
  dist_allocator allocator{};
  Host host;
  std::span<const char* const> devices;  // in replica order; empty: CPU:0 ...
  const char* parameter_device = nullptr;
  Communication communication;
  CrossDevice* cross_device = nullptr;  // NULL: the default
  ClusterResolver* cluster_resolver = nullptr;
  HostStrategy functions;   // for a strategy defined by the host
  MeshOptions mesh;         // for the mesh strategy
  int64_t stack_bytes = 0;  // for each library thread; 0: system default
  int64_t async_bytes = 0;  // limit of AsyncMemory; 0: its default
  dist_numerics numerics = DIST_NUMERICS_ORDERED;
  // For the multi-worker strategy.
  Network* network = nullptr;  // connects the workers; NULL: see `transport`
  dist_transport transport = DIST_TRANSPORT_AUTO;
  std::span<const int32_t> replicas_of_workers;  // by worker; empty: all have as many as this one
  int64_t staging_bytes = 0;                     // 0: the default of WorkerCommunicator
  dist_reform reform = DIST_REFORM_EXPLICIT;
  Budget* budget = nullptr;       // NULL: none
  Executor executor;              // the host's, for loops
  bool helper_threads = false;    // use oneTBB threads even if the replicas are host threads
  std::span<const int32_t> cpus;  // that its threads may use; empty: those of the calling thread
  bool move_host_threads = false;
  int32_t recorded_events = 0;  // for each replica; 0: the default of Recorder
  bool late_destroys = false;   // the host may destroy objects after the strategy
};

// The one-device, default and parameter-server strategies.
constexpr bool has_one_replica(dist_strategy_kind kind) noexcept {
  return kind == DIST_STRATEGY_ONE_DEVICE || kind == DIST_STRATEGY_DEFAULT ||
         kind == DIST_STRATEGY_PARAMETER_SERVER;
}

// Base class of an object that the host creates for a strategy and destroys before it: a coordinator, about which
// strategies know only that it exists.
class Companion {
 protected:
  ~Companion() = default;
};

// The place of a strategy's only companion.
struct CompanionPlace {
  std::mutex mutex;  // protects the members below
  Companion* companion = nullptr;
  int holders = 0;  // handles of the host
};

inline constexpr int64_t kDefaultTimeoutNs = 600'000'000'000;

// The origin of a strategy: the options, and what the system allowed at that time.
struct StrategyOrigin {
  int32_t num_replicas;  // as requested
  dist_strategy_kind kind;
  dist_threads threads;
  dist_placement placement;
  bool chose_cpus;  // from the options, not from the creating thread's affinity mask
  CpuSet cpus;
  int allowed_cpus;     // size of `cpus`
  double cpu_quota;     // cgroup quota in CPUs; 0: none
  int64_t stack_bytes;  // for library threads, as requested
  bool move_host_threads;
};

// Counted: the host owns one reference, and threads that are inside when the host destroys the strategy own
// one each.
class Strategy final : public Counted {
 public:
  static Status create(const StrategyOptions& options, Strategy** out);
  // Destroys the strategy unless a run is in progress; after shut_down() in any case: the last function to
  // return frees it.
  static Status destroy(Strategy* strategy) noexcept;
  // Ends all runs, and the threads. If functions are still running after `timeout_ns` (< 0: no limit), fails
  // with DEADLINE_EXCEEDED and names their replicas.
  static Status shut_down(Strategy* strategy, int64_t timeout_ns) noexcept;

  dist_strategy_kind kind() const noexcept { return origin_.kind; }
  // The kind that determines how values and variables are placed.
  dist_strategy_kind layout() const noexcept {
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
  // The current workers; changed only by reform().
  Membership& membership() const noexcept { return *membership_.load(std::memory_order_acquire); }
  ReplicaCount replicas() const noexcept { return membership().pool().replicas(); }
  // The place of this process among the workers of its cluster. workers() is NULL if there is no other one.
  const WorkerPlace& worker() const noexcept { return membership().worker(); }
  WorkerLink* workers() const noexcept { return membership().workers(); }
  // The consumers of its datasets.
  const Readers& readers() const noexcept { return membership().readers(); }
  ReplicaPool& pool() const noexcept { return membership().pool(); }
  Group& group() const noexcept { return membership().group(); }
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  const StrategyOrigin& origin() const noexcept { return origin_; }
  const FlightRecorder& recorder() const noexcept { return membership().recorder(); }
  VariableRegistry& variables() noexcept { return variables_; }
  // The objects that the host has created and not destroyed yet.
  LiveHandles& handles() const noexcept { return *handles_; }
  const Devices& devices() const noexcept { return devices_; }
  // The name of a replica's device.
  Status device_of(GlobalReplica replica, const char** out_name) const noexcept;
  const Communication& communication() const noexcept { return communication_; }
  // For the mesh strategy: the devices that form its replicas (NULL: unknown), and their axes.
  const DeviceAssignment* assignment() const noexcept { return assignment_.get(); }
  const DeviceMesh& mesh() const noexcept { return mesh_; }
  // The description of the cluster; may be NULL.
  ClusterResolver* cluster_resolver() const noexcept { return cluster_resolver_.get(); }
  const AsyncMemory& async_memory() const noexcept { return async_memory_; }
  bool spmd() const noexcept { return spmd_; }
  const Placement& placement() const noexcept { return placement_; }
  // Whether oneTBB threads may help.
  bool has_helpers() const noexcept { return !plan_.pool.threads.no_helpers; }
  const Executor& executor() const noexcept { return plan_.pool.threads.executor; }
  // May be NULL.
  const Budget* budget() const noexcept { return budget_ ? &budget_->budget() : nullptr; }
  CrossReplica cross_replica() noexcept {
    return {&memory(), replicas(), &arena_, layout(), cross_device_.get(), pool().numerics(), workers()};
  }

  // Fails with FAILED_PRECONDITION in a forked child, which does not have the threads.
  Status check_process() const noexcept {
    if (!memory().forked()) [[likely]]
      return kOk;
    return in_forked_child();
  }
  // Like check_process(), and also fails inside a replica function. `call` is the host's function.
  Status check_cross_replica(const char* call) const noexcept;

  // The numbers of the replicas, also valid for objects created before the latest re-forming.
  ReplicaNumbers& numbers() const noexcept { return *numbers_; }
  dist_reform reform() const noexcept { return reform_; }
  CompanionPlace& companion() noexcept { return companion_; }
  // The instances that serve requests on the replicas; created on first use. Throws std::bad_alloc.
  Instances& instances() {
    Instances* const known = known_instances();
    return known != nullptr ? *known : make_instances();
  }
  // NULL if they were never requested.
  Instances* known_instances() const noexcept { return serving_.load(std::memory_order_acquire); }
  // Replaces the membership, whose pool must have been shut down; see core/strategy/reform.hpp.
  Status enter(WorkerPlace worker, WorkerLink::Connection connection, const Membership::Change& change);
  // All workers of the cluster, whether they take part or not.
  const WorkerPlace& cluster_place() const noexcept { return cluster_place_; }
  const ConnectionOptions& connection_options() const noexcept { return connection_options_; }
  // Held while re-forming, waiting for worker 0, or ending the strategy.
  std::mutex& reforming() noexcept { return reforming_; }
  // Begins a wait outside of runs. The returned flag becomes true on cancel(), and stays true after
  // shut_down().
  std::atomic<bool>& begin_wait() noexcept {
    // cancel() and shut_down() write these in the opposite order, so neither request is lost.
    wait_cancelled_ = false;
    if (ended_) wait_cancelled_ = true;
    return wait_cancelled_;
  }
  // With several workers, between runs: WorkerLink::hear_leader(), ended early by cancel() or `cancel` (may
  // be NULL).
  Status hear_leader(const char* call, Cancel* cancel, uint32_t* out_announced) noexcept;
  // Ends the current run, a reform(), or hear_leader(). Callable from any thread.
  void cancel() noexcept {
    wait_cancelled_ = true;
    pool().cancel();
  }

  struct Plan;
  // For create().
  Strategy(Memory& memory, const StrategyOptions& options, const Plan& plan, Devices devices,
           WorkerPlace worker, WorkerLink::Connection connection);

 private:
  ~Strategy() override;
  Instances& make_instances();
  Status check_companion(const char* call) noexcept;
  // Logs which objects outlive the strategy.
  void warn_of_handles() const noexcept;
  Membership::Plan membership_plan(const StrategyOptions& options, const Plan& plan) noexcept;

  const StrategyOrigin origin_;
  const int64_t timeout_ns_;
  const Devices devices_;
  const Communication communication_;
  const Ref<CrossDevice> cross_device_;
  const Ref<DeviceAssignment> assignment_;
  const Ref<ClusterResolver> cluster_resolver_;
  const Ref<BudgetParty> budget_;  // as a user of a budget; may be NULL
  DeviceMesh mesh_;
  const bool spmd_;
  const dist_reform reform_;
  const ConnectionOptions connection_options_;
  const WorkerPlace cluster_place_;
  const Placement placement_;
  Arena arena_;  // for functions called from outside of runs
  AsyncMemory async_memory_;
  VariableRegistry variables_;
  const Ref<LiveHandles> handles_;
  const bool late_destroys_;
  Ref<ReplicaNumbers> numbers_;
  const Membership::Plan plan_;
  std::mutex reforming_;
  std::atomic<bool> wait_cancelled_{false};
  std::atomic<bool> ended_{false};  // by shut_down()
  CompanionPlace companion_;
  std::mutex beginning_to_serve_;
  Ref<Instances> instances_;
  std::atomic<Instances*> serving_{nullptr};
  // A thread that has just read membership_ may be about to use it. Therefore the previous membership is kept
  // as well.
  Ref<Membership> now_;
  Ref<Membership> before_;
  std::atomic<Membership*> membership_;
};

}  // namespace dist
