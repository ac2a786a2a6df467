// SPDX-License-Identifier: Apache-2.0
// cluster.h: cluster specs and the rules of a cluster.
#include "capi/cluster.hpp"

#include <algorithm>

#include "capi/options.hpp"
#include "core/cluster/rules.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// The common part of all functions that create a spec. `make` receives the memory.
template <class Make>
dist_status create(const char* call, const dist_cluster_spec_options* options, dist_cluster_spec** out,
                   Make&& make) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(out, call, "out_spec"));
        dist_cluster_spec_options given;
        DIST_TRY(read_options(options, &given, "dist_cluster_spec_options"));
        DIST_TRY(require_zero(given.reserved, "dist_cluster_spec_options.reserved"));
        Ref<Memory> memory;
        DIST_TRY(create_memory(given.allocator, "allocator", &memory));
        Ref<ClusterSpec> made;
        DIST_TRY(make(*memory, &made));
        *out = wrap(made.take());
        return kOk;
      },
      call);
}

Status build(Memory& memory, std::span<const dist_cluster_job> jobs, Ref<ClusterSpec>* out) {
  SpecBuilder builder(memory);
  for (const dist_cluster_job& job : jobs) {
    DIST_TRY(builder.begin_job(job.name));
    for (std::size_t i = 0; i < job.num_tasks; ++i) {
      DIST_TRY(require(job.addresses[i], "dist_cluster_spec_create", "an address of a job"));
      const int32_t index = job.task_indices == nullptr ? static_cast<int32_t>(i) : job.task_indices[i];
      DIST_TRY(builder.add_task(index, job.addresses[i]));
    }
  }
  return builder.finish(out);
}

Status find(const dist_cluster_spec* spec, const char* job, const void* out, const char* out_name,
            const char* call, const ClusterSpec::Job** found) noexcept {
  DIST_TRY(require(spec, call, "spec"));
  DIST_TRY(require(job, call, "job"));
  DIST_TRY(require(out, call, out_name));
  return unwrap(spec)->find(job, found);
}

// A rule with one result for a task.
template <class Answer, class Out, class Rule>
dist_status ask(const dist_cluster_spec* spec, Out* out, const char* out_name, const char* call,
                Rule&& rule) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(spec, call, "spec"));
        DIST_TRY(require(out, call, out_name));
        Answer answer{};
        DIST_TRY(rule(*unwrap(spec), &answer));
        *out = static_cast<Out>(answer);
        return kOk;
      },
      call);
}

// A rule whose result is a text.
template <class Rule>
dist_status ask_text(const dist_cluster_spec* spec, char* out, size_t size_bytes, const char* call,
                     Rule&& rule) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(spec, call, "spec"));
        DIST_TRY(require(out, call, "out_text"));
        const char* text = "";
        DIST_TRY(rule(*unwrap(spec), &text));
        return write_text(text, out, size_bytes, call);
      },
      call);
}

}  // namespace

Status dist::capi::check_jobs(const dist_cluster_job* jobs, std::size_t num_jobs, bool with_addresses,
                              const char* call) noexcept {
  DIST_TRY(check_list(jobs, num_jobs, call, "jobs", "num_jobs"));
  if (num_jobs > DIST_MAX_CLUSTER_JOBS) {
    return invalid_argument("`%s()`: `num_jobs` is %zu, but must be at most %d", call, num_jobs,
                            DIST_MAX_CLUSTER_JOBS);
  }
  for (std::size_t i = 0; i < num_jobs; ++i) {
    DIST_TRY(require(jobs[i].name, call, "the name of a job"));
    if (jobs[i].num_tasks > DIST_MAX_CLUSTER_TASKS) {
      return invalid_argument("`%s()`: a job has %zu tasks, but a cluster can have at most %d", call,
                              jobs[i].num_tasks, DIST_MAX_CLUSTER_TASKS);
    }
    if (with_addresses) {
      DIST_TRY(check_list(jobs[i].addresses, jobs[i].num_tasks, call, "addresses", "num_tasks"));
    }
  }
  return kOk;
}

