// SPDX-License-Identifier: Apache-2.0
// The results that every member, and the run, must receive in a cell.
#pragma once

#include <string>

#include "tests/faults/play.hpp"

namespace faults {

// Returns "", or a description of the first wrong result with its report.
std::string judge(const Cell& cell, const Outcome& outcome);

}  // namespace faults
