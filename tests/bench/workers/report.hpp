// SPDX-License-Identifier: Apache-2.0
// The table and the file.
#pragma once

#include <vector>

#include "tests/bench/workers/results.hpp"

namespace bench {

// `skipped`: peers that took no part, or not to the end, a line each.
// True: no floor was missed.
bool print(const Page& page, const std::vector<SizeTimes>& all, const std::vector<std::string>& skipped);
// False, with a word on stderr, where it cannot be written.
bool write_json(const char* path, const Page& page, const std::vector<SizeTimes>& all,
                const std::vector<std::string>& skipped);

}  // namespace bench
