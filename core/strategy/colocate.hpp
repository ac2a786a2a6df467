// SPDX-License-Identifier: Apache-2.0
// Colocation: the promise that variables made next are placed with another. Copy r of every variable of a
// strategy is with replica r (central storage: with the one parameter device), so the promise always holds;
// these functions report where it could not.
#pragma once

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// OK where this thread is in the strategy's scope or run, and `with` is a variable of the strategy. A copy of
// a variable is accepted too, unless the variable is mirrored. A default strategy requires neither.
Status enter_colocation(Strategy& strategy, const Value& with);
Status exit_colocation(Strategy& strategy);

// Whether the strategy made the variable that the value is, or shows a copy of.
Status created_by(const Strategy& strategy, const Value& variable, bool* out) noexcept;

// The name of the device that a copy of a variable of the strategy is on.
Status device_of(const Strategy& strategy, const Variable& variable, int32_t copy, const char** out) noexcept;

}  // namespace dist
