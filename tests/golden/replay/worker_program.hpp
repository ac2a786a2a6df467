// SPDX-License-Identifier: Apache-2.0
// A program of several workers. In TensorFlow, each is a process; here, each is a strategy and a thread of
// this process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster.hpp"
#include "tests/golden/harness/replay.hpp"

namespace golden {

struct Worker {
  int32_t id = 0;  // among all workers
  std::string task_type;
  int32_t task_id = 0;
  ClusterResolver resolver;
  Strategy strategy;
};

class Workers {
 public:
  // Creates the case's tasks with one replica each. `timeout_ns` limits how long they wait for each other.
  Workers(Replay& replay, int64_t timeout_ns);
  // Checks that their strategies still work, whatever the program did, and destroys them.
  void end();

  std::size_t size() const noexcept { return all_.size(); }
  Worker& operator[](std::size_t worker) noexcept { return *all_[worker]; }
  // Runs `body` on every worker's thread, and then rethrows the first exception.
  void on_all(const std::function<void(Worker&)>& body);
  // Records {"per_worker": [{"expected": of(worker)}, ...]}. Calls `of` on this thread.
  void record(const std::function<Json(Worker&)>& of);

 private:
  Replay& replay_;
  Handle<dist_network, dist_network_destroy> network_;
  std::vector<std::unique_ptr<Worker>> all_;
};

// Returns TF_CONFIG for one of the tasks.
std::string config_of(const Json& tasks, std::size_t me, const std::vector<std::string>& addresses);

// The cases "failure/...". Returns false if the case is not one in which a worker's process dies.
void replay_worker_failure(Replay& replay);
bool replay_worker_death(Replay& replay);

}  // namespace golden
