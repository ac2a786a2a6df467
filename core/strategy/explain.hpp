// SPDX-License-Identifier: Apache-2.0
// What a strategy came to on this machine, and why, in words.
#pragma once

#include "core/strategy/strategy.hpp"
#include "core/trace/text.hpp"

namespace dist {

// Lines of "subject: words". Throws std::bad_alloc.
void explain(Strategy& strategy, TextOut& out);

}  // namespace dist
