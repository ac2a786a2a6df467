// SPDX-License-Identifier: Apache-2.0
// Area "options": options and how they read back, names of enumerators, constructors. Cross-device operations
// are in replay_cross_device.cpp.
#include <array>
#include <cmath>
#include <optional>

#include "extended.hpp"
#include "options.hpp"

namespace golden {
namespace {

// ---- CommunicationOptions

int64_t timeout_of(double seconds) {
  return seconds > 0 ? std::max(std::llround(seconds * 1e9), 1LL) : DIST_NO_TIMEOUT;
}

// Converts the arguments of the Python program to C. Returns nothing if the C compiler would reject them.
std::optional<dist_communication_options> communication_of(const Json& kwargs) {
  dist_communication_options options = DIST_COMMUNICATION_OPTIONS_INIT;
  for (const auto& [name, value] : kwargs.GetObject()) {
    const std::string_view key = text_of(name);
    if (key == "implementation") {
      continue;  // only libdist.tf has it
    } else if (key == "bytes_per_pack" && value.IsInt64()) {
      options.bytes_per_pack = static_cast<size_t>(value.GetInt64());
    } else if (key == "timeout_seconds" && value.IsNumber()) {
      options.timeout_ns = timeout_of(value.GetDouble());
    } else {
      return std::nullopt;
    }
  }
  return options;
}

void record_communication(Replay& replay, const dist_communication_options& options,
                          const dist_communication_options* over = nullptr) {
  dist_communication_options merged = DIST_COMMUNICATION_OPTIONS_INIT;
  check(dist_communication_options_merge(&options, over, &merged));
  replay.record("bytes_per_pack", replay.json(static_cast<int64_t>(merged.bytes_per_pack)));
  replay.record("timeout_seconds", merged.timeout_ns == 0
                                       ? replay.null()
                                       : replay.json(static_cast<double>(merged.timeout_ns) / 1e9));
}

void replay_communication(Replay& replay) {
  if (replay.topic(0) == "merge") {
    const auto self = communication_of(replay.input("self"));
    if (!self) replay.unknown("self");
    const Json& other = replay.input("other");
    if (other.IsNull()) return record_communication(replay, *self);
    const auto over = communication_of(other);
    if (!over) replay.unknown("other");
    return record_communication(replay, *self, &*over);
  }
  if (replay.has("kwargs")) {
    if (const auto options = communication_of(replay.input("kwargs"))) record_communication(replay, *options);
    return;
  }
  const Json& args = replay.input("args");
  dist_communication_options options = DIST_COMMUNICATION_OPTIONS_INIT;
  options.bytes_per_pack = args[0].GetInt64();
  options.timeout_ns = timeout_of(args[1].GetDouble());
  record_communication(replay, options);
}

// ---- Run and input options

// A keyword is a field of the struct; the C compiler rejects all others.
void replay_run_options(Replay& replay) {
  if (!replay.has("kwargs")) return;  // the order of a named tuple's fields
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  for (const auto& [name, value] : replay.input("kwargs").GetObject()) {
    const std::string_view key = text_of(name);
    if (key == "experimental_enable_dynamic_batch_size") {
      options.enable_dynamic_batch_size = value.GetBool() ? 1 : -1;
    } else if (key == "experimental_bucketizing_dynamic_shape") {
      options.bucketizing_dynamic_shape = value.GetBool() ? 1 : 0;
    } else {
      return;
    }
  }
  run(
      dist_get_strategy(), [](dist_replica*, dist_value*, dist_value*) { return Value(); }, {}, {}, &options);
  replay.record("experimental_enable_dynamic_batch_size",
                replay.json(options.enable_dynamic_batch_size >= 0));
  replay.record("experimental_bucketizing_dynamic_shape",
                replay.json(options.bucketizing_dynamic_shape != 0));
}

void replay_input_options(Replay& replay) {
  if (!replay.has("kwargs")) return;
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  for (const auto& [name, value] : replay.input("kwargs").GetObject()) {
    const std::string_view key = text_of(name);
    if (key == "experimental_fetch_to_device" || key == "experimental_place_dataset_on_device") {
      continue;  // only libdist.tf has them
    }
    if (key == "experimental_replication_mode") {
      read_enum(DIST_ENUM_INPUT_MODE, std::string(text_of(value)).c_str(), &options.replication_mode);
    } else if (key == "experimental_per_replica_buffer_size") {
      options.prefetch = value.GetInt();
    } else {
      return;
    }
  }
  replay.record("experimental_replication_mode",
                replay.json(dist_enum_name(DIST_ENUM_INPUT_MODE, options.replication_mode)));
  replay.record("experimental_per_replica_buffer_size",
                replay.json(options.prefetch == 0 ? 1 : options.prefetch));
}

// ---- Names of enumerators

constexpr int32_t kFirstNumber = 0;
constexpr int32_t kLastNumber = 0x2000;

void record_numbers(Replay& replay, dist_enum_domain domain) {
  for (int32_t number = kFirstNumber; number <= kLastNumber; ++number) {
    if (const char* const name = dist_enum_name(domain, number)) replay.record(name, replay.json(number));
  }
}

// Records enumerators whose values are their names.
void record_names(Replay& replay, dist_enum_domain domain) {
  for (int32_t number = kFirstNumber; number <= kLastNumber; ++number) {
    if (const char* const name = dist_enum_name(domain, number)) replay.record(name, replay.json(name));
  }
}

void reduce_op_from_aggregation(Replay& replay) {
  dist_aggregation aggregation{};
  read_enum(DIST_ENUM_AGGREGATION, std::string(replay.text("aggregation")).c_str(), &aggregation);
  dist_reduce_op op{};
  check(dist_reduce_op_from_aggregation(aggregation, &op));
  replay.record("reduce_op", replay.json(dist_enum_name(DIST_ENUM_REDUCE_OP, op)));
}

// ---- Constructors of strategies

constexpr int32_t kLogicalDevices = 8;  // the recorded programs configure this number of devices

void record_strategy(Replay& replay, dist_strategy* strategy) {
  std::vector<Json> workers;
  const int32_t n = dist_strategy_num_replicas(strategy);
  for (int32_t r = 0; r < n; ++r) {
    const char* name = nullptr;
    check(dist_strategy_device(strategy, r, &name));
    const std::string_view device(name);
    workers.push_back(replay.json(device.substr(device.rfind('/') + 1)));
  }
  replay.record("num_replicas_in_sync", replay.json(n));
  replay.record("worker_devices", replay.array(std::move(workers)));
}

// Returns the names in a list. Python also iterates over a string, so a string has one name per character.
std::vector<std::string> names_in(const Json& devices) {
  std::vector<std::string> names;
  if (devices.IsArray()) {
    for (const Json& device : devices.GetArray()) names.emplace_back(text_of(device));
  } else if (devices.IsString()) {
    for (const char character : text_of(devices)) names.emplace_back(1, character);
  }
  return names;
}

void mirrored_construct(Replay& replay) {
  const std::vector<std::string> names = names_in(replay.input("devices"));
  const Strategy strategy = mirrored_of(names, names.empty() ? kLogicalDevices : 0, nullptr);
  record_strategy(replay, strategy.get());
}

void one_device_construct(Replay& replay) {
  const Json& device = replay.input("device");
  const std::string name(device.IsNull() ? "" : text_of(device));
  const char* const devices[] = {name.c_str()};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_ONE_DEVICE;
  options.devices = device.IsNull() ? nullptr : devices;
  options.num_devices = device.IsNull() ? 0 : 1;
  Strategy strategy;
  check(dist_strategy_create(&options, strategy.out()));
  record_strategy(replay, strategy.get());
  replay.record("result", run(strategy.get(), [&](dist_replica*, dist_value*, dist_value*) {
                  return replay.scalar("int32", 1);
                }));
}

}  // namespace

Strategy mirrored_of(const std::vector<std::string>& names, int32_t num_replicas,
                     dist_cross_device* cross_device) {
  std::vector<const char*> devices;
  for (const std::string& name : names) devices.push_back(name.c_str());
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = num_replicas;
  options.devices = devices.data();
  options.num_devices = devices.size();
  options.cross_device = cross_device;
  Strategy strategy;
  check(dist_strategy_create(&options, strategy.out()));
  return strategy;
}

void replay_options(Replay& replay) {
  constexpr std::pair<std::string_view, void (*)(Replay&)> kTopics[] = {
      {"communication_options", replay_communication},
      {"collective_hints", replay_communication},
      {"run_options", replay_run_options},
      {"input_options", replay_input_options},
      {"xla_options", [](Replay&) {}},                          // libdist has no such compiler
      {"communication_implementation_values", [](Replay&) {}},  // only libdist.tf has them
      {"input_replication_mode_values", [](Replay& r) { record_names(r, DIST_ENUM_INPUT_MODE); }},
      {"variable_synchronization_values", [](Replay& r) { record_numbers(r, DIST_ENUM_SYNCHRONIZATION); }},
      {"variable_aggregation_values", [](Replay& r) { record_numbers(r, DIST_ENUM_AGGREGATION); }},
      {"auto_shard_policy_values", [](Replay& r) { record_numbers(r, DIST_ENUM_SHARD_POLICY); }},
      {"reduce_op_values", [](Replay& r) { record_names(r, DIST_ENUM_VALUE_REDUCTION); }},
      {"reduce_op_from_aggregation", reduce_op_from_aggregation},
      {"mirrored_construct", mirrored_construct},
      {"one_device_construct", one_device_construct},
      {"NcclAllReduce", replay_cross_device_object},
      {"HierarchicalCopyAllReduce", replay_cross_device_object},
      {"ReductionToOneDevice", replay_cross_device_object},
      {"cross_device_ops", replay_cross_device_in_strategy},
      {"alone", replay_cross_device_alone}};
  const std::string_view id = replay.id();
  const std::string_view first = id.substr(0, id.find('/'));
  for (const auto& [topic, play] : kTopics) {
    if (topic == first) return play(replay);
  }
  replay.unknown("topic " + std::string(first));
}

}  // namespace golden
