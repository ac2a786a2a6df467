// SPDX-License-Identifier: Apache-2.0
// core/comm/apart: which thread moves away from which, when, and to which CPUs. Also step_onto() on this
// machine.
#include <sched.h>

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include "core/comm/apart.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

CpuSet set_of(std::initializer_list<int> cpus) {
  CpuSet set;
  for (const int cpu : cpus) set.add(cpu);
  return set;
}

void higher_ranks_give_way(void**) {
  for (const int threads : {DIST_THREADS_CALLER, DIST_THREADS_LIBRARY, DIST_THREADS_HOST}) {
    for (int rank = 0; rank < 5; ++rank) assert_int_equal(gives_way_below(rank, 5, threads, false), rank);
  }
}

void whose_thread_is_kept_on_a_cpu_stays(void**) {
  for (int rank = 0; rank < 5; ++rank)
    assert_int_equal(gives_way_below(rank, 5, DIST_THREADS_LIBRARY, true), 0);
  for (int rank = 1; rank < 5; ++rank)
    assert_int_equal(gives_way_below(rank, 5, DIST_THREADS_CALLER, true), 0);
  // The caller's thread is the one that may move, so it gives way to all library threads.
  assert_int_equal(gives_way_below(0, 5, DIST_THREADS_CALLER, true), 5);
}

// If both moved, they would exchange their CPUs and meet again.
void one_of_two_gives_way(void**) {
  constexpr int kSize = 4;
  for (const int threads : {DIST_THREADS_CALLER, DIST_THREADS_LIBRARY, DIST_THREADS_HOST}) {
    for (const bool kept : {false, true}) {
      for (int a = 0; a < kSize; ++a) {
        for (int b = 0; b < a; ++b) {
          const int givers = (b < gives_way_below(a, kSize, threads, kept) ? 1 : 0) +
                             (a < gives_way_below(b, kSize, threads, kept) ? 1 : 0);
          // libdist does not pin host threads. Of two pinned library threads, neither moves.
          const bool both_stay = kept && (threads == DIST_THREADS_LIBRARY || b != 0);
          if (kept && threads == DIST_THREADS_HOST) continue;
          assert_int_equal(givers, both_stay ? 0 : 1);
        }
      }
    }
  }
}

// One observation, at a time that the test chooses.
struct Wait {
  bool on_its_cpu;
  int64_t now_ns;
  bool looks;
};

void it_looks_when_it_keeps_meeting(void**) {
  constexpr int64_t kStart = 1'000'000'000;
  constexpr int64_t kSoon = kStart + Beside::kIntervalNs - 1;
  constexpr int64_t kLater = kStart + Beside::kIntervalNs;
  constexpr Wait kWaits[] = {
      {true, kStart, false}, {true, kStart, false},  {false, kStart, false},  // not in a row
      {true, kStart, false}, {true, kStart, false},  {true, kStart, true},    //
      {true, kLater, false}, {true, kLater, false},                           // the count has started again
      {true, kSoon, false},  {true, kSoon, false},                            // too soon
      {true, kLater, true},  {false, kLater, false},                          //
  };
  Beside beside;
  for (const Wait& wait : kWaits)
    assert_int_equal(beside.found(wait.on_its_cpu, [&] { return wait.now_ns; }), wait.looks);
}

