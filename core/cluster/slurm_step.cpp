// SPDX-License-Identifier: Apache-2.0
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>

#include "core/base/text.hpp"
#include "core/cluster/integers.hpp"
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
  return number >= 0 ? kOk : invalid_argument("`%s` is %d, but must be at least 0", name, number);
}

class Tasks : public CountText {
 public:
  explicit Tasks(std::size_t number) noexcept : CountText(static_cast<int64_t>(number), "task") {}
};

// Returns the option if it was given, otherwise the variable.
Status option_or_variable(const char* given, const char* option, const char* name, const char** source,
                          const char** out) noexcept {
  *source = given != nullptr ? option : name;
  if (given != nullptr) return *out = given, kOk;
  return variable(name, out);
}

bool same_word(std::string_view text, std::string_view word) noexcept {
  return text.size() == word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
}

Status read_plane_size(std::string_view text, const char* source, const char* value, int32_t* out) noexcept {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && stop == text.data() + text.size() && *out > 0) return kOk;
  return invalid_argument("%s is \"%s\", but the size of a plane must be a number of tasks, 1 to %d", source,
                          Shown(value).c_str(), std::numeric_limits<int32_t>::max());
}

// Reads from SLURM_DISTRIBUTION how many consecutive ranks a host gets before the next host gets some. Only
// its first word is about hosts, for example cyclic in "cyclic:block,NoPack"; the others are about the CPUs
// of a host. As in srun(1), "*" stands for block, which is the default, and no word before "Pack" or "NoPack"
// may be omitted.
Status read_plane(int32_t num_tasks, std::size_t num_hosts, const char* hosts_source, int32_t* out) noexcept {
  constexpr const char* kName = "SLURM_DISTRIBUTION";
  const char* const given = environment_text(kName);
  const std::string_view text = given == nullptr ? "" : given;
  const std::string_view word = text.substr(0, text.find_first_of(":,"));
  *out = std::max(num_tasks, 1);
  if (text.empty() || word == "*" || same_word(word, "block")) return kOk;
  if (same_word(word, "cyclic")) return *out = 1, kOk;
  constexpr std::string_view kPlane = "plane=";
  if (same_word(word.substr(0, kPlane.size()), kPlane)) {
    return read_plane_size(word.substr(kPlane.size()), kName, given, out);
  }
  if (same_word(word, "plane")) {
    constexpr const char* kSize = "SLURM_DIST_PLANESIZE";
    const char* const size = environment_text(kSize);
    if (size != nullptr) return read_plane_size(size, kSize, size, out);
    return failed_precondition("%s is \"%s\", but %s is not set. Set it to the size of a plane.", kName,
                               Shown(given).c_str(), kSize);
  }
  if (num_hosts == 1) return kOk;
  return failed_precondition(
      "%s is \"%s\", which does not tell libdist which ranks are on which of the %zu hosts of %s. Start the "
      "step "
      "with --distribution=block, cyclic or plane=N, or list the workers in TF_CONFIG.",
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
  DIST_TRY(
      option_or_variable(options.host_list, "`host_list`"_m, "SLURM_STEP_NODELIST", &hosts_source_, &text));
  std::pmr::vector<std::pmr::string> hosts(&memory_);
  DIST_TRY(expand_host_list(text, hosts_source_, &hosts));
  std::pmr::vector<int32_t> tasks(&memory_);
  tasks_source_ = "`tasks_on_each_host`"_m;
  if (options.tasks_on_each_host == 0) {
    DIST_TRY(option_or_variable(options.tasks_per_node, "`tasks_per_node`"_m, "SLURM_STEP_TASKS_PER_NODE",
                                &tasks_source_, &text));
    DIST_TRY(expand_tasks_per_node(text, tasks_source_, &tasks));
  }
  return add_hosts(hosts, tasks, options.tasks_on_each_host);
}

// TensorFlow stops at the end of the shorter list, and uses the later number for a repeated host. Both would
// omit tasks of the step, so such lists are rejected here.
Status SlurmStep::add_hosts(std::span<std::pmr::string> hosts, std::span<const int32_t> tasks,
                            int32_t on_each) {
  const std::size_t n = hosts.size();
  if (n == 0) return invalid_argument("%s lists no host", hosts_source_);
  if (on_each == 0 && tasks.size() != n) {
    return invalid_argument("%s has %s, and %s has %s, but both must be equally long", hosts_source_,
                            CountText(static_cast<int64_t>(n), "host").text, tasks_source_,
                            CountText(static_cast<int64_t>(tasks.size()), "number").text);
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
  return invalid_argument("%s has the host \"%s\" twice. List each host once.", hosts_source_,
                          Shown(twice->data()).c_str());
}

Status SlurmStep::count_tasks() noexcept {
  int64_t sum = 0;
  for (const HostTasks& one : hosts_) {
    most_tasks_ = std::max(most_tasks_, one.tasks);
    sum += one.tasks;
  }
  if (sum > DIST_MAX_CLUSTER_TASKS) {
    return invalid_argument("%s adds up to %lld tasks, but a cluster can have at most %d", tasks_source_,
                            static_cast<long long>(sum), DIST_MAX_CLUSTER_TASKS);
  }
  num_tasks_ = static_cast<int32_t>(sum);
  return kOk;
}

// Finds the place of every rank. In each round, each host in turn gets `plane` ranks, or all that remain for
// it.
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

// Slurm also sets each process's place, which reveals a distribution that is not known here. If the caller
// has chosen hosts or ranks, Slurm's place does not apply.
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
      "`%s` is %d, but with the distribution \"%s\" %s would be %d for rank %d, so libdist cannot tell which "
      "ranks are "
      "on which host. Set SLURM_DISTRIBUTION to the distribution of the step, or list the workers in "
      "TF_CONFIG.",
      name, number, Shown(given == nullptr ? "block" : given).c_str(), what, expected, rank_);
}

