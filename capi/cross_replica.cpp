// SPDX-License-Identifier: Apache-2.0
// cross_replica.h: reductions, broadcasts, gathers and updates from outside the replicas, and the
// cross-device operations that perform them.
#include <dist/tf.h>
#include <memory_resource>
#include <vector>

#include "capi/destinations.hpp"
#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "core/base/names.hpp"
#include "core/cross_replica/cross_device.hpp"
#include "core/cross_replica/gather.hpp"
#include "core/cross_replica/local_results.hpp"
#include "core/cross_replica/reduce.hpp"
#include "core/strategy/between_runs.hpp"
#include "core/strategy/destination_device.hpp"
#include "core/strategy/scope.hpp"
#include "core/strategy/update.hpp"

using namespace dist;
using namespace dist::capi;

dist_status dist_reduce(dist_strategy* strategy, dist_reduce_op op, dist_value* value, const int32_t* axes,
                        size_t num_axes, dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_reduce", "strategy"));
    DIST_TRY(require(value, "dist_reduce", "value"));
    DIST_TRY(require(out_value, "dist_reduce", "out_value"));
    DIST_TRY(check_list(axes, num_axes, "dist_reduce", "axes", "num_axes"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_reduce"));
    BetweenRuns turn;
    DIST_TRY(turn.begin_for(unwrap(value), unwrap(strategy), "dist_reduce"));
    ValueRef result;
    DIST_TRY(reduce(unwrap(strategy).cross_replica(), op, *unwrap(value), {axes, num_axes}, &result));
    *out_value = wrap(result.take());
    return kOk;
  });
}

dist_status dist_reduce_to(dist_strategy* strategy, dist_reduce_op op, dist_value* value,
                           const dist_destination* destination, const dist_communication_options* options,
                           dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_reduce_to", "strategy"));
    DIST_TRY(require(value, "dist_reduce_to", "value"));
    DIST_TRY(require(out_value, "dist_reduce_to", "out_value"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_reduce_to"));
    Communication communication;
    DIST_TRY(read_communication(options, &communication));
    BetweenRuns turn;
    DIST_TRY(turn.begin_for(unwrap(value), unwrap(strategy), "dist_reduce_to"));
    const WorkerLink::Overriding options_of_call(unwrap(strategy).workers(), communication);
    Value* const values[] = {unwrap(value)};
    const Destination wanted = destination_of(destination);
    ValueRef results[1];
    DIST_TRY(reduce_to(unwrap(strategy).cross_replica(), ReduceRules::kReduceTo, op, values, {&wanted, 1},
                       results));
    *out_value = wrap(results[0].take());
    return kOk;
  });
}

dist_status dist_batch_reduce_to(dist_strategy* strategy, dist_reduce_op op, dist_value* const* values,
                                 const dist_destination* destinations, size_t n,
                                 const dist_communication_options* options, dist_value** out_values) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_batch_reduce_to", "strategy"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_batch_reduce_to"));
    Communication communication;
    DIST_TRY(read_communication(options, &communication));
    const CrossReplica context = unwrap(strategy).cross_replica();
    Pairs pairs(*context.memory);
    DIST_TRY(pairs.read(values, destinations, n, out_values, "dist_batch_reduce_to"));
    BetweenRuns turn;
    for (const Value* value : pairs.values())
      DIST_TRY(turn.begin_for(value, unwrap(strategy), "dist_batch_reduce_to"));
    const WorkerLink::Overriding options_of_call(n != 0 ? unwrap(strategy).workers() : nullptr,
                                                 communication);
    std::pmr::vector<ValueRef> results(n, context.memory);
    DIST_TRY(reduce_to(context, ReduceRules::kBatch, op, pairs.values(), pairs.destinations(), results));
    for (size_t k = 0; k < n; ++k) out_values[k] = wrap(results[k].take());
    return kOk;
  });
}

dist_status dist_broadcast_to(dist_strategy* strategy, dist_value* value, const dist_destination* destination,
                              dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_broadcast_to", "strategy"));
    DIST_TRY(require(value, "dist_broadcast_to", "value"));
    DIST_TRY(require(out_value, "dist_broadcast_to", "out_value"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_broadcast_to"));
    BetweenRuns turn;
    DIST_TRY(turn.begin_for(unwrap(value), unwrap(strategy), "dist_broadcast_to"));
    ValueRef result;
    DIST_TRY(
        broadcast_to(unwrap(strategy).cross_replica(), *unwrap(value), destination_of(destination), &result));
    *out_value = wrap(result.take());
    return kOk;
  });
}

