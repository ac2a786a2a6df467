// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/cpus.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "core/base/optional_libraries.hpp"  // generated
#include "core/base/os/cgroup.hpp"

#if DIST_HAVE_HWLOC
#include <hwloc.h>
#endif

namespace dist {
namespace {

int affinity_cpus(cpu_set_t* set) noexcept {
  CPU_ZERO(set);
  if (sched_getaffinity(0, sizeof *set, set) != 0) return 0;
  return CPU_COUNT(set);
}

// Reads the first line of a small file. Returns false on failure.
bool read_line(const char* path, char* line, std::size_t size) noexcept {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  const bool got = std::fgets(line, static_cast<int>(size), file) != nullptr;
  std::fclose(file);
  if (got) line[std::strcspn(line, "\n")] = '\0';
  return got;
}

std::size_t ask_last_level_cache() noexcept {
  // The kernel's table comes first, because in a virtual machine the C library may report the host's cache.
  for (const char* path :
       {"/sys/devices/system/cpu/cpu0/cache/index3/size", "/sys/devices/system/cpu/cpu0/cache/index2/size"}) {
    char line[32];
    unsigned long kib = 0;
    if (read_line(path, line, sizeof line) && std::sscanf(line, "%luK", &kib) == 1 && kib > 0)
      return kib << 10;
  }
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{32} << 20;
}

}  // namespace

int ask_current_cpu() noexcept { return sched_getcpu(); }

int allowed_cpus() noexcept {
  cpu_set_t set;
  const int cpus = affinity_cpus(&set);
  return cpus > 0 ? cpus : static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

int usable_cpus(int allowed, double quota) noexcept {
  return quota > 0 && quota < allowed ? std::max(1, static_cast<int>(std::floor(quota))) : allowed;
}

int usable_cpus(const char* root) noexcept { return usable_cpus(allowed_cpus(), cgroup_cpu_quota(root)); }

#if DIST_HAVE_HWLOC

namespace {

// hwloc's view of the machine. It is loaded for a single query, because queries occur only when strategies
// are created.
class Machine {
 public:
  Machine() noexcept {
    if (hwloc_topology_init(&topology_) != 0) return;
    loaded_ = hwloc_topology_load(topology_) == 0;
  }
  ~Machine() {
    if (topology_ != nullptr) hwloc_topology_destroy(topology_);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  hwloc_topology_t get() const noexcept { return loaded_ ? topology_ : nullptr; }

 private:
  hwloc_topology_t topology_ = nullptr;
  bool loaded_ = false;
};

int number_of(hwloc_obj_t object, int otherwise) noexcept {
  return object == nullptr ? otherwise : static_cast<int>(object->logical_index);
}

// NUMA domains are not ancestors of CPUs in hwloc; they list the CPUs that are near.
int numa_of(hwloc_topology_t topology, unsigned cpu) noexcept {
  const int domains = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
  for (int i = 0; i < domains; ++i) {
    const hwloc_obj_t domain = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    if (hwloc_bitmap_isset(domain->cpuset, cpu) != 0) return i;
  }
  return 0;
}

CpuPlace place_of(hwloc_topology_t topology, hwloc_obj_t pu) noexcept {
  CpuPlace place{static_cast<int>(pu->os_index), 0, numa_of(topology, pu->os_index), 0, 0};
  place.package = number_of(hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, pu), 0);
  const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
  place.core = number_of(core, static_cast<int>(pu->logical_index));  // without cores, each CPU is one
  place.thread = core == nullptr ? 0 : static_cast<int>(pu->logical_index);
  return place;
}

// Returns false if hwloc does not know some CPU of the set.
bool ask_places(const CpuSet& cpus, CpuPlace* out, int count) noexcept {
  const Machine machine;
  if (machine.get() == nullptr) return false;
  for (int cpu = 0; cpu < CpuSet::kMost && count > 0; ++cpu) {
    if (!cpus.has(cpu)) continue;
    const hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(machine.get(), static_cast<unsigned>(cpu));
    if (pu == nullptr) return false;
    *out++ = place_of(machine.get(), pu);
    --count;
  }
  return true;
}

}  // namespace

#else

namespace {
bool ask_places(const CpuSet&, CpuPlace*, int) noexcept { return false; }
}  // namespace

#endif

int cpu_places(const CpuSet& cpus, CpuPlace* out, int most, bool* by_hwloc) noexcept {
  const int count = std::min(cpus.count(), most);
  if (count <= 0) return 0;
  *by_hwloc = ask_places(cpus, out, count);
  if (*by_hwloc) return count;
  for (int cpu = 0, i = 0; i < count; ++cpu) {
    if (cpus.has(cpu)) out[i++] = {cpu, 0, 0, cpu, 0};
  }
  return count;
}

bool several_numa_domains(const char* root) noexcept {
  char path[256];
  char domains[256];  // "0", "0-1" or "0,2"
  const int size = std::snprintf(path, sizeof path, "%s/sys/devices/system/node/online", root);
  if (size < 0 || static_cast<std::size_t>(size) >= sizeof path) return false;
  return read_line(path, domains, sizeof domains) && std::strpbrk(domains, "-,") != nullptr;
}

std::size_t last_level_cache_bytes() noexcept {
  static const std::size_t kBytes = ask_last_level_cache();
  return kBytes;
}

}  // namespace dist
