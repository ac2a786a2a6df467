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
  std::size_t shown = 10;            // differences of an area that are spelled out
  std::chrono::seconds longest{60};  // of one case
  bool grpc = has_grpc();            // whether cases that need it are played
};

// Prints to `out`. 0; 1 for a difference that the list has not, what the replay does not know, a crash, or an
// entry of the list that is stale; 2 where something cannot be read.
int report(const ReportOptions& options, std::FILE* out);

// "id: result.values[0]", what was expected and what came, on three lines.
std::string describe(const Area& area, const Case& one, const Difference& difference);

}  // namespace golden
