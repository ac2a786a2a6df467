// SPDX-License-Identifier: Apache-2.0
// Creates distributed values by calling a host function for each replica.
#pragma once

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/from_function.hpp"

namespace dist {

// If the strategy has one replica by kind, the result is the function's value, and any context is allowed.
// Otherwise it must be called in cross-replica context.
Status values_from_function(Strategy& strategy, const ComponentFunction& function, ValueRef* out);

}  // namespace dist
