// SPDX-License-Identifier: Apache-2.0
// coordinator.h: variables on parameter servers, and closures on workers.
#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <vector>

#include "capi/cluster.hpp"
#include "capi/coordinator.hpp"
#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "capi/remote_names.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// A coordinator and its strategy.
struct Handle final : Companion {
  Handle(Ref<Memory> in, Strategy& of, const dist_coordinator_options& options) noexcept
      : memory(std::move(in)),
        strategy(of),
        partitioner(options.partitioner),
        user_data(options.partitioner_user_data) {}

  const Ref<Memory> memory;
  Strategy& strategy;
  const dist_partition_fn partitioner;
  void* const user_data;
  Ref<Coordinator> coordinator;
};

Handle* handle_of(dist_coordinator* handle) noexcept { return reinterpret_cast<Handle*>(handle); }
Coordinator& unwrap(dist_coordinator* handle) noexcept { return *handle_of(handle)->coordinator; }
const Coordinator& unwrap(const dist_coordinator* handle) noexcept {
  return *reinterpret_cast<const Handle*>(handle)->coordinator;
}

dist_status call_partitioner(const dist_tensor* spec, int64_t* out_partitions, void* host) {
  const auto& handle = *static_cast<const Handle*>(host);
  return guarded("the partitioner",
                 [&] { return handle.partitioner(spec, out_partitions, handle.user_data); });
}

void free(Handle* handle) noexcept {
  const Ref<Memory> memory = handle->memory;
  handle->~Handle();
  memory->free(handle, sizeof *handle, alignof(Handle));
}

Status make(Strategy& strategy, const dist_coordinator_options& given, Handle** out) {
  DIST_TRY(require_timeout(given.timeout_ns, "dist_coordinator_options.timeout_ns"));
  int64_t max_message_bytes = 0;
  DIST_TRY(
      read_size(given.max_message_bytes, "dist_coordinator_options.max_message_bytes", &max_message_bytes));
  Ref<ClusterSpec> cluster;
  DIST_TRY(strategy.cluster_resolver()->spec(&cluster));
  Memory& memory = strategy.memory();
  auto* const handle = new (memory.allocate(sizeof(Handle), alignof(Handle)))
      Handle(Ref<Memory>::share(&memory), strategy, given);
  std::unique_ptr<Handle, void (*)(Handle*)> kept(handle, free);
  CoordinatorOptions options{
      given.max_queued,  given.closures_per_worker,
      given.max_losses,  given.timeout_ns != 0 ? given.timeout_ns : strategy.timeout_ns(),
      max_message_bytes, {}};
  if (given.partitioner != nullptr) options.partitioner = {call_partitioner, handle};
  DIST_TRY(Coordinator::create(memory, *cluster, options, &handle->coordinator));
  *out = kept.release();
  return kOk;
}

Status check_variable(const dist_coordinator* coordinator, const char* name, const char* call) noexcept {
  DIST_TRY(require(coordinator, call, "coordinator"));
  return require(name, call, "name");
}

// In a forked child, the coordinator is a copy of an arbitrary moment, and a lock may be held forever.
Status check_process(const dist_coordinator* coordinator) noexcept {
  if (!unwrap(coordinator).memory().forked()) return kOk;
  return failed_precondition(
      "this is a forked child of the coordinator's process. Create another one in the child.");
}

}  // namespace

Ref<Coordinator> dist::capi::coordinator_of(Strategy& strategy) {
  CompanionPlace& place = strategy.companion();
  const std::scoped_lock lock(place.mutex);
  if (place.companion == nullptr || place.holders == 0) return {};
  return static_cast<Handle*>(place.companion)->coordinator;
}

