// SPDX-License-Identifier: Apache-2.0
// Plays one case in this process and returns its outcome.
#pragma once

#include <string>

#include "cases.hpp"
#include "replay.hpp"

namespace golden {

using ReplayFn = void (*)(Replay& replay);

// Returns one line of JSON:
//     {"recorded": {...}}                  the replay ended; what it recorded
//     {"status": 3, "message": "..."}      libdist, or the user's program, failed
//     {"unknown": "..."}                   the replay does not know what to do
//     {"malformed": "..."}                 the case does not have the expected format
// and "afterwards": "..." if the strategy could not be used or destroyed after that.
std::string play(ReplayFn replay, const Case& one);

}  // namespace golden
