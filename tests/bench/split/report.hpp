// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/bench/split/turns.hpp"

namespace bench::split {

// Turns that follow one another: on one device or thread, and on two.
struct Round {
  Turn devices[2], threads[2];  // threads: 0 us if ONNX Runtime does not take part
};

// Whether ONNX Runtime's two threads are fast enough for the round to be judged.
bool judged(const Round& round);

// The names of what was measured; an empty name means that it did not take part.
struct Sides {
  std::string engine, peer, missing;  // missing: why ONNX Runtime does not take part
  float difference = 0;
};

// Prints the table. Returns false if a floor was missed.
bool print(const std::vector<Round>& rounds, const Sides& sides, bool quick);

}  // namespace bench::split
