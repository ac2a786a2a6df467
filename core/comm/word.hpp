// SPDX-License-Identifier: Apache-2.0
// A word that one thread changes while others wait for the change. They spin for a bounded time, then sleep.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/comm/sync.hpp"

namespace dist {

// How the members of a group wait.
struct WaitPolicy {
  bool oversubscribed = false;  // more threads than CPUs: yield instead of spinning
  int stripes = 1;              // number of members that can run at the same time
  bool asymmetric = false;      // use the barriers of core/base/os/barrier.hpp
  int64_t spin_ns = 60'000;     // then sleep; see Patience
};

// How long one thread spins before it sleeps. Waking a thread takes about 50 us. A member whose peers compute
// for different times between two collectives would pay that each time, so it spins longer as long as its
// waits prove short.
class Patience {
 public:
  // Much shorter than a time slice.
  static constexpr int64_t kMostNs = 1'000'000;

  WaitPolicy extend(WaitPolicy policy) const noexcept {
    if (!policy.oversubscribed) policy.spin_ns = std::max(policy.spin_ns, ns_);
    return policy;
  }
  // Call this after a wait in which the thread slept.
  void slept(int64_t waited_ns) noexcept {
    ns_ = waited_ns <= kMostNs ? std::clamp<int64_t>(2 * waited_ns, 0, kMostNs) : ns_ / 2;
  }

 private:
  int64_t ns_ = 0;
};

// A word and the number of threads that sleep on it, in one cache line.
//
// Publisher and sleeper each store and then load what the other stores. If neither saw the other's store, the
// sleeper would never be woken. The policy selects one of two ways to prevent that:
//
// - Symmetric: both stores and both loads are seq_cst, so there is one total order, and the thread that
//   stores second sees the other's store.
// - Asymmetric: only the compiler keeps the publisher's store and load in order. The sleeper calls
//   rare_barrier() between its store and load. If the barrier takes effect after the publisher's load, it is
//   also after the publisher's store, which the sleeper's load then sees. If it takes effect before, the
//   publisher's load sees the sleeper.
template <class Sync>
struct BasicWord {
  template <class T>
  using Atomic = typename Sync::template Atomic<T>;

  Atomic<uint32_t> value{0};
  Atomic<uint32_t> sleepers{0};

  // Changes the word and wakes the threads that sleep on it. Everything that the caller wrote before is
  // visible to each thread that sees `next`.
  void publish(uint32_t next, const WaitPolicy& policy) noexcept {
    if (policy.asymmetric) {
      // release: publishes the caller's earlier writes to threads that load `next` with acquire.
      value.store(next, std::memory_order_release);
      Sync::compiler_barrier();
      // relaxed: only the number is used; it publishes no data.
      if (sleepers.load(std::memory_order_relaxed) == 0) return;
    } else {
      // seq_cst: in one order with the sleeper's increment and load. It is a release store too.
      value.store(next, std::memory_order_seq_cst);
      if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    }
    Sync::unpark_all(value);
  }

  // Like publish(), for a word that several threads change: it counts their calls.
  void advance() noexcept {
    // seq_cst: in one order with the sleeper's increment and load. A read-modify-write needs no separate
    // barrier.
    value.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) Sync::unpark_all(value);
  }

  // Sleeps unless ready() returns true, for at most `timeout_ns` (< 0: no limit). May return early. ready()
  // must load, with seq_cst, `value` and all other conditions for which this word's sleepers are woken.
  template <class Ready>
  void sleep(uint32_t seen, int64_t timeout_ns, const WaitPolicy& policy, Ready&& ready) noexcept {
    // seq_cst: in one order with the publisher's store and load.
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (policy.asymmetric) Sync::rare_barrier();
    // If `value` changes between ready() and park(), park() returns at once: it compares with `seen`.
    if (!ready()) Sync::park(value, seen, timeout_ns);
    // release: when another thread reads 0 sleepers (wake_all()), this thread has made all its loads.
    sleepers.fetch_sub(1, std::memory_order_release);
  }
};

using Word = BasicWord<OsSync>;

// Measures how long a thread has been in a loop that waits for another thread, and yields in that loop.
//
// On a busy machine the awaited thread may need this CPU, so the loop yields. On an idle machine a yield
// returns at once. But if another program uses the CPU, even one of low priority, a yield can take a whole
// time slice, while a sleeping thread runs soon after it is woken. So after a yield that takes long_ns_, the
// thread does not yield for kRestNs. Many members that share a CPU also need time to take their turns, so in
// an oversubscribed group long_ns_ grows with WaitPolicy::spin_ns.
template <class Sync>
class BasicSpinTime {
 public:
  // Much shorter than a time slice.
  static constexpr int64_t kLongNs = 1'000'000;
  static constexpr int64_t kRestNs = 20'000'000;

  explicit BasicSpinTime(const WaitPolicy& policy) noexcept
      : long_ns_(policy.oversubscribed ? std::max(kLongNs, 16 * policy.spin_ns) : kLongNs) {}

  // Call this in each turn of the loop. Returns the time since the loop began. `yields`: the awaited thread
  // probably needs this CPU. In that case spinning without a yield gains nothing, and while the thread does
  // not yield, this returns INT64_MAX.
  int64_t pass(bool yields) noexcept {
    int64_t& from_ns = Sync::yields_from_ns();
    const bool rests = now_ns_ < from_ns;
    if (rests && yields) return INT64_MAX;
    if (!rests) Sync::yield();
    const int64_t before_ns = std::exchange(now_ns_, Sync::now_ns());
    if (now_ns_ - before_ns >= long_ns_) from_ns = now_ns_ + kRestNs;
    return now_ns_ - start_ns_;
  }

 private:
  const int64_t long_ns_;
  const int64_t start_ns_ = Sync::now_ns();
  int64_t now_ns_ = start_ns_;
};

// Spins until done() returns true or policy.spin_ns has elapsed; returns done(). `generous`: yield after
// every load.
template <class Sync = OsSync, class Done>
bool spin_until(const WaitPolicy& policy, Done&& done, bool generous = false) noexcept {
  if constexpr (Sync::kSpins) {
    const bool yields = policy.oversubscribed || generous;
    const int pauses = yields ? 1 : 64;
    BasicSpinTime<Sync> time(policy);
    do {
      for (int i = 0; i < pauses; ++i) {
        if (done()) return true;
        Sync::pause();
      }
    } while (time.pass(yields) < policy.spin_ns);
  }
  return done();
}

}  // namespace dist
