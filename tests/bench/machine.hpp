// SPDX-License-Identifier: Apache-2.0
// The machine and configuration of a run. Without them, timings are meaningless.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bench {

using Facts = std::vector<std::pair<std::string, std::string>>;  // in JSON's order

Facts machine_facts();
std::string machine_line();

}  // namespace bench
