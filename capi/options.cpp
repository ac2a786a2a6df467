// SPDX-License-Identifier: Apache-2.0
// collective.h: how a program asks its collectives to be done, and names of what types.h numbers.
#include "capi/options.hpp"

#include "core/base/names.hpp"
#include "core/base/tensor.hpp"

using namespace dist;
using namespace dist::capi;

namespace dist::capi {

Status read_communication(const dist_communication_options* given, Communication* out) noexcept {
  dist_communication_options known;
  DIST_TRY(read_options(given, &known, "dist_communication_options"));
  DIST_TRY(require_zero(known.reserved, "dist_communication_options.reserved"));
  if (known.has_timeout != 0 && known.has_timeout != 1) {
    return invalid_argument("dist_communication_options.has_timeout is %d; it is 0 or 1", known.has_timeout);
  }
  out->implementation = known.implementation;
  out->bytes_per_pack = known.bytes_per_pack;
  out->has_timeout = known.has_timeout == 1 || known.timeout_ns != 0;
  out->timeout_ns = known.timeout_ns;
  return check(*out);
}

Status write_text(const char* text, char* out, std::size_t size_bytes, const char* call) noexcept {
  const std::size_t bytes = std::strlen(text) + 1;
  if (bytes > size_bytes) {
    return invalid_argument("%s(): the text has %zu bytes, and there is room for %zu", call, bytes,
                            size_bytes);
  }
  std::memcpy(out, text, bytes);
  return kOk;
}

}  // namespace dist::capi

void dist_communication_options_init(dist_communication_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_communication_options_merge(const dist_communication_options* base,
                                             const dist_communication_options* over,
                                             dist_communication_options* out_options) {
  return guard([&]() -> Status {
    DIST_TRY(require(base, "dist_communication_options_merge", "base"));
    DIST_TRY(require(out_options, "dist_communication_options_merge", "out_options"));
    Communication given;
    Communication overriding;
    DIST_TRY(read_communication(base, &given));
    DIST_TRY(read_communication(over, &overriding));
    const Communication result = merged(given, overriding);
    dist_communication_options all = DIST_COMMUNICATION_OPTIONS_INIT;
    all.implementation = result.implementation;
    all.bytes_per_pack = result.bytes_per_pack;
    all.timeout_ns = result.timeout_ns;
    all.has_timeout = result.has_timeout ? 1 : 0;
    return write_struct(all, out_options, "dist_communication_options");
  });
}

dist_status dist_communication_options_describe(const dist_communication_options* options, char* out_text,
                                                size_t size_bytes) {
  return guard([&]() -> Status {
    DIST_TRY(require(options, "dist_communication_options_describe", "options"));
    DIST_TRY(require(out_text, "dist_communication_options_describe", "out_text"));
    if (size_bytes == 0) return invalid_argument("dist_communication_options_describe(): size_bytes is 0");
    Communication given;
    DIST_TRY(read_communication(options, &given));
    describe(given, out_text, size_bytes);
    return kOk;
  });
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

dist_status dist_reduce_op_from_name(const char* name, dist_reduce_op* out_op) {
  return from_name(kValueReductionNames, name, "reduction of values", out_op, "dist_reduce_op_from_name");
}
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

dist_status dist_reduce_op_from_aggregation(int32_t aggregation, dist_reduce_op* out_op) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_op, "dist_reduce_op_from_aggregation", "out_op"));
    switch (aggregation) {
      case DIST_AGGREGATION_SUM: *out_op = DIST_REDUCE_SUM; return kOk;
      case DIST_AGGREGATION_MEAN: *out_op = DIST_REDUCE_MEAN; return kOk;
      default: break;
    }
    const char* const name = name_of(kAggregationNames, aggregation);
    return invalid_argument("aggregation %s is no reduction: only SUM and MEAN are",
                            name != nullptr ? name : "of that number");
  });
}
