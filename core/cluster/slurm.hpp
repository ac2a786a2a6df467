// SPDX-License-Identifier: Apache-2.0
// Parses Slurm's description of a step: host lists, tasks per host, and the distribution of ranks over the
// hosts.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"

namespace dist {

// Expands "n[01-03,7],m1" to n01, n02, n03, n7, m1, in Slurm's order. There can be at most
// DIST_MAX_CLUSTER_TASKS names, each shorter than an address. `what` is the beginning of messages.
Status expand_host_list(const char* text, const char* what, std::pmr::vector<std::pmr::string>* out);

// Expands "2(x3),1" to 2, 2, 2, 1. `what` is the beginning of messages.
Status expand_tasks_per_node(const char* text, const char* what, std::pmr::vector<int32_t>* out);

struct SlurmJob {
  std::string_view name;
  std::size_t num_tasks;
};

// NULL, 0 and DIST_TASK_UNSET mean that a member was not given.
struct SlurmOptions {
  int32_t rank = DIST_TASK_UNSET;
  int32_t num_tasks = 0;
  const char* host_list = nullptr;
  const char* tasks_per_node = nullptr;
  int32_t tasks_on_each_host = 0;
  int32_t port_base = 0;
  int32_t gpus_per_host = 0;
  int32_t gpus_per_task = 0;
  bool has_jobs = false;
  std::span<const SlurmJob> jobs;
};

// A step: its cluster, and the place of this process in it.
class SlurmStep {
 public:
  explicit SlurmStep(Memory& memory) : memory_(memory), hosts_(&memory), places_(&memory) {}

  // Fails with FAILED_PRECONDITION if a variable is missing, if jobs and hosts have different numbers of
  // tasks, or if the order of the ranks on the hosts is not known. Fails with INVALID_ARGUMENT if the lists
  // of hosts and tasks differ in length, or if a host appears twice.
  Status read(const SlurmOptions& options);

  const Ref<ClusterSpec>& spec() const noexcept { return spec_; }
  // The job of this process (or NULL) and its index in the job.
  const char* job() const noexcept { return own_job_; }
  int32_t index() const noexcept { return own_index_; }
  int32_t gpus_per_task() const noexcept { return gpus_per_task_; }
  int32_t rank() const noexcept { return rank_; }
  int32_t num_tasks() const noexcept { return num_tasks_; }
  // The first GPU of this process; -1 if its rank is not part of the step.
  int32_t first_gpu() const noexcept { return first_gpu_; }

 private:
  struct HostTasks {
    std::pmr::string host;
    int32_t tasks;
  };
  // The host of a rank, and its index among the ranks of that host.
  struct Place {
    int32_t host;
    int32_t index;
  };
  Status read_rank(const SlurmOptions& options) noexcept;
  Status read_hosts(const SlurmOptions& options);
  Status add_hosts(std::span<std::pmr::string> hosts, std::span<const int32_t> tasks, int32_t on_each);
  Status check_twice() const;
  Status count_tasks() noexcept;
  Status distribute();
  Status check_place(const SlurmOptions& options) const noexcept;
  Status check_variable(const char* name, const char* what, int32_t expected) const noexcept;
  Status share_gpus(const SlurmOptions& options) noexcept;
  Status place(const SlurmOptions& options);
  Status check_sum(std::span<const SlurmJob> jobs, const char* source) const noexcept;
  Status place_jobs(std::span<SlurmJob> jobs, std::span<const std::pmr::string> addresses);
  void place_gpus() noexcept;

  Memory& memory_;
  std::pmr::vector<HostTasks> hosts_;  // in Slurm's order
  std::pmr::vector<Place> places_;     // of each rank
  Ref<ClusterSpec> spec_;
  const char* own_job_ = nullptr;
  int32_t own_index_ = DIST_TASK_UNSET;
  // The sources of the hosts and their tasks: an option or a variable.
  const char* hosts_source_ = "";
  const char* tasks_source_ = "";
  int32_t rank_ = 0;
  int32_t num_tasks_ = 0;
  int32_t most_tasks_ = 0;  // maximum per host
  int32_t gpus_per_task_ = 0;
  int32_t first_gpu_ = -1;
};

}  // namespace dist
