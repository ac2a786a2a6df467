// SPDX-License-Identifier: Apache-2.0
// core/run/placement on simulated machines; core/base/os/affinity and arenas of a NUMA domain on this one.
#include <sched.h>

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/arena.hpp"
#include "core/base/os/affinity.hpp"
#include "core/base/os/cpus.hpp"
#include "core/base/os/thread.hpp"
#include "core/run/placement.hpp"
#include "counting_memory.hpp"

extern "C" {
#include <cmocka.h>

#include "tests/skip.h"
}

namespace dist {
namespace {

// CPUs 0 to n-1 in two halves, which are NUMA domains; `taken` lists the CPUs that are in use.
struct Machine {
  Machine(Memory& memory, int cpus, const std::vector<int>& taken) : around(memory) {
    around.pinned.resize(static_cast<std::size_t>(cpus));
    for (const int cpu : taken) ++around.pinned[static_cast<std::size_t>(cpu)];
    for (int cpu = 0; cpu < cpus; ++cpu) {
      around.places.push_back({cpu, 0, cpu < cpus / 2 ? 4 : 7, cpu, 0});
      around.within.add(cpu);
    }
  }
  Surroundings around;
};

Placement::Options pinned(int replicas, int devices, int threads) {
  return {replicas, devices, threads, DIST_PLACEMENT_CORES, {}};
}

void expect(const Placement& placement, int replicas, int devices, const std::vector<int>& cpus) {
  assert_int_equal(cpus.size(), replicas * devices);
  for (int r = 0; r < replicas; ++r) {
    for (int d = 0; d < devices; ++d)
      assert_int_equal(placement.cpu_of(LocalReplica{r}, d), cpus[static_cast<std::size_t>(r * devices + d)]);
  }
}

void the_least_taken_cpus_come_first(void**) {
  CountingMemory counting;
  Memory& memory = *counting;
  const auto of = [&](int cpus, const std::vector<int>& taken, const Placement::Options& options) {
    return Placement(memory, options, Machine(memory, cpus, taken).around);
  };
  expect(of(4, {}, pinned(3, 1, DIST_THREADS_LIBRARY)), 3, 1, {0, 1, 2});
  expect(of(4, {0, 1, 0}, pinned(3, 1, DIST_THREADS_LIBRARY)), 3, 1, {2, 3, 1});
  expect(of(2, {}, pinned(2, 2, DIST_THREADS_LIBRARY)), 2, 2, {0, 1, 0, 1});
  expect(of(2, {0, 0, 0}, pinned(4, 1, DIST_THREADS_LIBRARY)), 4, 1, {1, 1, 1, 0});
  expect(of(1, {0, 0}, pinned(3, 1, DIST_THREADS_LIBRARY)), 3, 1, {0, 0, 0});
  // The caller gets the remaining CPU.
  expect(of(4, {}, pinned(3, 1, DIST_THREADS_CALLER)), 3, 1, {3, 1, 2});
  expect(of(2, {}, pinned(2, 1, DIST_THREADS_CALLER)), 2, 1, {0, 1});
  expect(of(2, {1}, pinned(2, 1, DIST_THREADS_CALLER)), 2, 1, {1, 0});
  // An explicit assignment is followed.
  const int named[] = {3, 0, 1, 2};
  Placement::Options options = pinned(2, 2, DIST_THREADS_LIBRARY);
  options.named = named;
  expect(of(4, {3, 3}, options), 2, 2, {3, 0, 1, 2});
}

void nothing_is_kept_unasked(void**) {
  CountingMemory counting;
  const Machine machine(*counting, 4, {});
  const int named[] = {3, 0};
  for (Placement::Options options :
       {Placement::Options{2, 1, DIST_THREADS_LIBRARY, DIST_PLACEMENT_FREE, named},
        Placement::Options{2, 1, DIST_THREADS_HOST, DIST_PLACEMENT_CORES, named}}) {
    const Placement placement(*counting, options, machine.around);
    assert_false(placement.pins());
    assert_int_equal(placement.cpu_of(LocalReplica{1}, 0), -1);
  }
}

void loops_have_the_domain_of_their_cpu(void**) {
  CountingMemory counting;
  Memory& memory = *counting;
  const Machine machine(memory, 4, {});  // 0 and 1; 2 and 3
  const auto number = [](const Placement& placement, int replica, int device, int threads) {
    const CpuSet* const domain = placement.domain_of(LocalReplica{replica}, device, threads);
    return domain == nullptr ? -1 : placement.number_of(*domain);
  };
  const Placement kept(memory, pinned(2, 2, DIST_THREADS_LIBRARY), machine.around);
  assert_int_equal(kept.num_domains(), 2);
  assert_int_equal(number(kept, 0, 0, 2), 0);
  assert_int_equal(number(kept, 0, 1, 2), 0);
  assert_int_equal(number(kept, 1, 0, 2), 1);
  assert_true(kept.domain_of(LocalReplica{1}, 1, 2)->has(2) && kept.domain_of(LocalReplica{1}, 1, 2)->has(3));
  assert_int_equal(kept.domain_of(LocalReplica{1}, 1, 2)->count(), 2);
  assert_int_equal(number(kept, 1, 1, 3), -1);  // more than a domain has
  assert_int_equal(number(kept, 1, 1, 1), -1);  // no workers

  const Placement anywhere(memory, {3, 1, DIST_THREADS_CALLER, DIST_PLACEMENT_FREE, {}}, machine.around);
  for (int r = 0; r < 3; ++r) assert_int_equal(number(anywhere, r, 0, 2), r % 2);

  Surroundings one(memory);
  one.places.assign({{0, 0, 5, 0, 0}, {1, 0, 5, 1, 0}});
  for (const CpuPlace& place : one.places) one.within.add(place.cpu);
  const Placement on_one(memory, {2, 1, DIST_THREADS_CALLER, DIST_PLACEMENT_FREE, {}}, one);
  assert_int_equal(on_one.num_domains(), 0);
  assert_null(on_one.domain_of(LocalReplica{0}, 0, 2));
}

// Cores with two hardware threads in the usual numbering: core c has CPUs c and c + n/2.
struct Pairs {
  Pairs(Memory& memory, int cpus, const std::vector<int>& taken, const std::vector<int>& within)
      : around(memory) {
    around.pinned.resize(static_cast<std::size_t>(cpus));
    for (const int cpu : taken) ++around.pinned[static_cast<std::size_t>(cpu)];
    const int cores = cpus / 2;
    for (int cpu = 0; cpu < cpus; ++cpu) {
      const int core = cpu % cores;
      around.places.push_back({cpu, 0, core < cores / 2 ? 0 : 1, core, 2 * core + cpu / cores});
    }
    for (const int cpu : within) around.within.add(cpu);
  }
  Surroundings around;
};

void the_order_goes_by_core(void**) {
  CountingMemory counting;
  const auto order = [&](const std::vector<CpuPlace>& places) {
    const std::pmr::vector<int> made = order_by_core(*counting, places);
    return std::vector<int>(made.begin(), made.end());
  };
  const Pairs pairs(*counting, 8, {}, {});
  assert_true(order({pairs.around.places.begin(), pairs.around.places.end()}) ==
              std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7}));
  // Neighbouring numbers for the threads of a core. One core has three CPUs, and one has one.
  assert_true(order({{0, 0, 0, 0, 0},
                     {1, 0, 0, 0, 1},
                     {2, 0, 0, 1, 2},
                     {3, 0, 0, 2, 3},
                     {4, 0, 0, 2, 4},
                     {5, 0, 0, 2, 5}}) == std::vector<int>({0, 2, 3, 1, 4, 5}));
  // If the process may not use the first CPU of a core, the second counts as the first.
  assert_true(order({{4, 0, 0, 0, 1}, {1, 0, 0, 1, 2}, {5, 0, 0, 1, 3}}) == std::vector<int>({4, 1, 5}));
  // The order in which the system lists CPUs does not matter.
  assert_true(order({{7, 0, 0, 3, 7}, {3, 0, 0, 3, 6}, {6, 0, 0, 0, 1}, {2, 0, 0, 0, 0}}) ==
              std::vector<int>({2, 3, 6, 7}));
  assert_true(order({}).empty());
}

