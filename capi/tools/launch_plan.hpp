// SPDX-License-Identifier: Apache-2.0
// The tasks of a job, their addresses, and their TF_CONFIG. Pure computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capi/tools/launch_options.hpp"

namespace dist::launch {

struct PlannedTask {
  const char* job;  // "chief", "worker", "ps"
  int32_t index;    // within its job
  std::string address;
  bool is_local;  // started by this launcher

  // For example "worker 2", as used in messages and prefixes.
  std::string name() const { return job + (" " + std::to_string(index)); }
  bool is_chief() const { return job[0] == 'c'; }
  bool is_worker() const { return job[0] == 'w'; }
};

// All tasks of all machines: the chief, the workers, the ps. `ports` has the ports of this machine's tasks in
// that order; it is not used with --hosts.
std::vector<PlannedTask> plan_tasks(const Options& options, const std::vector<uint16_t>& ports);

// TF_CONFIG for the task at this index.
std::string tf_config(const std::vector<PlannedTask>& tasks, std::size_t place);

}  // namespace dist::launch
