// SPDX-License-Identifier: Apache-2.0
// Compares the matrix with the behaviour of other libraries, as far as they can express it.
#pragma once

#include <string>
#include <vector>

#include "tests/faults/matrix.hpp"
#include "tests/faults/process_matrix.hpp"

namespace faults {

// A fault that peers play, too.
struct Compared {
  std::string fault;
  Fault like;     // in one process: it has to do with the same collectives
  bool goes_on;   // libdist's collective after it is well
  Tally libdist;  // its blocking cells
};
std::vector<Compared> compared(const std::vector<ClassResult>& results);
std::vector<Compared> compared(const std::vector<ProcessResult>& results);

struct ComparisonOptions {
  std::string list;  // peers.list; "": none
  bool quick = false;
  std::string filter;  // cells whose text holds it
  bool processes =
      false;  // on peers whose ranks are processes that reach each other as on hosts of their own
};

// Plays the peers' cells, several at a time, and prints the table beside libdist's own results. Returns it
// all as the members of a JSON object. Nothing in it is judged. Throws std::runtime_error where the list
// cannot be read.
std::string compare(const ComparisonOptions& options, const std::vector<Compared>& faults);

}  // namespace faults
