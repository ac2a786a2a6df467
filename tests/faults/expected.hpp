// SPDX-License-Identifier: Apache-2.0
// The results that every member, and the run, must receive in a cell.
#pragma once

#include <string>

#include "tests/faults/play.hpp"

namespace faults {

// "" or what is wrong with it, with the report at fault.
std::string judge(const Cell& cell, const Outcome& outcome);

}  // namespace faults
