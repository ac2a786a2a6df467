// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/destination.hpp"

#include <charconv>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "core/base/text.hpp"

namespace dist {
namespace {

Status check_value(const CrossReplica& context, const Value& value) noexcept {
  if (value.is_nest()) {
    return invalid_argument("destination: %s has no single location. Pass one of its values.",
                            Value::kind_name(value.kind()));
  }
  if (value.distributed() && static_cast<int32_t>(value.items().size()) != context.replicas.local()) {
    return invalid_argument(
        "destination: %s has %zu components, but the strategy has %d replicas: it was created for another "
        "strategy",
        Value::kind_name(value.kind()), value.items().size(), context.replicas.local());
  }
  return kOk;
}

// The destination of a variable: the place of its copies.
Status place_of(const CrossReplica& context, const Variable& variable, Place* out) noexcept {
  if (variable.mirrored() && variable.num_replicas() != context.replicas.local()) {
    return invalid_argument(
        "destination: variable \"%s\" has %d copies, but the strategy has %d replicas: it was created for "
        "another strategy",
        variable.name(), variable.num_replicas(), context.replicas.local());
  }
  out->mirrored = variable.mirrored();
  return kOk;
}

}  // namespace

Status replica_of_device(const char* device, int32_t num_replicas, int32_t* out_id) noexcept {
  constexpr char kPrefix[] = "replica:";
  constexpr std::size_t kLength = sizeof kPrefix - 1;
  *out_id = -1;
  if (std::strncmp(device, kPrefix, kLength) != 0) return kOk;
  const char* const digits = device + kLength;
  const char* const end = digits + std::strlen(digits);
  int32_t id = -1;
  const auto [stop, error] = std::from_chars(digits, end, id);
  if (error != std::errc{} || stop != end || id < 0 || id >= num_replicas) {
    return fail(DIST_NOT_FOUND,
                "device \"%s\" does not exist. This strategy has \"replica:0\" to \"replica:%d\".",
                Shown(device).c_str(), num_replicas - 1);
  }
  *out_id = id;
  return kOk;
}

Status resolve(const CrossReplica& context, const Destination& destination, Place* out) noexcept {
  const int set =
      (destination.variable != nullptr) + (destination.value != nullptr) + (destination.device != nullptr);
  if (set > 1) {
    return invalid_argument("a destination has %d fields set. Set exactly one of variable, value and device.",
                            set);
  }
  *out = Place{};
  if (destination.value != nullptr) DIST_TRY(check_value(context, *destination.value));
  if (destination.device != nullptr) {
    int32_t id;
    DIST_TRY(replica_of_device(destination.device, context.replicas.local(), &id));
    DeviceName device;
    if (id < 0) DIST_TRY(DeviceName::parse(destination.device, "destination", &device));
    return kOk;
  }
  if (context.replicas.local() == 1) return kOk;
  if (set == 0 && !destination.everywhere) {
    return invalid_argument(
        "a destination has no field set. Set one of variable, value and device, or pass `NULL` as the "
        "destination for all replicas.");
  }
  Variable* variable = destination.variable;
  if (variable == nullptr && destination.value != nullptr) variable = destination.value->variable();
  if (variable != nullptr) return place_of(context, *variable, out);
  out->mirrored = destination.everywhere || destination.value->distributed();
  return kOk;
}

Status put(const CrossReplica& context, Place place, ValueRef result, ValueRef* out) {
  if (!place.mirrored || context.replicas.local() == 1) {
    *out = std::move(result);
    return kOk;
  }
  const std::pmr::vector<Value*> components(static_cast<std::size_t>(context.replicas.local()), result.get(),
                                            context.memory);
  return Value::create(*context.memory, DIST_VALUE_MIRRORED, components, out);
}

}  // namespace dist
