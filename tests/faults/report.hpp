// SPDX-License-Identifier: Apache-2.0
// Writes the matrix as a table and to a file.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/harness.hpp"
#include "tests/faults/matrix.hpp"

namespace faults {

struct ReportOptions {
  std::string json;   // a file, "": none
  std::string peers;  // peers.list, to play what it can of the matrix on them, too; "": none
};

// Plays all faults and prints a line a class as it goes. Whether all is well with libdist.
bool report(const Options& options, const ReportOptions& to);

// The same of the matrix over workers, which no peers play.
bool report_workers(const Options& options, const ReportOptions& to);

// The same over workers that are processes. `namespaces`: what their links can do instead. `hold`: it is not well either where
// the slowest return is later than the contract says.
bool report_processes(const Options& options, const ReportOptions& to, bool namespaces, bool hold);

// The value below which that share of them lies; 0 of none.
double quantile(std::vector<double> values, double share);

// As JSON has it.
using bench::quoted;

}  // namespace faults
