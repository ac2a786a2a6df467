// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/base/text.hpp"
#include "core/cluster/cluster_spec.hpp"

namespace dist {
namespace {

// Accepts one line of UTF-8 with fewer than `room` bytes. The text need not end with a NUL.
Status check_text(std::string_view text, std::size_t room, const char* what) noexcept {
  char ended[DIST_MAX_ADDRESS_BYTES];
  if (text.size() >= room) return invalid_argument("%s has more than %zu bytes", what, room - 1);
  if (text.find('\0') != std::string_view::npos) return invalid_argument("%s contains a NUL byte", what);
  std::memcpy(ended, text.data(), text.size());
  ended[text.size()] = '\0';
  return check_name(ended, what);
}

}  // namespace

Status check_address(std::string_view text, const char* what) noexcept {
  return check_text(text, DIST_MAX_ADDRESS_BYTES, what);
}

bool SpecBuilder::resume_job(std::string_view name) noexcept {
  for (NewJob& job : jobs_) {
    if (job.name == name) return job_ = &job, true;
  }
  return false;
}

Status SpecBuilder::begin_job(std::string_view name) {
  if (resume_job(name)) {
    num_tasks_ -= job_->tasks.size();
    job_->tasks.clear();
    return kOk;
  }
  DIST_TRY(check_text(name, DIST_MAX_JOB_NAME_BYTES, "the name of a job"));
  if (jobs_.size() == DIST_MAX_CLUSTER_JOBS) {
    return invalid_argument("the cluster has more than %d jobs", DIST_MAX_CLUSTER_JOBS);
  }
  jobs_.push_back({name, std::pmr::vector<Task>(&memory_)});
  job_ = &jobs_.back();
  return kOk;
}

Status SpecBuilder::add_task(int32_t index, std::string_view address) {
  if (num_tasks_ == DIST_MAX_CLUSTER_TASKS) {
    return invalid_argument("the cluster has more than %d tasks", DIST_MAX_CLUSTER_TASKS);
  }
  if (index == DIST_TASK_UNSET) {
    return invalid_argument("the index of a task of job \"%.*s\" is %d, which means that no task is set",
                            static_cast<int>(job_->name.size()), job_->name.data(), index);
  }
  job_->tasks.push_back({index, static_cast<uint32_t>(job_->tasks.size()), address});
  ++num_tasks_;
  return kOk;
}

void SpecBuilder::keep_latest(std::pmr::vector<Task>& tasks) {
  std::sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) {
    return a.index != b.index ? a.index < b.index : a.order > b.order;
  });
  tasks.erase(std::unique(tasks.begin(), tasks.end(),
                          [](const Task& a, const Task& b) { return a.index == b.index; }),
              tasks.end());
}

Status SpecBuilder::check(const NewJob& job, const Task& task) const noexcept {
  char what[DIST_MAX_JOB_NAME_BYTES + 64];
  std::snprintf(what, sizeof what, "the address of task %d of job \"%.*s\"", task.index,
                static_cast<int>(job.name.size()), job.name.data());
  if (task.address.data() == nullptr) return invalid_argument("%s is not a string", what);
  return check_address(task.address, what);
}

Status SpecBuilder::finish(Ref<ClusterSpec>* out) {
  const Ref<ClusterSpec> spec = make_counted<ClusterSpec>(memory_);
  std::size_t bytes = 0;
  for (NewJob& job : jobs_) {
    keep_latest(job.tasks);
    bytes += job.name.size() + 1;
    for (const Task& task : job.tasks) {
      DIST_TRY(check(job, task));
      bytes += task.address.size() + 1;
    }
  }
  spec->texts_.reserve(bytes);
  spec->jobs_.reserve(jobs_.size());
  const auto put = [&](std::string_view text) {
    const auto at = static_cast<uint32_t>(spec->texts_.size());
    spec->texts_.append(text).push_back('\0');
    return at;
  };
  for (const NewJob& job : jobs_) {
    spec->jobs_.push_back({put(job.name), static_cast<uint32_t>(spec->indices_.size()),
                           static_cast<uint32_t>(job.tasks.size())});
    for (const Task& task : job.tasks) {
      spec->indices_.push_back(task.index);
      spec->addresses_.push_back(put(task.address));
    }
  }
  spec->write_json();
  *out = spec;
  return kOk;
}

}  // namespace dist
