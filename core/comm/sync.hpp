// SPDX-License-Identifier: Apache-2.0
// What the round protocol stands on: atomics, sleep, barriers, time. The protocol is a template on it, so
// that the very source that runs is what an explorer of all interleavings executes (tests/model).
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/os/barrier.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/os/cpus.hpp"
#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"

namespace dist {

// The machine and its operating system.
struct OsSync {
  template <class T>
  using Atomic = std::atomic<T>;

  // False where one look is as good as many: a look that fails changes nothing, so that an explorer, which
  // knows all moments to look at, needs no second one.
  static constexpr bool kSpins = true;

  // Between a store and a load that only rare_barrier() orders: the compiler must not exchange them.
  static void compiler_barrier() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  static void rare_barrier() noexcept { dist::rare_barrier(); }

  static void park(const Atomic<uint32_t>& word, uint32_t seen, int64_t timeout_ns) noexcept {
    dist::park(word, seen, timeout_ns);
  }
  static void unpark_all(const Atomic<uint32_t>& word) noexcept { dist::unpark_all(word); }

  // In a loop that ends when another thread has done something.
  static void yield() noexcept { yield_this_thread(); }
  static void pause() noexcept { spin_pause(); }
  static void prefetch(const void* memory) noexcept { __builtin_prefetch(memory); }

  static int64_t now_ns() noexcept { return steady_now_ns(); }
  static int cpu() noexcept { return current_cpu(); }
  static void leave_cpu() noexcept { leave_this_cpu(); }

  // Plain data that threads hand to each other by way of an atomic is about to be read, or written: an
  // explorer sees whether the atomic orders it.
  template <class T>
  static void reading(const T&) noexcept {}
  template <class T>
  static void writing(const T&) noexcept {}
};

}  // namespace dist