Status SlurmStep::share_gpus(const SlurmOptions& options) noexcept {
  const int32_t gpus = options.gpus_per_host;
  gpus_per_task_ = options.gpus_per_task;
  if (gpus_per_task_ == 0 && gpus > 0 && most_tasks_ > 0) {
    gpus_per_task_ = gpus / most_tasks_;
    if (gpus_per_task_ == 0) {
      return invalid_argument(
          "`gpus_per_host` is %d, but a host has up to %s, so not every task can have a GPU. Set "
          "`gpus_per_host` "
          "to 0 to "
          "distribute no GPUs.",
          gpus, Tasks(static_cast<std::size_t>(most_tasks_)).text);
    }
  }
  const int64_t needed = int64_t{gpus_per_task_} * most_tasks_;
  if (needed > gpus) {
    return failed_precondition(
        "`gpus_per_task` is %d and a host has up to %s, but `gpus_per_host` is %d. It must be at least %lld.",
        gpus_per_task_, Tasks(static_cast<std::size_t>(most_tasks_)).text, gpus,
        static_cast<long long>(needed));
  }
  return kOk;
}

Status SlurmStep::place(const SlurmOptions& options) {
  const int32_t port = options.port_base == 0 ? kDefaultPortBase : options.port_base;
  if (int64_t{port} + most_tasks_ - 1 > kLastPort) {
    return invalid_argument(
        "`port_base` is %d and a host has up to %s, but the last port is %d. Set a lower `port_base`.", port,
        Tasks(static_cast<std::size_t>(most_tasks_)).text, kLastPort);
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

// Checks that the number of tasks from `source` equals that of the hosts.
Status SlurmStep::check_sum(std::span<const SlurmJob> jobs, const char* source) const noexcept {
  std::size_t asked = 0;
  for (const SlurmJob& job : jobs) asked += job.num_tasks;
  const auto has = static_cast<std::size_t>(num_tasks_);
  if (asked == has) return kOk;
  return failed_precondition(
      "%s asks for %s, but %s and %s give the Slurm step %s. The numbers must be equal.", source,
      Tasks(asked).text, hosts_source_, tasks_source_, Tasks(has).text);
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
