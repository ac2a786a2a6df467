// SPDX-License-Identifier: Apache-2.0
// Plays the cells of a fault over workers and counts the results.
#pragma once

#include <vector>

#include "tests/faults/matrix.hpp"
#include "tests/faults/worker_cell.hpp"

namespace faults {

struct WorkerResult : Tally {
  WorkerFault fault;
  When when;
};

// Results by when; those without a cell are left out.
std::vector<WorkerResult> play_all(WorkerFault fault, const Options& options);

}  // namespace faults
