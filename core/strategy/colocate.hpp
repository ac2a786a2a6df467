// SPDX-License-Identifier: Apache-2.0
// Colocation: a promise that the variables created next are placed with a given one. Copy r of every variable
// of a strategy is placed with replica r (with central storage, on the one parameter device), so the promise
// always holds. These functions only report misuse.
#pragma once

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// Checks that this thread is in the strategy's scope or run, and that `with` is a variable of the strategy. A
// copy of a variable is accepted too, unless the variable is mirrored. A default strategy requires neither.
Status enter_colocation(Strategy& strategy, const Value& with);
Status exit_colocation(Strategy& strategy);

// Whether the strategy created this variable, or the variable that this value is a copy of.
Status created_by(const Strategy& strategy, const Value& variable, bool* out) noexcept;

// The name of the device on which a variable's copy is placed.
Status device_of(const Strategy& strategy, const Variable& variable, int32_t copy, const char** out) noexcept;

}  // namespace dist
