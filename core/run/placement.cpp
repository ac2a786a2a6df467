// SPDX-License-Identifier: Apache-2.0
#include "core/run/placement.hpp"

#include <algorithm>

namespace dist {

Surroundings look_around(Memory& memory, bool pinning) {
  Surroundings around(memory);
  const auto allowed = static_cast<std::size_t>(std::max(allowed_cpus(), 1));
  if (pinning) {
    around.order.resize(allowed);
    around.order.resize(
        static_cast<std::size_t>(cpus_by_core(around.order.data(), static_cast<int>(allowed))));
    around.pinned.resize(CpuSet::kMost);
    count_pinned("dist-r", around.pinned);
  }
  if (several_numa_domains()) {
    bool by_hwloc = false;
    around.places.resize(allowed);
    around.places.resize(
        static_cast<std::size_t>(cpu_places(around.places.data(), static_cast<int>(allowed), &by_hwloc)));
  }
  return around;
}

Placement::Placement(Memory& memory, const Options& options, const Surroundings& around)
    : num_devices_(options.num_devices), cpus_(&memory), domains_(&memory) {
  find_domains(around.places);
  if (options.placement != DIST_PLACEMENT_CORES || options.threads == DIST_THREADS_HOST) return;
  if (!options.named.empty()) {
    named_ = true;
    cpus_.assign(options.named.begin(), options.named.end());
  } else if (!around.order.empty()) {
    choose_cpus(options, around);
  }
}

void Placement::choose_cpus(const Options& options, const Surroundings& around) {
  std::pmr::vector<int> order(around.order, cpus_.get_allocator());
  std::pmr::vector<int> pinned(around.pinned, cpus_.get_allocator());
  pinned.resize(CpuSet::kMost);
  const auto taken = [&](int cpu) -> int& { return pinned[static_cast<std::size_t>(cpu)]; };
  const auto choose = [&] {
    const int cpu =
        *std::min_element(order.begin(), order.end(), [&](int a, int b) { return taken(a) < taken(b); });
    ++taken(cpu);
    return cpu;
  };
  const bool has_caller = options.threads == DIST_THREADS_CALLER;
  if (has_caller) std::rotate(order.begin(), order.begin() + 1, order.end());
  cpus_.resize(static_cast<std::size_t>(options.num_replicas) * static_cast<std::size_t>(num_devices_));
  for (std::size_t i = has_caller ? 1 : 0; i < cpus_.size(); ++i) cpus_[i] = choose();
  if (has_caller) cpus_[0] = choose();
}

void Placement::find_domains(std::span<const CpuPlace> places) {
  std::pmr::vector<int> numbers(domains_.get_allocator().resource());
  for (const CpuPlace& place : places) numbers.push_back(place.numa);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() < 2) return;
  domains_.resize(numbers.size());
  for (const CpuPlace& place : places) {
    const auto at = std::lower_bound(numbers.begin(), numbers.end(), place.numa);
    domains_[static_cast<std::size_t>(at - numbers.begin())].add(place.cpu);
  }
}

int Placement::cpu_of(LocalReplica replica, int device) const noexcept {
  if (!pins()) return -1;
  return cpus_[index(replica) * static_cast<std::size_t>(num_devices_) + static_cast<std::size_t>(device)];
}

const CpuSet* Placement::domain_of(LocalReplica replica, int device, int threads) const noexcept {
  if (domains_.empty() || threads < 2) return nullptr;
  const int cpu = cpu_of(replica, device);
  auto domain =
      std::find_if(domains_.begin(), domains_.end(), [&](const CpuSet& some) { return some.has(cpu); });
  if (domain == domains_.end()) domain = domains_.begin() + static_cast<int>(replica) % num_domains();
  return domain->count() < threads ? nullptr : &*domain;
}

}  // namespace dist
