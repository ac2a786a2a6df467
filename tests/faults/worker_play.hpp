// SPDX-License-Identifier: Apache-2.0
// Plays a cell over workers. Each worker is a strategy of this process with its own thread, and a network
// connects them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/faults/play.hpp"
#include "tests/faults/worker_cell.hpp"

namespace faults {

// The strategies of cells that have the same threads and the same numbers of workers and replicas.
class Cluster {
 public:
  explicit Cluster(const WorkerCell& cell);
  // Returns false if a strategy could not be destroyed.
  bool end();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  bool serves(const WorkerCell& cell) const {
    return !lost_ && cell.threads == threads_ && cell.workers == workers_ && cell.replicas == replicas_ &&
           cell.timed() == timed_;
  }
  dist_strategy* strategy(int worker) const { return strategies_[worker]; }
  // Takes the worker's strategy, to destroy it.
  dist_strategy* take(int worker) {
    lost_ = true;
    return std::exchange(strategies_[worker], nullptr);
  }

 private:
  const dist_threads threads_;
  const int workers_;
  const int replicas_;
  const bool timed_;
  bool lost_ = false;
  dist_network* network_ = nullptr;
  dist_strategy* strategies_[kMostWorkers] = {};
};

struct WorkerOutcome {
  Side sides[kMostMembers];  // the replicas of all workers
  struct Run {
    dist_status status = DIST_OK;
    Report report;
    int64_t returned_ns = 0;
  } runs[kMostWorkers];
  std::atomic<int64_t> cause_ns{0};
};

void play(Cluster& cluster, const WorkerCell& cell, WorkerOutcome& out);

// Runs the same workers without a fault, with a sum whose result is checked. If a worker is lost, all others
// must report that. Returns "" or what went wrong.
std::string play_well(const Cluster& cluster, const WorkerCell& cell);

// Returns the tag of a step's collective.
std::string tag_of(const WorkerCell& cell, int step);

}  // namespace faults
