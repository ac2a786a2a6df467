// SPDX-License-Identifier: Apache-2.0
// The memory that the processes of dist_bench_overlap share. A side is a library whose processes, one for
// each worker, have turns together. A process of a side waits asleep while other sides have their turns.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "tests/bench/meeting.hpp"

namespace bench::overlap {

constexpr int kMostWorkers = 8, kMostSides = 5, kMostSteps = 8;
// The descriptor of the page in a process.
constexpr int kPageFd = 3;

struct Turn {
  int steps = 0;  // 0 = there are no more turns
  bool device = false;
  bool communicates = false;
};

// The measurements of one process in one step.
struct Step {
  double begin_us, end_us, cpu_us;
};

struct Side {
  std::array<char, 128> name{};  // a peer writes its own
  std::array<char, 512> why{};
  std::atomic<bool> failed{false};
  Meeting inside, outside;  // for its processes; for these and the process that schedules turns
  Turn turn;
  Step steps[kMostWorkers][kMostSteps];

  // Records the first failure. After that, no process waits for this side.
  void fail(const std::string& what);
};

struct Page {
  int workers = 2;
  int share = 1;  // tensors have this fraction of their elements
  double compute_us = 0, loops_per_us = 0;
  std::array<Side, kMostSides> sides;
};

}  // namespace bench::overlap
