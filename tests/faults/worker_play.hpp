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

// The strategies of cells that are alike in threads and in the numbers of workers and replicas.
class Cluster {
 public:
  explicit Cluster(const WorkerCell& cell);
  // False: a strategy could not be ended.
  bool end();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  bool serves(const WorkerCell& cell) const {
    return !lost_ && cell.threads == threads_ && cell.workers == workers_ && cell.replicas == replicas_ &&
           cell.timed() == timed_;
  }
  dist_strategy* strategy(int worker) const { return strategies_[worker]; }
  // The worker's strategy is gone, or about to be.
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
  Side sides[kMostMembers];  // replicas of all workers
  struct Run {
    dist_status status = DIST_OK;
    Report report;
    int64_t returned_ns = 0;
  } runs[kMostWorkers];
  std::atomic<int64_t> cause_ns{0};
};

void play(Cluster& cluster, const WorkerCell& cell, WorkerOutcome& out);

// The same workers with nobody doing anything wrong, and a sum that is looked at; where one is lost, all others say so.
// "" or what went wrong.
std::string play_well(const Cluster& cluster, const WorkerCell& cell);

// The tag of a step's collective.
std::string tag_of(const WorkerCell& cell, int step);

}  // namespace faults
