// SPDX-License-Identifier: Apache-2.0
// core/trace/attendance: which of several workers was last, as each of them infers from durations, compared
// with one process with a single clock. The test controls all times.
#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

#include "core/trace/attendance.hpp"
#include "core/trace/snapshot.hpp"
#include "tests/unit/counting_memory.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail()

namespace dist {
namespace {

constexpr uint64_t kSeed = 20261123;

// The arrival times of each worker's members in a collective, on a global clock that no worker has.
using Comings = std::vector<std::vector<int64_t>>;

struct Truth {
  int worker = 0;
  int rank = 0;          // the rank of the last of all members
  int64_t late_ns = 0;   // how long all others waited for it
  int64_t alone_ns = 0;  // how long the other members of its worker waited; 0 = it has no others
};

Truth truth_of(const Comings& comings) {
  std::vector<std::pair<int64_t, std::pair<int, int>>> all;  // time, rank, worker
  int rank = 0;
  for (std::size_t w = 0; w < comings.size(); ++w) {
    for (const int64_t at : comings[w]) all.push_back({at, {rank++, static_cast<int>(w)}});
  }
  std::sort(all.begin(), all.end());
  const auto& last = all.back();
  Truth truth{last.second.second, last.second.first, last.first - all[all.size() - 2].first, 0};
  std::vector<int64_t> beside = comings[static_cast<std::size_t>(truth.worker)];
  std::sort(beside.begin(), beside.end());
  if (beside.size() > 1) truth.alone_ns = beside.back() - beside[beside.size() - 2];
  return truth;
}

int64_t all_here(const std::vector<int64_t>& members) {
  return *std::max_element(members.begin(), members.end());
}

// Returns the answer of worker `me`, whose clock is `ahead_ns` fast, if a message takes `travel_ns`.
Attendance::Latest latest_of(Memory& memory, const Comings& comings, int me, int64_t ahead_ns,
                             int64_t travel_ns, Recorder& recorder) {
  const auto workers = static_cast<int>(comings.size());
  std::vector<std::pair<int32_t, Attendance::Last>> said;
  int first = 0;
  for (int w = 0; w < workers; ++w) {
    const auto& members = comings[static_cast<std::size_t>(w)];
    Attendance attendance(memory, static_cast<int>(members.size()), workers, w);
    for (std::size_t m = 0; m < members.size(); ++m)
      attendance.arrive(static_cast<int>(m), members[m] + (w == me ? ahead_ns : 5555 * w));
    const Attendance::Last last = attendance.begin();
    said.push_back({first + last.member, last});
    first += static_cast<int>(members.size());
  }
  const auto& mine = comings[static_cast<std::size_t>(me)];
  Attendance attendance(memory, static_cast<int>(mine.size()), workers, me);
  for (std::size_t m = 0; m < mine.size(); ++m) attendance.arrive(static_cast<int>(m), mine[m] + ahead_ns);
  attendance.watch(&recorder);
  (void)attendance.begin();
  // A worker looks for messages twice at once, and then whenever a message arrives.
  std::vector<int64_t> looks = {all_here(mine), all_here(mine)};
  for (int w = 0; w < workers; ++w) {
    const int64_t comes = all_here(comings[static_cast<std::size_t>(w)]) + travel_ns;
    if (w != me && comes > looks[0]) looks.push_back(comes);
  }
  std::sort(looks.begin() + Attendance::kLooksAtOnce, looks.end());
  for (const int64_t now : looks) {
    attendance.look([&](int w) { return all_here(comings[static_cast<std::size_t>(w)]) + travel_ns <= now; },
                    [&] { return now + ahead_ns; });
  }
  for (int w = 0; w < workers; ++w)
    attendance.hear(w, said[static_cast<std::size_t>(w)].first,
                    said[static_cast<std::size_t>(w)].second.alone_ns);
  return attendance.latest();
}

// The leader, whose recorder has the event.
class Leader {
 public:
  explicit Leader(Memory& memory) : flight_(memory, ReplicaCount(1, GlobalReplica{2}, 5)) { open(); }
  Recorder& recorder() noexcept { return flight_[LocalReplica{0}]; }
  void open() noexcept {
    recorder().begin(DIST_COLLECTIVE_BARRIER);
    recorder().open({.collective = DIST_COLLECTIVE_BARRIER, .members = 1});
  }
  // Returns what the event contains about other workers.
  std::pair<uint64_t, uint64_t> event() noexcept {
    Recorder::Slot slot;
    assert_true(recorder().read(recorder().count() - 1, slot));
    return {slot[Recorder::kWorkers], slot[Recorder::kLate]};
  }