void dist_coordinator_options_init(dist_coordinator_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_coordinator_create(dist_strategy* strategy, const dist_coordinator_options* options,
                                    dist_coordinator** out_coordinator) {
  constexpr const char* kCall = "dist_coordinator_create";
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, kCall, "strategy"));
    DIST_TRY(require(out_coordinator, kCall, "out_coordinator"));
    Strategy& self = capi::unwrap(strategy);
    DIST_TRY(self.check_process());
    if (self.kind() != DIST_STRATEGY_PARAMETER_SERVER) {
      return invalid_argument(
          "`%s()`: the strategy is of kind %d. Create one of kind `DIST_STRATEGY_PARAMETER_SERVER`.", kCall,
          self.kind());
    }
    dist_coordinator_options given;
    DIST_TRY(read_options(options, &given, "dist_coordinator_options"));
    CompanionPlace& place = self.companion();
    const std::scoped_lock lock(place.mutex);
    auto* handle = static_cast<Handle*>(place.companion);
    if (handle != nullptr && place.holders == 0) {
      return failed_precondition("`%s()`: another thread is closing the strategy's coordinator. Wait for it.",
                                 kCall);
    }
    if (handle == nullptr) DIST_TRY(make(self, given, &handle));
    place.companion = handle;
    ++place.holders;
    *out_coordinator = reinterpret_cast<dist_coordinator*>(handle);
    return kOk;
  });
}

void dist_coordinator_destroy(dist_coordinator* coordinator) {
  if (coordinator == nullptr || handle_of(coordinator)->memory->forked()) return;
  Handle* const handle = handle_of(coordinator);
  CompanionPlace& place = handle->strategy.companion();
  {
    // No function gets it from here on. The strategy keeps it until it has ended.
    const std::scoped_lock lock(place.mutex);
    if (--place.holders > 0) return;
  }
  handle->coordinator->end();
  {
    // From here on the strategy may be destroyed.
    const std::scoped_lock lock(place.mutex);
    place.companion = nullptr;
  }
  free(handle);
}

// ---- Variables ----

void dist_ps_variable_options_init(dist_ps_variable_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_coordinator_create_variable(dist_coordinator* coordinator, const char* name,
                                             const dist_tensor* initial,
                                             const dist_ps_variable_options* options) {
  constexpr const char* kCall = "dist_coordinator_create_variable";
  return guard([&]() -> Status {
    DIST_TRY(check_variable(coordinator, name, kCall));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(initial, kCall, "initial"));
    dist_ps_variable_options given;
    DIST_TRY(read_options(options, &given, "dist_ps_variable_options"));
    RemoteVariableOptions variable;
    variable.max_staleness = given.max_staleness;
    variable.colocate_with = given.colocate_with;
    if (given.partitions != nullptr && given.num_partitions != 0) {
      DIST_TRY(check_list(given.partitions, given.num_partitions, kCall, "partitions", "num_partitions"));
      variable.partitions = {given.partitions, given.num_partitions};
    }
    return unwrap(coordinator).create_variable(name, *initial, variable);
  });
}

size_t dist_coordinator_num_variables(const dist_coordinator* coordinator) {
  return coordinator == nullptr ? 0 : unwrap(coordinator).num_variables();
}

const char* dist_coordinator_variable_name(const dist_coordinator* coordinator, size_t index) {
  if (coordinator == nullptr || index >= unwrap(coordinator).num_variables()) return "";
  return unwrap(coordinator).variable(index).name.c_str();
}

dist_status dist_coordinator_variable_spec(const dist_coordinator* coordinator, const char* name,
                                           dist_tensor* out_spec, int64_t* out_num_parts) {
  constexpr const char* kCall = "dist_coordinator_variable_spec";
  return guard([&]() -> Status {
    DIST_TRY(check_variable(coordinator, name, kCall));
    DIST_TRY(require(out_spec, kCall, "out_spec"));
    DIST_TRY(require(out_num_parts, kCall, "out_num_parts"));
    const RemoteVariable* variable = nullptr;
    DIST_TRY(unwrap(coordinator).find(name, &variable));
    *out_spec = variable->spec();
    *out_num_parts = static_cast<int64_t>(variable->parts.size());
    return kOk;
  });
}

