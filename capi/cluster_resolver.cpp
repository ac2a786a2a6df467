// SPDX-License-Identifier: Apache-2.0
// cluster_resolver.h: resolvers.
#include <dist/experimental/rendezvous.h>
#include <algorithm>

#include "capi/cluster.hpp"
#include "capi/options.hpp"
#include "core/cluster/resolvers.hpp"
#include "core/net/membership/rendezvous.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// Reads and checks the options. The texts remain the host's.
Status read(const dist_cluster_resolver_options* options, ResolverOptions* out,
            dist_allocator* allocator) noexcept {
  dist_cluster_resolver_options given;
  DIST_TRY(read_options(options, &given, "dist_cluster_resolver_options"));
  DIST_TRY(require_flag(given.has_task_id, "dist_cluster_resolver_options.has_task_id"));
  out->task_type = given.task_type;
  if (given.has_task_id == 1) out->task_id = given.task_id;
  out->num_accelerators = given.num_accelerators;
  out->rpc_layer = given.rpc_layer;
  out->environment = given.environment;
  out->session_address = given.session_address;
  out->tf_config = given.tf_config;
  *allocator = given.allocator;
  return check(*out);
}

// The common part of all functions that create a resolver. `make` receives the memory and the options.
template <class Make>
dist_status create(const char* call, const dist_cluster_resolver_options* options,
                   dist_cluster_resolver** out, Make&& make) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(out, call, "out_resolver"));
        ResolverOptions wanted;
        dist_allocator allocator{};
        DIST_TRY(read(options, &wanted, &allocator));
        Ref<Memory> memory;
        DIST_TRY(create_memory(allocator, "allocator", &memory));
        Ref<ClusterResolver> made;
        DIST_TRY(make(*memory, wanted, &made));
        *out = wrap(made.take());
        return kOk;
      },
      call);
}

// `find` provides the requested text.
template <class Find>
dist_status ask_text(const dist_cluster_resolver* resolver, char* out_text, size_t size_bytes,
                     int32_t* out_is_set, const char* call, Find&& find) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(resolver, call, "resolver"));
        DIST_TRY(require(out_text, call, "out_text"));
        DIST_TRY(require(out_is_set, call, "out_is_set"));
        FoundText found;
        DIST_TRY(find(*unwrap(resolver), &found));
        DIST_TRY(write_text(found.text, out_text, size_bytes, call));
        *out_is_set = found.is_set ? 1 : 0;
        return kOk;
      },
      call);
}

}  // namespace

