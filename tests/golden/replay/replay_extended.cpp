// SPDX-License-Identifier: Apache-2.0
// Area "extended": strategy.extended's reductions and broadcasts to a destination, its properties, and the
// documented example. Updates are in replay_update.cpp.
#include <dist/tf.h>
#include <array>
#include <deque>
#include <utility>

#include "extended.hpp"

namespace golden {
namespace {

// ReduceOp(text.upper())
dist_reduce_op op_of(const Replay& replay) {
  dist_reduce_op op{};
  read_enum(DIST_ENUM_VALUE_REDUCTION, std::string(replay.text("op")).c_str(), &op);
  return op;
}

// The destination of a result, and the objects that it refers to.
class Place {
 public:
  // `json` is "variable", "value" (one like `components`), "none", a device, or a list of devices.
  Place(Replay& replay, const Json& json, const Json& components) {
    if (json.IsArray()) {
      std::vector<Value> devices;
      for (const Json& device : json.GetArray()) devices.push_back(replay.string(text_of(device)));
      value_ = replay.list(devices);
      destination_.value = value_.get();
      return;
    }
    text_ = text_of(json);
    if (text_ == "variable") {
      variable_ = variable_of(replay, {0, 0});
      destination_.variable = variable_.get();
    } else if (text_ == "value") {
      value_ = replay.per_replica(components);
      destination_.value = value_.get();
    } else if (text_ != "none") {
      destination_.device = text_.c_str();
    }
  }
  const dist_destination& get() const noexcept { return destination_; }

