// SPDX-License-Identifier: Apache-2.0
// Describes in words how a strategy uses this machine, and why.
#pragma once

#include "core/strategy/strategy.hpp"
#include "core/trace/text.hpp"

namespace dist {

// Writes lines of the form "subject: text". Throws std::bad_alloc.
void explain(Strategy& strategy, TextOut& out);

}  // namespace dist
