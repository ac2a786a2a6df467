// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "core/cluster/python_numbers.hpp"
#include "core/cluster/resolver.hpp"
#include "core/cluster/slurm.hpp"

namespace dist {
namespace {

constexpr int32_t kDefaultPortBase = 8888;
constexpr int32_t kLastPort = 65535;

Status variable(const char* name, const char** out) noexcept {
  *out = environment_text(name);
  if (*out != nullptr) return kOk;
  return failed_precondition("%s is not in the environment, so this is no Slurm step; give it as an option",
                             name);
}

Status at_least_0(int32_t number, const char* name) noexcept {
  return number >= 0 ? kOk : invalid_argument("%s is %d; it is at least 0", name, number);
}

}  // namespace

Status SlurmStep::read(const SlurmOptions& options) {
  DIST_TRY(at_least_0(options.num_tasks, "num_tasks"));
  DIST_TRY(at_least_0(options.tasks_on_each_host, "tasks_on_each_host"));
  DIST_TRY(at_least_0(options.port_base, "port_base"));
  DIST_TRY(at_least_0(options.gpus_per_host, "gpus_per_host"));
  DIST_TRY(at_least_0(options.gpus_per_task, "gpus_per_task"));
  DIST_TRY(read_rank(options));
  DIST_TRY(read_hosts(options));
  DIST_TRY(share_gpus(options));
  return place(options);
}

Status SlurmStep::read_rank(const SlurmOptions& options) noexcept {
  rank_ = options.rank;
  if (rank_ != DIST_TASK_UNSET) return kOk;
  const char* text = nullptr;
  DIST_TRY(variable("SLURM_PROCID", &text));
  return int_of(text, "SLURM_PROCID", &rank_);
}

Status SlurmStep::read_hosts(const SlurmOptions& options) {
  const char* text = options.host_list;
  if (text == nullptr) DIST_TRY(variable("SLURM_STEP_NODELIST", &text));
  std::pmr::vector<std::pmr::string> hosts(&memory_);
  DIST_TRY(expand_host_list(text, &hosts));
  std::pmr::vector<int32_t> tasks(&memory_);
  if (options.tasks_on_each_host == 0) {
    text = options.tasks_per_node;
    if (text == nullptr) DIST_TRY(variable("SLURM_STEP_TASKS_PER_NODE", &text));
    DIST_TRY(expand_tasks_per_node(text, &tasks));
  }
  return add_hosts(hosts, tasks, options.tasks_on_each_host);
}

// Where one list is longer its rest does not count; of a host that is there twice the later number does.
Status SlurmStep::add_hosts(std::span<std::pmr::string> hosts, std::span<const int32_t> tasks,
                            int32_t on_each) {
  const std::size_t n = on_each != 0 ? hosts.size() : std::min(hosts.size(), tasks.size());
  hosts_.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    hosts_.push_back({std::move(hosts[i]), on_each != 0 ? on_each : tasks[i], static_cast<uint32_t>(i)});
  }
  std::sort(hosts_.begin(), hosts_.end(), [](const HostTasks& a, const HostTasks& b) {
    const int order = a.host.compare(b.host);
    return order != 0 ? order < 0 : a.order > b.order;
  });
  hosts_.erase(std::unique(hosts_.begin(), hosts_.end(),
                           [](const HostTasks& a, const HostTasks& b) { return a.host == b.host; }),
               hosts_.end());
  if (hosts_.empty()) return invalid_argument("the Slurm step has no host");
  int64_t sum = 0;
  for (const HostTasks& one : hosts_) {
    most_tasks_ = std::max(most_tasks_, one.tasks);
    sum += one.tasks;
  }
  if (sum > DIST_MAX_CLUSTER_TASKS) {
    return invalid_argument("the Slurm step has more than %d tasks", DIST_MAX_CLUSTER_TASKS);
  }
  num_tasks_ = static_cast<int32_t>(sum);
  return kOk;
}

