// SPDX-License-Identifier: Apache-2.0
// A worker: a process with one replica that takes its turns in all sides.
#pragma once

#include <vector>

#include "tests/bench/workers/results.hpp"

namespace bench {

// Where a worker finds the page of whoever started it.
constexpr int kPageFd = 3;
// Its exit status.
int be_worker(int me);
// The sides that are turns of workers, in the order of their turns: kLibdist, kRoundTrip, kExchange, Gloo's algorithms.
// Without times.
std::vector<SideTimes> inner_sides();

}  // namespace bench