void dist_cluster_resolver_options_init(dist_cluster_resolver_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

void dist_slurm_options_init(dist_slurm_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

void dist_kubernetes_options_init(dist_kubernetes_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

void dist_rendezvous_options_init(dist_rendezvous_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

void dist_cluster_resolver_functions_init(dist_cluster_resolver_functions* functions,
                                          uint32_t struct_size_bytes) {
  init_options(functions, struct_size_bytes);
}

dist_status dist_cluster_resolver_create_simple(dist_cluster_spec* spec,
                                                const dist_cluster_resolver_options* options,
                                                dist_cluster_resolver** out_resolver) {
  constexpr const char* kCall = "dist_cluster_resolver_create_simple";
  return create(kCall, options, out_resolver,
                [&](Memory& memory, const ResolverOptions& wanted, Ref<ClusterResolver>* out) -> Status {
                  DIST_TRY(require(spec, kCall, "spec"));
                  return create_simple_resolver(memory, Ref<ClusterSpec>::share(unwrap(spec)), wanted, out);
                });
}

dist_status dist_cluster_resolver_create_tf_config(const dist_cluster_resolver_options* options,
                                                   dist_cluster_resolver** out_resolver) {
  return create("dist_cluster_resolver_create_tf_config", options, out_resolver, create_tf_config_resolver);
}

dist_status dist_cluster_resolver_create_slurm(const dist_slurm_options* slurm,
                                               const dist_cluster_resolver_options* options,
                                               dist_cluster_resolver** out_resolver) {
  constexpr const char* kCall = "dist_cluster_resolver_create_slurm";
  return create(kCall, options, out_resolver,
                [&](Memory& memory, const ResolverOptions& wanted, Ref<ClusterResolver>* out) -> Status {
                  dist_slurm_options given;
                  DIST_TRY(read_options(slurm, &given, "dist_slurm_options"));
                  DIST_TRY(require_flag(given.has_rank, "dist_slurm_options.has_rank"));
                  DIST_TRY(check_jobs(given.jobs, given.num_jobs, false, kCall));
                  SlurmJob jobs[DIST_MAX_CLUSTER_JOBS];
                  for (std::size_t i = 0; i < given.num_jobs; ++i) {
                    jobs[i] = {given.jobs[i].name, given.jobs[i].num_tasks};
                  }
                  SlurmOptions step;
                  if (given.has_rank == 1) step.rank = given.rank;
                  step.num_tasks = given.num_tasks;
                  step.host_list = given.host_list;
                  step.tasks_per_node = given.tasks_per_node;
                  step.tasks_on_each_host = given.tasks_on_each_host;
                  step.port_base = given.port_base;
                  step.gpus_per_host = given.gpus_per_host;
                  step.gpus_per_task = given.gpus_per_task;
                  step.has_jobs = given.jobs != nullptr;
                  step.jobs = {jobs, given.num_jobs};
                  return create_slurm_resolver(memory, step, wanted, out);
                });
}

dist_status dist_slurm_expand_host_list(const char* host_list, dist_text_fn fn, void* user_data) {
  constexpr const char* kCall = "dist_slurm_expand_host_list";
  return guard([&]() -> Status {
    DIST_TRY(require(host_list, kCall, "host_list"));
    if (fn == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", kCall);
    Ref<Memory> memory;
    DIST_TRY(create_memory({}, "allocator", &memory));
    std::pmr::vector<std::pmr::string> hosts(memory.get());
    DIST_TRY(expand_host_list(host_list, "`host_list`"_m, &hosts));
    for (const std::pmr::string& host : hosts) fn(host.data(), host.size(), user_data);
    return kOk;
  });
}

dist_status dist_slurm_expand_tasks_per_node(const char* tasks_per_node, int32_t* out_tasks, size_t capacity,
                                             size_t* out_n) {
  constexpr const char* kCall = "dist_slurm_expand_tasks_per_node";
  return guard([&]() -> Status {
    DIST_TRY(require(tasks_per_node, kCall, "tasks_per_node"));
    DIST_TRY(require(out_n, kCall, "out_n"));
    DIST_TRY(check_list(out_tasks, capacity, kCall, "out_tasks", "capacity"));
    Ref<Memory> memory;
    DIST_TRY(create_memory({}, "allocator", &memory));
    std::pmr::vector<int32_t> tasks(memory.get());
    DIST_TRY(expand_tasks_per_node(tasks_per_node, "`tasks_per_node`"_m, &tasks));
    std::copy_n(tasks.data(), std::min(tasks.size(), capacity), out_tasks);
    *out_n = tasks.size();
    return kOk;
  });
}

dist_status dist_cluster_resolver_create_kubernetes(const dist_kubernetes_options* kubernetes,
                                                    const dist_cluster_resolver_options* options,
                                                    dist_cluster_resolver** out_resolver) {
  return create("dist_cluster_resolver_create_kubernetes", options, out_resolver,
                [&](Memory& memory, const ResolverOptions& wanted, Ref<ClusterResolver>* out) -> Status {
                  dist_kubernetes_options given;
                  DIST_TRY(read_options(kubernetes, &given, "dist_kubernetes_options"));
                  DIST_TRY(require_flag(given.has_index, "dist_kubernetes_options.has_index"));
                  KubernetesOptions pods;
                  if (given.has_index == 1) pods.index = given.index;
                  pods.num_workers = given.num_workers;
                  pods.first_index = given.first_index;
                  pods.port = given.port;
                  pods.host_name = given.host_name;
                  pods.service = given.service;
                  pods.name_space = given.name_space;
                  pods.domain = given.domain;
                  return create_kubernetes_resolver(memory, pods, wanted, out);
                });
}

dist_status dist_cluster_resolver_create_rendezvous(const dist_rendezvous_options* rendezvous,
                                                    const dist_cluster_resolver_options* options,
                                                    dist_cluster_resolver** out_resolver) {
  return create("dist_cluster_resolver_create_rendezvous", options, out_resolver,
                [&](Memory& memory, const ResolverOptions& wanted, Ref<ClusterResolver>* out) -> Status {
                  dist_rendezvous_options given;
                  DIST_TRY(read_options(rendezvous, &given, "dist_rendezvous_options"));
                  DIST_TRY(require_flag(given.has_rank, "dist_rendezvous_options.has_rank"));
                  DIST_TRY(require_timeout(given.timeout_ns, "dist_rendezvous_options.timeout_ns"));
                  RendezvousOptions place;
                  if (given.has_rank == 1) place.rank = given.rank;
                  place.size = given.size;
                  place.address = given.address;
                  place.job_name = given.job_name;
                  return create_rendezvous_resolver(memory, place, {given.timeout_ns, unwrap(given.cancel)},
                                                    wanted, out);
                });
}

dist_status dist_cluster_resolver_create_union(dist_cluster_resolver* const* resolvers, size_t num_resolvers,
                                               const dist_cluster_resolver_options* options,
                                               dist_cluster_resolver** out_resolver) {
  constexpr const char* kCall = "dist_cluster_resolver_create_union";
  return create(kCall, options, out_resolver,
                [&](Memory& memory, const ResolverOptions& wanted, Ref<ClusterResolver>* out) -> Status {
                  DIST_TRY(check_list(resolvers, num_resolvers, kCall, "resolvers", "num_resolvers"));
                  // A handle is a pointer to its object.
                  const auto members = reinterpret_cast<ClusterResolver* const*>(resolvers);
                  return create_union_resolver(memory, {members, num_resolvers}, wanted, out);
                });
}

dist_status dist_cluster_resolver_create_host(const dist_cluster_resolver_functions* functions,
                                              void* user_data, const dist_cluster_resolver_options* options,
                                              dist_cluster_resolver** out_resolver) {
  constexpr const char* kCall = "dist_cluster_resolver_create_host";
  return create(kCall, options, out_resolver,
                [&](Memory& memory, const ResolverOptions& wanted, Ref<ClusterResolver>* out) -> Status {
                  DIST_TRY(require(functions, kCall, "functions"));
                  dist_cluster_resolver_functions known;
                  DIST_TRY(read_options(functions, &known, "dist_cluster_resolver_functions"));
                  DIST_TRY(require_zero(known.reserved, "dist_cluster_resolver_functions.reserved"));
                  const HostResolver host{
                      known.spec,        known.task_type, known.task_id,          known.rpc_layer,
                      known.environment, known.address,   known.num_accelerators, known.release,
                      user_data};
                  return create_host_resolver(memory, host, wanted, out);
                });
}

void dist_cluster_resolver_destroy(dist_cluster_resolver* resolver) {
  if (resolver != nullptr) unwrap(resolver)->release();
}

dist_status dist_cluster_resolver_spec(const dist_cluster_resolver* resolver, dist_cluster_spec** out_spec) {
  return guard([&]() -> Status {
    DIST_TRY(require(resolver, "dist_cluster_resolver_spec", "resolver"));
    DIST_TRY(require(out_spec, "dist_cluster_resolver_spec", "out_spec"));
    Ref<ClusterSpec> spec;
    DIST_TRY(unwrap(resolver)->spec(&spec));
    *out_spec = wrap(spec.take());
    return kOk;
  });
}

dist_status dist_cluster_resolver_task_type(const dist_cluster_resolver* resolver, char* out_text,
                                            size_t size_bytes, int32_t* out_is_set) {
  return ask_text(resolver, out_text, size_bytes, out_is_set, "dist_cluster_resolver_task_type",
                  [](const ClusterResolver& self, FoundText* out) { return self.task_type(out); });
}

dist_status dist_cluster_resolver_task_id(const dist_cluster_resolver* resolver, int32_t* out_task_id) {
  return guard([&]() -> Status {
    DIST_TRY(require(resolver, "dist_cluster_resolver_task_id", "resolver"));
    DIST_TRY(require(out_task_id, "dist_cluster_resolver_task_id", "out_task_id"));
    FoundNumber found;
    DIST_TRY(unwrap(resolver)->task_id(&found));
    *out_task_id = found.number;
    return kOk;
  });
}

dist_status dist_cluster_resolver_rpc_layer(const dist_cluster_resolver* resolver, char* out_text,
                                            size_t size_bytes, int32_t* out_is_set) {
  return ask_text(resolver, out_text, size_bytes, out_is_set, "dist_cluster_resolver_rpc_layer",
                  [](const ClusterResolver& self, FoundText* out) { return self.rpc_layer(out); });
}

dist_status dist_cluster_resolver_environment(const dist_cluster_resolver* resolver, char* out_text,
                                              size_t size_bytes, int32_t* out_is_set) {
  return ask_text(resolver, out_text, size_bytes, out_is_set, "dist_cluster_resolver_environment",
                  [](const ClusterResolver& self, FoundText* out) { return self.environment(out); });
}

dist_status dist_cluster_resolver_master(const dist_cluster_resolver* resolver, const char* task_type,
                                         int32_t task_id, const char* rpc_layer, char* out_text,
                                         size_t size_bytes) {
  int32_t is_set = 0;
  return ask_text(resolver, out_text, size_bytes, &is_set, "dist_cluster_resolver_master",
                  [&](const ClusterResolver& self, FoundText* out) {
                    return self.address({task_type, task_id, rpc_layer}, out);
                  });
}

dist_status dist_cluster_resolver_num_accelerators(const dist_cluster_resolver* resolver,
                                                   const char* task_type, int32_t task_id, int32_t* out_n) {
  return guard([&]() -> Status {
    DIST_TRY(require(resolver, "dist_cluster_resolver_num_accelerators", "resolver"));
    DIST_TRY(require(out_n, "dist_cluster_resolver_num_accelerators", "out_n"));
    FoundNumber found;
    DIST_TRY(unwrap(resolver)->num_accelerators({task_type, task_id, nullptr}, &found));
    *out_n = found.number;
    return kOk;
  });
}

dist_status dist_cluster_resolver_gpu_ids(const dist_cluster_resolver* resolver, char* out_text,
                                          size_t size_bytes) {
  int32_t is_set = 0;
  return ask_text(resolver, out_text, size_bytes, &is_set, "dist_cluster_resolver_gpu_ids",
                  [](const ClusterResolver& self, FoundText* out) { return self.gpu_ids(out); });
}

dist_status dist_cluster_explain(const dist_cluster_resolver* resolver, dist_text_fn fn, void* user_data) {
  constexpr const char* kCall = "dist_cluster_explain";
  return guard([&]() -> Status {
    DIST_TRY(require(resolver, kCall, "resolver"));
    if (fn == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", kCall);
    const std::pmr::string text = unwrap(resolver)->explain();
    fn(text.data(), text.size(), user_data);
    return kOk;
  });
}
