// SPDX-License-Identifier: Apache-2.0
// Separates members that share a CPU: which member gives way, when, and to which CPUs. These are pure
// functions of numbers. group.hpp asks the system for them and moves the threads.
#pragma once

#include <cstdint>

#include "core/base/os/affinity.hpp"
#include "dist/types.h"

namespace dist {

// A member gives way to those peers whose ranks are below the result. Of two members the higher rank does, so that they
// do not change places; but whose thread is kept on a CPU never does, and then the caller does to all of those.
// `threads`: DIST_THREADS_... of the members.
constexpr int gives_way_below(int rank, int size, int threads, bool kept) noexcept {
  const bool is_caller = threads == DIST_THREADS_CALLER && rank == 0;
  if (is_caller) return kept ? size : 0;
  return kept ? 0 : rank;
}

// How long a member has been beside a peer, of those that it gives way to.
class Beside {
 public:
  // It looks for another CPU when it is beside one for the kLimit-th time in a row, at most once in kIntervalNs.
  static constexpr int kLimit = 3;
  static constexpr int64_t kIntervalNs = 500'000;

  // The member is about to wait for a peer that is on its CPU, or is not. True: it looks for another CPU now. The clock is
  // read where the answer may be true.
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

// What a member does then, and did. All but the counts is its own thread's.
template <class Sync>
struct BasicApart {
  template <class T>
  using Atomic = typename Sync::template Atomic<T>;

  int below = 0;                   // gives_way_below()
  bool moves = false;              // it moves where there is room, or only counts that there is
  const CpuSet* within = nullptr;  // where it may be; NULL: wherever its thread may
  Atomic<uint32_t> met{0};         // how often it looked, and there was room
  Atomic<uint32_t> moved{0};       // how often it moved there
};

// The CPUs that a member may move to: of those that its thread may use, without the ones that members are on. Idle is
// what no member is on: how busy others keep a CPU, no system tells in the microseconds in which it is asked here.
inline CpuSet room_for(CpuSet allowed, const CpuSet& taken) noexcept {
  allowed.remove(taken);
  return allowed;
}

}  // namespace dist
