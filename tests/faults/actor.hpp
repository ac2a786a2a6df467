// SPDX-License-Identifier: Apache-2.0
// The script of each member of a cell, including the fault of the guilty one.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "tests/faults/play.hpp"

namespace faults {

inline constexpr int64_t kTimeoutNs = 1'000'000'000;  // on the clock of the test
// Returns the time of the clock that the test advances. A member that reads it is waiting.
int64_t read_clock(void*);

// State that all threads of a cell share.
struct Scene {
  const Stage& stage;
  const Cell& cell;
  Outcome& out;
  std::atomic<int> rounds{0};               // of the guilty member, if all members repeat the collective
                                            // until they are stopped
  std::atomic<bool> cancelled{false};       // from outside
  std::atomic<bool> run_is_back{false};     // the members' run
  std::atomic<bool> beside_is_back{false};  // the other replica has returned

  // Waits until all members except the guilty one and `beside` have reached the phase.
  void await_peers(int phase, int beside = -1) const {
    for (int r = 0; r < cell.members; ++r) {
      if (r == cell.guilty || r == beside) continue;
      while (out.sides[r].phase.load() < phase) sched_yield();
    }
  }
  // Waits until all peers sleep in the collective. A run that ends waits for the reports of sleeping replicas
  // only.
  void await_sleep_of_peers() const;
  // Returns one of two different groups of all members. Logical devices have one along their axis, and NULL.
  const dist_group* group(dist_replica* member, int which) const;
  void cause() const { out.cause_ns.store(now_ns()); }
  int late() const { return (cell.guilty + 1) % cell.members; }  // of kWorkCancelled
};

// Whether all members repeat the collective until they are stopped.
bool goes_on_until_stopped(const Cell& cell);

// Runs one member's part.
dist_status act(dist_replica* member, void* scene);
// Runs a member's part in a cell without a fault: the collective, and a sum whose result is checked.
dist_status act_well(dist_replica* member, void* scene);

}  // namespace faults