Status SlurmStep::share_gpus(const SlurmOptions& options) noexcept {
  const int32_t gpus = options.gpus_per_host;
  gpus_per_task_ = options.gpus_per_task;
  if (gpus_per_task_ == 0 && gpus > 0 && most_tasks_ > 0) {
    gpus_per_task_ = gpus / most_tasks_;
    if (gpus_per_task_ == 0) {
      return invalid_argument(
          "%d GPUs are too few for the %d tasks of a host: give gpus_per_host as 0, and "
          "they are not shared out",
          gpus, most_tasks_);
    }
  }
  if (int64_t{gpus_per_task_} * most_tasks_ > gpus) {
    return failed_precondition("%d tasks of a host ask for %d GPUs each, and the host has %d", most_tasks_,
                               gpus_per_task_, gpus);
  }
  return kOk;
}

Status SlurmStep::place(const SlurmOptions& options) {
  const int32_t port = options.port_base == 0 ? kDefaultPortBase : options.port_base;
  if (int64_t{port} + most_tasks_ - 1 > kLastPort) {
    return invalid_argument("ports begin at %d, and a host has %d tasks; the last port is %d", port,
                            most_tasks_, kLastPort);
  }
  std::pmr::vector<std::pmr::string> addresses(&memory_);
  addresses.reserve(static_cast<std::size_t>(num_tasks_));
  for (const HostTasks& one : hosts_) {
    for (int32_t i = 0; i < one.tasks; ++i) {
      char digits[16];
      std::snprintf(digits, sizeof digits, ":%d", port + i);
      addresses.emplace_back(one.host).append(digits);
    }
  }
  std::pmr::vector<SlurmJob> jobs(&memory_);
  if (!options.has_jobs) {
    int32_t num_tasks = options.num_tasks;
    if (num_tasks == 0) {
      const char* text = nullptr;
      DIST_TRY(variable("SLURM_STEP_NUM_TASKS", &text));
      DIST_TRY(int_of(text, "SLURM_STEP_NUM_TASKS", &num_tasks));
      DIST_TRY(at_least_0(num_tasks, "SLURM_STEP_NUM_TASKS"));
    }
    jobs.push_back({"worker", static_cast<std::size_t>(num_tasks)});
  }
  jobs.insert(jobs.end(), options.jobs.begin(), options.jobs.end());
  return place_jobs(jobs, addresses);
}

// The jobs, by name, get the tasks one after another.
Status SlurmStep::place_jobs(std::span<SlurmJob> jobs, std::span<const std::pmr::string> addresses) {
  std::sort(jobs.begin(), jobs.end(), [](const SlurmJob& a, const SlurmJob& b) { return a.name < b.name; });
  SpecBuilder builder(memory_);
  std::size_t first = 0;
  std::string_view own;
  for (const SlurmJob& job : jobs) {
    if (builder.resume_job(job.name)) {
      return invalid_argument("the jobs have \"%.*s\" twice", static_cast<int>(job.name.size()),
                              job.name.data());
    }
    DIST_TRY(builder.begin_job(job.name));
    if (job.num_tasks > addresses.size() - first) {
      return failed_precondition("the jobs ask for more tasks than the %d that the Slurm step has",
                                 num_tasks_);
    }
    for (std::size_t i = 0; i < job.num_tasks; ++i) {
      DIST_TRY(builder.add_task(static_cast<int32_t>(i), addresses[first + i]));
    }
    const int64_t offset = rank_ - static_cast<int64_t>(first);
    if (offset >= 0 && offset < static_cast<int64_t>(job.num_tasks)) {
      own = job.name;
      own_index_ = static_cast<int32_t>(offset);
    }
    first += job.num_tasks;
  }
  if (first != addresses.size()) {
    return failed_precondition("the jobs ask for %zu tasks, and the Slurm step has %d", first, num_tasks_);
  }
  DIST_TRY(builder.finish(&spec_));
  if (own_index_ == DIST_TASK_UNSET) return kOk;
  own_job_ = spec_->name(*spec_->find(own));
  place_gpus();
  return kOk;
}

void SlurmStep::place_gpus() noexcept {
  int32_t first = 0;
  for (const HostTasks& one : hosts_) {
    if (rank_ < first + one.tasks) {
      first_gpu_ = (rank_ - first) * gpus_per_task_;
      return;
    }
    first += one.tasks;
  }
}

}  // namespace dist
