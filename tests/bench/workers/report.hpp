// SPDX-License-Identifier: Apache-2.0
// Prints the results as a table and writes them to a file.
#pragma once

#include <vector>

#include "tests/bench/workers/results.hpp"

namespace bench {

// `skipped` has one line for each peer that took no part or did not finish. Returns true if no floor was
// missed.
bool print(const Page& page, const std::vector<SizeTimes>& all, const std::vector<std::string>& skipped);
// Returns false if the file cannot be written; the reason is then on stderr.
bool write_json(const char* path, const Page& page, const std::vector<SizeTimes>& all,
                const std::vector<std::string>& skipped);

}  // namespace bench
