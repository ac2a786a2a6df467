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
  bool late;                     // it had no token in a minute: one a minute is more than it does
};

// quota: nullptr: none. Throws std::runtime_error where the program fails.
Turn take(const SideProgram& side, const Plan& plan, const Quota* quota);

}  // namespace bench::decode
