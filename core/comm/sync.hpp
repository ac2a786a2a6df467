// SPDX-License-Identifier: Apache-2.0
// The operations of the machine that the round protocol uses: atomics, sleeping, barriers and time. The
// protocol is a template on this type, so that tests/model can explore all interleavings of the same source.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/os/affinity.hpp"
#include "core/base/os/barrier.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/os/cpus.hpp"
#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"

namespace dist {

// Implements them with the CPU and the operating system.
struct OsSync {
  template <class T>
  using Atomic = std::atomic<T>;

  // False if a single load suffices: tests/model tries every possible moment for a load, and a failed load
  // changes nothing, so no second one is needed.
  static constexpr bool kSpins = true;

  // Prevents the compiler from reordering a store and a load that only rare_barrier() orders.
  static void compiler_barrier() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  static void rare_barrier() noexcept { dist::rare_barrier(); }

  static void park(const Atomic<uint32_t>& word, uint32_t seen, int64_t timeout_ns) noexcept {
    dist::park(word, seen, timeout_ns);
  }
  static void unpark_all(const Atomic<uint32_t>& word) noexcept { dist::unpark_all(word); }

  // Called in loops that wait for another thread.
  static void yield() noexcept { yield_this_thread(); }
  // The time before which this thread does not yield in such loops; see BasicSpinTime.
  static int64_t& yields_from_ns() noexcept {
    static constinit thread_local int64_t from_ns = 0;
    return from_ns;
  }
  static void pause() noexcept { spin_pause(); }
  static void prefetch(const void* memory) noexcept { __builtin_prefetch(memory); }

  static int64_t now_ns() noexcept { return steady_now_ns(); }
  static int cpu() noexcept { return current_cpu(); }
  static CpuSet allowed_cpus() noexcept { return cpus_of_this_thread(); }
  static bool move_to(const CpuSet& cpus) noexcept { return step_onto(cpus); }

  // Called before plain data is read or written that an atomic publishes to other threads. tests/model checks
  // there that the atomic orders these accesses.
  template <class T>
  static void reading(const T&) noexcept {}
  template <class T>
  static void writing(const T&) noexcept {}
};

}  // namespace dist
