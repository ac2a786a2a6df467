// SPDX-License-Identifier: Apache-2.0
// A word that one thread changes while others wait for the change. They spin for a bounded time, then sleep.
#pragma once

#include <cstdint>

#include "core/comm/sync.hpp"

namespace dist {

// How the members of one group wait.
struct WaitPolicy {
  bool oversubscribed = false;  // more threads than CPUs: give the CPU away instead of spinning
  int lanes = 1;                // how many members can run at the same time
  bool asymmetric = false;      // core/base/os/barrier.hpp
  int64_t spin_ns =
      60'000;  // then sleep: longer than a late peer's usual delay, far shorter than a time slice
};

// A word and the number of threads that sleep on it, in one cache line.
//
// Publisher and sleeper each store, then look at what the other stores. If neither saw the other's store, the
// sleeper would not be woken. A policy excludes this in one of two ways:
//
//   - Symmetric: both stores and both looks are seq_cst, hence in one total order. The thread that stores
//     later sees the other's store.
//   - Asymmetric: only the compiler keeps the publisher's store and look in order. The sleeper calls
//     rare_barrier() between its own. If the barrier comes after the publisher's look, it also comes after
//     the publisher's store, which the sleeper's look then sees. If it comes before, the publisher's look
//     sees the sleeper.
template <class Sync>
struct BasicWord {
  template <class T>
  using Atomic = typename Sync::template Atomic<T>;

  Atomic<uint32_t> value{0};
  Atomic<uint32_t> sleepers{0};

  // Changes the word and wakes the threads that sleep on it. What the caller wrote before is visible to each
  // thread that sees `next`.
  void publish(uint32_t next, const WaitPolicy& policy) noexcept {
    if (policy.asymmetric) {
      // release: publishes what the caller wrote before to threads that see `next` by an acquire load.
      value.store(next, std::memory_order_release);
      Sync::compiler_barrier();
      // relaxed: only the number is used; no data comes with it.
      if (sleepers.load(std::memory_order_relaxed) == 0) return;
    } else {
      // seq_cst: in one order with the sleeper's increment and look. It is a release store too.
      value.store(next, std::memory_order_seq_cst);
      if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    }
    Sync::unpark_all(value);
  }

  // The same for a word that several threads change: it counts their calls.
  void advance() noexcept {
    // seq_cst: in one order with the sleeper's increment and look. A read-modify-write needs no barrier for
    // that.
    value.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) Sync::unpark_all(value);
  }

  // Sleeps unless ready() is true, for at most `timeout_ns` (< 0: no limit). May return early. ready() loads,
  // seq_cst, `value` and everything else for whose change this word is woken.
  template <class Ready>
  void sleep(uint32_t seen, int64_t timeout_ns, const WaitPolicy& policy, Ready&& ready) noexcept {
    // seq_cst: in one order with the publisher's store and look.
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (policy.asymmetric) Sync::rare_barrier();
    // A change of `value` between ready() and sleep makes park() return: it compares with `seen`.
    if (!ready()) Sync::park(value, seen, timeout_ns);
    // release: when another thread reads 0 sleepers (wake_all()), all looks of this one are over.
    sleepers.fetch_sub(1, std::memory_order_release);
  }
};

using Word = BasicWord<OsSync>;

// Spins until done() is true or policy.spin_ns is over; returns done(). `generous`: yields after every look.
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
      // On a busy machine the thread that is waited for may need this CPU. On an idle one yield() returns at
      // once.
      Sync::yield();
    } while (Sync::now_ns() - start < policy.spin_ns);
  }
  return done();
}

}  // namespace dist