void a_core_in_use_comes_last(void**) {
  CountingMemory counting;
  Memory& memory = *counting;
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto of = [&](const std::vector<int>& taken, const std::vector<int>& within, int replicas) {
    return Placement(memory, pinned(replicas, 1, DIST_THREADS_LIBRARY),
                     Pairs(memory, 8, taken, within).around);
  };
  // CPU 4 belongs to core 0, so the core's other CPU is used last.
  expect(of({4}, all, 4), 4, 1, {1, 2, 3, 0});
  expect(of({0, 5}, all, 2), 2, 1, {2, 3});
  expect(of({0, 1, 2, 3}, all, 2), 2, 1, {4, 5});
  // Only CPUs that the host allows are used, even if the CPU in use is not among them.
  expect(of({0}, {1, 4}, 2), 2, 1, {1, 4});
  expect(of({0}, {4, 5}, 1), 1, 1, {5});
  expect(of({}, {6, 2}, 3), 3, 1, {2, 6, 2});
  expect(of({}, {7}, 2), 2, 1, {7, 7});
}

void chosen_cpus_bound_loops(void**) {
  CountingMemory counting;
  Memory& memory = *counting;
  CpuSet within;
  for (const int cpu : {0, 1, 6}) within.add(cpu);
  Placement::Options options{2, 1, DIST_THREADS_LIBRARY, DIST_PLACEMENT_FREE, {}, &within};
  const Placement chosen(memory, options, Pairs(memory, 8, {}, {0, 1, 6}).around);
  assert_true(*chosen.within() == within && chosen.bounds() == Bounds::kExact);
  assert_int_equal(chosen.num_domains(), 2);  // 0 and 1; 6
  const CpuSet* const first = chosen.loops_of(LocalReplica{0}, 0, 2);
  assert_true(first->count() == 2 && first->has(0) && first->has(1));
  assert_true(chosen.loops_of(LocalReplica{1}, 0, 2) == chosen.within());  // a domain of one CPU is too small
  assert_true(chosen.loops_of(LocalReplica{0}, 0, 3) == chosen.within());
  assert_null(chosen.loops_of(LocalReplica{0}, 0, 1));
  options.within = nullptr;
  const Placement unchosen(memory, options, Pairs(memory, 8, {}, {0, 1, 6}).around);
  assert_true(unchosen.within() == nullptr && unchosen.bounds() == Bounds::kOwn);
  assert_null(unchosen.loops_of(LocalReplica{0}, 0, 3));
}

