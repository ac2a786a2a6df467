// SPDX-License-Identifier: Apache-2.0
// strategy.h: strategies.
#include "core/strategy/strategy.hpp"
#include "core/collective/call.hpp"

#include <span>

#include "capi/cluster.hpp"
#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "capi/topology.hpp"
#include "capi/workers.hpp"
#include "core/base/device_name.hpp"
#include "core/net/membership/rendezvous.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// The function table of a strategy defined by the host.
Status read_functions(const dist_strategy_options& options, HostStrategy* out) noexcept {
  if (options.functions == nullptr) return kOk;
  dist_strategy_functions known;
  DIST_TRY(read_options(options.functions, &known, "dist_strategy_functions"));
  DIST_TRY(require_zero(known.reserved, "dist_strategy_functions.reserved"));
  out->copy_of_replica = known.copy_of_replica;
  out->device_of_replica = known.device_of_replica;
  out->functions = {known.reduce, known.broadcast, known.gather, options.functions_user_data};
  out->user_data = options.functions_user_data;
  out->given = true;
  return kOk;
}

Status read_executor(const dist_executor* executor, Executor* out) noexcept {
  if (executor == nullptr) return kOk;
  dist_executor known;
  DIST_TRY(read_options(executor, &known, "dist_executor"));
  if (known.execute == nullptr) return invalid_argument("`dist_executor.execute` is `NULL`");
  constexpr int32_t kMost = 65535;
  if (known.num_threads < 1 || known.num_threads > kMost)
    return invalid_argument("`dist_executor.num_threads` is %d, but must be 1 to %d", known.num_threads,
                            kMost);
  *out = {known.execute, known.user_data, known.num_threads};
  return kOk;
}

Status read_cpu(const dist_cpu_options* options, StrategyOptions* out) noexcept {
  dist_cpu_options given;
  DIST_TRY(read_options(options, &given, "dist_cpu_options"));
  DIST_TRY(require_zero(given.reserved, "dist_cpu_options.reserved"));
  DIST_TRY(require_flag(given.move_host_threads, "move_host_threads"));
  DIST_TRY(check_list(given.cpus, given.num_cpus, "dist_strategy_create", "options->cpu->cpus",
                      "options->cpu->num_cpus"));
  out->placement = or_default(given.placement, DIST_PLACEMENT_FREE);
  out->cpus = {given.cpus, given.num_cpus};
  DIST_TRY(read_size(given.stack_size_bytes, "dist_cpu_options.stack_size_bytes", &out->stack_bytes));
  out->budget = unwrap(given.budget);
  out->move_host_threads = given.move_host_threads == 1;
  return kOk;
}

Status read_host(const dist_host_options* options, StrategyOptions* out) noexcept {
  dist_host_options given;
  DIST_TRY(read_options(options, &given, "dist_host_options"));
  DIST_TRY(require_flag(given.helper_threads, "helper_threads"));
  DIST_TRY(require_flag(given.late_destroys, "late_destroys"));
  out->helper_threads = given.helper_threads == 1;
  out->allocator = given.allocator;
  out->host = {given.log, given.log_user_data, given.clock, given.clock_user_data};
  out->recorded_events = given.recorded_events;
  out->late_destroys = given.late_destroys == 1;
  return read_executor(given.executor, &out->executor);
}

// The strategy copies the names of the axes.
Status read_mesh(const dist_mesh_options* options, std::span<MeshAxis> axes, MeshOptions* out) noexcept {
  dist_mesh_options given;
  DIST_TRY(read_options(options, &given, "dist_mesh_options"));
  DIST_TRY(check_list(given.axes, given.num_axes, "dist_strategy_create", "options->mesh->axes",
                      "options->mesh->num_axes"));
  if (given.num_axes > DIST_MAX_NDIM) {
    return invalid_argument("`num_axes` is %zu, but must be at most %d", given.num_axes, DIST_MAX_NDIM);
  }
  DIST_TRY(require_flag(given.use_spmd_partitioning, "use_spmd_partitioning"));
  for (std::size_t i = 0; i < given.num_axes; ++i) axes[i] = {given.axes[i].name, given.axes[i].size};
  out->assignment = const_cast<DeviceAssignment*>(unwrap(given.device_assignment));
  out->axes = axes.first(given.num_axes);
  out->spmd = given.use_spmd_partitioning == 1;
  return kOk;
}

