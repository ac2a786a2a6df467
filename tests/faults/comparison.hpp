// SPDX-License-Identifier: Apache-2.0
// Compares the matrix with the behaviour of other libraries, as far as they can express it.
#pragma once

#include <string>
#include <vector>

#include "tests/faults/matrix.hpp"
#include "tests/faults/process_matrix.hpp"

namespace faults {

// A fault that peers also play.
struct Compared {
  std::string fault;
  Fault like;     // the fault in one process that concerns the same collectives
  bool goes_on;   // libdist's next collective succeeds
  Tally libdist;  // results of libdist's blocking cells
};
std::vector<Compared> compared(const std::vector<ClassResult>& results);
std::vector<Compared> compared(const std::vector<ProcessResult>& results);

struct ComparisonOptions {
  std::string list;  // peers.list; "" = no peers
  bool quick = false;
  std::string filter;      // plays only cells whose text contains it
  bool processes = false;  // use peers whose ranks are processes connected as if on separate hosts
};

// Plays the cells of the peers, several at a time, and prints the table next to libdist's results. Returns
// all results as members of a JSON object. Does not judge any of them. Throws std::runtime_error if the list
// cannot be read.
std::string compare(const ComparisonOptions& options, const std::vector<Compared>& faults);

}  // namespace faults
