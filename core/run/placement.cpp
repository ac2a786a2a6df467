// SPDX-License-Identifier: Apache-2.0
#include "core/run/placement.hpp"

#include <algorithm>
#include <utility>

namespace dist {

Surroundings look_around(Memory& memory, const CpuSet& within, bool pinning) {
  Surroundings around(memory);
  around.within = within;
  if (pinning) {
    around.pinned.resize(CpuSet::kMost);
    count_pinned("dist-r", around.pinned);
  }
  if (pinning || several_numa_domains()) {
    CpuSet all = cpus_of_process();
    all.add(within);
    bool by_hwloc = false;
    around.places.resize(static_cast<std::size_t>(all.count()));
    around.places.resize(static_cast<std::size_t>(
        cpu_places(all, around.places.data(), static_cast<int>(around.places.size()), &by_hwloc)));
  }
  return around;
}

// Round k takes the k-th CPU of every core. Neighbours are adjacent in the numbering.
std::pmr::vector<int> order_by_core(Memory& memory, std::span<const CpuPlace> places) {
  struct InRound {
    int round;
    CpuPlace place;
  };
  std::pmr::vector<InRound> sorted(&memory);
  for (const CpuPlace& place : places) {
    const auto before = [&](const CpuPlace& other) {
      return other.core == place.core &&
             std::pair(other.thread, other.cpu) < std::pair(place.thread, place.cpu);
    };
    sorted.push_back({static_cast<int>(std::count_if(places.begin(), places.end(), before)), place});
  }
  std::sort(sorted.begin(), sorted.end(), [](const InRound& a, const InRound& b) {
    return std::pair(a.round, a.place.core) < std::pair(b.round, b.place.core);
  });
  std::pmr::vector<int> order(&memory);
  for (const InRound& each : sorted) order.push_back(each.place.cpu);
  return order;
}

Placement::Placement(Memory& memory, const Options& options, const Surroundings& around)
    : num_devices_(options.num_devices),
      chosen_(options.within != nullptr),
      within_(chosen_ ? *options.within : CpuSet()),
      cpus_(&memory),
      domains_(&memory) {
  find_domains(around);
  if (options.placement != DIST_PLACEMENT_CORES || options.threads == DIST_THREADS_HOST) return;
  if (!options.named.empty()) {
    named_ = true;
    cpus_.assign(options.named.begin(), options.named.end());
  } else if (!around.places.empty()) {
    choose_cpus(memory, options, around);
  }
}

void Placement::choose_cpus(Memory& memory, const Options& options, const Surroundings& around) {
  std::pmr::vector<CpuPlace> mine(&memory);
  for (const CpuPlace& place : around.places) {
    if (around.within.has(place.cpu)) mine.push_back(place);
  }
  if (mine.empty()) return;
  std::pmr::vector<int> order = order_by_core(memory, mine);
  std::pmr::vector<int> pinned(around.pinned, &memory);
  pinned.resize(CpuSet::kMost);
  std::pmr::vector<int> core(CpuSet::kMost, -1, &memory);
  for (const CpuPlace& place : around.places) core[static_cast<std::size_t>(place.cpu)] = place.core;
  std::pmr::vector<int> on_core(&memory);  // by CPU: bound threads on all of its core
  const auto at = [](std::pmr::vector<int>& by_cpu, int cpu) -> int& {
    return by_cpu[static_cast<std::size_t>(cpu)];
  };
  on_core.resize(CpuSet::kMost);
  const auto take = [&](int cpu, int threads) {
    for (const CpuPlace& place : around.places) {
      if (place.core == at(core, cpu)) at(on_core, place.cpu) += threads;
    }
  };
  for (const CpuPlace& place : around.places) take(place.cpu, at(pinned, place.cpu));
  const auto choose = [&] {
    const auto taken = [&](int cpu) { return std::pair(at(on_core, cpu), at(pinned, cpu)); };
    const int cpu =
        *std::min_element(order.begin(), order.end(), [&](int a, int b) { return taken(a) < taken(b); });
    ++at(pinned, cpu);
    take(cpu, 1);
    return cpu;
  };
  const bool has_caller = options.threads == DIST_THREADS_CALLER;
  if (has_caller) std::rotate(order.begin(), order.begin() + 1, order.end());
  cpus_.resize(static_cast<std::size_t>(options.num_replicas) * static_cast<std::size_t>(num_devices_));
  for (std::size_t i = has_caller ? 1 : 0; i < cpus_.size(); ++i) cpus_[i] = choose();
  if (has_caller) cpus_[0] = choose();
}

void Placement::find_domains(const Surroundings& around) {
  std::pmr::vector<int> numbers(domains_.get_allocator().resource());
  for (const CpuPlace& place : around.places) {
    if (around.within.has(place.cpu)) numbers.push_back(place.numa);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() < 2) return;
  domains_.resize(numbers.size());
  for (const CpuPlace& place : around.places) {
    if (!around.within.has(place.cpu)) continue;
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