 private:
  std::string text_;
  Variable variable_;
  Value value_;
  dist_destination destination_{};
};

// Returns the components of a case, or an empty array if the case reduces one value for all replicas.
const Json& components_of(const Replay& replay) {
  static const Json none(rapidjson::kArrayType);
  return replay.has("per_replica") ? replay.input("per_replica") : none;
}

Value reduce_to(Replay& replay, const Value& value, const dist_destination& destination) {
  Value result;
  check(dist_reduce_to(replay.strategy(), op_of(replay), value.get(), &destination, nullptr, result.out()));
  return result;
}

// Turns "/job:localhost/.../device:CPU:1" into "device:CPU:1".
std::string last_part(std::string_view device) { return std::string(device.substr(device.rfind('/') + 1)); }

std::string device_of(Replay& replay, const dist_destination& destination) {
  std::array<char, 128> name{};
  check(dist_destination_device(replay.strategy(), &destination, name.data(), name.size()));
  return last_part(name.data());
}

void replay_reduce_to(Replay& replay) {
  const dist_reduce_op op = op_of(replay);  // checked first, as in TensorFlow
  if (replay.topic(1) == "in_replica_context") {
    replay.record("result", run(replay.strategy(), [&](dist_replica*, dist_value*, dist_value*) {
                    Value result;
                    const dist_destination place{nullptr, nullptr, "CPU:0"};
                    check(dist_reduce_to(replay.strategy(), op, replay.scalar("float32", 1).get(), &place,
                                         nullptr, result.out()));
                    return result;
                  }));
    return;
  }
  const Json variable("variable");
  const Json& where = replay.has("destinations") ? replay.input("destinations") : variable;
  const Place place(replay, where, components_of(replay));
  Value value;
  if (replay.topic(1) == "mirrored_value") {
    // Reduced to the variable first, so that the value is mirrored on the variable's devices.
    const Value summand = replay.tensor("float32", {2}, {1, 2});
    const std::vector<Value> components(static_cast<std::size_t>(replay.num_replicas()), summand);
    check(dist_reduce_to(replay.strategy(), DIST_REDUCE_SUM, replay.distributed(components).get(),
                         &place.get(), nullptr, value.out()));
  } else {
    value = replay.has("value") ? replay.decode(replay.input("value"))
                                : replay.per_replica(components_of(replay));
  }
  replay.record("result", reduce_to(replay, value, place.get()));
  if (replay.topic(1) == "last_device" || replay.topic(1) == "device_out_of_strategy") {
    replay.record("result_device", replay.json(device_of(replay, place.get())));
  }
}

void batch_in_replica_context(Replay& replay) {
  replay.record("result", run(replay.strategy(), [&](dist_replica*, dist_value*, dist_value*) {
                  const Value value = replay.scalar("float32", 1);
                  dist_value* const values[] = {value.get()};
                  const dist_destination place{nullptr, nullptr, "CPU:0"};
                  Value result;
                  check(dist_batch_reduce_to(replay.strategy(), op_of(replay), values, &place, 1, nullptr,
                                             result.out()));
                  return result;
                }));
}

void replay_batch_reduce_to(Replay& replay) {
  if (replay.topic(1) == "in_replica_context") return batch_in_replica_context(replay);
  if (replay.input("pairs").IsString()) {
    if (replay.text("pairs") != "a generator, not a list") replay.unknown("pairs");
    return;  // a C function cannot take a generator
  }
  const dist_reduce_op op = op_of(replay);
  const auto& pairs = replay.input("pairs").GetArray();
  std::vector<Value> values;
  std::deque<Place> places;
  std::vector<dist_destination> destinations;
  std::vector<dist_value*> pointers;
  for (const Json& pair : pairs) {
    const Json& components = member(pair, "per_replica");
    values.push_back(replay.per_replica(components));
    pointers.push_back(values.back().get());
    destinations.push_back(places.emplace_back(replay, member(pair, "destinations"), components).get());
  }
  std::vector<dist_value*> results(pairs.Size() + 1);
  check(dist_batch_reduce_to(replay.strategy(), op, pointers.data(), destinations.data(), pairs.Size(),
                             nullptr, results.data()));
  replay.record("result", encode_results(replay, results, pairs.Size()));
}

void replay_broadcast_to(Replay& replay) {
  if (replay.topic(1) == "in_replica_context") {
    const Place variable(replay, Json("variable"), components_of(replay));
    replay.record("result", run(replay.strategy(), [&](dist_replica*, dist_value*, dist_value*) {
                    Value result;
                    check(dist_broadcast_to(replay.strategy(), replay.scalar("float32", 1).get(),
                                            &variable.get(), result.out()));
                    return result;
                  }));
    return;
  }
  const Place place(replay, replay.input("destinations"), components_of(replay));
  Value result;
  check(dist_broadcast_to(replay.strategy(), replay.decode(replay.input("value")).get(), &place.get(),
                          result.out()));
  replay.record("result", result);
}

// Each replica returns the same pair. Its first item is `value` itself, or an equal tensor made by each
// replica.
void documented_example(Replay& replay) {
  const bool one_object = replay.topic(0) == "documented_example_same_tensor_object";
  const Variable variable = variable_of(replay, {replay.input("initial").GetDouble()}, {});
  Value handle;
  check(dist_value_create_variable(variable.get(), handle.out()));
  const double number = replay.input("value").GetDouble();
  const Value outside = replay.scalar("float32", number);
  const MergeFn merge = [&](dist_strategy* strategy, dist_value* args) {
    dist_value* const values[] = {dist_value_item(args, 0)};
    dist_variable* const var = dist_value_variable(dist_value_item(args, 1));
    const dist_destination place{var, nullptr, nullptr};
    Value reduced;
    check(dist_batch_reduce_to(strategy, DIST_REDUCE_SUM, values, &place, 1, nullptr, reduced.out()));
    update(
        strategy, var, [](dist_tensor* copy, dist_value* given) { assign(*copy, dist_value_item(given, 0)); },
        replay.list({reduced}));
    return Value();
  };
  run(replay.strategy(), [&](dist_replica* replica, dist_value*, dist_value*) {
    const Value mine = one_object ? outside : replay.scalar("float32", number);
    return merge_call(replica, merge, replay.list({mine, handle}));
  });
  replay.record("variable", replay.encode(variable.get()));
  Value copies;
  check(dist_strategy_local_results(replay.strategy(), handle.get(), copies.out()));
  std::vector<Json> items;
  for (std::size_t i = 0; i < copies.size(); ++i) items.push_back(replay.encode(copies.item(i)));
  replay.record("experimental_local_results", replay.array(std::move(items)));
}

void replay_call_for_each_replica(Replay& replay) {
  if (replay.topic(1) == "in_replica_context") {
    replay.record("result", run(replay.strategy(), [&](dist_replica*, dist_value*, dist_value*) {
                    return run(replay.strategy(),
                               [&](dist_replica*, dist_value*, dist_value*) { return replay.integer(1); });
                  }));
    return;
  }
  if (replay.fn() == "returns replica_id") {
    replay.record("result", run(replay.strategy(), [&](dist_replica* replica, dist_value*, dist_value*) {
                    return replay.integer(dist_replica_id(replica));
                  }));
    return;
  }
  if (replay.fn() != "returns (replica_id, x + replica_id, k)") replay.unknown("fn");
  const ReplicaFn fn = [&](dist_replica* replica, dist_value* args, dist_value* kwargs) {
    const int32_t id = dist_replica_id(replica);
    const Value sum = replay.map(dist_value_item(args, 0), [id](double x) { return x + id; });
    return replay.tuple({replay.integer(id), sum, Value::share(dist_value_get(kwargs, "k"))});
  };
  const Value kwargs = replay.dict({{"k", replay.string(text_of(member(replay.input("kwargs"), "k")))}});
  replay.record("result",
                run(replay.strategy(), fn, replay.list(replay.decode_all(replay.input("args"))), kwargs));
}

void replay_properties(Replay& replay) {
  dist_strategy_properties all = DIST_STRATEGY_PROPERTIES_INIT;
  check(dist_strategy_query(replay.strategy(), &all));
  std::vector<Json> workers;
  std::vector<Json> parameters;
  const char* name = nullptr;
  for (int32_t r = 0; r < all.num_replicas; ++r) {
    check(dist_strategy_device(replay.strategy(), r, &name));
    workers.push_back(replay.json(last_part(name)));
  }
  for (int32_t i = 0; i < all.num_parameter_devices; ++i) {
    check(dist_strategy_parameter_device(replay.strategy(), i, &name));
    parameters.push_back(replay.json(last_part(name)));
  }
  replay.record("worker_devices", replay.array(std::move(workers)));
  replay.record("parameter_devices", replay.array(std::move(parameters)));
  const std::pair<const char*, int32_t> flags[] = {
      {"experimental_require_static_shapes", all.require_static_shapes},
      {"should_use_merge_call", all.use_merge_call},
      {"experimental_between_graph", all.between_graph},
      {"experimental_should_init", all.should_init},
      {"should_checkpoint", all.should_checkpoint},
      {"should_save_summary", all.should_save_summary},
      {"in_multi_worker_mode", all.in_multi_worker_mode},
      {"global_batch_size", all.global_batch_size}};
  for (const auto& [key, flag] : flags) replay.record(key, replay.json(flag != 0));
  replay.record("num_replicas_in_sync", replay.json(all.num_replicas));
}

void replay_value_container(Replay& replay) {
  const Variable variable = variable_of(replay, {0, 0});
  Value handle;
  Value copies;
  check(dist_value_create_variable(variable.get(), handle.out()));
  check(dist_strategy_local_results(replay.strategy(), handle.get(), copies.out()));
  replay.record("is_v", replay.json(dist_value_container(copies.item(0).get()) == variable.get()));
}

void replay_local_results(Replay& replay) {
  Value results;
  check(dist_strategy_local_results(replay.strategy(), replay.per_replica(replay.input("per_replica")).get(),
                                    results.out()));
  std::vector<Json> items;
  for (std::size_t i = 0; i < results.size(); ++i) items.push_back(replay.encode(results.item(i)));
  replay.record("result", replay.array(std::move(items)));
}

void replay_read_var(Replay& replay) {
  if (replay.topic(1).empty()) {
    const Variable variable = variable_of(replay, {1, 2});
    Value read;
    check(dist_variable_read(replay.strategy(), variable.get(), read.out()));
    replay.record("read_var", read);
    return;
  }
  if (replay.fn() != "assign_add(replica_id + 1) in run") replay.unknown("fn");
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  options.aggregation = DIST_AGGREGATION_SUM;
  const Variable variable = variable_of(replay, {replay.input("initial").GetDouble()}, {}, &options);
  run(replay.strategy(), [&](dist_replica* replica, dist_value*, dist_value*) {
    const Value delta = replay.scalar("float32", dist_replica_id(replica) + 1);
    dist_tensor view;
    check(dist_value_tensor(delta.get(), &view));
    check(dist_replica_assign(replica, variable.get(), DIST_ASSIGN_ADD, &view, nullptr));
    return Value();
  });
  Value read;
  check(dist_variable_read(replay.strategy(), variable.get(), read.out()));
  replay.record("read_var", read);
  replay.record("read_value", read);
  replay.record("variable", replay.encode(variable.get()));
}

}  // namespace

void replay_extended(Replay& replay) {
  constexpr std::pair<std::string_view, void (*)(Replay&)> kTopics[] = {
      {"documented_example", documented_example},
      {"documented_example_same_tensor_object", documented_example},
      {"reduce_to", replay_reduce_to},
      {"batch_reduce_to", replay_batch_reduce_to},
      {"broadcast_to", replay_broadcast_to},
      {"update", replay_update},
      {"call_for_each_replica", replay_call_for_each_replica},
      {"properties", replay_properties},
      {"value_container", replay_value_container},
      {"local_results", replay_local_results},
      {"read_var", replay_read_var}};
  for (const auto& [topic, play] : kTopics) {
    if (topic == replay.topic(0)) return play(replay);
  }
  replay.unknown("topic " + replay.topics());
}

}  // namespace golden
