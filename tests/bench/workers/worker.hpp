// SPDX-License-Identifier: Apache-2.0
// A worker: a process with one replica that takes its turns in all sides.
#pragma once

#include <vector>

#include "tests/bench/workers/results.hpp"

namespace bench {

// The file descriptor at which a worker finds the page of the process that started it.
constexpr int kPageFd = 3;
// Returns the worker's exit status.
int be_worker(int me);
// The sides that are turns of workers, without times, in the order of their turns: kLibdist, kRoundTrip,
// kExchange, kByHand, Gloo's algorithms.
std::vector<SideTimes> inner_sides();

}  // namespace bench
