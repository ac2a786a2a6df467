// SPDX-License-Identifier: Apache-2.0
// Writes the matrix as a table and to a file.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/harness.hpp"
#include "tests/faults/matrix.hpp"

namespace faults {

struct ReportOptions {
  std::string json;   // path of the file; "" = none
  std::string peers;  // peers.list, to play the same cells with other libraries; "" = none
};

// Plays all faults, and prints a line per class as soon as it is complete. Returns whether libdist's results
// are all correct.
bool report(const Options& options, const ReportOptions& to);

// The same for the matrix over workers, which peers do not play.
bool report_workers(const Options& options, const ReportOptions& to);

// The same over workers that are processes. With `namespaces`, plays the faults of links instead. With
// `hold`, a return that is later than documented also counts as an error.
bool report_processes(const Options& options, const ReportOptions& to, bool namespaces, bool hold);

// Returns the value below which this share of the values lies; 0 if there are none.
double quantile(std::vector<double> values, double share);

// Quotes a JSON string.
using bench::quoted;

}  // namespace faults
