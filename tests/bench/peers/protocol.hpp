// SPDX-License-Identifier: Apache-2.0
// The protocol between dist_bench and a peer's process: one line in each direction, with words separated by
// tabs.
//
//   peer:   @ready NAME FORM...            once; a form is a way to use the library, "" if there is only one
//   bench:  measure FORM OPERATION DTYPE BYTES LAYOUT PACE ITERATIONS BATCHES
//   peer:   @times MICROSECONDS...  or  @no WHY (not supported)  or  @failed WHY (a wrong result)
//
//   bench:  quit                           or the end of the pipe, which some launchers do not forward
//
// A peer answers unknown commands with @no. Between two commands, all of its threads sleep. The bench ignores
// lines that do not begin with @: they come from the peer's libraries.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/bench/harness.hpp"

namespace bench::peers {

struct Request {
  std::string form;
  Operation operation = Operation::kAllReduce;
  dist_dtype dtype = DIST_F32;
  size_t bytes = 0;
  Layout layout = Layout::kInPlace;
  Plan plan;
};

using Words = std::vector<std::string>;
Words split(const std::string& line);
std::string join(const Words& words);

// The command "measure".
std::string to_line(const Request& request);
// Returns nothing if the line is another command or contains an unknown word.
std::optional<Request> parse_request(const std::string& line);

}  // namespace bench::peers
