// SPDX-License-Identifier: Apache-2.0
// Strategies that many cells use, and further objects that a cell needs.
#pragma once

#include <cstdint>

#include "tests/faults/cell.hpp"

namespace faults {

// The strategies of cells that have the same threads, number of members, and kind of members.
class Stage {
 public:
  // `clock` is the clock that the test advances.
  Stage(const Cell& cell, dist_clock_fn clock);
  // Returns false if a strategy could not be destroyed.
  bool end();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  bool serves(const Cell& cell) const {
    return cell.threads == threads_ && cell.members == members_ && cell.devices() == devices_;
  }
  dist_strategy* strategy(bool timed) const { return timed ? timed_.strategy : plain_.strategy; }
  // Returns one of two groups of all replicas. Logical devices have one group, which they know themselves.
  const dist_group* group(bool timed, int which) const { return (timed ? timed_ : plain_).groups[which]; }

 private:
  struct Set {
    dist_strategy* strategy = nullptr;
    dist_group* groups[2] = {};
  };
  Set make(dist_clock_fn clock) const;

  const dist_threads threads_;
  const int members_;
  const bool devices_;
  const Set plain_;
  const Set timed_;
};

// The axis along which all logical devices of a replica lie.
inline constexpr char kAxis[] = "device";

}  // namespace faults
