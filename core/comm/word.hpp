// SPDX-License-Identifier: Apache-2.0
// A word that one thread changes and others wait for: spin for a bounded time, then sleep.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/os/barrier.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"

namespace dist {

// How the members of one group wait.
struct WaitPolicy {
  bool crowded = false;     // more threads than CPUs: give the CPU away instead of spinning
  int lanes = 1;            // members that can run side by side
  bool asymmetric = false;  // core/base/os/barrier.hpp
  int64_t spin_ns =
      60'000;  // then sleep: longer than a late peer's usual delay, far shorter than a time slice
};

// A word and the number of threads that sleep on it, in one cache line.
struct Word {
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};

  // Changes the word and wakes who sleeps on it. What the caller wrote before is visible to who sees `next`.
  void publish(uint32_t next, const WaitPolicy& policy) noexcept {
    if (policy.asymmetric) {
      // The store may linger while sleepers is read: a sleeper's rare_barrier() makes up for it.
      value.store(next, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (sleepers.load(std::memory_order_relaxed) == 0) return;
    } else {
      // Store before load, for the sleeper's increment before its load: one of the two sees the other.
      value.store(next, std::memory_order_seq_cst);
      if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    }
    unpark_all(value);
  }

  // Sleeps unless `ready()`, at most `timeout_ns` (< 0: no limit). May return early. `ready` looks at `value`
  // and at whatever else wake-ups on this word announce.
  template <class Ready>
  void sleep(uint32_t seen, int64_t timeout_ns, const WaitPolicy& policy, Ready&& ready) noexcept {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (policy.asymmetric) rare_barrier();
    if (!ready()) park(value, seen, timeout_ns);
    sleepers.fetch_sub(1, std::memory_order_release);
  }
};

// Spins until done() or until policy.spin_ns is over. True: done. `generous`: gives the CPU away at every
// look.
template <class Done>
bool spin_until(const WaitPolicy& policy, Done&& done, bool generous = false) noexcept {
  const int pauses = policy.crowded || generous ? 1 : 64;
  const int64_t start = steady_now_ns();
  do {
    for (int i = 0; i < pauses; ++i) {
      if (done()) return true;
      spin_pause();
    }
    // On a busy machine the one who is waited for may want this very CPU; on an idle one this comes back at
    // once.
    yield_this_thread();
  } while (steady_now_ns() - start < policy.spin_ns);
  return done();
}

}  // namespace dist
