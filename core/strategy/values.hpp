// SPDX-License-Identifier: Apache-2.0
// Distributed values of what a function of the host makes for each replica of a strategy.
#pragma once

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/from_function.hpp"

namespace dist {

// Where the strategy has one replica by its kind, the function's value is the result, in either context.
// Elsewhere this belongs to the cross-replica context.
Status values_from_function(Strategy& strategy, const ComponentFunction& function, ValueRef* out);

}  // namespace dist
