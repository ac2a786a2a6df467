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

// The number of CPUs that can run this process's threads in parallel: the affinity mask, reduced if a cgroup
// quota (v1 or v2) allows less CPU time. At least 1. `root` is a directory tree for tests (cgroup.hpp).
int usable_cpus(const char* root = "") noexcept;
// Computes the number from known values: the number of CPUs in the calling thread's mask, and the quota (0:
// none).
int usable_cpus(int allowed, double quota) noexcept;
int allowed_cpus() noexcept;

int ask_current_cpu() noexcept;  // by the C library, which may make a system call
// The CPU that runs this thread now. Cheap: no system call on Linux. Negative if unknown.
inline int current_cpu() noexcept {
#ifdef DIST_HAS_RSEQ
  // The kernel updates this field whenever it schedules the thread on a CPU; negative before that.
  const auto* const area = reinterpret_cast<const volatile struct rseq*>(
      static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset);
  if (const auto cpu = static_cast<int>(area->cpu_id); cpu >= 0) [[likely]]
    return cpu;
#endif
  return ask_current_cpu();
}

// The position of a CPU in the machine: the numbers of its package, NUMA domain, core, and hardware thread
// within the core. Only equality and order are meaningful.
struct CpuPlace {
  int cpu;  // the system's number
  int package;
  int numa;
  int core;
  int thread;
};

// Finds the places of the CPUs in a set, by the system's numbers. Without hwloc, or if hwloc fails, each CPU
// counts as a core of a single package. Writes at most `most` entries and returns their number.
int cpu_places(const CpuSet& cpus, CpuPlace* out, int most, bool* by_hwloc) noexcept;

// Whether there is more than one NUMA domain. Avoids a call of hwloc, which takes milliseconds. `root` is as
// in usable_cpus().
bool several_numa_domains(const char* root = "") noexcept;

// Size of a last-level cache in bytes; 32 MiB if unknown.
std::size_t last_level_cache_bytes() noexcept;

}  // namespace dist
