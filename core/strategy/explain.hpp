// SPDX-License-Identifier: Apache-2.0
// explain(): describes how a strategy uses this machine, and why. It writes a summary of three lines, then groups of details.
#pragma once

#include "core/base/text_out.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

// Throws std::bad_alloc.
void explain(Strategy& strategy, TextOut& out);

}  // namespace dist
