// SPDX-License-Identifier: Apache-2.0
// Formation: what of a strategy depends on which workers take part: the replicas' numbers, their groups and threads, and the
// way to the other workers. A strategy has one at a time, and another one when its workers have re-formed (reform.hpp).
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

class Formation final : public Counted {
 public:
  // What all formations of a strategy have.
  struct Plan {
    Host host;
    WaitPolicy policy;
    int num_replicas;
    int64_t timeout_ns;
    std::size_t staging_bytes;  // 0: WorkerMeeting's default
    int32_t recorded_events;    // of each replica: as long as a ring may be
    ReplicaPool::Options pool;  // but for what depends on the workers
  };
  // How it differs from the one before.
  struct Change {
    uint32_t generation = 0;
    int num_joined = 0;   // workers that were not in it
    int num_left = 0;     // of its workers; 0 where this one was not in it
    bool failed = false;  // none could be formed
    Parting parting;      // then what was known of the one before
  };
  // `way`: to the workers of the cluster, of whom `worker` says which take part. Throws std::bad_alloc; makes no thread.
  Formation(Memory& memory, Strategy& owner, const Plan& plan, WorkerPlace worker, WorkerLink::Way way,
            const Change& change);

  uint32_t generation() const noexcept { return change_.generation; }
  const Change& change() const noexcept { return change_; }
  const WorkerPlace& worker() const noexcept { return worker_; }
  // NULL: this worker is alone.
  WorkerLink* workers() noexcept { return workers_ ? &*workers_ : nullptr; }
  // By which workers come and go; NULL: there is none.
  Network* network() const noexcept { return (workers_ ? workers_->way() : alone_).network(); }
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
  ~Formation() override { end_datasets(); }
  ReplicaPool::Options pool_options(Strategy& owner, const Plan& plan, WorkerLink::Way way);

  const Change change_;
  const WorkerPlace worker_;
  WaitGraph wait_graph_;
  Group group_;
  Arena progress_;  // of asynchronous collectives
  std::optional<WorkerLink> workers_;
  WorkerLink::Way alone_;   // of a worker that is alone, and may not stay so
  Ref<WorkerSteps> steps_;  // of several workers
  Readers readers_;
  FlightRecorder recorder_;
  ReplicaPool pool_;
};

}  // namespace dist
