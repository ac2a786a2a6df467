// SPDX-License-Identifier: Apache-2.0
// Requests a cache line for writing before it is needed.
#pragma once

namespace dist {

// An invalid address is ignored. Compilers emit x86's prefetchw only if all CPUs of the target have it,
// although other CPUs execute it as an instruction that does nothing.
inline void fetch_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace dist
