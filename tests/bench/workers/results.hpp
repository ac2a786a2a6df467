// SPDX-License-Identifier: Apache-2.0
// The results of the turns: the times of each side at each size, and libdist's compared with the others.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/targets.hpp"
#include "tests/bench/workers/page.hpp"

namespace bench {

// The times of one side at one size.
struct SideTimes {
  std::string library, form;  // the fastest form of a library counts
  std::vector<double> us;     // of one operation, one value for each round
  std::string name() const { return form.empty() ? library : library + ", " + form; }
};

struct SizeTimes {
  Size size;
  std::vector<SideTimes> sides;  // the first is that of libdist
};

// libdist compared with another side: its time divided by the other side's time in the same round.
struct Comparison {
  std::size_t side;
  double low, middle, high;
  MaybeTarget target;  // for libdist's speed divided by the other side's
  Verdict floor, goal;
  double speed() const { return 1 / middle; }
};

// Returns all sizes, still without sides.
std::vector<SizeTimes> no_times(const Page& page);
// Inserts the times of the workers' own turns before the times that `all` has already.
void put_inner_times(const Page& page, std::vector<SizeTimes>& all);
// Returns one comparison for each library. A quick run gets no verdicts.
std::vector<Comparison> compare(const Page& page, const SizeTimes& times);

}  // namespace bench