Status read_worker(const dist_worker_options* options, StrategyOptions* out) noexcept {
  dist_worker_options given;
  DIST_TRY(read_options(options, &given, "dist_worker_options"));
  DIST_TRY(require_zero(given.reserved, "dist_worker_options.reserved"));
  DIST_TRY(check_list(given.replicas_of_workers, given.num_workers, "dist_strategy_create",
                      "options->worker->replicas_of_workers", "options->worker->num_workers"));
  out->transport = or_default(given.transport, DIST_TRANSPORT_AUTO);
  out->cluster_resolver = unwrap(given.cluster_resolver);
  out->network = unwrap(given.network);
  out->replicas_of_workers = {given.replicas_of_workers, given.num_workers};
  DIST_TRY(read_size(given.staging_bytes, "dist_worker_options.staging_bytes", &out->staging_bytes));
  out->reform = or_default(given.reform, DIST_REFORM_EXPLICIT);
  return kOk;
}

// If the environment has no TF_CONFIG, but the address of a rendezvous or a link module that knows the job,
// meets the other workers. `out` stays empty otherwise.
Status meet_workers(const StrategyOptions& options, Ref<ClusterResolver>* out) {
  if (options.kind != DIST_STRATEGY_MULTI_WORKER_MIRRORED || options.cluster_resolver != nullptr ||
      options.network != nullptr) {
    return kOk;
  }
  Ref<Memory> memory;
  DIST_TRY(create_memory(options.allocator, "allocator", &memory));
  bool meets = false;
  DIST_TRY(wants_to_meet(*memory, options.transport, &meets));
  if (!meets) return kOk;
  RendezvousOptions rendezvous;
  rendezvous.transport = options.transport;
  return create_rendezvous_resolver(*memory, rendezvous, {options.timeout_ns, nullptr}, {}, out);
}

}  // namespace

void dist_strategy_functions_init(dist_strategy_functions* functions, uint32_t struct_size_bytes) {
  init_options(functions, struct_size_bytes);
}

void dist_executor_init(dist_executor* executor, uint32_t struct_size_bytes) {
  init_options(executor, struct_size_bytes);
}

void dist_cpu_options_init(dist_cpu_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes, DIST_CPU_OPTIONS_INIT);
}

void dist_host_options_init(dist_host_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

void dist_mesh_options_init(dist_mesh_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

void dist_worker_options_init(dist_worker_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes, DIST_WORKER_OPTIONS_INIT);
}

void dist_strategy_options_init(dist_strategy_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes, DIST_STRATEGY_OPTIONS_INIT);
}

dist_status dist_strategy_create(const dist_strategy_options* options, dist_strategy** out_strategy) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_strategy, "dist_strategy_create", "out_strategy"));
    dist_strategy_options given;
    DIST_TRY(read_options(options, &given, "dist_strategy_options"));
    DIST_TRY(require_zero(given.reserved, "dist_strategy_options.reserved"));
    DIST_TRY(require_timeout(given.timeout_ns, "dist_strategy_options.timeout_ns"));
    DIST_TRY(check_list(given.devices, given.num_devices, "dist_strategy_create", "options->devices",
                        "options->num_devices"));
    StrategyOptions wanted;
    MeshAxis axes[DIST_MAX_NDIM];
    wanted.kind = or_default(given.kind, DIST_STRATEGY_MIRRORED);
    wanted.num_replicas = given.num_replicas;
    wanted.threads = or_default(given.threads, DIST_THREADS_CALLER);
    wanted.numerics = numerics_of(given.numerics, DIST_NUMERICS_ORDERED);
    wanted.timeout_ns = given.timeout_ns;
    DIST_TRY(read_size(given.async_bytes, "dist_strategy_options.async_bytes", &wanted.async_bytes));
    wanted.devices = {given.devices, given.num_devices};
    wanted.parameter_device = given.parameter_device;
    DIST_TRY(read_communication(given.communication, &wanted.communication));
    wanted.cross_device = unwrap(given.cross_device);
    DIST_TRY(read_functions(given, &wanted.functions));
    DIST_TRY(read_cpu(given.cpu, &wanted));
    DIST_TRY(read_host(given.host, &wanted));
    DIST_TRY(read_mesh(given.mesh, axes, &wanted.mesh));
    DIST_TRY(read_worker(given.worker, &wanted));
    Ref<ClusterResolver> met;
    DIST_TRY(meet_workers(wanted, &met));
    if (met) wanted.cluster_resolver = met.get();
    Strategy* strategy = nullptr;
    DIST_TRY(Strategy::create(wanted, &strategy));
    *out_strategy = wrap(strategy);
    return kOk;
  });
}

