// SPDX-License-Identifier: Apache-2.0
#include "core/layout/host_topology.hpp"

#include <algorithm>
#include <memory_resource>
#include <vector>

namespace dist {
namespace {

constexpr std::array<int CpuPlace::*, kMeshNdim> kLevels = {&CpuPlace::package, &CpuPlace::numa,
                                                            &CpuPlace::core, &CpuPlace::thread};

// The first level at which the two places differ.
std::size_t level_of_difference(const CpuPlace& a, const CpuPlace& b) noexcept {
  std::size_t level = 0;
  while (level < kMeshNdim && a.*kLevels[level] == b.*kLevels[level]) ++level;
  return level;
}

bool before(const CpuPlace& a, const CpuPlace& b) noexcept {
  const std::size_t level = level_of_difference(a, b);
  return level < kMeshNdim ? a.*kLevels[level] < b.*kLevels[level] : a.cpu < b.cpu;
}

}  // namespace

Status topology_of_places(Memory& memory, std::span<const CpuPlace> places, bool by_hwloc,
                          Ref<Topology>* out) {
  std::pmr::vector<CpuPlace> sorted(places.begin(), places.end(), &memory);
  std::sort(sorted.begin(), sorted.end(), before);
  std::pmr::vector<int32_t> coordinates(&memory);
  std::pmr::vector<int32_t> cpus(&memory);
  Coordinates at{};
  Coordinates shape{1, 1, 1, 1};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i != 0) {
      // No real machine has two CPUs at the same place. Such CPUs count as different threads.
      const std::size_t level = std::min(level_of_difference(sorted[i - 1], sorted[i]), kMeshNdim - 1);
      ++at[level];
      std::fill(at.begin() + static_cast<std::ptrdiff_t>(level) + 1, at.end(), 0);
    }
    for (std::size_t level = 0; level < kMeshNdim; ++level)
      shape[level] = std::max(shape[level], at[level] + 1);
    coordinates.insert(coordinates.end(), at.begin(), at.end());
    cpus.push_back(sorted[i].cpu);
  }
  return Topology::create(memory, shape, coordinates.data(), HostCpus{cpus, by_hwloc}, out);
}

Status topology_from_host(Memory& memory, Ref<Topology>* out) {
  std::pmr::vector<CpuPlace> places(static_cast<std::size_t>(std::max(allowed_cpus(), 1)), &memory);
  bool by_hwloc = false;
  const int found =
      cpu_places(cpus_of_this_thread(), places.data(), static_cast<int>(places.size()), &by_hwloc);
  if (found <= 0) return fail(DIST_UNAVAILABLE, "the system does not report which CPUs this process may use");
  return topology_of_places(memory, {places.data(), static_cast<std::size_t>(found)}, by_hwloc, out);
}

}  // namespace dist
