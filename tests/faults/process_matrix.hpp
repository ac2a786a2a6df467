// SPDX-License-Identifier: Apache-2.0
// Plays the cells of a fault with workers that are processes, and counts the results.
#pragma once

#include <vector>

#include "tests/faults/matrix.hpp"
#include "tests/faults/process_job.hpp"
#include "tests/faults/worker_cell.hpp"

namespace faults {

struct ProcessResult : Tally {
  WorkerFault fault;
  Form form;
};

// With `whole`, returns all of {2, 3 workers} x {1, 2 replicas} x who x form; otherwise one cell of each
// form. `seed` determines collective, size and step.
std::vector<WorkerCell> process_cells_of(WorkerFault fault, bool whole, uint64_t seed);

// Plays a cell and adds its result.
void play_and_count(const WorkerCell& cell, const ProcessSetup& setup, Tally& result);

// Returns the results by form. Forms without a cell are omitted.
std::vector<ProcessResult> play_all_processes(WorkerFault fault, const Options& options);

// Returns the documented maximum for a fault's slowest return, in ns; 0 = none.
int64_t most_ns_of(WorkerFault fault);

}  // namespace faults