dist_status dist_strategy_destroy(dist_strategy* strategy) {
  return named(Strategy::destroy(reinterpret_cast<Strategy*>(strategy)), "dist_strategy_destroy");
}

dist_status dist_strategy_shutdown(dist_strategy* strategy, int64_t timeout_ns) {
  constexpr const char* kCall = "dist_strategy_shutdown";
  const Status valid = require_wait(timeout_ns, kCall);
  return named(valid.ok() ? Strategy::shut_down(reinterpret_cast<Strategy*>(strategy), timeout_ns) : valid,
               kCall);
}

int32_t dist_strategy_num_replicas(const dist_strategy* strategy) {
  return strategy == nullptr ? 0 : unwrap(strategy).replicas().global();
}

dist_strategy_kind dist_strategy_kind_of(const dist_strategy* strategy) {
  return strategy == nullptr ? dist_strategy_kind{} : unwrap(strategy).kind();
}

dist_status dist_strategy_device(const dist_strategy* strategy, int32_t replica_id, const char** out_name) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_strategy_device", "strategy"));
    DIST_TRY(require(out_name, "dist_strategy_device", "out_name"));
    return unwrap(strategy).device_of(GlobalReplica{replica_id}, out_name);
  });
}

dist_status dist_strategy_parameter_device(const dist_strategy* strategy, int32_t index,
                                           const char** out_name) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_strategy_parameter_device", "strategy"));
    DIST_TRY(require(out_name, "dist_strategy_parameter_device", "out_name"));
    return Devices::name(unwrap(strategy).devices().parameters(), index, "index", out_name);
  });
}

dist_status dist_canonical_device(const char* name, char* out_name, size_t size_bytes) {
  return guard([&]() -> Status {
    DIST_TRY(require(name, "dist_canonical_device", "name"));
    DIST_TRY(require(out_name, "dist_canonical_device", "out_name"));
    DeviceName device;
    DIST_TRY(DeviceName::parse(name, "name", &device));
    return write_text(device.c_str(), out_name, size_bytes, "dist_canonical_device");
  });
}

dist_status dist_strategy_query(const dist_strategy* strategy, dist_strategy_properties* out_properties) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_strategy_query", "strategy"));
    DIST_TRY(require(out_properties, "dist_strategy_query", "out_properties"));
    const Strategy& self = unwrap(strategy);
    dist_strategy_properties all = DIST_STRATEGY_PROPERTIES_INIT;
    all.kind = self.kind();
    all.num_replicas = self.replicas().global();
    all.num_parameter_devices = static_cast<int32_t>(self.devices().parameters().size());
    all.num_workers = self.worker().num_workers();
    all.in_multi_worker_mode = self.worker().job.is_set ? 1 : 0;
    all.use_merge_call = 1;
    all.between_graph = self.between_graph() ? 1 : 0;
    all.should_init = 1;
    all.should_checkpoint = all.should_save_summary = self.worker().is_chief ? 1 : 0;
    all.global_batch_size = 1;
    all.worker = self.worker().number();
    all.num_local_replicas = self.replicas().local();
    all.first_replica = number(self.replicas().first());
    const Membership::Change& change = self.membership().change();
    all.generation = static_cast<int32_t>(change.generation);
    all.num_joined = change.num_joined;
    all.num_left = change.num_left;
    all.max_contributions = static_cast<int32_t>(most_contributions(all.num_replicas));
    return write_struct(all, out_properties, "dist_strategy_properties");
  });
}

dist_status dist_strategy_cluster_resolver(const dist_strategy* strategy,
                                           dist_cluster_resolver** out_resolver) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_strategy_cluster_resolver", "strategy"));
    DIST_TRY(require(out_resolver, "dist_strategy_cluster_resolver", "out_resolver"));
    *out_resolver = wrap(unwrap(strategy).cluster_resolver());
    return kOk;
  });
}

dist_status dist_strategy_cancel(dist_strategy* strategy) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_strategy_cancel", "strategy"));
    DIST_TRY(unwrap(strategy).check_process());
    unwrap(strategy).cancel();
    return kOk;
  });
}
