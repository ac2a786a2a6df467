// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/bench/split/turns.hpp"

namespace bench::split {

// The turns that follow one another: on one device or thread, and on two.
struct Round {
  Turn devices[2], threads[2];  // threads: 0 us where ONNX Runtime takes no part
};

// ONNX Runtime's two threads are so fast that the round is judged.
bool judged(const Round& round);

// What was measured beside what: an empty name is nobody.
struct Sides {
  std::string engine, peer, missing;  // missing: why ONNX Runtime takes no part
  float difference = 0;
};

// Prints the table; false where a floor was missed.
bool print(const std::vector<Round>& rounds, const Sides& sides, bool quick);

}  // namespace bench::split
