// SPDX-License-Identifier: Apache-2.0
// Plays the cells of a fault and counts the results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/faults/cell.hpp"

namespace faults {

// Results of the cells of one class.
struct Tally {
  int64_t cells = 0;
  int64_t wrong = 0;
  int64_t leftovers = 0;
  std::vector<int64_t> latencies_ns;  // from the cause to each peer's return
  std::vector<std::string> findings;  // the first few

  void find(std::string finding);
};

// Results of a fault in one form.
struct ClassResult : Tally {
  Fault fault;
  Form form;
};

struct Options {
  bool whole = false;
  uint64_t seed = 0;
  std::string filter;  // plays only cells whose text contains it
};

// Returns the results by form. Forms without a cell are omitted.
std::vector<ClassResult> play_all(Fault fault, const Options& options);

// Sets the current cell; "" = none.
void playing(const std::string& cell);
// Ends the process with status 1 if no cell ends for a long time. This is only a guard: no result depends on
// it.
void guard_against_hangs();

}  // namespace faults
