// SPDX-License-Identifier: Apache-2.0
// error.h: version, errors, and names of what types.h numbers.
#include <algorithm>
#include <cstring>

#include "capi/guard.hpp"
#include "core/base/names.hpp"
#include "core/base/tensor.hpp"

using namespace dist;
using namespace dist::capi;

int32_t dist_version(void) {
  return DIST_VERSION_MAJOR * 10000 + DIST_VERSION_MINOR * 100 + DIST_VERSION_PATCH;
}

int32_t dist_has_feature(const char* name) {
  if (name == nullptr) return 0;
#if DIST_HAVE_HWLOC
  if (std::strcmp(name, "numa") == 0) return 1;
#endif
  return std::strcmp(name, "pinning") == 0;
}

const char* dist_status_name(dist_status status) {
  const char* const name = known_status_name(status);
  return name != nullptr ? name : "UNKNOWN_STATUS";
}

const char* dist_last_error(void) { return last_error().message; }

dist_status dist_last_error_info(dist_error_info* out_info) {
  // The latest error is what is asked for: a wrong question must not replace it.
  if (out_info == nullptr || out_info->struct_size < sizeof(uint32_t) + sizeof(dist_status))
    return DIST_INVALID_ARGUMENT;
  const ErrorRecord& error = last_error();
  dist_error_info info{};
  info.struct_size = out_info->struct_size;
  info.code = error.code;
  info.replica = error.replica;
  info.collective = error.collective;
  info.group = error.group;
  info.sequence = error.sequence;
  info.message = error.message;
  info.tag = error.tag;
  info.expected = error.expected;
  info.received = error.received;
  info.hint = error.hint;
  info.logical_device = error.device;
  info.inside = error.inside;
  std::memcpy(out_info, &info, std::min<std::size_t>(info.struct_size, sizeof info));
  return DIST_OK;
}

dist_status dist_fail(dist_status status, const char* message) {
  if (status == DIST_OK) return invalid_argument("dist_fail(): DIST_OK is no failure").code();
  return fail(status, "%s", message == nullptr ? "" : message).code();
}

namespace {

dist_status from_name(std::span<const Named> names, const char* name, const char* what, int32_t* out_number,
                      const char* call) {
  return guard([&]() -> Status {
    DIST_TRY(require(name, call, "name"));
    DIST_TRY(require(out_number, call, "the result"));
    return number_of(names, name, what, out_number);
  });
}

}  // namespace

const char* dist_reduce_op_name(dist_reduce_op op) {
  return op < DIST_REDUCE_SUM || op > DIST_REDUCE_USER ? nullptr : op_name(op);
}
const char* dist_communication_name(int32_t implementation) {
  return name_of(kCommunicationNames, implementation);
}
const char* dist_cross_device_name(int32_t kind) { return name_of(kCrossDeviceNames, kind); }
const char* dist_synchronization_name(int32_t synchronization) {
  return name_of(kSynchronizationNames, synchronization);
}
const char* dist_aggregation_name(int32_t aggregation) { return name_of(kAggregationNames, aggregation); }
const char* dist_input_mode_name(int32_t mode) { return name_of(kInputModeNames, mode); }
const char* dist_shard_policy_name(int32_t policy) { return name_of(kShardNames, policy); }

dist_status dist_communication_from_name(const char* name, int32_t* out_implementation) {
  return from_name(kCommunicationNames, name, "implementation of communication", out_implementation,
                   "dist_communication_from_name");
}
dist_status dist_synchronization_from_name(const char* name, int32_t* out_synchronization) {
  return from_name(kSynchronizationNames, name, "synchronization of variables", out_synchronization,
                   "dist_synchronization_from_name");
}
dist_status dist_aggregation_from_name(const char* name, int32_t* out_aggregation) {
  return from_name(kAggregationNames, name, "aggregation of variables", out_aggregation,
                   "dist_aggregation_from_name");
}
dist_status dist_input_mode_from_name(const char* name, int32_t* out_mode) {
  return from_name(kInputModeNames, name, "mode of input", out_mode, "dist_input_mode_from_name");
}
dist_status dist_shard_policy_from_name(const char* name, int32_t* out_policy) {
  return from_name(kShardNames, name, "policy of sharding", out_policy, "dist_shard_policy_from_name");
}
