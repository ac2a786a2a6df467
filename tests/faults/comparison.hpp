// SPDX-License-Identifier: Apache-2.0
// The matrix beside what other libraries do of it, as far as they can express it.
#pragma once

#include <string>
#include <vector>

#include "tests/faults/matrix.hpp"

namespace faults {

struct ComparisonOptions {
  std::string list;  // peers.list; "": none
  bool quick = false;
  std::string filter;  // cells whose text holds it
};

// Plays the peers' cells, several at a time, and prints the table beside libdist's own results. Returns it
// all as the members of a JSON object. Nothing in it is judged. Throws std::runtime_error where the list
// cannot be read.
std::string compare(const ComparisonOptions& options, const std::vector<ClassResult>& libdist);

}  // namespace faults