dist_status dist_gather(dist_strategy* strategy, dist_value* value, int32_t axis, dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_gather", "strategy"));
    DIST_TRY(require(value, "dist_gather", "value"));
    DIST_TRY(require(out_value, "dist_gather", "out_value"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_gather"));
    BetweenRuns turn;
    DIST_TRY(turn.begin_for(unwrap(value), unwrap(strategy), "dist_gather"));
    ValueRef result;
    DIST_TRY(gather(unwrap(strategy).cross_replica(), *unwrap(value), axis, &result));
    *out_value = wrap(result.take());
    return kOk;
  });
}

dist_status dist_destination_device(dist_strategy* strategy, const dist_destination* destination,
                                    char* out_name, size_t size_bytes) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_destination_device", "strategy"));
    DIST_TRY(require(destination, "dist_destination_device", "destination"));
    DIST_TRY(require(out_name, "dist_destination_device", "out_name"));
    DeviceName device;
    DIST_TRY(device_of(unwrap(strategy), destination_of(destination), &device));
    return write_text(device.c_str(), out_name, size_bytes, "dist_destination_device");
  });
}

namespace {

struct HostUpdate {
  dist_strategy* strategy;
  dist_update_fn function;
  void* user_data;
};

dist_status call_update(const UpdatePlace& place, Value* args, Value* kwargs, Value** out_result,
                        const void* context) {
  const auto& host = *static_cast<const HostUpdate*>(context);
  const dist_update_place given{sizeof given, number(place.replica), place.device, place.copy};
  dist_value* result = nullptr;
  const dist_status status = guarded("the update function", [&] {
    return host.function(host.strategy, &given, wrap(args), wrap(kwargs), &result, host.user_data);
  });
  *out_result = unwrap(result);
  return status;
}

// The common arguments of all three forms of an update.
struct GivenUpdate {
  dist_update_fn function;
  HostUpdate host;
  dist_value* args;
  dist_value* kwargs;
  const dist_update_options* options;
};

Status read_update(const GivenUpdate& given, const char* call, UpdateCall* out) noexcept {
  if (given.function == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", call);
  dist_update_options known;
  DIST_TRY(read_options(given.options, &known, "dist_update_options"));
  DIST_TRY(require_flag(known.ungrouped, "dist_update_options.ungrouped"));
  DIST_TRY(require_flag(known.parallel, "dist_update_options.parallel"));
  DIST_TRY(require_zero(known.reserved, "dist_update_options.reserved"));
  out->fn = {call_update, &given.host, reinterpret_cast<const void*>(given.function)};
  out->args = unwrap(given.args);
  out->kwargs = unwrap(given.kwargs);
  out->ungrouped = known.ungrouped != 0;
  out->parallel = known.parallel != 0;
  return kOk;
}

void give(ValueRef result, dist_value** out_result) noexcept {
  if (out_result != nullptr) *out_result = wrap(result.take());
}

}  // namespace

void dist_update_options_init(dist_update_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_update(dist_strategy* strategy, dist_variable* variable, dist_update_fn fn, void* user_data,
                        dist_value* args, dist_value* kwargs, const dist_update_options* options,
                        dist_value** out_result) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_update", "strategy"));
    DIST_TRY(require(variable, "dist_update", "variable"));
    const GivenUpdate given{fn, {strategy, fn, user_data}, args, kwargs, options};
    UpdateCall call;
    DIST_TRY(read_update(given, "dist_update", &call));
    call.variable = unwrap(variable);
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_update"));
    BetweenRuns turn;
    DIST_TRY(turn.begin(unwrap(strategy), "dist_update"));
    ValueRef result;
    DIST_TRY(update(unwrap(strategy), call, &result));
    give(std::move(result), out_result);
    return kOk;
  });
}

