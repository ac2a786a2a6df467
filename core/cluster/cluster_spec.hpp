// SPDX-License-Identifier: Apache-2.0
// ClusterSpec: the jobs of a cluster, their tasks, and the address of each task. SpecBuilder builds one step
// by step.
//
// Invariant: a spec is immutable. Every number and text in it has been checked against the limits.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/json.hpp"

namespace dist {

class ClusterSpec final : public Counted {
 public:
  struct Job {
    uint32_t name;  // offset of the name in texts_
    uint32_t first_task;
    uint32_t num_tasks;
  };

  // Parses the value of "cluster" in TF_CONFIG. `what` is the beginning of messages.
  static Status from_json(Memory& memory, const JsonTree& tree, const JsonTree::Value& value,
                          const char* what, Ref<ClusterSpec>* out);
  static Status from_json(Memory& memory, const char* text, Ref<ClusterSpec>* out);
  // Merges specs. The tasks of a job are renumbered consecutively if all specs have them as a list; otherwise
  // they keep their indices.
  static Status unite(Memory& memory, std::span<const ClusterSpec* const> specs, Ref<ClusterSpec>* out);

  std::span<const Job> jobs() const noexcept { return jobs_; }
  const char* name(const Job& job) const noexcept { return &texts_[job.name]; }
  // Returns NULL if there is no such job.
  const Job* find(std::string_view name) const noexcept;
  // The same, but fails with a message.
  Status find(const char* name, const Job** out) const noexcept;
  // The indices of the tasks of a job, in ascending order.
  std::span<const int32_t> indices(const Job& job) const noexcept {
    return {indices_.data() + job.first_task, job.num_tasks};
  }
  // The address of the k-th task of a job.
  const char* address(const Job& job, std::size_t k) const noexcept {
    return &texts_[addresses_[job.first_task + k]];
  }
  // Fails with INVALID_ARGUMENT if there is no such job or task, or if `job` is NULL.
  Status task_address(const char* job, int32_t task, const char** out) const noexcept;
  // Whether the tasks of the job are 0, 1, ...; it must have at least one.
  bool is_list(const Job& job) const noexcept;
  // The largest index + 1; 0 if the job has no tasks.
  int64_t list_size(const Job& job) const noexcept;
  const char* json() const noexcept { return json_.c_str(); }
  bool operator==(const ClusterSpec& other) const noexcept;

 private:
  friend class SpecBuilder;
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);
  explicit ClusterSpec(Memory& memory)
      : Counted(memory),
        texts_(&memory),
        jobs_(&memory),
        indices_(&memory),
        addresses_(&memory),
        json_(&memory) {}
  void write_json();

  std::pmr::string texts_;  // names and addresses, each NUL-terminated
  std::pmr::vector<Job> jobs_;
  std::pmr::vector<int32_t> indices_;     // of each task
  std::pmr::vector<uint32_t> addresses_;  // of each task: offset in texts_
  std::pmr::string json_;
};

// Refers to the texts that it receives until finish() has returned.
class SpecBuilder {
 public:
  explicit SpecBuilder(Memory& memory) : memory_(memory), jobs_(&memory) {}

  // The tasks that are added next belong to this job. If the job exists already, it keeps its position but
  // loses its tasks.
  Status begin_job(std::string_view name);
  // Continues with an existing job.
  bool resume_job(std::string_view name) noexcept;
  // If two tasks have the same index, the later one replaces the other. `address` without data represents a
  // value that is not a text. This is an error only if the task is not replaced.
  Status add_task(int32_t index, std::string_view address);
  Status finish(Ref<ClusterSpec>* out);

 private:
  struct Task {
    int32_t index;
    uint32_t order;
    std::string_view address;
  };
  struct NewJob {
    std::string_view name;
    std::pmr::vector<Task> tasks;
  };
  static void keep_latest(std::pmr::vector<Task>& tasks);
  Status check(const NewJob& job, const Task& task) const noexcept;

  Memory& memory_;
  std::pmr::vector<NewJob> jobs_;
  NewJob* job_ = nullptr;
  std::size_t num_tasks_ = 0;
};

// Checks the address of a task or another text of a resolver: one line of UTF-8 that is not too long.
Status check_address(std::string_view text, const char* what) noexcept;

}  // namespace dist
