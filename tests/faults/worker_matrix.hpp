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

// Returns the results by `when`. Those without a cell are omitted.
std::vector<WorkerResult> play_all(WorkerFault fault, const Options& options);

}  // namespace faults
