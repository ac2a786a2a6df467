// SPDX-License-Identifier: Apache-2.0
// Runs the sides in turn, each time as a new process.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/decode/quota.hpp"
#include "tests/bench/decode/token.hpp"

namespace bench::decode {

struct SideProgram {
  std::string name, path;
};

struct Turn {
  double tokens_a_second, cpus;  // cpus: CPU time over time
  double reduce_us;              // of one all_reduce, from the arrival of the last member; 0 if `late`
  bool late;                     // it completed no token within a minute, so one per minute is an upper bound
};

// Runs a side once, under the quota if it is not nullptr. Throws std::runtime_error if the program fails.
Turn take(const SideProgram& side, const Plan& plan, const Quota* quota);

}  // namespace bench::decode
