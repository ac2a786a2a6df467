// SPDX-License-Identifier: Apache-2.0
// Plays a cell: a run in which one member makes a mistake, and the observations of each member.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/faults/cell.hpp"
#include "tests/faults/stage.hpp"

namespace faults {

// A copy of dist_last_error_info() for another thread.
struct Report {
  dist_status code = DIST_OK;
  int32_t replica = -1;
  int32_t device = -1;
  int32_t collective = 0;
  int32_t group = 0;
  int64_t sequence = 0;
  std::string message, tag, expected, received, hint;
  int32_t worker = -1;
};
Report latest_report();

// Returns the nanoseconds of a real clock.
int64_t now_ns();

// How far a member is. `kInside` is known only with the clock of the test, which waiting members read.
enum Phase : int { kAway, kComing, kInside, kBack };

struct alignas(128) Side {
  std::atomic<int> phase{kAway};
  std::atomic<int> thread{0};    // the system's number of the thread that arrives
  dist_status status = DIST_OK;  // result of the call that ended the script
  Report report;
  int64_t returned_ns = 0;
};

struct Outcome {
  Side sides[kMostMembers];
  std::atomic<int64_t> cause_ns{0};
  dist_status run = DIST_OK;  // the run of all members
  Report run_report;
  // If the members are logical devices: the run of the replicas around them, and the run of the other
  // replica's devices.
  dist_status around = DIST_OK;
  Report around_report;
  dist_status beside = DIST_OK;
  Report beside_report;
  std::string trouble;  // errors outside the members' own calls
};

void play(const Stage& stage, const Cell& cell, Outcome& out);

// Plays the same collective without a fault, and a sum whose result is checked. Returns "" or what went
// wrong.
std::string play_well(const Stage& stage, const Cell& cell);

// Returns the tag of the collective under test, or of those around it.
std::string tag_of(const Cell& cell, const char* which);

}  // namespace faults
