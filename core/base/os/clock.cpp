// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/clock.hpp"

#include <cstdio>
#include <cstring>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace dist {

#if defined(__x86_64__) || defined(__i386__)

bool time_counter_is_steady() noexcept {
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariant = 1u << 8;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(kPowerManagement, &a, &b, &c, &d) == 0 || (d & kInvariant) == 0) return false;
  // Linux compares the counters of all CPUs and removes this clock source if they disagree.
  std::FILE* file = std::fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource", "re");
  if (file == nullptr) return true;
  char line[256];
  const bool read = std::fgets(line, sizeof line, file) != nullptr;
  std::fclose(file);
  return !read || std::strstr(line, "tsc") != nullptr;
}

#else

// AArch64's counter belongs to the system; on other machines time_counter() is the clock.
bool time_counter_is_steady() noexcept { return true; }

#endif

}  // namespace dist
