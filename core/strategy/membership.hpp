// SPDX-License-Identifier: Apache-2.0
// Membership: the part of a strategy that depends on which workers take part. It has the replicas' numbers,
// groups and threads, and the connection to the other workers.
//
// A strategy has one membership at a time. Re-forming (reform.hpp) creates the next one and replaces the
// pointer.
//
// Invariant: the set of workers never changes within a membership. Member order matters: pool_ uses what is
// declared before it and is therefore destroyed first.
#pragma once

#include <optional>

#include "core/base/arena.hpp"
#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/comm/group.hpp"
#include "core/input/dataset.hpp"
#include "core/run/replica_pool.hpp"
#include "core/run/worker_link.hpp"
#include "core/strategy/worker_place.hpp"
#include "core/strategy/worker_steps.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class Strategy;

class Membership final : public Counted {
 public:
  // The common settings of all memberships of a strategy.
  struct Plan {
    Host host;
    WaitPolicy policy;
    int num_replicas;
    int64_t timeout_ns;
    std::size_t staging_bytes;  // 0: the default of WorkerCommunicator
    int32_t recorded_events;    // maximum ring size for each replica
    PoolSettings pool;          // except what depends on the workers
  };
  // The difference from the previous membership.
  struct Change {
    uint32_t generation = 0;
    int num_joined = 0;   // workers that were not in the previous one
    int num_left = 0;     // workers that left it; 0 if this worker was not in it
    bool failed = false;  // no membership could be created
    Parting parting;      // then, what was known about the previous one
  };
  // `connection` connects the workers of the cluster; `worker` specifies which of them take part. Throws
  // std::bad_alloc. Creates no thread.
  Membership(Memory& memory, Strategy& owner, const Plan& plan, WorkerPlace worker,
             WorkerLink::Connection connection, const Change& change);

  uint32_t generation() const noexcept { return change_.generation; }
  const Change& change() const noexcept { return change_; }
  const WorkerPlace& worker() const noexcept { return worker_; }
  // NULL if there is no other worker.
  WorkerLink* workers() noexcept { return workers_ ? &*workers_ : nullptr; }
  // The network on which workers join and leave; may be NULL.
  Network* network() const noexcept { return (workers_ ? workers_->connection() : alone_).network(); }
  const Readers& readers() const noexcept { return readers_; }
  Group& group() noexcept { return group_; }
  const FlightRecorder& recorder() const noexcept { return recorder_; }
  ReplicaPool& pool() noexcept { return pool_; }
  const ReplicaPool& pool() const noexcept { return pool_; }
  // Datasets of these workers take no further step.
  void end_datasets() noexcept {
    if (steps_) steps_->leave();
  }
  void close() noexcept { workers_ ? workers_->close() : alone_.close(); }

 private:
  ~Membership() override { end_datasets(); }
  PoolSettings pool_settings(Strategy& owner, const Plan& plan, WorkerLink::Connection connection);

  const Change change_;
  const WorkerPlace worker_;
  WaitGraph wait_graph_;
  Group group_;
  Arena progress_;  // runs asynchronous collectives
  std::optional<WorkerLink> workers_;
  WorkerLink::Connection alone_;  // the connection of a single worker, which others may join later
  Ref<WorkerSteps> steps_;        // only with several workers
  Readers readers_;
  FlightRecorder recorder_;
  ReplicaPool pool_;
};

}  // namespace dist