void sets_are_listed(void**) {
  char text[24];
  const auto list = [&](const std::vector<int>& cpus) {
    CpuSet set;
    for (const int cpu : cpus) set.add(cpu);
    list_cpus(set, text);
    return std::string(text);
  };
  assert_string_equal(list({}).c_str(), "");
  assert_string_equal(list({7}).c_str(), "7");
  assert_string_equal(list({0, 1, 2, 4, 6, 7}).c_str(), "0-2, 4, 6-7");
  assert_string_equal(list({CpuSet::kMost - 2, CpuSet::kMost - 1}).c_str(), "1022-1023");
  assert_string_equal(list({0, 100, 200, 300, 400, 500, 600}).c_str(), "0, 100, 200, 300, 400, ");
}

void several_domains_are_seen(void**) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "dist-domains-XXXXXX").string();
  const fs::path root = mkdtemp(pattern.data());
  const fs::path folder = root / "sys/devices/system/node";
  const bool without = several_numa_domains(root.c_str());
  fs::create_directories(folder);
  std::vector<bool> seen;
  for (const char* text : {"0\n", "12\n", "", "0-1\n", "0,2\n"}) {
    std::ofstream(folder / "online") << text;
    seen.push_back(several_numa_domains(root.c_str()));
  }
  fs::remove_all(root);
  assert_false(without);
  assert_true(seen == std::vector<bool>({false, false, false, true, true}));
}

// ---- On this machine ----

std::vector<int> my_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

CpuSet set_of(int cpu) {
  CpuSet set;
  set.add(cpu);
  return set;
}

void a_thread_comes_back_from_a_set(void**) {
  const std::vector<int> before = my_cpus();
  {
    const OnCpus here(set_of(before.back()));
    assert_true(my_cpus() == std::vector<int>{before.back()});
  }
  assert_true(my_cpus() == before);
  {
    const OnCpus nowhere{CpuSet()};
    assert_true(my_cpus() == before);
    CpuSet strange;
    for (const int cpu : {-1, CpuSet::kMost, 1 << 30}) strange.add(cpu);
    assert_int_equal(strange.count(), 0);
  }
  assert_true(my_cpus() == before);
  // The new set replaces the mask, and may contain CPUs that were not in it.
  {
    const OnCpus first(set_of(before.front()));
    {
      const OnCpus last(set_of(before.back()), Bounds::kExact);
      assert_true(my_cpus() == std::vector<int>{before.back()});
    }
    assert_true(my_cpus() == std::vector<int>{before.front()});
    const OnCpus unmoved(set_of(before.back()));
    assert_true(my_cpus() == std::vector<int>{before.size() == 1 ? before.back() : before.front()});
  }
  assert_true(my_cpus() == before);
}

struct Held {
  std::atomic<bool> may_end{false};
  Thread thread;
};

void* wait_for_end(void* held) {
  while (!static_cast<Held*>(held)->may_end) yield_this_thread();
  return nullptr;
}

