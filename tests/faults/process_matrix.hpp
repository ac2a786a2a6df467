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

// `whole`: all of {2, 3 workers} x {1, 2 replicas} x who x form, each with a collective, size and step that `seed` draws;
// else one of each form.
std::vector<WorkerCell> process_cells_of(WorkerFault fault, bool whole, uint64_t seed);

// Plays it, and counts it.
void play_and_count(const WorkerCell& cell, const ProcessSetup& setup, Tally& result);

// Results by form; those without a cell are left out.
std::vector<ProcessResult> play_all_processes(WorkerFault fault, const Options& options);

// What the contract says of a fault's slowest return, in ns; 0: nothing.
int64_t most_ns_of(WorkerFault fault);

}  // namespace faults
