// SPDX-License-Identifier: Apache-2.0
// The host's CPUs as a mesh of devices: packages x NUMA domains x cores x hardware threads.
#pragma once

#include <span>

#include "core/base/os/cpus.hpp"
#include "core/topology/topology.hpp"

namespace dist {

// One task, whose devices are the CPUs that this process may use, in the order of their coordinates.
Status topology_from_host(Memory& memory, Ref<Topology>* out);

// Of places in any order, each CPU once. Packages, and in each of them domains, in those cores, in those
// threads, are counted anew from 0, so that what this process may not use leaves no hole; a hole is where one
// package, domain or core has less than another.
Status topology_of_places(Memory& memory, std::span<const CpuPlace> places, bool by_hwloc,
                          Ref<Topology>* out);

}  // namespace dist