dist_status dist_update_non_slot(dist_strategy* strategy, dist_update_fn fn, void* user_data,
                                 dist_value* args, dist_value* kwargs, const dist_update_options* options,
                                 dist_value** out_result) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_update_non_slot", "strategy"));
    const GivenUpdate given{fn, {strategy, fn, user_data}, args, kwargs, options};
    UpdateCall call;
    DIST_TRY(read_update(given, "dist_update_non_slot", &call));
    if (call.parallel)
      return invalid_argument(
          "`dist_update_non_slot()`: `options->parallel` is set, but this call never runs its functions in "
          "parallel. Leave it unset.");
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_update_non_slot"));
    BetweenRuns turn;
    DIST_TRY(turn.begin(unwrap(strategy), "dist_update_non_slot"));
    ValueRef result;
    DIST_TRY(update(unwrap(strategy), call, &result));
    give(std::move(result), out_result);
    return kOk;
  });
}

dist_status dist_replica_update(dist_replica* replica, dist_variable* variable, dist_update_fn fn,
                                void* user_data, dist_value* args, dist_value* kwargs,
                                const dist_update_options* options, dist_value** out_result) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_replica_update", "replica"));
    DIST_TRY(require(variable, "dist_replica_update", "variable"));
    const GivenUpdate given{fn, {dist_replica_strategy(replica), fn, user_data}, args, kwargs, options};
    UpdateCall call;
    DIST_TRY(read_update(given, "dist_replica_update", &call));
    call.variable = unwrap(variable);
    Replica& self = unwrap(replica);
    DIST_TRY(self.check_whole("dist_replica_update"));
    ValueRef result;
    DIST_TRY(replica_update(self, strategy_of(self), call, &result));
    give(std::move(result), out_result);
    return kOk;
  });
}

dist_variable* dist_value_container(const dist_value* value) {
  return value == nullptr ? nullptr : wrap(unwrap(value)->container());
}

dist_status dist_strategy_local_results(dist_strategy* strategy, dist_value* value, dist_value** out_list) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_strategy_local_results", "strategy"));
    DIST_TRY(require(value, "dist_strategy_local_results", "value"));
    DIST_TRY(require(out_list, "dist_strategy_local_results", "out_list"));
    DIST_TRY(unwrap(strategy).check_process());
    ValueRef list;
    DIST_TRY(local_results(unwrap(strategy).cross_replica(), *unwrap(value), &list));
    *out_list = wrap(list.take());
    return kOk;
  });
}

namespace {

// "Everywhere" has no meaning without a strategy.
Status require_destination(const dist_destination* destination, const char* call) noexcept {
  if (destination != nullptr) return kOk;
  return invalid_argument("`%s()`: a value has no destination. Without a strategy, each value needs one.",
                          call);
}

Status read_functions(const dist_cross_device_options& given, HostFunctions* out) noexcept {
  if (given.functions == nullptr) return kOk;
  dist_cross_device_functions known;
  DIST_TRY(read_options(given.functions, &known, "dist_cross_device_functions"));
  DIST_TRY(require_zero(known.reserved, "dist_cross_device_functions.reserved"));
  *out = {known.reduce, known.broadcast, known.gather, given.functions_user_data};
  return kOk;
}

Status check(const dist_cross_device* cross_device, const char* call) noexcept {
  DIST_TRY(require(cross_device, call, "cross_device"));
  return unwrap(cross_device)->memory().forked() ? in_forked_child() : kOk;
}

}  // namespace

void dist_cross_device_functions_init(dist_cross_device_functions* functions, uint32_t struct_size_bytes) {
  init_options(functions, struct_size_bytes);
}

void dist_cross_device_options_init(dist_cross_device_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes, DIST_CROSS_DEVICE_OPTIONS_INIT);
}

dist_status dist_cross_device_create(const dist_cross_device_options* options,
                                     dist_cross_device** out_cross_device) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_cross_device, "dist_cross_device_create", "out_cross_device"));
    dist_cross_device_options given;
    DIST_TRY(read_options(options, &given, "dist_cross_device_options"));
    CrossDeviceOptions wanted;
    wanted.kind = or_default(given.kind, DIST_CROSS_DEVICE_DEFAULT);
    wanted.reduce_to_device = given.reduce_to_device;
    wanted.accumulate = given.accumulate;
    wanted.accumulate_user_data = given.accumulate_user_data;
    wanted.accumulate_element_bytes = given.accumulate_element_bytes;
    DIST_TRY(read_functions(given, &wanted.host));
    wanted.has_functions = given.functions != nullptr;
    Ref<Memory> memory;
    DIST_TRY(create_memory(given.allocator, "allocator", &memory));
    Ref<CrossDevice> made;
    DIST_TRY(CrossDevice::create(*memory, wanted, &made));
    *out_cross_device = wrap(made.take());
    return kOk;
  });
}

