// SPDX-License-Identifier: Apache-2.0
// Clocks: monotonic time, the CPU's time counter, and the pause of spin loops.
#pragma once

#include <time.h>

#include <cstdint>

namespace dist {

// Monotonic time in nanoseconds.
inline int64_t steady_now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Like steady_now_ns(), but includes the time for which the machine was suspended.
inline int64_t boot_now_ns() noexcept {
  timespec now;
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return steady_now_ns();
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// The CPU's time stamp counter, in its own ticks. It costs a tenth of the clock and is not ordered with
// surrounding instructions, so it is accurate to some nanoseconds.
inline uint64_t time_counter() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<uint64_t>(steady_now_ns());
#endif
}

// Whether time_counter() runs at a constant rate and is synchronized on all CPUs.
bool time_counter_is_steady() noexcept;

// Tells the CPU that this is a spin loop.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace dist
