// SPDX-License-Identifier: Apache-2.0
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "core/base/text.hpp"
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
  return failed_precondition(
      "%s is not set in the environment, so this process is not in a Slurm step. Set it as an option.", name);
}

Status at_least_0(int32_t number, const char* name) noexcept {
  return number >= 0 ? kOk : invalid_argument("%s is %d, but must be at least 0", name, number);
}

// The plural ending for messages: "1 task", "2 tasks".
const char* s_of(std::size_t number) noexcept { return number == 1 ? "" : "s"; }

// The option, or else the variable.
Status option_or_variable(const char* given, const char* option, const char* name, const char** source,
                          const char** out) noexcept {
  *source = given != nullptr ? option : name;
  if (given != nullptr) return *out = given, kOk;
  return variable(name, out);
}

bool same_word(std::string_view text, std::string_view word) noexcept {
  return text.size() == word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
}

Status read_plane_size(std::string_view text, const char* source, int32_t* out) noexcept {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && stop == text.data() + text.size() && *out > 0) return kOk;
  return invalid_argument("%s must have a number of tasks, at least 1, as the size of a plane", source);
}

// Reads from SLURM_DISTRIBUTION how many consecutive ranks a host gets before the next one gets some. Only its first
// word is about hosts, for example cyclic in "cyclic:block,NoPack"; the others are about the CPUs of a host.
Status read_plane(int32_t num_tasks, std::size_t num_hosts, const char* hosts_source, int32_t* out) noexcept {
  constexpr const char* kName = "SLURM_DISTRIBUTION";
  const char* const given = environment_text(kName);
  const std::string_view text = given == nullptr ? "" : given;
  const std::string_view word = text.substr(0, text.find_first_of(":,"));
  *out = std::max(num_tasks, 1);
  for (const char* const block : {"", "*", "block", "pack", "nopack"}) {
    if (same_word(word, block)) return kOk;
  }
  if (same_word(word, "cyclic")) return *out = 1, kOk;
  constexpr std::string_view kPlane = "plane=";
  if (same_word(word.substr(0, kPlane.size()), kPlane)) {
    return read_plane_size(word.substr(kPlane.size()), kName, out);
  }
  if (same_word(word, "plane")) {
    constexpr const char* kSize = "SLURM_DIST_PLANESIZE";
    const char* const size = environment_text(kSize);
    if (size != nullptr) return read_plane_size(size, kSize, out);
    return failed_precondition("%s is \"%s\", but %s is not set", kName, Shown(given).c_str(), kSize);
  }
  if (num_hosts == 1) return kOk;
  return failed_precondition(
      "%s is \"%s\", so libdist cannot tell which ranks are on which of the %zu hosts of %s. Start the step "
      "with "
      "--distribution=block, cyclic or plane=N, or list the workers in TF_CONFIG.",
      kName, Shown(given).c_str(), num_hosts, hosts_source);
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
  DIST_TRY(distribute());
  DIST_TRY(check_place(options));
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
  const char* text = nullptr;
  DIST_TRY(option_or_variable(options.host_list, "host_list", "SLURM_STEP_NODELIST", &hosts_source_, &text));
  std::pmr::vector<std::pmr::string> hosts(&memory_);
  DIST_TRY(expand_host_list(text, &hosts));
  std::pmr::vector<int32_t> tasks(&memory_);
  tasks_source_ = "tasks_on_each_host";
  if (options.tasks_on_each_host == 0) {
    DIST_TRY(option_or_variable(options.tasks_per_node, "tasks_per_node", "SLURM_STEP_TASKS_PER_NODE",
                                &tasks_source_, &text));
    DIST_TRY(expand_tasks_per_node(text, &tasks));
  }
  return add_hosts(hosts, tasks, options.tasks_on_each_host);
}

// TensorFlow stops at the end of the shorter list, and uses the later number for a repeated host. Both would
// leave out tasks of the step, so they are rejected here.
Status SlurmStep::add_hosts(std::span<std::pmr::string> hosts, std::span<const int32_t> tasks,
                            int32_t on_each) {
  const std::size_t n = hosts.size();
  if (n == 0) return invalid_argument("the Slurm step has no host: %s is a list of none", hosts_source_);
  if (on_each == 0 && tasks.size() != n) {
    return invalid_argument("%s has %zu host%s, and %s has %zu number%s, but both must be equally long",
                            hosts_source_, n, s_of(n), tasks_source_, tasks.size(), s_of(tasks.size()));
  }
  hosts_.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    hosts_.push_back({std::move(hosts[i]), on_each != 0 ? on_each : tasks[i]});
  }
  DIST_TRY(check_twice());
  return count_tasks();
}

Status SlurmStep::check_twice() const {
  std::pmr::vector<std::string_view> names(&memory_);
  names.reserve(hosts_.size());
  for (const HostTasks& one : hosts_) names.push_back(one.host);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return kOk;
  return invalid_argument("%s has the host \"%s\" twice; each host must be in it once", hosts_source_,
                          Shown(twice->data()).c_str());
}

