// SPDX-License-Identifier: Apache-2.0
// The table.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/servers/rows.hpp"

namespace bench::servers {

// `skipped`: peers that took no part, or not to the end, a line each; a quick run judges nothing. True: no floor was missed.
bool print(const std::vector<RowTimes>& rows, bool quick, const std::vector<std::string>& skipped);

}  // namespace bench::servers
