// SPDX-License-Identifier: Apache-2.0
// The host's CPUs as a mesh of devices: packages x NUMA domains x cores x hardware threads.
#pragma once

#include <span>

#include "core/base/os/cpus.hpp"
#include "core/layout/topology.hpp"

namespace dist {

// A single task, whose devices are the CPUs that this process may use, in the order of their coordinates.
Status topology_from_host(Memory& memory, Ref<Topology>* out);

// The same for the given places, which may be in any order and contain each CPU once. Packages, the domains
// of each package, the cores of each domain and the threads of each core are numbered from 0, so CPUs that
// this process may not use leave no hole. A hole remains if one package, domain or core has fewer parts than
// another.
Status topology_of_places(Memory& memory, std::span<const CpuPlace> places, bool by_hwloc,
                          Ref<Topology>* out);

}  // namespace dist
