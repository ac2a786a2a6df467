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

// dist_last_error_info(), kept for another thread.
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

// Nanoseconds of a clock that nobody moves by hand.
int64_t now_ns();

// Where one member is. `kInside` is known where the clock is moved by hand: then waiting looks at it.
enum Phase : int { kAway, kComing, kInside, kBack };

struct alignas(128) Side {
  std::atomic<int> phase{kAway};
  std::atomic<int> thread{0};    // the system's number of the thread that comes
  dist_status status = DIST_OK;  // of the call that ended the script
  Report report;
  int64_t returned_ns = 0;
};

struct Outcome {
  Side sides[kMostMembers];
  std::atomic<int64_t> cause_ns{0};
  dist_status run = DIST_OK;  // of all members
  Report run_report;
  // Where members are logical devices: the run of replicas around theirs, and that of the other replica's.
  dist_status around = DIST_OK;
  Report around_report;
  dist_status beside = DIST_OK;
  Report beside_report;
  std::string trouble;  // what went wrong outside of the members' own calls
};

void play(const Stage& stage, const Cell& cell, Outcome& out);

// The same collective with nobody doing anything wrong, and a sum that is looked at; "" or what went wrong.
std::string play_well(const Stage& stage, const Cell& cell);

// The tag of the cell's collective, and of those around it.
std::string tag_of(const Cell& cell, const char* which);

}  // namespace faults
