// SPDX-License-Identifier: Apache-2.0
// error.h: version, errors, and names of what types.h numbers.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "capi/guard.hpp"
#include "core/base/collective_traits.hpp"
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
  info.replica = number(error.culprit.replica);
  info.collective = error.collective;
  info.group = error.group;
  info.sequence = error.sequence;
  info.message = error.message;
  info.tag = error.tag;
  info.expected = error.expected;
  info.received = error.received;
  info.hint = error.hint;
  info.logical_device = error.culprit.logical_device;
  info.inside = error.inside;
  std::memcpy(out_info, &info, std::min<std::size_t>(info.struct_size, sizeof info));
  return DIST_OK;
}

dist_status dist_fail(dist_status status, const char* message) {
  if (status == DIST_OK) return invalid_argument("dist_fail(): DIST_OK is no failure").code();
  return fail(status, "%s", message == nullptr ? "" : message).code();
}

namespace {

// An enum of types.h: a value's name is what core calls it.
struct Domain {
  const char* name;  // "REDUCE_OP", of DIST_ENUM_REDUCE_OP
  const char* what;  // what a name of it is
  int32_t first, last;
  const char* (*name_of)(int32_t value) noexcept;
};

template <const auto& kNames>
const char* named(int32_t value) noexcept {
  return name_of(kNames, value);
}

// By their numbers, from 1.
constexpr Domain kDomains[] = {
    {"STATUS", "status", DIST_OK, DIST_DATA_LOSS, status_name},
    {"DTYPE", "type of elements", DIST_F16, DIST_BOOL, dtype_name},
    {"REDUCE_OP", "operator", DIST_REDUCE_SUM, DIST_REDUCE_USER, op_name},
    {"VALUE_REDUCTION", "reduction of values", DIST_REDUCE_SUM, DIST_REDUCE_MEAN, op_name},
    {"COLLECTIVE", "collective", DIST_COLLECTIVE_ALL_REDUCE, kLastCollective, collective_name},
    {"SYNCHRONIZATION", "synchronization of variables", DIST_SYNCHRONIZATION_AUTO,
     DIST_SYNCHRONIZATION_ON_READ, named<kSynchronizationNames>},
    {"AGGREGATION", "aggregation of variables", DIST_AGGREGATION_NONE, DIST_AGGREGATION_ONLY_FIRST_REPLICA,
     named<kAggregationNames>},
    {"COMMUNICATION", "implementation of communication", DIST_COMMUNICATION_AUTO, DIST_COMMUNICATION_NCCL,
     named<kCommunicationNames>},
    {"CROSS_DEVICE", "kind of cross-device operations", DIST_CROSS_DEVICE_DEFAULT, DIST_CROSS_DEVICE_HOST,
     named<kCrossDeviceNames>},
    {"INPUT_MODE", "mode of input", DIST_INPUT_PER_WORKER, DIST_INPUT_PER_REPLICA, named<kInputModeNames>},
    {"SHARD_POLICY", "policy of sharding", DIST_SHARD_OFF, DIST_SHARD_HINT, named<kShardNames>}};
static_assert(std::size(kDomains) == DIST_ENUM_SHARD_POLICY);

// Of one domain.
constexpr std::size_t most_names() noexcept {
  int32_t most = 0;
  for (const Domain& domain : kDomains) most = std::max(most, domain.last - domain.first + 1);
  return static_cast<std::size_t>(most);
}

// NULL for a number that is no domain's.
const Domain* domain_of(int32_t number) noexcept {
  return number >= 1 && number <= DIST_ENUM_SHARD_POLICY ? &kDomains[number - 1] : nullptr;
}

Status no_domain(int32_t number) noexcept {
  char known[256] = "";
  std::size_t used = 0;
  for (const Domain& domain : kDomains) {
    if (used >= sizeof known) break;
    used += static_cast<std::size_t>(std::snprintf(known + used, sizeof known - used, "%s%s",
                                                   used == 0 ? "DIST_ENUM_" : ", ", domain.name));
  }
  return invalid_argument("dist_enum_from_name: domain %d is no enum with names: use one of %s", number,
                          known);
}

}  // namespace

const char* dist_enum_name(int32_t domain, int32_t value) {
  const Domain* const known = domain_of(domain);
  return known == nullptr || value < known->first || value > known->last ? nullptr : known->name_of(value);
}

dist_status dist_enum_from_name(int32_t domain, const char* name, int32_t* out_value) {
  return guard([&]() -> Status {
    const Domain* const known = domain_of(domain);
    if (known == nullptr) return no_domain(domain);
    DIST_TRY(require(name, "dist_enum_from_name", "name"));
    DIST_TRY(require(out_value, "dist_enum_from_name", "out_value"));
    Named names[most_names()];
    std::size_t count = 0;
    for (int32_t value = known->first; value <= known->last; ++value) {
      const char* const each = known->name_of(value);
      if (each != nullptr) names[count++] = {value, each};  // a number may be nobody's
    }
    return number_of({names, count}, name, known->what, out_value);
  });
}
