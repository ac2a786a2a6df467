// SPDX-License-Identifier: Apache-2.0
// Placement: the CPU that each thread of a strategy is bound to, and the NUMA domain of each replica's loops.
// It is decided once, when the strategy is created.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/os/affinity.hpp"
#include "core/base/os/cpus.hpp"
#include "dist/types.h"

namespace dist {

// The machine as the calling thread may use it, and what of it is taken.
struct Surroundings {
  explicit Surroundings(Memory& memory) : pinned(&memory), places(&memory) {}

  std::pmr::vector<int> pinned;       // by CPU: library threads of this process that are kept on it
  std::pmr::vector<CpuPlace> places;  // of the CPUs of the process; none: there is but one NUMA domain
  CpuSet within;                      // of these, where threads may be
};

// `pinning`: threads will be kept on CPUs, so that their places and what is taken are asked for.
Surroundings look_around(Memory& memory, const CpuSet& within, bool pinning);

// One a physical core first, neighbours (package, NUMA domain, cache) next to each other.
std::pmr::vector<int> order_by_core(Memory& memory, std::span<const CpuPlace> places);

class Placement {
 public:
  struct Options {
    int num_replicas = 1;
    int num_devices = 1;  // of each replica
    int threads = DIST_THREADS_CALLER;
    int placement = DIST_PLACEMENT_FREE;
    std::span<const int> named;      // the CPU of each device of each replica, as an assignment says; or none
    const CpuSet* within = nullptr;  // that the host has chosen, for all threads; NULL: it has not
  };

  // With DIST_PLACEMENT_CORES, as `named` says; else each thread gets a CPU of the core that the fewest are kept on, of
  // these the CPU that the fewest are kept on, of those the first in order_by_core(). The caller's thread is never moved:
  // its CPU is the one that is left for it, the others choose first, and begin with the second CPU of the order.
  Placement(Memory& memory, const Options& options, const Surroundings& around);

  // Whether threads are kept on CPUs at all, and those that an assignment names.
  bool pins() const noexcept { return !cpus_.empty(); }
  bool named() const noexcept { return named_; }
  // -1: wherever the system puts the thread.
  int cpu_of(LocalReplica replica, int device) const noexcept;

  int num_domains() const noexcept { return static_cast<int>(domains_.size()); }
  // The domain of a replica's or its device's loops: that of its CPU, else the replicas take turns. NULL
  // where there is one domain, or a loop on `threads` threads needs more than the CPUs of one.
  const CpuSet* domain_of(LocalReplica replica, int device, int threads) const noexcept;
  // The CPUs of their helpers: the domain; else those that the host has chosen; else NULL, any.
  const CpuSet* loops_of(LocalReplica replica, int device, int threads) const noexcept {
    const CpuSet* const domain = domain_of(replica, device, threads);
    return domain != nullptr || threads < 2 ? domain : within();
  }
  // That the host has chosen for all threads; NULL: any.
  const CpuSet* within() const noexcept { return chosen_ ? &within_ : nullptr; }
  Bounds bounds() const noexcept { return chosen_ ? Bounds::kExact : Bounds::kOwn; }
  // Its number among those that this process may use.
  int number_of(const CpuSet& domain) const noexcept { return static_cast<int>(&domain - domains_.data()); }

 private:
  void choose_cpus(Memory& memory, const Options& options, const Surroundings& around);
  void find_domains(const Surroundings& around);

  const int num_devices_;
  const bool chosen_;
  const CpuSet within_;
  bool named_ = false;
  std::pmr::vector<int> cpus_;        // by replica and device; empty: none is kept on one
  std::pmr::vector<CpuSet> domains_;  // none where there is but one
};

}  // namespace dist
