// SPDX-License-Identifier: Apache-2.0
// The table.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/servers/rows.hpp"

namespace bench::servers {

// `skipped` has one line for each peer that did not take part, or not until the end. A quick run judges
// nothing. Returns true if no floor was missed.
bool print(const std::vector<RowTimes>& rows, bool quick, const std::vector<std::string>& skipped);

}  // namespace bench::servers
