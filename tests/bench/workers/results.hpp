// SPDX-License-Identifier: Apache-2.0
// The results of the turns: the times of each side at each size, and libdist's compared with the others.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/targets.hpp"
#include "tests/bench/workers/page.hpp"

namespace bench {

// One side at one size.
struct SideTimes {
  std::string library, form;  // the fastest form of a library counts
  std::vector<double> us;     // of one operation, a round each
  std::string name() const { return form.empty() ? library : library + ", " + form; }
};

struct SizeTimes {
  Size size;
  std::vector<SideTimes> sides;  // libdist's is the first
};

// libdist beside one of the sides: its time over the other's, of turns of one round.
struct Comparison {
  std::size_t side;
  double low, middle, high;
  MaybeTarget target;  // of libdist's speed over its
  Verdict floor, goal;
  double speed() const { return 1 / middle; }
};

// The sizes, with none of the sides yet.
std::vector<SizeTimes> no_times(const Page& page);
// The turns of the workers themselves, before what there is already.
void put_inner_times(const Page& page, std::vector<SizeTimes>& all);
// One for each library; a quick run judges nothing.
std::vector<Comparison> compare(const Page& page, const SizeTimes& times);

}  // namespace bench
