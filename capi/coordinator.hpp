// SPDX-License-Identifier: Apache-2.0
// The coordinator of a strategy, for functions that receive the strategy.
#pragma once

#include "core/ps/coordinator.hpp"
#include "core/strategy/strategy.hpp"

namespace dist::capi {

// NULL if it has none, or if the coordinator is just ending.
Ref<Coordinator> coordinator_of(Strategy& strategy);

}  // namespace dist::capi