dist_status dist_coordinator_variable_part(const dist_coordinator* coordinator, const char* name,
                                           int64_t part, const char** out_device, int64_t* out_begin,
                                           int64_t* out_rows) {
  constexpr const char* kCall = "dist_coordinator_variable_part";
  return guard([&]() -> Status {
    DIST_TRY(check_variable(coordinator, name, kCall));
    DIST_TRY(require(out_device, kCall, "out_device"));
    DIST_TRY(require(out_begin, kCall, "out_begin"));
    DIST_TRY(require(out_rows, kCall, "out_rows"));
    const RemoteVariable* variable = nullptr;
    DIST_TRY(unwrap(coordinator).find(name, &variable));
    if (part < 0 || part >= static_cast<int64_t>(variable->parts.size())) {
      return invalid_argument("`%s()`: `part` is %lld, but variable \"%s\" has parts 0 to %zu", kCall,
                              static_cast<long long>(part), variable->name.c_str(),
                              variable->parts.size() - 1);
    }
    const RemoteVariable::Part& found = variable->parts[static_cast<std::size_t>(part)];
    *out_device = unwrap(coordinator).device(found.ps);
    *out_begin = found.begin;
    *out_rows = found.rows;
    return kOk;
  });
}

dist_status dist_coordinator_read(dist_coordinator* coordinator, const char* const* names, size_t n,
                                  dist_value** out_values) {
  constexpr const char* kCall = "dist_coordinator_read";
  return guard([&]() -> Status {
    DIST_TRY(require(coordinator, kCall, "coordinator"));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(check_names(names, n, kCall));
    DIST_TRY(check_list(out_values, n, kCall, "out_values"));
    std::pmr::vector<ValueRef> values(n, &unwrap(coordinator).memory());
    DIST_TRY(unwrap(coordinator).read({names, n}, values));
    for (std::size_t i = 0; i < n; ++i) out_values[i] = wrap(values[i].take());
    return kOk;
  });
}

dist_status dist_coordinator_read_rows(dist_coordinator* coordinator, const char* name, dist_value* indices,
                                       dist_value** out_value) {
  constexpr const char* kCall = "dist_coordinator_read_rows";
  return guard([&]() -> Status {
    DIST_TRY(check_variable(coordinator, name, kCall));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(indices, kCall, "indices"));
    DIST_TRY(require(out_value, kCall, "out_value"));
    ValueRef value;
    DIST_TRY(unwrap(coordinator).rows(name, *capi::unwrap(indices), &value));
    *out_value = wrap(value.take());
    return kOk;
  });
}

dist_status dist_coordinator_assign(dist_coordinator* coordinator, const char* name, dist_assign_op how,
                                    dist_value* value) {
  constexpr const char* kCall = "dist_coordinator_assign";
  return guard([&]() -> Status {
    DIST_TRY(check_variable(coordinator, name, kCall));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(value, kCall, "value"));
    return unwrap(coordinator).assign(name, how, *capi::unwrap(value));
  });
}

dist_status dist_coordinator_scatter(dist_coordinator* coordinator, const char* name, dist_scatter_op how,
                                     dist_value* slices) {
  constexpr const char* kCall = "dist_coordinator_scatter";
  return guard([&]() -> Status {
    DIST_TRY(check_variable(coordinator, name, kCall));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(slices, kCall, "slices"));
    return unwrap(coordinator).scatter(name, how, *capi::unwrap(slices));
  });
}

dist_status dist_coordinator_update(dist_coordinator* coordinator, const char* function,
                                    const char* const* names, size_t n, dist_value* arguments) {
  constexpr const char* kCall = "dist_coordinator_update";
  return guard([&]() -> Status {
    DIST_TRY(require(coordinator, kCall, "coordinator"));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(function, kCall, "function"));
    DIST_TRY(check_names(names, n, kCall));
    return unwrap(coordinator).update(function, {names, n}, capi::unwrap(arguments));
  });
}

dist_status dist_coordinator_save(dist_coordinator* coordinator, const char* path) {
  return guard([&]() -> Status {
    DIST_TRY(require(coordinator, "dist_coordinator_save", "coordinator"));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(path, "dist_coordinator_save", "path"));
    return unwrap(coordinator).save(path);
  });
}

dist_status dist_coordinator_restore(dist_coordinator* coordinator, const char* path, int64_t* out_mark) {
  constexpr const char* kCall = "dist_coordinator_restore";
  return guard([&]() -> Status {
    DIST_TRY(require(coordinator, kCall, "coordinator"));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(path, kCall, "path"));
    DIST_TRY(require(out_mark, kCall, "out_mark"));
    DIST_TRY(unwrap(coordinator).restore(path));
    *out_mark = unwrap(coordinator).numbers().watermark;
    return kOk;
  });
}

