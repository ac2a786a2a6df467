// SPDX-License-Identifier: Apache-2.0
// Which tasks a job has, where each is, and the TF_CONFIG that tells them: arithmetic and texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capi/tools/launch_options.hpp"

namespace dist::launch {

struct PlannedTask {
  const char* job;  // "chief", "worker", "ps"
  int32_t index;    // in its job
  std::string address;
  bool is_local;  // started by this launcher

  // "worker 2", as messages and prefixes have it.
  std::string name() const { return job + (" " + std::to_string(index)); }
  bool is_chief() const { return job[0] == 'c'; }
  bool is_worker() const { return job[0] == 'w'; }
};

// All tasks of all machines: the chief, the workers, the ps. `ports` are those of this machine's tasks, in that order; with
// --hosts they are not asked for.
std::vector<PlannedTask> plan_tasks(const Options& options, const std::vector<uint16_t>& ports);

// TF_CONFIG for the task at that place.
std::string tf_config(const std::vector<PlannedTask>& tasks, std::size_t place);

}  // namespace dist::launch
