// SPDX-License-Identifier: Apache-2.0
// Decides which of several members that share a CPU moves away, when, and to which CPUs. These are pure
// functions of numbers. group.hpp asks the system for these numbers and moves the threads.
#pragma once

#include <cstdint>

#include "core/base/os/affinity.hpp"
#include "dist/types.h"

namespace dist {

// A member gives way to the peers whose ranks are below the result. Of two members the one with the higher
// rank moves, so that they do not swap places. A member whose thread is bound to a CPU never moves; if the
// others are bound, the caller's thread moves instead. `threads`: DIST_THREADS_... of the members. `kept`:
// the pool binds its threads to CPUs.
constexpr int gives_way_below(int rank, int size, int threads, bool kept) noexcept {
  const bool is_caller = threads == DIST_THREADS_CALLER && rank == 0;
  if (is_caller) return kept ? size : 0;
  return kept ? 0 : rank;
}

// Counts how often a member finds itself on the CPU of a peer to which it gives way.
class Beside {
 public:
  // The member looks for another CPU when this happens kLimit times in a row, but at most once in
  // kIntervalNs.
  static constexpr int kLimit = 3;
  static constexpr int64_t kIntervalNs = 500'000;

  // Call this when the member is about to wait for a peer. `on_its_cpu`: the peer's slot names the member's
  // CPU. Returns true if the member should look for another CPU now. The clock is read only if the result may
  // be true.
  template <class Now>
  bool found(bool on_its_cpu, Now&& now_ns) noexcept {
    if (!on_its_cpu) {
      times_ = 0;
      return false;
    }
    if (++times_ < kLimit) return false;
    const int64_t now = now_ns();
    if (now - looked_ns_ < kIntervalNs) return false;
    times_ = 0;
    looked_ns_ = now;
    return true;
  }

 private:
  int times_ = 0;
  int64_t looked_ns_ = 0;
};

// Where a member may move, and how often it has moved. Everything except the counters belongs to its own
// thread.
template <class Sync>
struct BasicApart {
  template <class T>
  using Atomic = typename Sync::template Atomic<T>;

  int below = 0;                   // gives_way_below()
  bool moves = false;              // move if there is room; false: only count how often there is room
  const CpuSet* within = nullptr;  // the CPUs that it may use; NULL: all that its thread may use
  Atomic<uint32_t> met{0};         // how often the member looked for room and found some
  Atomic<uint32_t> moved{0};       // how often it moved
};

// The CPUs that a member may move to: those that its thread may use and on which no member runs. Load from
// other processes is ignored, because no system reports it within the microseconds that are available here.
inline CpuSet room_for(CpuSet allowed, const CpuSet& taken) noexcept {
  allowed.remove(taken);
  return allowed;
}

}  // namespace dist
