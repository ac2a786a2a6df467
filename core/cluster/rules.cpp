// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/rules.hpp"

#include <algorithm>
#include <string_view>

#include "core/base/text.hpp"

namespace dist {
namespace {

constexpr std::string_view kChief = "chief", kWorker = "worker", kEvaluator = "evaluator", kPs = "ps";

bool is_known(std::string_view type) noexcept {
  return type == kChief || type == kWorker || type == kEvaluator || type == kPs;
}

bool is(const char* type, std::string_view which) noexcept { return type != nullptr && type == which; }

int32_t count(const ClusterSpec& spec, std::string_view job) noexcept {
  const ClusterSpec::Job* const found = spec.find(job);
  return found == nullptr ? 0 : static_cast<int32_t>(found->num_tasks);
}

bool has(const ClusterSpec& spec, std::string_view job) noexcept { return spec.find(job) != nullptr; }

Status at_most_one(const ClusterSpec& spec, std::string_view job) noexcept {
  if (count(spec, job) <= 1) return kOk;
  return invalid_argument("the cluster has %d tasks of job \"%.*s\", but at most one is allowed",
                          count(spec, job), static_cast<int>(job.size()), job.data());
}

Status no_such_type(const char* call, const char* type) noexcept {
  if (type == nullptr) return invalid_argument("there is no %s without a task type", call);
  return invalid_argument("there is no %s for a task of type \"%s\"", call, Shown(type).c_str());
}

}  // namespace

Status validate(const ClusterSpec& spec, const char* type, int32_t id) noexcept {
  for (const ClusterSpec::Job& job : spec.jobs()) {
    if (!is_known(spec.name(job))) {
      return invalid_argument("the cluster has a job \"%s\", but jobs must be chief, worker, ps or evaluator",
                              Shown(spec.name(job)).c_str());
    }
  }
  if (type != nullptr && !is_known(type)) {
    return invalid_argument("the task type is \"%s\", but must be chief, worker, ps or evaluator",
                            Shown(type).c_str());
  }
  if (type != nullptr && !has(spec, type) && type != kEvaluator) {
    return invalid_argument("the task type is \"%s\", but the cluster has no such job", type);
  }
  DIST_TRY(at_most_one(spec, kChief));
  DIST_TRY(at_most_one(spec, kEvaluator));
  if (type == nullptr || !has(spec, type)) return kOk;
  if (id == DIST_TASK_UNSET) return invalid_argument("the task of job \"%s\" has no id", type);
  const int32_t n = count(spec, type);
  if (n == 0 && id >= 0) return invalid_argument("the task id is %d, but job \"%s\" has no tasks", id, type);
  if (id >= n) {
    return invalid_argument("the task id is %d, but job \"%s\" has %s, with ids 0 to %d", id, type,
                            CountText(n, "task").text, n - 1);
  }
  return kOk;
}

Status is_chief(const ClusterSpec& spec, const char* type, int32_t id, bool* out) noexcept {
  DIST_TRY(validate(spec, type, id));
  *out = is(type, kChief) || is(type, kEvaluator) || (is(type, kWorker) && id == 0 && !has(spec, kChief));
  return kOk;
}

Status collective_leader(const ClusterSpec& spec, const char* type, int32_t id, const char** out) noexcept {
  *out = "";
  if (spec.jobs().empty()) return kOk;
  DIST_TRY(validate(spec, type, id));
  if (is(type, kEvaluator)) return kOk;
  if (has(spec, kChief)) return *out = "/job:chief/replica:0/task:0", kOk;
  if (has(spec, kWorker)) return *out = "/job:worker/replica:0/task:0", kOk;
  return invalid_argument("the cluster has neither a chief nor workers, so no task can lead its collectives");
}

Status coordination_leader(const ClusterSpec& spec, const char** out) noexcept {
  *out = "";
  if (spec.jobs().empty()) return kOk;
  if (has(spec, kPs)) return *out = "/job:ps/replica:0/task:0", kOk;
  if (has(spec, kChief)) return *out = "/job:chief/replica:0/task:0", kOk;
  if (has(spec, kWorker)) return *out = "/job:worker/replica:0/task:0", kOk;
  return invalid_argument(
      "the cluster has neither ps, chief nor workers, so no task can lead its coordination");
}

Status worker_count(const ClusterSpec& spec, const char* type, int32_t* out) noexcept {
  DIST_TRY(validate(spec, type, 0));
  if (is(type, kEvaluator)) {
    if (!has(spec, kEvaluator)) return invalid_argument("the cluster has no job \"evaluator\"");
    return *out = count(spec, kEvaluator), kOk;
  }
  if (!is(type, kChief) && !is(type, kWorker)) return no_such_type("number of workers", type);
  *out = count(spec, kChief) + count(spec, kWorker);
  return kOk;
}

Status id_in_cluster(const ClusterSpec& spec, const char* type, int32_t id, int32_t* out) noexcept {
  DIST_TRY(validate(spec, type, id));
  if (is(type, kChief)) return *out = 0, kOk;
  if (is(type, kWorker)) return *out = id + count(spec, kChief), kOk;
  if (!is(type, kEvaluator)) return no_such_type("id in the cluster", type);
  if (id == DIST_TASK_UNSET) return invalid_argument("the task of job \"evaluator\" has no id");
  return *out = id, kOk;
}

Status should_save(const ClusterSpec& spec, const char* type, int32_t id, bool* out) noexcept {
  if (spec.jobs().empty() && type == nullptr) return *out = true, kOk;
  return is_chief(spec, type, id, out);
}

Status should_evaluate(const ClusterSpec& spec, const char* type, int32_t id, bool* out) noexcept {
  DIST_TRY(should_save(spec, type, id, out));
  if (has(spec, kEvaluator)) *out = is(type, kEvaluator);
  return kOk;
}

}  // namespace dist