Status SlurmStep::count_tasks() noexcept {
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

// Finds the place of every rank. In each round, each host in turn gets `plane` ranks, or as many as it has left.
Status SlurmStep::distribute() {
  int32_t plane = 0;
  DIST_TRY(read_plane(num_tasks_, hosts_.size(), hosts_source_, &plane));
  places_.reserve(static_cast<std::size_t>(num_tasks_));
  std::pmr::vector<Place> left(&memory_);  // the hosts that have ranks left, and the index of the next one
  left.reserve(hosts_.size());
  for (std::size_t i = 0; i < hosts_.size(); ++i) left.push_back({static_cast<int32_t>(i), 0});
  while (!left.empty()) {
    for (Place& next : left) {
      const int32_t tasks = hosts_[static_cast<std::size_t>(next.host)].tasks;
      const int32_t stop = next.index + std::min(plane, tasks - next.index);
      for (; next.index < stop; ++next.index) places_.push_back(next);
    }
    std::erase_if(left, [this](const Place& next) {
      return next.index == hosts_[static_cast<std::size_t>(next.host)].tasks;
    });
  }
  return kOk;
}

// Slurm also tells each process its place, which reveals a distribution that is not known here. Hosts and ranks that
// the caller chose have no such place.
Status SlurmStep::check_place(const SlurmOptions& options) const noexcept {
  if (options.rank != DIST_TASK_UNSET || options.host_list != nullptr) return kOk;
  if (rank_ < 0 || rank_ >= num_tasks_) return kOk;
  const Place& place = places_[static_cast<std::size_t>(rank_)];
  DIST_TRY(check_variable("SLURM_NODEID", "the index of its host", place.host));
  return check_variable("SLURM_LOCALID", "its index on the host", place.index);
}

Status SlurmStep::check_variable(const char* name, const char* what, int32_t expected) const noexcept {
  const char* const text = environment_text(name);
  if (text == nullptr) return kOk;
  int32_t number = 0;
  DIST_TRY(int_of(text, name, &number));
  if (number == expected) return kOk;
  const char* const given = environment_text("SLURM_DISTRIBUTION");
  return failed_precondition(
      "%s is %d, but with the distribution \"%s\" %s would be %d for rank %d. libdist cannot tell which "
      "ranks are on "
      "which host. Set SLURM_DISTRIBUTION to the distribution of the step, or list the workers in TF_CONFIG.",
      name, number, Shown(given == nullptr ? "block" : given).c_str(), what, expected, rank_);
}

Status SlurmStep::share_gpus(const SlurmOptions& options) noexcept {
  const int32_t gpus = options.gpus_per_host;
  gpus_per_task_ = options.gpus_per_task;
  if (gpus_per_task_ == 0 && gpus > 0 && most_tasks_ > 0) {
    gpus_per_task_ = gpus / most_tasks_;
    if (gpus_per_task_ == 0) {
      return invalid_argument(
          "%d GPU%s of a host cannot be shared out to its %d tasks: give gpus_per_host as 0, and none is",
          gpus, s_of(static_cast<std::size_t>(gpus)), most_tasks_);
    }
  }
  if (int64_t{gpus_per_task_} * most_tasks_ > gpus) {
    return failed_precondition(
        "gpus_per_task is %d, and a host has up to %d task%s; gpus_per_host is %d, which is too few",
        gpus_per_task_, most_tasks_, s_of(static_cast<std::size_t>(most_tasks_)), gpus);
  }
  return kOk;
}

Status SlurmStep::place(const SlurmOptions& options) {
  const int32_t port = options.port_base == 0 ? kDefaultPortBase : options.port_base;
  if (int64_t{port} + most_tasks_ - 1 > kLastPort) {
    return invalid_argument("ports begin at %d, and a host has %d task%s; the last port is %d", port,
                            most_tasks_, s_of(static_cast<std::size_t>(most_tasks_)), kLastPort);
  }
  std::pmr::vector<std::pmr::string> addresses(&memory_);
  addresses.reserve(static_cast<std::size_t>(num_tasks_));
  for (const Place& one : places_) {
    char digits[16];
    std::snprintf(digits, sizeof digits, ":%d", port + one.index);
    addresses.emplace_back(hosts_[static_cast<std::size_t>(one.host)].host).append(digits);
  }
  std::pmr::vector<SlurmJob> jobs(&memory_);
  const char* source = options.has_jobs ? "jobs" : "num_tasks";
  if (!options.has_jobs) {
    int32_t num_tasks = options.num_tasks;
    if (num_tasks == 0) {
      const char* text = nullptr;
      source = "SLURM_STEP_NUM_TASKS";
      DIST_TRY(variable(source, &text));
      DIST_TRY(int_of(text, source, &num_tasks));
      DIST_TRY(at_least_0(num_tasks, source));
    }
    jobs.push_back({"worker", static_cast<std::size_t>(num_tasks)});
  }
  jobs.insert(jobs.end(), options.jobs.begin(), options.jobs.end());
  DIST_TRY(check_sum(jobs, source));
  return place_jobs(jobs, addresses);
}

// The number of tasks from `source` must equal that of the hosts.
Status SlurmStep::check_sum(std::span<const SlurmJob> jobs, const char* source) const noexcept {
  std::size_t asked = 0;
  for (const SlurmJob& job : jobs) asked += job.num_tasks;
  const auto has = static_cast<std::size_t>(num_tasks_);
  if (asked == has) return kOk;
  return failed_precondition("%s asks for %zu task%s, and %s and %s give the Slurm step %zu task%s", source,
                             asked, s_of(asked), hosts_source_, tasks_source_, has, s_of(has));
}

// Assigns consecutive tasks to the jobs, sorted by name. check_sum() has verified the number of tasks.
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
  DIST_TRY(builder.finish(&spec_));
  if (own_index_ == DIST_TASK_UNSET) return kOk;
  own_job_ = spec_->name(*spec_->find(own));
  place_gpus();
  return kOk;
}

void SlurmStep::place_gpus() noexcept {
  first_gpu_ = places_[static_cast<std::size_t>(rank_)].index * gpus_per_task_;
}

}  // namespace dist
