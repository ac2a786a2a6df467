// SPDX-License-Identifier: Apache-2.0
// Strategy: the replicas of one program, their group, their threads and the memory that all of it lives in.
#pragma once

#include <optional>
#include <span>

#include "core/base/arena.hpp"
#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/resolver.hpp"
#include "core/comm/group.hpp"
#include "core/cross_replica/communication.hpp"
#include "core/cross_replica/cross_device.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/input/dataset.hpp"
#include "core/run/replica_pool.hpp"
#include "core/run/worker_link.hpp"
#include "core/strategy/devices.hpp"
#include "core/strategy/host_strategy.hpp"
#include "core/strategy/mesh.hpp"
#include "core/strategy/worker_place.hpp"
#include "core/strategy/worker_steps.hpp"
#include "core/trace/recorder.hpp"
#include "core/value/variable_registry.hpp"
#include "dist/types.h"

namespace dist {

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
};

// The one-device and default strategies.
constexpr bool has_one_replica(int32_t kind) noexcept {
  return kind == DIST_STRATEGY_ONE_DEVICE || kind == DIST_STRATEGY_DEFAULT;
}

inline constexpr int64_t kDefaultTimeoutNs = 600'000'000'000;

// What a strategy was made from: the options, and what the system allowed at that moment.
struct StrategyOrigin {
  int32_t num_replicas;  // as asked
  int32_t kind;
  int32_t threads;
  int32_t placement;
  int allowed_cpus;     // by the affinity mask
  double cpu_quota;     // of the cgroup, in CPUs; 0: none
  int64_t stack_bytes;  // of library threads, as asked
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
  // How values and variables are placed: these strategies do it as the mirrored one does.
  int32_t layout() const noexcept {
    return kind() == DIST_STRATEGY_MESH || kind() == DIST_STRATEGY_MULTI_WORKER_MIRRORED
               ? DIST_STRATEGY_MIRRORED
               : kind();
  }
  // TensorFlow's experimental_between_graph.
  bool between_graph() const noexcept {
    return kind() == DIST_STRATEGY_CENTRAL_STORAGE || kind() == DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  }
  ReplicaCount replicas() const noexcept { return pool_.replicas(); }
  // Where it is among the workers of its cluster; one alone has no link.
  const WorkerPlace& worker() const noexcept { return worker_; }
  WorkerLink* workers() noexcept { return workers_ ? &*workers_ : nullptr; }
  // Whom its datasets are for.
  const Readers& readers() const noexcept { return readers_; }
  ReplicaPool& pool() noexcept { return pool_; }
  Group& group() noexcept { return group_; }
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  const StrategyOrigin& origin() const noexcept { return origin_; }
  const FlightRecorder& recorder() const noexcept { return recorder_; }
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
  CrossReplica cross_replica() noexcept {
    return {&memory(), replicas(), &arena_, layout(), cross_device_.get(), pool_.numerics(), workers()};
  }

  // FAILED_PRECONDITION in a forked child, where the threads are not.
  Status check_process() const noexcept {
    if (!memory().forked()) [[likely]]
      return kOk;
    return in_forked_child();
  }
  // check_process(), and not inside a replica function. `call` is the function's name.
  Status check_cross_replica(const char* call) const noexcept;

  struct Plan;
  // For create().
  Strategy(Memory& memory, const StrategyOptions& options, const Plan& plan, Devices devices,
           WorkerPlace worker, WorkerLink::Way way);

 private:
  ~Strategy() override;
  ReplicaPool::Options pool_options(const StrategyOptions& options, const Plan& plan, WorkerLink::Way way);

  const StrategyOrigin origin_;
  const int64_t timeout_ns_;
  const Devices devices_;
  const Communication communication_;
  const Ref<CrossDevice> cross_device_;
  const Ref<DeviceAssignment> assignment_;
  const Ref<ClusterResolver> cluster_resolver_;
  DeviceMesh mesh_;
  const bool spmd_;
  const WorkerPlace worker_;
  WaitGraph wait_graph_;
  Group group_;
  Arena progress_;  // of asynchronous collectives
  std::optional<WorkerLink> workers_;
  Ref<WorkerSteps> steps_;  // of several workers
  Readers readers_;
  const Placement placement_;
  Arena arena_;  // of functions called from outside
  AsyncMemory async_memory_;
  FlightRecorder recorder_;
  VariableRegistry variables_;
  ReplicaPool pool_;
};

}  // namespace dist
