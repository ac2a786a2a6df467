// SPDX-License-Identifier: Apache-2.0
// cross_replica.h: updates of variables, and what a value consists of in this process.
#include "core/cross_device/update.hpp"

#include "capi/guard.hpp"
#include "core/cross_device/local_results.hpp"
#include "core/strategy/between_runs.hpp"
#include "core/strategy/update_values.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

struct HostUpdate {
  dist_update_fn function;
  void* user_data;
  const ReplicaPool* turn;  // of the caller; the function may be called on other threads
};

dist_status call_update(dist_tensor* copy, Value* args, const void* context) {
  const auto& host = *static_cast<const HostUpdate*>(context);
  const InTurnOf turn(host.turn);
  return host.function(copy, wrap(args), host.user_data);
}

struct HostUpdateValues {
  dist_update_values_fn function;
  void* user_data;
};

dist_status call_update_values(const UpdatePlace& place, Value* args, Value* kwargs, Value** out_result,
                               const void* context) {
  const auto& host = *static_cast<const HostUpdateValues*>(context);
  const dist_update_place given{sizeof given, place.replica, place.device, place.copy};
  dist_value* result = nullptr;
  const dist_status status = host.function(&given, wrap(args), wrap(kwargs), &result, host.user_data);
  *out_result = unwrap(result);
  return status;
}

// What all three forms of an update with values take.
struct GivenUpdate {
  dist_update_values_fn function;
  HostUpdateValues host;
  dist_value* args;
  dist_value* kwargs;
  const dist_update_options* options;
};

Status read_update(const GivenUpdate& given, const char* call, UpdateCall* out) noexcept {
  if (given.function == nullptr) return invalid_argument("%s(): fn is NULL", call);
  dist_update_options known;
  DIST_TRY(read_options(given.options, &known, "dist_update_options"));
  if (known.ungrouped != 0 && known.ungrouped != 1) {
    return invalid_argument("dist_update_options.ungrouped is %d; it is 0 or 1", known.ungrouped);
  }
  out->fn = {call_update_values, &given.host, reinterpret_cast<const void*>(given.function)};
  out->args = unwrap(given.args);
  out->kwargs = unwrap(given.kwargs);
  out->ungrouped = known.ungrouped != 0;
  return kOk;
}

void give(ValueRef result, dist_value** out_result) noexcept {
  if (out_result != nullptr) *out_result = wrap(result.take());
}

}  // namespace

dist_status dist_update(dist_strategy* strategy, dist_variable* variable, dist_update_fn fn, void* user_data,
                        dist_value* args) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_update", "strategy"));
    DIST_TRY(require(variable, "dist_update", "variable"));
    if (fn == nullptr) return invalid_argument("dist_update(): fn is NULL");
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_update"));
    BetweenRuns turn;
    DIST_TRY(turn.begin(unwrap(strategy), "dist_update"));
    const HostUpdate host{fn, user_data, current().turn};
    return update(unwrap(strategy).cross_replica(), *unwrap(variable), {call_update, &host}, unwrap(args));
  });
}

void dist_update_options_init(dist_update_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_update_values(dist_strategy* strategy, dist_variable* variable, dist_update_values_fn fn,
                               void* user_data, dist_value* args, dist_value* kwargs,
                               const dist_update_options* options, dist_value** out_result) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_update_values", "strategy"));
    DIST_TRY(require(variable, "dist_update_values", "variable"));
    const GivenUpdate given{fn, {fn, user_data}, args, kwargs, options};
    UpdateCall call;
    DIST_TRY(read_update(given, "dist_update_values", &call));
    call.variable = unwrap(variable);
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_update_values"));
    BetweenRuns turn;
    DIST_TRY(turn.begin(unwrap(strategy), "dist_update_values"));
    ValueRef result;
    DIST_TRY(update_values(unwrap(strategy), call, &result));
    give(std::move(result), out_result);
    return kOk;
  });
}

dist_status dist_update_non_slot(dist_strategy* strategy, dist_update_values_fn fn, void* user_data,
                                 dist_value* args, dist_value* kwargs, const dist_update_options* options,
                                 dist_value** out_result) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_update_non_slot", "strategy"));
    const GivenUpdate given{fn, {fn, user_data}, args, kwargs, options};
    UpdateCall call;
    DIST_TRY(read_update(given, "dist_update_non_slot", &call));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_update_non_slot"));
    BetweenRuns turn;
    DIST_TRY(turn.begin(unwrap(strategy), "dist_update_non_slot"));
    ValueRef result;
    DIST_TRY(update_values(unwrap(strategy), call, &result));
    give(std::move(result), out_result);
    return kOk;
  });
}

dist_status dist_replica_update(dist_replica* replica, dist_variable* variable, dist_update_values_fn fn,
                                void* user_data, dist_value* args, dist_value* kwargs,
                                const dist_update_options* options, dist_value** out_result) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_replica_update", "replica"));
    DIST_TRY(require(variable, "dist_replica_update", "variable"));
    const GivenUpdate given{fn, {fn, user_data}, args, kwargs, options};
    UpdateCall call;
    DIST_TRY(read_update(given, "dist_replica_update", &call));
    call.variable = unwrap(variable);
    Replica& self = unwrap(replica);
    DIST_TRY(self.check_whole("dist_replica_update"));
    ValueRef result;
    DIST_TRY(replica_update_values(self, *static_cast<Strategy*>(self.pool().owner()), call, &result));
    give(std::move(result), out_result);
    return kOk;
  });
}

dist_variable* dist_value_container(const dist_value* value) {
  if (value == nullptr) return nullptr;
  const Value& self = *unwrap(value);
  return wrap(self.variable() != nullptr ? self.variable() : self.copy_of());
}

dist_status dist_local_results(dist_strategy* strategy, dist_value* value, dist_value** out_list) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_local_results", "strategy"));
    DIST_TRY(require(value, "dist_local_results", "value"));
    DIST_TRY(require(out_list, "dist_local_results", "out_list"));
    DIST_TRY(unwrap(strategy).check_process());
    ValueRef list;
    DIST_TRY(local_results(unwrap(strategy).cross_replica(), *unwrap(value), &list));
    *out_list = wrap(list.take());
    return kOk;
  });
}
