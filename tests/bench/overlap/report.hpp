// SPDX-License-Identifier: Apache-2.0
// The results: the table and the file.
#pragma once

#include <string>
#include <vector>

namespace bench::overlap {

// Times of one side by round, in milliseconds.
struct Times {
  std::vector<double> step, compute_only,
      cpu;  // cpu: CPU time of a process in a step, beyond that of the computation
  double exposed() const;
};

struct SideResult {
  std::string name, library;
  Times times[2];  // the computation is on the CPU, or on a device
};

struct Results {
  int workers = 0, rounds = 0;
  double compute_ms = 0, others = 0;  // others: number of CPUs that other programs used
  bool quick = false;
  std::vector<std::size_t> buckets;  // elements
  std::vector<SideResult> sides;     // libdist's come first
  std::vector<std::string> skipped;  // one line for each peer that did not take part, or not until the end
};

// Returns true if no limit was missed.
bool print(const Results& results);
// Returns false, with a message on stderr, if the file cannot be written.
bool write_json(const char* path, const Results& results);

}  // namespace bench::overlap
