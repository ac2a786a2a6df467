// SPDX-License-Identifier: Apache-2.0
// Colocation: the promise that variables made next are placed with another. Copy r of every variable of a
// strategy is with replica r (central storage: with the one parameter device), so it is kept by all; what is
// left is to say where it could not be.
#pragma once

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// This thread is with the strategy (in its scope or run), and `with` is a variable of the strategy; one of
// its copies will do but where a variable is more than that. A default strategy asks for neither.
Status enter_colocation(Strategy& strategy, const Value& with);
Status exit_colocation(Strategy& strategy);

// Whether the strategy made the variable that the value is, or shows a copy of.
Status created_by(const Strategy& strategy, const Value& variable, bool* out) noexcept;

// The name of the device that a copy of a variable of the strategy is on.
Status device_of(const Strategy& strategy, const Variable& variable, int32_t copy, const char** out) noexcept;

}  // namespace dist
