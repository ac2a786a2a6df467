// SPDX-License-Identifier: Apache-2.0
// Requests a cache line for writing before it is needed.
#pragma once

namespace dist {

// Nothing happens if the address is invalid. For x86, compilers emit the instruction only if all CPUs of the target have
// it. The others execute it as one that does nothing.
inline void fetch_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace dist
