// SPDX-License-Identifier: Apache-2.0
// Prints the report of `./dev golden`: a table of equal cases, and the first differences in readable form.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "session.hpp"

namespace golden {

struct ReportOptions {
  std::vector<std::string> directories;
  std::string list;  // differences.md
  std::string own;   // the project's own copy
  Selection selection;
  std::size_t shown = 10;            // maximum number of differences per area that are printed in full
  std::chrono::seconds longest{60};  // limit for one case
  bool grpc = has_grpc();            // whether cases that need it are played
};

// Prints to `out`. Returns 0; 1 if there is a difference that is not listed, something that the replay does
// not know, a crash, or a stale row in the list; 2 if something cannot be read.
int report(const ReportOptions& options, std::FILE* out);

// Returns three lines: "id: result.values[0]", the expected value, and libdist's value.
std::string describe(const Area& area, const Case& one, const Difference& difference);

}  // namespace golden
