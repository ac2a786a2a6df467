// SPDX-License-Identifier: Apache-2.0
// Chooses the CPU of each thread of a strategy and the NUMA domain of each replica's loops. The choice is
// made once, when the strategy is created. It only looks at the machine; the threads bind themselves when
// they start.
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

// The CPUs that the calling thread may use, and how many threads are already bound to each.
struct Surroundings {
  explicit Surroundings(Memory& memory) : pinned(&memory), places(&memory) {}

  std::pmr::vector<int> pinned;       // by CPU number: library threads of this process that are bound to it
  std::pmr::vector<CpuPlace> places;  // of the CPUs of the process; empty if there is only one NUMA domain
  CpuSet within;                      // the CPUs that threads may use
};

// `pinning`: threads will be bound to CPUs, so the topology and the bound threads must be determined.
Surroundings look_around(Memory& memory, const CpuSet& within, bool pinning);

// CPUs in the order of assignment: one hardware thread of each physical core first, with CPUs that share a
// package, NUMA domain or cache next to each other.
std::pmr::vector<int> order_by_core(Memory& memory, std::span<const CpuPlace> places);

class Placement {
 public:
  struct Options {
    int num_replicas = 1;
    int num_devices = 1;  // for each replica
    int threads = DIST_THREADS_CALLER;
    int placement = DIST_PLACEMENT_FREE;
    // CPU of each device of each replica, from a device assignment; may be empty
    std::span<const int> named;
    const CpuSet* within = nullptr;  // CPUs that the host chose for all threads; NULL if it did not
  };

  // With DIST_PLACEMENT_CORES, threads get the CPUs in `named`. Otherwise each thread gets a CPU on the core
  // with the fewest bound threads; within it the CPU with the fewest; of these, the first one in
  // order_by_core(). The caller's thread is never moved, so it counts as using the remaining CPU: the other
  // threads choose first and start with the second CPU of the order.
  Placement(Memory& memory, const Options& options, const Surroundings& around);

  // Whether threads are bound to CPUs, and whether an assignment named these CPUs.
  bool pins() const noexcept { return !cpus_.empty(); }
  bool named() const noexcept { return named_; }
  // -1: the thread is not bound.
  int cpu_of(LocalReplica replica, int device) const noexcept;

  int num_domains() const noexcept { return static_cast<int>(domains_.size()); }
  // The NUMA domain for the loops of a replica or device: that of its CPU, otherwise round robin. Returns
  // NULL if there is only one domain, or if a loop with `threads` threads needs more CPUs than the domain
  // has.
  const CpuSet* domain_of(LocalReplica replica, int device, int threads) const noexcept;
  // The CPUs for the helper threads of loops: the NUMA domain, else the CPUs that the host chose, else NULL
  // (any).
  const CpuSet* loops_of(LocalReplica replica, int device, int threads) const noexcept {
    const CpuSet* const domain = domain_of(replica, device, threads);
    return domain != nullptr || threads < 2 ? domain : within();
  }
  // The CPUs that the host chose for all threads; NULL: any.
  const CpuSet* within() const noexcept { return chosen_ ? &within_ : nullptr; }
  Bounds bounds() const noexcept { return chosen_ ? Bounds::kExact : Bounds::kOwn; }
  // The index of a domain among those that this process may use.
  int number_of(const CpuSet& domain) const noexcept { return static_cast<int>(&domain - domains_.data()); }

 private:
  void choose_cpus(Memory& memory, const Options& options, const Surroundings& around);
  void find_domains(const Surroundings& around);

  const int num_devices_;
  const bool chosen_;
  const CpuSet within_;
  bool named_ = false;
  std::pmr::vector<int> cpus_;        // by replica and device; empty if threads are not bound
  std::pmr::vector<CpuSet> domains_;  // empty if there is only one
};

}  // namespace dist
