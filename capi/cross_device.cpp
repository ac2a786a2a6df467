// SPDX-License-Identifier: Apache-2.0
// cross_replica.h: cross-device operations, made for a strategy or used without one.
#include "core/cross_device/cross_device.hpp"

#include <memory_resource>
#include <vector>

#include "capi/destinations.hpp"
#include "capi/guard.hpp"
#include "core/cross_device/gather.hpp"
#include "core/cross_device/reduce_to.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// What a destination that is everywhere would mean is not known without a strategy.
Status require_destination(const dist_destination* destination, const char* call) noexcept {
  if (destination != nullptr) return kOk;
  return invalid_argument("%s(): no destination; without a strategy each value needs one", call);
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
  init_options(options, struct_size_bytes);
}

dist_status dist_cross_device_create(const dist_cross_device_options* options,
                                     dist_cross_device** out_cross_device) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_cross_device, "dist_cross_device_create", "out_cross_device"));
    dist_cross_device_options given;
    DIST_TRY(read_options(options, &given, "dist_cross_device_options"));
    DIST_TRY(require_zero(given.reserved, "dist_cross_device_options.reserved"));
    CrossDeviceOptions wanted;
    wanted.kind = given.kind;
    wanted.num_packs = given.num_packs;
    wanted.reduce_to_device = given.reduce_to_device;
    wanted.accumulate = given.accumulate;
    wanted.accumulate_user_data = given.accumulate_user_data;
    wanted.accumulate_element_bytes = given.accumulate_element_bytes;
    DIST_TRY(read_functions(given, &wanted.host));
    if ((given.allocator.alloc == nullptr) != (given.allocator.free == nullptr)) {
      return invalid_argument("allocator: alloc and free come together, or neither");
    }
    const auto memory = Ref<Memory>::adopt(Memory::create(given.allocator));
    if (!memory) return out_of_memory();
    Ref<CrossDevice> made;
    DIST_TRY(CrossDevice::create(*memory, wanted, &made));
    *out_cross_device = wrap(made.take());
    return kOk;
  });
}

void dist_cross_device_destroy(dist_cross_device* cross_device) {
  // In a child its threads are not: it stays as it is.
  if (cross_device != nullptr && !unwrap(cross_device)->memory().forked()) unwrap(cross_device)->release();
}

int32_t dist_cross_device_kind(const dist_cross_device* cross_device) {
  return cross_device == nullptr ? 0 : unwrap(cross_device)->kind();
}

int32_t dist_cross_device_num_packs(const dist_cross_device* cross_device) {
  return cross_device == nullptr ? 0 : unwrap(cross_device)->num_packs();
}

const char* dist_cross_device_device(const dist_cross_device* cross_device) {
  return cross_device == nullptr ? nullptr : unwrap(cross_device)->reduce_to_device();
}

dist_status dist_cross_device_reduce(dist_cross_device* cross_device, dist_reduce_op op, dist_value* value,
                                     const dist_destination* destination, dist_value** out_value) {
  if (value == nullptr || out_value == nullptr) {
    return invalid_argument("dist_cross_device_reduce(): %s is NULL",
                            value == nullptr ? "value" : "out_value")
        .code();
  }
  return guard([&]() -> Status {
    DIST_TRY(check(cross_device, "dist_cross_device_reduce"));
    DIST_TRY(require_destination(destination, "dist_cross_device_reduce"));
    return Status(dist_cross_device_batch_reduce(cross_device, op, &value, destination, 1, out_value));
  });
}

dist_status dist_cross_device_batch_reduce(dist_cross_device* cross_device, dist_reduce_op op,
                                           dist_value* const* values, const dist_destination* destinations,
                                           size_t n, dist_value** out_values) {
  constexpr const char* kCall = "dist_cross_device_batch_reduce";
  return guard([&]() -> Status {
    DIST_TRY(check(cross_device, kCall));
    CrossDevice& self = *unwrap(cross_device);
    Pairs pairs(self.memory());
    DIST_TRY(pairs.read(values, destinations, n, out_values, kCall));
    if (n != 0) DIST_TRY(require_destination(destinations, kCall));
    std::pmr::vector<ValueRef> results(n, &self.memory());
    const CrossReplica context = self.alone(replicas_of(pairs.values(), pairs.destinations()));
    DIST_TRY(reduce_to(context, ReduceRules::kAlone, op, pairs.values(), pairs.destinations(), results));
    for (size_t k = 0; k < n; ++k) out_values[k] = wrap(results[k].take());
    return kOk;
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
