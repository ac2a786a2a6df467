// SPDX-License-Identifier: Apache-2.0
// The cluster that a job in this environment would use, found in the order in which dist_strategy_create()
// and the resolvers look for it. Opens no connections.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dist::info {

struct ClusterTask {
  std::string name;  // "worker 0"
  std::string address;
};

struct Cluster {
  // The variable that specifies it: TF_CONFIG, DIST_RENDEZVOUS, MASTER_ADDR or SLURM_STEP_NODELIST. Empty if
  // none does.
  std::string source;
  std::string error;               // why it cannot be used
  std::vector<ClusterTask> tasks;  // those whose addresses are known: for a rendezvous, only worker 0
  std::size_t num_tasks = 0;       // of all jobs
  std::string self;                // the task of this process; empty if it is not set
  int own = -1;                    // its index in `tasks`; -1: it is not there

  const ClusterTask* own_task() const { return own < 0 ? nullptr : &tasks[static_cast<std::size_t>(own)]; }
  bool is_rendezvous() const { return source == "DIST_RENDEZVOUS" || source == "MASTER_ADDR"; }
  // For example "TF_CONFIG: 2 tasks; this process is worker 0".
  std::string text() const;
};

Cluster find_cluster();

}  // namespace dist::info