// ---- Closures ----

void dist_schedule_options_init(dist_schedule_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_coordinator_schedule(dist_coordinator* coordinator, const char* function,
                                      dist_value* arguments, const dist_schedule_options* options,
                                      dist_remote_value** out_remote) {
  constexpr const char* kCall = "dist_coordinator_schedule";
  return guard([&]() -> Status {
    DIST_TRY(require(coordinator, kCall, "coordinator"));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(function, kCall, "function"));
    dist_schedule_options given;
    DIST_TRY(read_options(options, &given, "dist_schedule_options"));
    DIST_TRY(require_zero(given.reserved, "dist_schedule_options.reserved"));
    DIST_TRY(require_timeout(given.timeout_ns, "dist_schedule_options.timeout_ns"));
    Ref<RemoteValue> remote;
    DIST_TRY(unwrap(coordinator)
                 .schedule(function, capi::unwrap(arguments), given.timeout_ns, capi::unwrap(given.cancel),
                           &remote));
    if (out_remote != nullptr) *out_remote = reinterpret_cast<dist_remote_value*>(remote.take());
    return kOk;
  });
}

dist_status dist_coordinator_join(dist_coordinator* coordinator, int64_t timeout_ns, dist_cancel* cancel) {
  return guard([&]() -> Status {
    DIST_TRY(require(coordinator, "dist_coordinator_join", "coordinator"));
    DIST_TRY(require_wait(timeout_ns, "dist_coordinator_join"));
    const Coordinator::Use use(unwrap(coordinator));
    return unwrap(coordinator).join(timeout_ns, capi::unwrap(cancel));
  });
}

dist_status dist_coordinator_done(dist_coordinator* coordinator, int32_t* out_done) {
  return guard([&]() -> Status {
    DIST_TRY(require(coordinator, "dist_coordinator_done", "coordinator"));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(out_done, "dist_coordinator_done", "out_done"));
    bool done = false;
    DIST_TRY(unwrap(coordinator).done(&done));
    *out_done = done ? 1 : 0;
    return kOk;
  });
}

dist_status dist_coordinator_create_per_worker(dist_coordinator* coordinator, const char* name,
                                               const char* function, dist_value* arguments) {
  constexpr const char* kCall = "dist_coordinator_create_per_worker";
  return guard([&]() -> Status {
    DIST_TRY(check_variable(coordinator, name, kCall));
    const Coordinator::Use use(unwrap(coordinator));
    DIST_TRY(require(function, kCall, "function"));
    return unwrap(coordinator).create_per_worker(name, function, capi::unwrap(arguments));
  });
}

dist_status dist_coordinator_query(const dist_coordinator* coordinator, dist_coordinator_stats* out_stats) {
  return guard([&]() -> Status {
    DIST_TRY(require(coordinator, "dist_coordinator_query", "coordinator"));
    DIST_TRY(require(out_stats, "dist_coordinator_query", "out_stats"));
    DIST_TRY(check_process(coordinator));
    const CoordinatorNumbers now = unwrap(coordinator).numbers();
    const dist_coordinator_stats all = {sizeof all,     now.num_ps,        now.num_workers, now.workers_up,
                                        now.queued,     now.in_flight,     now.scheduled,   now.completed,
                                        now.failed,     now.cancelled,     now.losses,      now.watermark,
                                        now.bytes_sent, now.bytes_received};
    return write_struct(all, out_stats, "dist_coordinator_stats");
  });
}

dist_status dist_coordinator_write_trace(const dist_coordinator* coordinator, dist_text_fn fn,
                                         void* user_data) {
  constexpr const char* kCall = "dist_coordinator_write_trace";
  return guard([&]() -> Status {
    DIST_TRY(require(coordinator, kCall, "coordinator"));
    DIST_TRY(require(reinterpret_cast<const void*>(fn), kCall, "fn"));
    DIST_TRY(check_process(coordinator));
    return write_span_trace(unwrap(coordinator).trace(), fn, user_data);
  });
}