 private:
  FlightRecorder flight_;
};

void check(Memory& memory, Recorder& recorder, const Comings& comings) {
  const Truth truth = truth_of(comings);
  for (int me = 0; me < static_cast<int>(comings.size()); ++me) {
    const Attendance::Latest found =
        latest_of(memory, comings, me, int64_t{1'000'000'007} * me - 3, 0, recorder);
    assert_int_equal(found.worker, truth.worker);
    assert_int_equal(found.name, truth.rank);
    assert_int_equal(found.late_ns, me == truth.worker ? truth.alone_ns : truth.late_ns);
  }
}

void layouts_agree_with_one_process(void**) {
  CountingMemory memory;
  Leader leader(*memory);
  std::mt19937_64 random(kSeed);
  std::printf("# seed %llu\n", static_cast<unsigned long long>(kSeed));
  for (int turn = 0; turn < 3000; ++turn) {
    const std::size_t workers = 2 + random() % 5;
    std::vector<int64_t> times(workers * 4);
    for (std::size_t i = 0; i < times.size(); ++i) times[i] = static_cast<int64_t>(i) * 11 + 1'000'000;
    std::shuffle(times.begin(), times.end(), random);
    Comings comings;
    std::size_t used = 0;
    for (std::size_t w = 0; w < workers; ++w) {
      const std::size_t members = 1 + random() % 4;
      comings.emplace_back(times.begin() + static_cast<std::ptrdiff_t>(used),
                           times.begin() + static_cast<std::ptrdiff_t>(used + members));
      used += members;
    }
    check(*memory, leader.recorder(), comings);
  }
}

void who_is_late_by_more_than_a_message_takes_is_named_by_all(void**) {
  CountingMemory memory;
  Leader leader(*memory);
  const Comings comings = {{100, 120}, {110, 9000}, {130}};
  for (int me = 0; me < 3; ++me) {
    const Attendance::Latest found = latest_of(*memory, comings, me, -70, 50, leader.recorder());
    assert_int_equal(found.worker, 1);
    assert_int_equal(found.name, 3);
    // The result contains a message's travel time, unless it cancels out.
    assert_int_equal(found.late_ns, me == 0 ? 9050 - 180 : me == 1 ? 8890 : 9050 - 170);
  }
}

void those_of_one_moment(void**) {
  CountingMemory memory;
  Leader leader(*memory);
  const Comings comings = {{7, 7}, {7}, {7, 7}};
  for (int me = 0; me < 3; ++me) {
    const Attendance::Latest found = latest_of(*memory, comings, me, 0, 0, leader.recorder());
    assert_int_equal(found.worker, me);
    assert_int_equal(found.late_ns, 0);
  }
}

// During the wait the event names the missing worker, and afterwards the last one.
void the_event_says_for_whom_it_waits(void**) {
  CountingMemory memory;
  Leader leader(*memory);
  Recorder& recorder = leader.recorder();
  assert_int_equal(leader.event().first, 0);
  recorder.meet_workers();
  recorder.close(DIST_OK);
  leader.open();
  recorder.meet_workers();
  recorder.wait_for_workers(1, 3);
  assert_int_equal(leader.event().first, 1 | 1 << 8 | uint64_t{3} << 36);
  const Attendance::Latest found = latest_of(*memory, {{5}, {3}, {90}, {60}}, 0, 0, 0, recorder);
  assert_int_equal(leader.event().first, 1 | uint64_t{0xFFFFFFF} << 8);  // all have arrived
  recorder.last_of_workers(found.worker, found.name, found.late_ns);
  assert_int_equal(leader.event().first, 2 | 2 << 8 | uint64_t{2} << 36);
  assert_int_equal(leader.event().second, 30);
  recorder.close(DIST_OK);
  assert_int_equal(leader.event().second, 30);
  // The next event is not about other workers.
  leader.open();
  assert_int_equal(leader.event().first, 0);
  recorder.close(DIST_OK);
}

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(dist::layouts_agree_with_one_process),
      cmocka_unit_test(dist::who_is_late_by_more_than_a_message_takes_is_named_by_all),
      cmocka_unit_test(dist::those_of_one_moment),
      cmocka_unit_test(dist::the_event_says_for_whom_it_waits),
  };
  return cmocka_run_group_tests_name("attendance", tests, nullptr, nullptr);
}
