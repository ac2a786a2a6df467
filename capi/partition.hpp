// SPDX-License-Identifier: Apache-2.0
// Partitions as the host gives them.
#pragma once

#include "capi/guard.hpp"
#include "core/topology/partition.hpp"

namespace dist::capi {

// Not checked yet, but for what is needed to read it.
Status read_partition(const dist_partition* given, const char* call, Partition* out) noexcept;

}  // namespace dist::capi
