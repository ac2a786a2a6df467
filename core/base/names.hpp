// SPDX-License-Identifier: Apache-2.0
// TensorFlow's names for the enumerators of dist/types.h. They are used to print settings and to parse the
// settings of programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "core/base/status.hpp"
#include "dist/types.h"

namespace dist {

struct Named {
  int32_t number;
  const char* name;
};

inline constexpr Named kCrossDeviceNames[] = {
    {DIST_CROSS_DEVICE_DEFAULT, "DEFAULT"},
    {DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE, "REDUCTION_TO_ONE_DEVICE"},
    {DIST_CROSS_DEVICE_HOST, "HOST"}};
inline constexpr Named kSynchronizationNames[] = {{DIST_SYNCHRONIZATION_AUTO, "AUTO"},
                                                  {DIST_SYNCHRONIZATION_NONE, "NONE"},
                                                  {DIST_SYNCHRONIZATION_ON_WRITE, "ON_WRITE"},
                                                  {DIST_SYNCHRONIZATION_ON_READ, "ON_READ"}};
inline constexpr Named kAggregationNames[] = {{DIST_AGGREGATION_NONE, "NONE"},
                                              {DIST_AGGREGATION_SUM, "SUM"},
                                              {DIST_AGGREGATION_MEAN, "MEAN"},
                                              {DIST_AGGREGATION_ONLY_FIRST_REPLICA, "ONLY_FIRST_REPLICA"}};
inline constexpr Named kInputModeNames[] = {{DIST_INPUT_PER_WORKER, "PER_WORKER"},
                                            {DIST_INPUT_PER_REPLICA, "PER_REPLICA"}};
inline constexpr Named kShardNames[] = {{DIST_SHARD_AUTO, "AUTO"},
                                        {DIST_SHARD_FILE, "FILE"},
                                        {DIST_SHARD_DATA, "DATA"},
                                        {DIST_SHARD_HINT, "HINT"},
                                        {DIST_SHARD_OFF, "OFF"}};

// NULL for an unknown number.
constexpr const char* name_of(std::span<const Named> names, int32_t number) noexcept {
  for (const Named& named : names) {
    if (named.number == number) return named.name;
  }
  return nullptr;
}

// Looks a name up, ignoring case. `what` describes what it should name: "a reduction of values".
Status number_of(std::span<const Named> names, const char* name, const char* what, int32_t* out) noexcept;

// Enums whose values have names are called domains, numbered from 1 as in DIST_ENUM_....
inline constexpr int32_t kNumDomains = 10;
// Fails with INVALID_ARGUMENT for an unknown domain. `call` is the function's name for messages.
Status check_domain(int32_t domain, const char* call) noexcept;
// The name of a number in a domain; NULL if the domain or the number is unknown.
const char* enum_name(int32_t domain, int32_t number) noexcept;
// Looks a name up, ignoring case. The domain must be valid.
Status enum_from_name(int32_t domain, const char* name, int32_t* out) noexcept;

// The reduction that corresponds to a variable aggregation.
Status reduction_of(int32_t aggregation, dist_reduce_op* out) noexcept;

}  // namespace dist
