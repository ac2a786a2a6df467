// SPDX-License-Identifier: Apache-2.0
// Groups of some replicas of a strategy, which all of its workers make together.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/run/subgroups.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

// dist_group_create(). Over several workers it waits for the run that is under way, and for the others.
Status create_group(Strategy& strategy, std::span<const int32_t> ids, Subgroup** out);

}  // namespace dist
