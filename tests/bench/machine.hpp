// SPDX-License-Identifier: Apache-2.0
// The machine and configuration of a run. Without them, timings are meaningless.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bench {

using Facts = std::vector<std::pair<std::string, std::string>>;  // in the order of the JSON file

Facts machine_facts();
std::string machine_line();

}  // namespace bench
