// SPDX-License-Identifier: Apache-2.0
// Reads partitions from the host.
#pragma once

#include "capi/guard.hpp"
#include "core/layout/partition.hpp"

namespace dist::capi {

// Checks only what is needed to read it.
Status read_partition(const dist_partition* given, const char* call, Partition* out) noexcept;

}  // namespace dist::capi
