// SPDX-License-Identifier: Apache-2.0
#include "programs.hpp"

namespace golden {

dist_reduce_op op_of(std::string_view name) {
  dist_reduce_op op{};
  read_enum(DIST_ENUM_VALUE_REDUCTION, std::string(name).c_str(), &op);
  return op;
}

Value gather(dist_strategy* strategy, const Value& value, int32_t axis) {
  Value result;
  check(dist_gather(strategy, value.get(), axis, result.out()));
  return result;
}

Value values_from_function(dist_strategy* strategy, const ValueFn& fn) {
  const dist_value_fn call = [](dist_strategy*, const dist_value_context* context, dist_value** out_value,
                                void* user_data) {
    return guarded([&] { *out_value = (*static_cast<const ValueFn*>(user_data))(*context).release(); });
  };
  Value result;
  const dist_status status =
      dist_values_from_function(strategy, call, const_cast<ValueFn*>(&fn), result.out());
  rethrow_kept();
  check(status);
  return result;
}

Value reduce(dist_strategy* strategy, dist_reduce_op op, const Value& value) {
  Value result;
  check(dist_reduce(strategy, op, value.get(), nullptr, 0, result.out()));
  return result;
}

Value all_reduce(dist_replica* replica, dist_reduce_op op, const Value& value) {
  Value result;
  check(dist_all_reduce_value(replica, op, value.get(), nullptr, result.out()));
  return result;
}

Value all_gather(dist_replica* replica, const Value& value, int32_t axis) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.axis = axis;
  Value result;
  check(dist_all_gather_value(replica, value.get(), &options, result.out()));
  return result;
}

Variable float_variable(dist_strategy* strategy, float initial, dist_aggregation aggregation) {
  const dist_tensor tensor{&initial, DIST_F32, 0, nullptr, nullptr};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = aggregation;
  Variable variable;
  check(dist_variable_create(strategy, &tensor, &options, variable.out()));
  return variable;
}

Strategy one_device() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_ONE_DEVICE;
  Strategy strategy;
  check(dist_strategy_create(&options, strategy.out()));
  return strategy;
}

std::string_view context_class(const dist_replica* current, const dist_replica* own) {
  switch (dist_strategy_kind_of(dist_replica_strategy(current))) {
    case DIST_STRATEGY_MIRRORED:
    case DIST_STRATEGY_CENTRAL_STORAGE: return "_MirroredReplicaContext";
    case DIST_STRATEGY_ONE_DEVICE: return "_OneDeviceReplicaContext";
    default: return current == own ? "ReplicaContext" : "_DefaultReplicaContext";
  }
}

namespace {

std::string_view class_of(const dist_strategy* strategy) {
  switch (dist_strategy_kind_of(strategy)) {
    case DIST_STRATEGY_MIRRORED: return "MirroredStrategy";
    case DIST_STRATEGY_CENTRAL_STORAGE: return "CentralStorageStrategy";
    case DIST_STRATEGY_ONE_DEVICE: return "OneDeviceStrategy";
    default: return "_DefaultDistributionStrategy";
  }
}

}  // namespace

Json where(Replay& replay, const dist_replica* replica) {
  dist_replica* const current = dist_get_replica();
  const int32_t id = dist_replica_id(current);
  Members members(replay);
  members.add("has_strategy", dist_has_strategy() != 0)
      .add("get_strategy_class", class_of(dist_get_strategy()))
      .add("get_strategy_is_s", dist_get_strategy() == replay.strategy())
      .add("in_cross_replica_context", dist_in_cross_replica_context() != 0)
      .add("replica_context_is_none", current == nullptr);
  if (current == nullptr) {
    return members.add("replica_context_class", replay.null())
        .add("replica_id_in_sync_group", replay.null())
        .add("num_replicas_in_sync", replay.null())
        .take();
  }
  members.add("replica_context_class", context_class(current, replica))
      .add("num_replicas_in_sync", dist_replica_num_replicas(current));
  if (current != replica) return members.add("replica_id_in_sync_group", id).take();
  return members.add("replica_id_in_sync_group", replay.encode(replay.scalar("int32", id))).take();
}

void record_members(Replay& replay, const Json& object) {
  for (const auto& [name, value] : object.GetObject()) {
    replay.record(text_of(name), Json(value, replay.memory()));
  }
}

}  // namespace golden
