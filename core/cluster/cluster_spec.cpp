// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/cluster_spec.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "core/base/json_out.hpp"
#include "core/base/text.hpp"
#include "core/cluster/integers.hpp"

namespace dist {
namespace {

using JsonWriter = rapidjson::Writer<JsonOut, rapidjson::UTF8<>, rapidjson::UTF8<>, JsonPool>;
constexpr std::size_t kDepth = 4;

Status add_tasks(const JsonTree& tree, const JsonTree::Value& tasks, SpecBuilder& builder) {
  int32_t index = 0;
  for (const JsonTree::Value* task = tree.first_of(tasks); task != nullptr; task = tree.next_of(*task)) {
    if (tasks.kind == JsonKind::kObject) DIST_TRY(int_of(task->key, "the index of a task", &index));
    DIST_TRY(builder.add_task(index, task->kind == JsonKind::kText ? task->text : std::string_view()));
    if (tasks.kind == JsonKind::kList) ++index;
  }
  return kOk;
}

// Whether a later member of the same object has the same name. The later one replaces this one.
bool comes_again(const JsonTree& tree, const JsonTree::Value& member) noexcept {
  for (const JsonTree::Value* one = tree.next_of(member); one != nullptr; one = tree.next_of(*one)) {
    if (one->key == member.key) return true;
  }
  return false;
}

}  // namespace

Status ClusterSpec::from_json(Memory& memory, const JsonTree& tree, const JsonTree::Value& value,
                              const char* what, Ref<ClusterSpec>* out) {
  if (value.kind != JsonKind::kObject) {
    return invalid_argument("%s is %s, but must be an object with a list of addresses for each job", what,
                            name_of(value.kind));
  }
  SpecBuilder builder(memory);
  for (const JsonTree::Value* job = tree.first_of(value); job != nullptr; job = tree.next_of(*job)) {
    DIST_TRY(builder.begin_job(job->key));
    if (comes_again(tree, *job)) continue;
    if (job->kind != JsonKind::kList && job->kind != JsonKind::kObject) {
      return invalid_argument(
          "%s has %s as the tasks of a job, but they must be a list, or an object with the indices as keys",
          what, name_of(job->kind));
    }
    DIST_TRY(add_tasks(tree, *job, builder));
  }
  return builder.finish(out);
}

Status ClusterSpec::from_json(Memory& memory, const char* text, Ref<ClusterSpec>* out) {
  JsonTree tree(&memory);
  DIST_TRY(tree.parse(text, "the cluster"));
  return from_json(memory, tree, tree.root(), "the cluster", out);
}

namespace {

// Whether the tasks of a job are renumbered in the union of `specs`. They are if the job is a list in the
// first spec that has it, and not an object in any later one.
bool unites_as_list(std::span<const ClusterSpec* const> specs, const char* name) noexcept {
  return std::all_of(specs.begin(), specs.end(), [&](const ClusterSpec* spec) {
    const ClusterSpec::Job* const job = spec->find(name);
    return job == nullptr || spec->is_list(*job);
  });
}

// The index of a task, and the spec that has it.
struct SeenTask {
  int32_t index;
  std::size_t spec;
  bool operator<(const SeenTask& other) const {
    return std::tie(index, spec) < std::tie(other.index, other.spec);
  }
};

// Adds all tasks of a job. None is discarded: two tasks with the same index are an error.
Status unite_job(std::span<const ClusterSpec* const> specs, const char* name, SpecBuilder& builder,
                 std::pmr::vector<SeenTask>& seen) {
  const bool as_list = unites_as_list(specs, name);
  int32_t next = 0;
  seen.clear();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const ClusterSpec* const spec = specs[i];
    const ClusterSpec::Job* const job = spec->find(name);
    if (job == nullptr) continue;
    for (std::size_t k = 0; k < job->num_tasks; ++k) {
      const int32_t index = as_list ? next++ : spec->indices(*job)[k];
      DIST_TRY(builder.add_task(index, spec->address(*job, k)));
      seen.push_back({index, i});
    }
  }
  std::sort(seen.begin(), seen.end());
  const auto twice = std::adjacent_find(
      seen.begin(), seen.end(), [](const SeenTask& a, const SeenTask& b) { return a.index == b.index; });
  if (twice != seen.end()) {
    return invalid_argument(
        "task %d of job \"%s\" is in specs %zu and %zu of the union, counted from 0. A task that keeps its "
        "index must be in only one of them.",
        twice->index, name, twice->spec, twice[1].spec);
  }
  return kOk;
}

}  // namespace

