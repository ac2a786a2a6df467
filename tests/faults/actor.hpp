// SPDX-License-Identifier: Apache-2.0
// The script of each member of a cell, including the fault of the guilty one.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "tests/faults/play.hpp"

namespace faults {

inline constexpr int64_t kTimeoutNs = 1'000'000'000;  // by the hand-moved clock
// Moved by hand; looking at it tells who waits.
int64_t read_clock(void*);

// What all threads of a played cell share.
struct Scene {
  const Stage& stage;
  const Cell& cell;
  Outcome& out;
  std::atomic<int> rounds{0};               // of the guilty one, where all go on until they are stopped
  std::atomic<bool> cancelled{false};       // from outside
  std::atomic<bool> run_is_back{false};     // the members'
  std::atomic<bool> beside_is_back{false};  // the other replica's devices', where members are devices

  // Waits until all members but the guilty one, and `beside` it, are that far.
  void await_peers(int phase, int beside = -1) const {
    for (int r = 0; r < cell.members; ++r) {
      if (r == cell.guilty || r == beside) continue;
      while (out.sides[r].phase.load() < phase) sched_yield();
    }
  }
  // Waits until all peers sleep in the collective. A run that ends waits for the reports of sleeping replicas only.
  void await_sleep_of_peers() const;
  // Two different groups of all members: logical devices have that along their axis, and none.
  const dist_group* group(dist_replica* member, int which) const;
  void cause() const { out.cause_ns.store(now_ns()); }
  int late() const { return (cell.guilty + 1) % cell.members; }  // of kWorkCancelled
};

// Whether all go on with the collective until somebody stops them.
bool goes_on_until_stopped(const Cell& cell);

// One member's part.
dist_status act(dist_replica* member, void* scene);
// Where nobody does anything wrong: the collective, and a sum that is looked at.
dist_status act_well(dist_replica* member, void* scene);

}  // namespace faults
