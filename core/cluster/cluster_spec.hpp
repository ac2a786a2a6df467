// SPDX-License-Identifier: Apache-2.0
// ClusterSpec: jobs, their tasks, and where each task is. SpecBuilder makes one of parts that come one by one.
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
    uint32_t name;  // where it begins in the texts
    uint32_t first_task;
    uint32_t num_tasks;
  };

  // Of the value of "cluster" in TF_CONFIG. `what` begins messages.
  static Status from_json(Memory& memory, const JsonTree& tree, const JsonTree::Value& value,
                          const char* what, Ref<ClusterSpec>* out);
  static Status from_json(Memory& memory, const char* text, Ref<ClusterSpec>* out);
  // Tasks of a job follow one another where all specs have a list of them; else they keep their indices.
  static Status unite(Memory& memory, std::span<const ClusterSpec* const> specs, Ref<ClusterSpec>* out);

  std::span<const Job> jobs() const noexcept { return jobs_; }
  const char* name(const Job& job) const noexcept { return &texts_[job.name]; }
  // NULL: there is none.
  const Job* find(std::string_view name) const noexcept;
  // The same with a message.
  Status find(const char* name, const Job** out) const noexcept;
  // Ascending.
  std::span<const int32_t> indices(const Job& job) const noexcept {
    return {indices_.data() + job.first_task, job.num_tasks};
  }
  // Of the k-th task of a job.
  const char* address(const Job& job, std::size_t k) const noexcept {
    return &texts_[addresses_[job.first_task + k]];
  }
  // INVALID_ARGUMENT where there is no such job (NULL: no job was asked for), or no such task.
  Status task_address(const char* job, int32_t task, const char** out) const noexcept;
  // Whether its tasks are 0, 1, ... and at least one.
  bool is_list(const Job& job) const noexcept;
  // The largest index + 1; 0 without tasks.
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

  std::pmr::string texts_;  // of names and addresses, each with an end mark
  std::pmr::vector<Job> jobs_;
  std::pmr::vector<int32_t> indices_;     // of each task
  std::pmr::vector<uint32_t> addresses_;  // of each task: where it begins in the texts
  std::pmr::string json_;
};

// Texts that it is given are used until finish().
class SpecBuilder {
 public:
  explicit SpecBuilder(Memory& memory) : memory_(memory), jobs_(&memory) {}

  // Further tasks are of this job. One that comes again loses the tasks that it had, and keeps its place.
  Status begin_job(std::string_view name);
  // Goes on with a job that is there.
  bool resume_job(std::string_view name) noexcept;
  // Of two tasks of one index the later one counts. `address` without data: it is no text, which is an error
  // if it counts.
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

// OK for the address of a task, or another text of a resolver: one line of UTF-8 that is not too long.
Status check_address(std::string_view text, const char* what) noexcept;

}  // namespace dist