void dist_cluster_spec_options_init(dist_cluster_spec_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_cluster_spec_from_json(const char* text, const dist_cluster_spec_options* options,
                                        dist_cluster_spec** out_spec) {
  constexpr const char* kCall = "dist_cluster_spec_from_json";
  return create(kCall, options, out_spec, [&](Memory& memory, Ref<ClusterSpec>* out) -> Status {
    DIST_TRY(require(text, kCall, "text"));
    return ClusterSpec::from_json(memory, text, out);
  });
}

dist_status dist_cluster_spec_create(const dist_cluster_job* jobs, size_t num_jobs,
                                     const dist_cluster_spec_options* options, dist_cluster_spec** out_spec) {
  constexpr const char* kCall = "dist_cluster_spec_create";
  return create(kCall, options, out_spec, [&](Memory& memory, Ref<ClusterSpec>* out) -> Status {
    DIST_TRY(check_jobs(jobs, num_jobs, true, kCall));
    return build(memory, {jobs, num_jobs}, out);
  });
}

dist_status dist_cluster_spec_union(const dist_cluster_spec* const* specs, size_t num_specs,
                                    const dist_cluster_spec_options* options, dist_cluster_spec** out_spec) {
  constexpr const char* kCall = "dist_cluster_spec_union";
  return create(kCall, options, out_spec, [&](Memory& memory, Ref<ClusterSpec>* out) -> Status {
    DIST_TRY(require(specs, kCall, "specs"));
    if (num_specs < 1 || num_specs > DIST_MAX_CLUSTER_MEMBERS) {
      return invalid_argument("`%s()`: `num_specs` is %zu, but must be 1 to %d", kCall, num_specs,
                              DIST_MAX_CLUSTER_MEMBERS);
    }
    const ClusterSpec* members[DIST_MAX_CLUSTER_MEMBERS];
    for (std::size_t i = 0; i < num_specs; ++i) {
      DIST_TRY(require(specs[i], kCall, "one of specs"));
      members[i] = unwrap(specs[i]);
    }
    return ClusterSpec::unite(memory, {members, num_specs}, out);
  });
}

void dist_cluster_spec_destroy(dist_cluster_spec* spec) {
  if (spec != nullptr) unwrap(spec)->release();
}

size_t dist_cluster_spec_num_jobs(const dist_cluster_spec* spec) {
  return spec == nullptr ? 0 : unwrap(spec)->jobs().size();
}

const char* dist_cluster_spec_job(const dist_cluster_spec* spec, size_t index) {
  if (index >= dist_cluster_spec_num_jobs(spec)) return nullptr;
  return unwrap(spec)->name(unwrap(spec)->jobs()[index]);
}

dist_status dist_cluster_spec_num_tasks(const dist_cluster_spec* spec, const char* job,
                                        int32_t* out_num_tasks) {
  return guard([&]() -> Status {
    const ClusterSpec::Job* found = nullptr;
    DIST_TRY(find(spec, job, out_num_tasks, "out_num_tasks", "dist_cluster_spec_num_tasks", &found));
    *out_num_tasks = static_cast<int32_t>(found->num_tasks);
    return kOk;
  });
}

dist_status dist_cluster_spec_task_indices(const dist_cluster_spec* spec, const char* job,
                                           int32_t* out_indices, size_t capacity, size_t* out_n) {
  constexpr const char* kCall = "dist_cluster_spec_task_indices";
  return guard([&]() -> Status {
    DIST_TRY(check_list(out_indices, capacity, kCall, "out_indices", "capacity"));
    const ClusterSpec::Job* found = nullptr;
    DIST_TRY(find(spec, job, out_n, "out_n", kCall, &found));
    const auto indices = unwrap(spec)->indices(*found);
    std::copy_n(indices.data(), std::min(indices.size(), capacity), out_indices);
    *out_n = indices.size();
    return kOk;
  });
}

dist_status dist_cluster_spec_task_address(const dist_cluster_spec* spec, const char* job, int32_t task,
                                           const char** out_address) {
  constexpr const char* kCall = "dist_cluster_spec_task_address";
  return guard([&]() -> Status {
    DIST_TRY(require(spec, kCall, "spec"));
    DIST_TRY(require(job, kCall, "job"));
    DIST_TRY(require(out_address, kCall, "out_address"));
    return unwrap(spec)->task_address(job, task, out_address);
  });
}

int32_t dist_cluster_spec_is_equal(const dist_cluster_spec* a, const dist_cluster_spec* b) {
  return a != nullptr && b != nullptr && *unwrap(a) == *unwrap(b) ? 1 : 0;
}

const char* dist_cluster_spec_json(const dist_cluster_spec* spec) {
  return spec == nullptr ? nullptr : unwrap(spec)->json();
}

dist_status dist_cluster_validate(const dist_cluster_spec* spec, const char* task_type, int32_t task_id) {
  return guard([&]() -> Status {
    DIST_TRY(require(spec, "dist_cluster_validate", "spec"));
    return validate(*unwrap(spec), task_type, task_id);
  });
}

dist_status dist_cluster_is_chief(const dist_cluster_spec* spec, const char* task_type, int32_t task_id,
                                  int32_t* out_is_chief) {
  return ask<bool>(
      spec, out_is_chief, "out_is_chief", "dist_cluster_is_chief",
      [&](const ClusterSpec& self, bool* out) { return is_chief(self, task_type, task_id, out); });
}

dist_status dist_cluster_collective_leader(const dist_cluster_spec* spec, const char* task_type,
                                           int32_t task_id, char* out_text, size_t size_bytes) {
  return ask_text(spec, out_text, size_bytes, "dist_cluster_collective_leader",
                  [&](const ClusterSpec& self, const char** out) {
                    return collective_leader(self, task_type, task_id, out);
                  });
}

dist_status dist_cluster_coordination_leader(const dist_cluster_spec* spec, char* out_text,
                                             size_t size_bytes) {
  return ask_text(spec, out_text, size_bytes, "dist_cluster_coordination_leader", coordination_leader);
}

dist_status dist_cluster_worker_count(const dist_cluster_spec* spec, const char* task_type,
                                      int32_t* out_num_workers) {
  return ask<int32_t>(
      spec, out_num_workers, "out_num_workers", "dist_cluster_worker_count",
      [&](const ClusterSpec& self, int32_t* out) { return worker_count(self, task_type, out); });
}

dist_status dist_cluster_id_in_cluster(const dist_cluster_spec* spec, const char* task_type, int32_t task_id,
                                       int32_t* out_id) {
  return ask<int32_t>(
      spec, out_id, "out_id", "dist_cluster_id_in_cluster",
      [&](const ClusterSpec& self, int32_t* out) { return id_in_cluster(self, task_type, task_id, out); });
}

dist_status dist_cluster_should_save_checkpoint(const dist_cluster_spec* spec, const char* task_type,
                                                int32_t task_id, int32_t* out_should) {
  return ask<bool>(
      spec, out_should, "out_should", "dist_cluster_should_save_checkpoint",
      [&](const ClusterSpec& self, bool* out) { return should_save(self, task_type, task_id, out); });
}

dist_status dist_cluster_should_save_summary(const dist_cluster_spec* spec, const char* task_type,
                                             int32_t task_id, int32_t* out_should) {
  return ask<bool>(
      spec, out_should, "out_should", "dist_cluster_should_save_summary",
      [&](const ClusterSpec& self, bool* out) { return should_save(self, task_type, task_id, out); });
}

dist_status dist_cluster_should_evaluate(const dist_cluster_spec* spec, const char* task_type,
                                         int32_t task_id, int32_t* out_should) {
  return ask<bool>(
      spec, out_should, "out_should", "dist_cluster_should_evaluate",
      [&](const ClusterSpec& self, bool* out) { return should_evaluate(self, task_type, task_id, out); });
}
