// SPDX-License-Identifier: Apache-2.0
// Plays a cell: a run in which one replica does something wrong, and what each replica saw of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/faults/cell.hpp"

namespace faults {

// dist_last_error_info(), kept for another thread.
struct Report {
  dist_status code = DIST_OK;
  int32_t replica = -1;
  int32_t collective = 0;
  int32_t group = 0;
  int64_t sequence = 0;
  std::string message, tag, expected, received, hint;
};
Report latest_report();

// Nanoseconds of a clock that nobody moves by hand.
int64_t now_ns();

// Where one replica is. `kInside` is known where the clock is moved by hand: then waiting looks at it.
enum Phase : int { kAway, kComing, kInside, kBack };

struct alignas(128) Side {
  std::atomic<int> phase{kAway};
  dist_status status = DIST_OK;  // of the call that ended the script
  Report report;
  int64_t returned_ns = 0;
};

// Strategies of one (threads, replicas), which serve many cells; and what a cell needs beside them.
class Stage {
 public:
  Stage(int32_t threads, int replicas);
  // False: a strategy could not be ended.
  bool end();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  dist_strategy* strategy(bool timed) const { return timed ? timed_.strategy : plain_.strategy; }
  const dist_group* group(bool timed, int which) const { return (timed ? timed_ : plain_).groups[which]; }

 private:
  struct Set {
    dist_strategy* strategy = nullptr;
    dist_group* groups[2] = {};
  };
  Set make(int32_t threads, int replicas, bool timed);

  Set plain_;
  Set timed_;
};

struct Outcome {
  Side sides[kMostReplicas];
  std::atomic<int64_t> cause_ns{0};
  dist_status run = DIST_OK;
  Report run_report;
  std::string trouble;  // what went wrong outside of the replicas' own calls
};

void play(const Stage& stage, const Cell& cell, Outcome& out);

// The same collective with nobody doing anything wrong, and a sum that is looked at; "" or what went wrong.
std::string play_well(const Stage& stage, const Cell& cell);

// The tag of the cell's collective, and of those around it.
std::string tag_of(const Cell& cell, const char* which);

}  // namespace faults