// Reading the clock takes time.
void it_reads_no_clock_in_vain(void**) {
  Beside beside;
  int reads = 0;
  const auto now = [&] {
    ++reads;
    return int64_t{1'000'000'000};
  };
  for (int i = 0; i < 100; ++i) {
    assert_false(beside.found(false, now));
    assert_false(beside.found(true, now));
    assert_false(beside.found(true, now));
  }
  assert_int_equal(reads, 0);
}

void room_is_what_it_may_use_and_nobody_does(void**) {
  assert_true(room_for(set_of({0, 1}), set_of({0})) == set_of({1}));
  assert_true(room_for(set_of({0, 1, 2, 3}), set_of({3, 1})) == set_of({0, 2}));
  assert_true(room_for(set_of({0, 1}), set_of({0, 1})) == CpuSet());
  assert_true(room_for(set_of({5}), set_of({5})) == CpuSet());
  assert_true(room_for(CpuSet(), set_of({5})) == CpuSet());
  // CPUs beyond the first word of the set. -1, for members that have not arrived yet, is not a CPU.
  assert_true(room_for(set_of({63, 64, 1023}), set_of({-1, 64})) == set_of({63, 1023}));
}

struct Member {
  CpuSet allowed;
  int cpu;
  int below;
};

// Moves each member that shares a CPU with a member to which it gives way. Returns false if none can move.
bool step(std::vector<Member>& members, std::mt19937& random) {
  bool moved = false;
  for (Member& member : members) {
    bool beside = false;
    CpuSet taken;
    for (const Member& other : members) {
      taken.add(other.cpu);
      beside =
          beside || (other.cpu == member.cpu && &other - members.data() < member.below && &other != &member);
    }
    if (!beside) continue;
    const CpuSet room = room_for(member.allowed, taken);
    if (room.count() == 0) continue;
    do {
      member.cpu = static_cast<int>(random() % 16);
    } while (!room.has(member.cpu));
    moved = true;
  }
  return moved;
}

// However the system places the threads, they end up on different CPUs if each may use all CPUs. If they may
// not, moving still ends.
void members_come_apart(void**) {
  std::mt19937 random(20);
  for (int round = 0; round < 2000; ++round) {
    const int cpus = 1 + static_cast<int>(random() % 16);
    const int size = 1 + static_cast<int>(random() % static_cast<unsigned>(cpus));
    const bool free = random() % 2 == 0;
    CpuSet all;
    for (int cpu = 0; cpu < cpus; ++cpu) all.add(cpu);
    std::vector<Member> members;
    for (int rank = 0; rank < size; ++rank) {
      const int cpu = static_cast<int>(random() % static_cast<unsigned>(cpus));
      CpuSet allowed = free ? all : set_of({cpu, static_cast<int>(random() % static_cast<unsigned>(cpus))});
      members.push_back({allowed, cpu, gives_way_below(rank, size, DIST_THREADS_HOST, false)});
    }
    int steps = 0;
    while (step(members, random)) assert_true(++steps <= size);
    for (const Member& member : members) assert_true(member.allowed.has(member.cpu));
    for (int a = 0; free && a < size; ++a) {
      for (int b = 0; b < a; ++b)
        assert_int_not_equal(members[static_cast<std::size_t>(a)].cpu,
                             members[static_cast<std::size_t>(b)].cpu);
    }
  }
}

void a_step_leaves_the_mask(void**) {
  const CpuSet before = cpus_of_this_thread();
  int cpu = 0;
  while (!before.has(cpu)) ++cpu;
  assert_true(step_onto(set_of({cpu})));
  assert_true(cpus_of_this_thread() == before);
  assert_true(step_onto(before));
  assert_true(cpus_of_this_thread() == before);
  assert_false(step_onto(CpuSet()));
  assert_true(cpus_of_this_thread() == before);
  const OnCpus here(set_of({cpu}));
  assert_true(step_onto(before));
  assert_true(cpus_of_this_thread() == set_of({cpu}));
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(higher_ranks_give_way),     cmocka_unit_test(whose_thread_is_kept_on_a_cpu_stays),
      cmocka_unit_test(one_of_two_gives_way),      cmocka_unit_test(it_looks_when_it_keeps_meeting),
      cmocka_unit_test(it_reads_no_clock_in_vain), cmocka_unit_test(room_is_what_it_may_use_and_nobody_does),
      cmocka_unit_test(members_come_apart),        cmocka_unit_test(a_step_leaves_the_mask),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
