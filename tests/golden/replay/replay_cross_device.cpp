// SPDX-License-Identifier: Apache-2.0
// Area "options": cross-device operations, passed to a strategy and used directly.
#include <dist/tf.h>
#include <cctype>
#include <charconv>
#include <utility>

#include "extended.hpp"
#include "options.hpp"
#include "tests/golden/harness/elements.hpp"

namespace golden {
namespace {

using CrossDevice = Handle<dist_cross_device, dist_cross_device_destroy>;

// r = vals[0]; for v in vals[1:]: r = r * v
void multiply(void* acc, const void* in, int64_t count, dist_dtype, void*) {
  auto* const to = static_cast<float*>(acc);
  const auto* const from = static_cast<const float*>(in);
  for (int64_t i = 0; i < count; ++i) to[i] *= from[i];
}

// Makes the object that the recorded program calls `name`. The last device of `devices` may be part of it.
CrossDevice made_as(const Replay& replay, std::string_view name, const std::vector<std::string>& devices) {
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  options.kind = DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
  if (name == "ReductionToOneDevice_last") {
    options.reduce_to_device = devices.back().c_str();
  } else if (name == "ReductionToOneDevice_product") {
    options.accumulate = multiply;
  } else if (name.starts_with("HierarchicalCopyAllReduce_") || name.starts_with("NcclAllReduce_")) {
    options.kind = DIST_CROSS_DEVICE_DEFAULT;
  } else if (name != "ReductionToOneDevice") {
    replay.unknown("cross_device_ops " + std::string(name));
  }
  CrossDevice made;
  check(dist_cross_device_create(&options, made.out()));
  return made;
}

dist_reduce_op op_of(const Replay& replay) {
  dist_reduce_op op{};
  read_enum(DIST_ENUM_VALUE_REDUCTION, std::string(replay.text("op")).c_str(), &op);
  return op;
}

Value spread(Replay& replay, dist_strategy* strategy, const Json& components) {
  const std::vector<Value> items = replay.decode_all(components);
  if (items.size() == 1) return items[0];
  std::vector<dist_value*> pointers;
  for (const Value& item : items) pointers.push_back(item.get());
  Value value;
  check(dist_value_create_per_replica(strategy, pointers.data(), pointers.size(), value.out()));
  return value;
}

// The pairs of a case. Each value is reduced to the place of its components.
struct Pairs {
  Pairs(Replay& replay, dist_strategy* strategy, const Json& pairs) {
    for (const Json& pair : pairs.GetArray()) {
      values.push_back(spread(replay, strategy, member(pair, "per_replica")));
      pointers.push_back(values.back().get());
      destinations.push_back({nullptr, values.back().get(), nullptr});
    }
    results.resize(values.size() + 1);
  }
  std::vector<Value> values;
  std::vector<dist_value*> pointers;
  std::vector<dist_destination> destinations;
  std::vector<dist_value*> results;
};

}  // namespace

void replay_cross_device_object(Replay& replay) {
  if (!replay.id().starts_with("ReductionToOneDevice/")) return;  // only libdist.tf has the others
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  options.kind = DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
  CrossDevice made;
  check(dist_cross_device_create(&options, made.out()));
  const char* const device = dist_cross_device_device(made.get());
  replay.record("reduce_to_device", device == nullptr ? replay.null() : replay.json(device));
}

void replay_cross_device_in_strategy(Replay& replay) {
  if (replay.topic(0) == "not_cross_device_ops") return;  // a string in its place, which C does not accept
  std::vector<std::string> devices;
  for (const Json& device : member(replay.strategy_description(), "devices").GetArray()) {
    devices.emplace_back(text_of(device));
  }
  const CrossDevice made = made_as(replay, replay.topic(0), devices);
  const Strategy own = mirrored_of(devices, 0, made.get());
  dist_strategy* const strategy = own.get();
  const std::string_view what = replay.topic(2);
  Value result;
  if (what == "batch_reduce_to") {
    Pairs pairs(replay, strategy, replay.input("pairs"));
    check(dist_batch_reduce_to(strategy, op_of(replay), pairs.pointers.data(), pairs.destinations.data(),
                               pairs.values.size(), nullptr, pairs.results.data()));
    replay.record("result", encode_results(replay, pairs.results, pairs.values.size()));
    return;
  }
  const Value value = spread(replay, strategy, replay.input("per_replica"));
  if (what == "reduce") {
    check(dist_reduce(strategy, op_of(replay), value.get(), nullptr, 0, result.out()));
  } else if (what == "gather") {
    check(dist_gather(strategy, value.get(), replay.input("axis").GetInt(), result.out()));
  } else if (what == "reduce_to_var") {
    Elements initial = elements_of(DIST_F32, {3}, {0, 0, 0});
    const dist_tensor view = initial.view();
    Variable variable;
    check(dist_variable_create(strategy, &view, nullptr, variable.out()));
    const dist_destination place{variable.get(), nullptr, nullptr};
    check(dist_reduce_to(strategy, op_of(replay), value.get(), &place, nullptr, result.out()));
  } else {
    replay.unknown("topic " + replay.topics());
  }
  replay.record("result", result);
}

void replay_cross_device_alone(Replay& replay) {
  const CrossDevice made = made_as(replay, replay.topic(0), {});
  // The strategy of the program's values.
  const Strategy own = mirrored_of({}, replay.num_replicas(), nullptr);
  const std::string_view what = replay.topic(2);
  if (what == "batch_reduce" || what == "batch_reduce_empty") {
    Pairs pairs(replay, own.get(), replay.input("pairs"));
    const dist_reduce_op op = replay.has("op") ? op_of(replay) : DIST_REDUCE_SUM;
    check(dist_cross_device_batch_reduce(made.get(), op, pairs.pointers.data(), pairs.destinations.data(),
                                         pairs.values.size(), pairs.results.data()));
    replay.record("result", encode_results(replay, pairs.results, pairs.values.size()));
    return;
  }
  // The destination: a value with one number per replica. Its numbers are not used.
  std::vector<dist_value*> numbers;
  const Value number = replay.scalar("float32", 0);
  numbers.assign(static_cast<std::size_t>(replay.num_replicas()), number.get());
  Value elsewhere;
  check(dist_value_create_per_replica(own.get(), numbers.data(), numbers.size(), elsewhere.out()));
  Value result;
  if (what == "batch_reduce_bad_pairs") {
    // The program passes values instead of pairs of a value and a destination.
    dist_value* const values[] = {elsewhere.get()};
    check(dist_cross_device_batch_reduce(made.get(), DIST_REDUCE_SUM, values, nullptr, 1, result.out()));
    replay.record("result", result);
    return;
  }
  const Value value = replay.has("value") ? replay.decode(replay.input("value"))
                                          : spread(replay, own.get(), replay.input("per_replica"));
  const std::string device(replay.text("destinations"));
  const bool at_value = device == "value";
  const dist_destination place{nullptr, at_value ? elsewhere.get() : nullptr,
                               at_value ? nullptr : device.c_str()};
  if (what == "broadcast") {
    check(dist_cross_device_broadcast(made.get(), value.get(), &place, result.out()));
  } else if (what == "reduce" || what == "reduce_to_cpu0" || what == "reduce_plain_tensor") {
    check(dist_cross_device_reduce(made.get(), op_of(replay), value.get(), &place, result.out()));
  } else {
    replay.unknown("topic " + replay.topics());
  }
  replay.record("result", result);
}

}  // namespace golden
