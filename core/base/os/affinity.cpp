// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/affinity.hpp"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dist {
namespace {

static_assert(CpuSet::kMost == CPU_SETSIZE);

// Reads the mask of a thread, by the system's number; 0 is the calling thread. Returns false if the thread
// has ended.
bool affinity_of(pid_t thread, cpu_set_t* out) noexcept {
  CPU_ZERO(out);
  return sched_getaffinity(thread, sizeof *out, out) == 0;
}

void add_cpus(pid_t thread, CpuSet& to) noexcept {
  cpu_set_t set;
  if (!affinity_of(thread, &set)) return;
  for (int cpu = 0; cpu < CpuSet::kMost; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) to.add(cpu);
  }
}

cpu_set_t system_set(const CpuSet& cpus) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu = 0; cpu < CpuSet::kMost; ++cpu) {
    if (cpus.has(cpu)) CPU_SET(static_cast<unsigned>(cpu), &set);
  }
  return set;
}

bool set_affinity(const CpuSet& cpus) noexcept {
  const cpu_set_t set = system_set(cpus);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

bool name_begins(const char* thread, const char* prefix) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", thread);
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return false;
  char name[32];
  const bool read = std::fgets(name, sizeof name, file) != nullptr;
  std::fclose(file);
  return read && std::strncmp(name, prefix, std::strlen(prefix)) == 0;
}

// The CPU to which a thread is bound, or -1.
int only_cpu_of(pid_t thread) noexcept {
  cpu_set_t set;
  if (!affinity_of(thread, &set) || CPU_COUNT(&set) != 1) return -1;
  int cpu = 0;
  while (!CPU_ISSET(static_cast<unsigned>(cpu), &set)) ++cpu;
  return cpu;
}

}  // namespace

int CpuSet::count() const noexcept {
  int count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
}

void list_cpus(const CpuSet& cpus, std::span<char> out) noexcept {
  std::size_t used = 0;
  out[0] = '\0';
  for (int cpu = 0; cpu < CpuSet::kMost; ++cpu) {
    if (!cpus.has(cpu)) continue;
    const int first = cpu;
    while (cpus.has(cpu + 1)) ++cpu;
    char range[32];
    if (first == cpu) {
      std::snprintf(range, sizeof range, "%d", first);
    } else {
      std::snprintf(range, sizeof range, "%d-%d", first, cpu);
    }
    const int length = std::snprintf(&out[used], out.size() - used, "%s%s", used == 0 ? "" : ", ", range);
    used = std::min(out.size() - 1, used + static_cast<std::size_t>(std::max(length, 0)));
  }
}

CpuSet cpus_of_this_thread() noexcept {
  CpuSet cpus;
  add_cpus(0, cpus);
  return cpus;
}

CpuSet cpus_of_process() noexcept {
  CpuSet cpus = cpus_of_this_thread();
  add_cpus(getpid(), cpus);
  return cpus;
}

bool step_onto(const CpuSet& cpus) noexcept {
  cpu_set_t before;
  if (!affinity_of(0, &before)) return false;
  const cpu_set_t there = system_set(cpus);
  if (sched_setaffinity(0, sizeof there, &there) != 0) return false;
  // If the mask is no longer a subset of what was set here, another thread has changed it meanwhile, and that
  // change is kept.
  cpu_set_t now;
  cpu_set_t both;
  if (affinity_of(0, &now)) {
    CPU_AND(&both, &now, &there);
    if (!CPU_EQUAL(&both, &now)) return true;
  }
  sched_setaffinity(0, sizeof before, &before);
  return true;
}

OnCpus::OnCpus(const CpuSet& cpus, Bounds bounds) noexcept {
  add_cpus(0, before_);
  CpuSet here;
  for (int cpu = 0; cpu < CpuSet::kMost; ++cpu) {
    if (cpus.has(cpu) && (bounds == Bounds::kExact || before_.has(cpu))) here.add(cpu);
  }
  moved_ = before_.count() != 0 && here.count() != 0 && here != before_ && set_affinity(here);
}

OnCpus::~OnCpus() {
  if (moved_) set_affinity(before_);
}

void count_pinned(const char* prefix, std::span<int> by_cpu) noexcept {
  DIR* const threads = opendir("/proc/self/task");
  if (threads == nullptr) return;
  while (const dirent* const entry = readdir(threads)) {
    const long thread = std::strtol(entry->d_name, nullptr, 10);
    if (thread <= 0 || !name_begins(entry->d_name, prefix)) continue;
    const int cpu = only_cpu_of(static_cast<pid_t>(thread));
    if (cpu >= 0 && static_cast<std::size_t>(cpu) < by_cpu.size()) ++by_cpu[static_cast<std::size_t>(cpu)];
  }
  closedir(threads);
}

}  // namespace dist