void pinned_threads_are_counted(void**) {
  const std::vector<int> cpus = my_cpus();
  const char* names[] = {"dist-test-a", "dist-test-b", "dist-other", "dist-test-free"};
  Held held[4];
  for (std::size_t i = 0; i < 4; ++i) {
    assert_true(held[i].thread.start(wait_for_end, &held[i]).ok());
    held[i].thread.name(names[i]);
    if (i < 3) held[i].thread.keep_on(cpus.back());
  }
  std::vector<int> counts(CpuSet::kMost);
  count_pinned("dist-test", counts);
  int none[1] = {0};
  // Fills the array as far as it reaches.
  count_pinned("dist-test", std::span<int>(none, cpus.back() == 0 ? 0 : 1));
  for (Held& each : held) {
    each.may_end = true;
    each.thread.join();
  }
  // On a machine with one CPU, the mask of the free thread has only this CPU too.
  assert_int_equal(counts[static_cast<std::size_t>(cpus.back())], cpus.size() == 1 ? 3 : 2);
  assert_int_equal(std::accumulate(counts.begin(), counts.end(), 0), cpus.size() == 1 ? 3 : 2);
}

// Returns the affinity of a oneTBB worker inside a loop. `caller_stays` tells whether the caller had the
// affinity `before` in all of its own parts.
std::vector<int> worker_inside(Arena& arena, const std::vector<int>& before, bool* caller_stays) {
  const std::uintptr_t caller = this_thread();
  std::atomic<bool> seen{false};
  std::atomic<bool> taken{false};
  std::vector<int> worker;
  bool stays = true;
  const Status status = arena.parallel_for(0, 1000, 1, [&](int64_t, int64_t) {
    if (this_thread() != caller) {
      if (taken.exchange(true)) return;
      worker = my_cpus();
      seen = true;
      return;
    }
    stays = stays && my_cpus() == before;
    while (!seen) yield_this_thread();
  });
  assert_true(status.ok());
  *caller_stays = stays && my_cpus() == before;
  return worker;
}

void loops_of_any_length_are_cut(void**) {
  struct Loop {
    int64_t begin, end, grain;
  };
  constexpr int64_t kLast = INT64_MAX;
  static constexpr Loop kLoops[] = {
      {0, 3, kLast},          {INT64_MIN, kLast, kLast}, {INT64_MIN, kLast, kLast / 4},
      {-5, kLast, kLast / 2}, {INT64_MIN, INT64_MIN, 1}, {kLast - 9, kLast, 2}};
  CountingMemory counting;
  Arena arena(*counting, 2);
  for (const Loop& loop : kLoops) {
    std::mutex mutex;
    std::map<int64_t, int64_t> pieces;
    const Status status = arena.parallel_for(loop.begin, loop.end, loop.grain, [&](int64_t from, int64_t to) {
      const std::scoped_lock lock(mutex);
      pieces[from] = to;
    });
    assert_true(status.ok());
    int64_t at = loop.begin;
    for (const auto& [from, to] : pieces) {
      assert_true(from == at && to > from);
      const uint64_t length = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
      assert_true(pieces.size() == 1 || length >= static_cast<uint64_t>(loop.grain));
      at = to;
    }
    assert_true(at == loop.end);
  }
}

void workers_of_a_loop_are_on_its_domain(void**) {
  const std::vector<int> cpus = my_cpus();
  if (cpus.size() < 2) skip_because("needs two CPUs");
  CountingMemory counting;
  bool stays = false;
  for (int round = 0; round < 10; ++round) {
    {
      const CpuSet domain = set_of(cpus.back());
      Arena arena(*counting, 2, &domain);
      assert_true(worker_inside(arena, cpus, &stays) == std::vector<int>{cpus.back()});
      assert_true(stays);
    }
    Arena anywhere(*counting, 2);
    assert_true(worker_inside(anywhere, cpus, &stays) == cpus);
    assert_true(stays);
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_least_taken_cpus_come_first),
      cmocka_unit_test(nothing_is_kept_unasked),
      cmocka_unit_test(loops_have_the_domain_of_their_cpu),
      cmocka_unit_test(the_order_goes_by_core),
      cmocka_unit_test(a_core_in_use_comes_last),
      cmocka_unit_test(chosen_cpus_bound_loops),
      cmocka_unit_test(sets_are_listed),
      cmocka_unit_test(several_domains_are_seen),
      cmocka_unit_test(a_thread_comes_back_from_a_set),
      cmocka_unit_test(pinned_threads_are_counted),
      cmocka_unit_test(loops_of_any_length_are_cut),
      cmocka_unit_test(workers_of_a_loop_are_on_its_domain),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
