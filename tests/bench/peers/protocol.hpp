// SPDX-License-Identifier: Apache-2.0
// What dist_bench and a peer's process say to each other: one line each way, its words separated by tabs.
//
//   peer:   @ready NAME FORM...            once; a form is a way of using the library, "" its only one
//   bench:  measure FORM OPERATION DTYPE BYTES LAYOUT PACE ITERATIONS BATCHES
//   peer:   @times MICROSECONDS...  or  @no WHY (it has no such thing)  or  @failed WHY (a wrong result)
//
//   bench:  quit                           or the end of the pipe, which not every launcher hands on
//
// A peer answers a command that it does not know with @no. Between two commands all of its threads sleep.
// Lines that do not begin with @ are its libraries' own and skipped.
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
// Nothing where the line is another command, or has a word that this side does not know.
std::optional<Request> parse_request(const std::string& line);

}  // namespace bench::peers
