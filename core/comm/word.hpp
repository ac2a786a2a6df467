// SPDX-License-Identifier: Apache-2.0
// A word that one thread changes and others wait for: spin for a bounded time, then sleep.
#pragma once

#include <cstdint>

#include "core/comm/sync.hpp"

namespace dist {

// How the members of one group wait.
struct WaitPolicy {
  bool oversubscribed = false;  // more threads than CPUs: give the CPU away instead of spinning
  int lanes = 1;                // members that can run side by side
  bool asymmetric = false;      // core/base/os/barrier.hpp
  int64_t spin_ns =
      60'000;  // then sleep: longer than a late peer's usual delay, far shorter than a time slice
};

// A word and the number of threads that sleep on it, in one cache line.
//
// Publisher and sleeper each store, then look at what the other stores; if neither saw the other, the sleeper
// would sleep on. Symmetric: both stores and both looks are seq_cst, hence in one total order, and the later
// store's owner sees the earlier one. Asymmetric: the publisher is ordered by the compiler alone, and the
// sleeper's rare_barrier() falls either after the publisher's look, hence after its store, which the
// sleeper's look then sees; or before that look, which then sees the sleeper.
template <class Sync>
struct BasicWord {
  template <class T>
  using Atomic = typename Sync::template Atomic<T>;

  Atomic<uint32_t> value{0};
  Atomic<uint32_t> sleepers{0};

  // Changes the word and wakes who sleeps on it. What the caller wrote before is visible to who sees `next`.
  void publish(uint32_t next, const WaitPolicy& policy) noexcept {
    if (policy.asymmetric) {
      // release: for the acquire of who sees `next`, and what the caller wrote before.
      value.store(next, std::memory_order_release);
      Sync::compiler_barrier();
      // relaxed: a number is read, nothing that it announces.
      if (sleepers.load(std::memory_order_relaxed) == 0) return;
    } else {
      // seq_cst: against the sleeper's increment and look; includes the release.
      value.store(next, std::memory_order_seq_cst);
      if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    }
    Sync::unpark_all(value);
  }

  // The same from any of several threads: the word counts.
  void advance() noexcept {
    // seq_cst: against the sleeper's increment and look; a read-modify-write is ordered without a barrier's
    // help.
    value.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) Sync::unpark_all(value);
  }

  // Sleeps unless `ready()`, at most `timeout_ns` (< 0: no limit). May return early. `ready` looks, seq_cst,
  // at `value` and at whatever else wake-ups on this word announce.
  template <class Ready>
  void sleep(uint32_t seen, int64_t timeout_ns, const WaitPolicy& policy, Ready&& ready) noexcept {
    // seq_cst: against the publisher's store and look.
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (policy.asymmetric) Sync::rare_barrier();
    // A change of `value` between ready() and sleep makes park() return: it compares with `seen`.
    if (!ready()) Sync::park(value, seen, timeout_ns);
    // release: who counts no sleeper any more (wake_all()) counts none that still looks.
    sleepers.fetch_sub(1, std::memory_order_release);
  }
};

using Word = BasicWord<OsSync>;

// Spins until done() or until policy.spin_ns is over. True: done. `generous`: gives the CPU away at every
// look.
template <class Sync = OsSync, class Done>
bool spin_until(const WaitPolicy& policy, Done&& done, bool generous = false) noexcept {
  if constexpr (Sync::kSpins) {
    const int pauses = policy.oversubscribed || generous ? 1 : 64;
    const int64_t start = Sync::now_ns();
    do {
      for (int i = 0; i < pauses; ++i) {
        if (done()) return true;
        Sync::pause();
      }
      // On a busy machine the one who is waited for may want this very CPU; on an idle one this comes back at
      // once.
      Sync::yield();
    } while (Sync::now_ns() - start < policy.spin_ns);
  }
  return done();
}

}  // namespace dist
