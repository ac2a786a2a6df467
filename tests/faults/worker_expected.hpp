// SPDX-License-Identifier: Apache-2.0
// The results that every replica, and the run of every worker, must receive in a cell over workers.
#pragma once

#include <string>

#include "tests/faults/worker_play.hpp"

namespace faults {

// Returns "", or a description of the first wrong result with its report.
std::string judge(const WorkerCell& cell, const WorkerOutcome& outcome);

}  // namespace faults