void dist_cross_device_destroy(dist_cross_device* cross_device) {
  // A forked child does not have its threads, so it stays unchanged.
  if (cross_device != nullptr && !unwrap(cross_device)->memory().forked()) unwrap(cross_device)->release();
}

dist_cross_device_kind dist_cross_device_kind_of(const dist_cross_device* cross_device) {
  return cross_device == nullptr ? dist_cross_device_kind{} : unwrap(cross_device)->kind();
}

const char* dist_cross_device_device(const dist_cross_device* cross_device) {
  return cross_device == nullptr ? nullptr : unwrap(cross_device)->reduce_to_device();
}

namespace {

Status reduce_alone(CrossDevice& self, dist_reduce_op op, const Pairs& pairs, dist_value** out_values) {
  std::pmr::vector<ValueRef> results(pairs.values().size(), &self.memory());
  const CrossReplica context = self.alone(replicas_of(pairs.values(), pairs.destinations()));
  DIST_TRY(reduce_to(context, ReduceRules::kAlone, op, pairs.values(), pairs.destinations(), results));
  for (size_t k = 0; k < results.size(); ++k) out_values[k] = wrap(results[k].take());
  return kOk;
}

}  // namespace

dist_status dist_cross_device_reduce(dist_cross_device* cross_device, dist_reduce_op op, dist_value* value,
                                     const dist_destination* destination, dist_value** out_value) {
  constexpr const char* kCall = "dist_cross_device_reduce";
  return guard([&]() -> Status {
    DIST_TRY(require(value, kCall, "value"));
    DIST_TRY(require(out_value, kCall, "out_value"));
    DIST_TRY(check(cross_device, kCall));
    DIST_TRY(require_destination(destination, kCall));
    Pairs pairs(unwrap(cross_device)->memory());
    DIST_TRY(pairs.read(&value, destination, 1, out_value, kCall));
    return reduce_alone(*unwrap(cross_device), op, pairs, out_value);
  });
}

dist_status dist_cross_device_batch_reduce(dist_cross_device* cross_device, dist_reduce_op op,
                                           dist_value* const* values, const dist_destination* destinations,
                                           size_t n, dist_value** out_values) {
  constexpr const char* kCall = "dist_cross_device_batch_reduce";
  return guard([&]() -> Status {
    DIST_TRY(check(cross_device, kCall));
    Pairs pairs(unwrap(cross_device)->memory());
    DIST_TRY(pairs.read(values, destinations, n, out_values, kCall));
    if (n != 0) DIST_TRY(require_destination(destinations, kCall));
    return reduce_alone(*unwrap(cross_device), op, pairs, out_values);
  });
}

dist_status dist_cross_device_broadcast(dist_cross_device* cross_device, dist_value* value,
                                        const dist_destination* destination, dist_value** out_value) {
  constexpr const char* kCall = "dist_cross_device_broadcast";
  return guard([&]() -> Status {
    DIST_TRY(check(cross_device, kCall));
    DIST_TRY(require(value, kCall, "value"));
    DIST_TRY(require(out_value, kCall, "out_value"));
    DIST_TRY(require_destination(destination, kCall));
    const Destination wanted = destination_of(destination);
    const CrossReplica context = unwrap(cross_device)->alone(replicas_of({}, {&wanted, 1}));
    ValueRef result;
    DIST_TRY(broadcast_to(context, *unwrap(value), wanted, &result));
    *out_value = wrap(result.take());
    return kOk;
  });
}

dist_status dist_cross_device_gather(dist_cross_device* cross_device, dist_value* value, int32_t axis,
                                     dist_value** out_value) {
  constexpr const char* kCall = "dist_cross_device_gather";
  return guard([&]() -> Status {
    DIST_TRY(check(cross_device, kCall));
    DIST_TRY(require(value, kCall, "value"));
    DIST_TRY(require(out_value, kCall, "out_value"));
    Value* const values[] = {unwrap(value)};
    ValueRef result;
    DIST_TRY(gather(unwrap(cross_device)->alone(replicas_of(values, {})), *values[0], axis, &result));
    *out_value = wrap(result.take());
    return kOk;
  });
}

dist_status dist_reduce_op_from_aggregation(dist_aggregation aggregation, dist_reduce_op* out_op) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_op, "dist_reduce_op_from_aggregation", "out_op"));
    return reduction_of(aggregation, out_op);
  });
}
