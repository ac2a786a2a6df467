// SPDX-License-Identifier: Apache-2.0
// Creates groups of some replicas, together with all workers of the strategy.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/run/subgroups.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

// Implements dist_group_create(). With several workers it waits for the current run and for the other
// workers.
Status create_group(Strategy& strategy, std::span<const int32_t> ids, Subgroup** out);

}  // namespace dist
