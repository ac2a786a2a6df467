// SPDX-License-Identifier: Apache-2.0
// The CPUs and caches that this process may use.
#pragma once

#include <cstddef>

#include "core/base/os/affinity.hpp"

#if defined(__GLIBC__) && defined(__has_builtin) && __has_include(<sys/rseq.h>)
#if __has_builtin(__builtin_thread_pointer)
#include <sys/rseq.h>
#define DIST_HAS_RSEQ
#endif
#endif

namespace dist {

// CPUs that can run this process's threads side by side: the affinity mask, less where a cgroup quota (v1 or
// v2) gives fewer CPUs' worth of time. At least 1. `root` is where tests have a file tree of their own
// (cgroup.hpp).
int usable_cpus(const char* root = "") noexcept;
// The same from what was read before: CPUs of the calling thread's affinity mask, and the quota (0: none).
int usable_cpus(int allowed, double quota) noexcept;
int allowed_cpus() noexcept;

int ask_current_cpu() noexcept;  // of the C library
// The CPU that runs this thread now; cheap (Linux: no system call). Negative where unknown.
inline int current_cpu() noexcept {
#ifdef DIST_HAS_RSEQ
  // What the kernel writes whenever it puts the thread on a CPU; negative before that.
  const auto* const area = reinterpret_cast<const volatile struct rseq*>(
      static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset);
  if (const auto cpu = static_cast<int>(area->cpu_id); cpu >= 0) [[likely]]
    return cpu;
#endif
  return ask_current_cpu();
}

// Where a CPU lies in the machine: the number of its package and of its NUMA domain, of its core and of the
// hardware thread in that. Only which are equal, and which come first, means something.
struct CpuPlace {
  int cpu;  // the system's number
  int package;
  int numa;
  int core;
  int thread;
};

// The CPUs of a set, by the system's numbers. Without hwloc, or where it fails, each counts as a core of one package.
// Writes at most `most`, returns how many.
int cpu_places(const CpuSet& cpus, CpuPlace* out, int most, bool* by_hwloc) noexcept;

// Whether there is more than one NUMA domain: what spares the question to hwloc, which takes milliseconds.
// `root` as above.
bool several_numa_domains(const char* root = "") noexcept;

// Bytes of one last-level cache; a guess of 32 MiB where unknown.
std::size_t last_level_cache_bytes() noexcept;

}  // namespace dist