Status ClusterSpec::unite(Memory& memory, std::span<const ClusterSpec* const> specs, Ref<ClusterSpec>* out) {
  SpecBuilder builder(memory);
  std::pmr::vector<SeenTask> seen(&memory);
  for (const ClusterSpec* const spec : specs) {
    for (const Job& job : spec->jobs()) {
      if (builder.resume_job(spec->name(job))) continue;
      DIST_TRY(builder.begin_job(spec->name(job)));
      DIST_TRY(unite_job(specs, spec->name(job), builder, seen));
    }
  }
  return builder.finish(out);
}

const ClusterSpec::Job* ClusterSpec::find(std::string_view wanted) const noexcept {
  for (const Job& job : jobs_) {
    if (wanted == name(job)) return &job;
  }
  return nullptr;
}

Status ClusterSpec::find(const char* name, const Job** out) const noexcept {
  *out = name == nullptr ? nullptr : find(std::string_view(name));
  if (*out != nullptr) return kOk;
  if (name == nullptr) return invalid_argument("no job was given, and the task of this process is not known");
  return invalid_argument("the cluster has no job \"%s\"", Shown(name).c_str());
}

Status ClusterSpec::task_address(const char* name, int32_t task, const char** out) const noexcept {
  const Job* job = nullptr;
  DIST_TRY(find(name, &job));
  if (task == DIST_TASK_UNSET)
    return invalid_argument("the index of a task of job \"%s\" is missing", Shown(name).c_str());
  const auto known = indices(*job);
  const auto at = std::lower_bound(known.begin(), known.end(), task);
  if (at == known.end() || *at != task) {
    return invalid_argument("job \"%s\" has no task %d", Shown(name).c_str(), task);
  }
  *out = address(*job, static_cast<std::size_t>(at - known.begin()));
  return kOk;
}

int64_t ClusterSpec::list_size(const Job& job) const noexcept {
  return job.num_tasks == 0 ? 0 : int64_t{indices(job).back()} + 1;
}

bool ClusterSpec::is_list(const Job& job) const noexcept {
  return job.num_tasks > 0 && indices(job).front() == 0 && list_size(job) == job.num_tasks;
}

bool ClusterSpec::operator==(const ClusterSpec& other) const noexcept {
  if (jobs_.size() != other.jobs_.size()) return false;
  return std::all_of(jobs_.begin(), jobs_.end(), [&](const Job& job) {
    const Job* const same = other.find(name(job));
    if (same == nullptr || !std::ranges::equal(indices(job), other.indices(*same))) return false;
    for (std::size_t k = 0; k < job.num_tasks; ++k) {
      if (std::string_view(address(job, k)) != other.address(*same, k)) return false;
    }
    return true;
  });
}

void ClusterSpec::write_json() {
  char buffer[1024];
  JsonPool pool(buffer, sizeof buffer);
  JsonOut out(json_);
  JsonWriter json(out, &pool, kDepth);
  json.StartObject();
  for (const Job& job : jobs_) {
    const bool as_list = is_list(job);
    json.Key(name(job));
    as_list ? json.StartArray() : json.StartObject();
    for (std::size_t k = 0; k < job.num_tasks; ++k) {
      if (!as_list) {
        char index[16];
        *std::to_chars(index, index + sizeof index - 1, indices(job)[k]).ptr = '\0';
        json.Key(index);
      }
      json.String(address(job, k));
    }
    as_list ? json.EndArray() : json.EndObject();
  }
  json.EndObject();
}

}  // namespace dist
