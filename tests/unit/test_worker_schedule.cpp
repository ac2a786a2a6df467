// SPDX-License-Identifier: Apache-2.0
// core/collective/worker_algorithm.hpp and worker_schedule.hpp: which algorithm is chosen
// between workers, and which part of which tensor goes to which worker. No data is moved here.
#include <cinttypes>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/collective/worker_algorithm.hpp"
#include "core/collective/worker_schedule.hpp"
#include "tests/unit/exchange_cases.hpp"

namespace dist {
namespace {

constexpr uint64_t kSeed = 20261122;
constexpr std::size_t kKi = 1024;

void algorithms(void**) {
  struct Row {
    WorkerAlgorithmQuestion question;
    WorkerAlgorithm algorithm;
  };
  constexpr std::size_t kRoom = 64 * kKi * kKi;
  constexpr auto kTogether = WorkerAlgorithm::kTogether;
  constexpr auto kOwner = WorkerAlgorithm::kOwner;
  // workers, givers, to all, folds, bytes of one member, staging
  constexpr Row kRows[] = {
      {{2, 2, true, true, 0, kRoom}, kTogether},
      {{2, 2, true, true, 64, kRoom}, kTogether},
      {{1024, 1024, true, true, 64, kRoom}, kTogether},
      // Between two workers of one member each, both algorithms move the same number of bytes. With more
      // workers they do not.
      {{2, 2, true, true, 128 * kKi, kRoom}, kTogether},
      {{2, 2, true, true, 128 * kKi + 1, kRoom}, kOwner},
      {{2, 8, true, true, 31 * kKi, kRoom}, kTogether},
      {{2, 8, true, true, 33 * kKi, kRoom}, kOwner},
      {{16, 16, true, true, 4 * kKi, kRoom}, kTogether},
      {{16, 16, true, true, 7 * kKi, kRoom}, kOwner},
      {{16, 128, true, true, 512, kRoom}, kTogether},
      {{16, 128, true, true, kKi, kRoom}, kOwner},
      // Collectives that fold nothing use kTogether up to its limit.
      {{16, 16, true, false, 16 * kKi, kRoom}, kTogether},
      {{16, 16, true, false, 16 * kKi + 1, kRoom}, kOwner},
      {{16, 1, true, false, 256 * kKi, kRoom}, kTogether},
      {{16, 1, true, false, 256 * kKi + 1, kRoom}, kOwner},
      // Results for only some workers; little room; sizes beyond all memory.
      {{2, 2, false, true, 4, kRoom}, kOwner},
      {{2, 2, true, true, 64, 127}, kOwner},
      {{2, 2, true, true, 64, 128}, kTogether},
      {{2, 2, true, true, SIZE_MAX, kRoom}, kOwner},
      {{2, 2, true, true, 1, 0}, kOwner},
  };
  for (const Row& row : kRows) {
    if (worker_algorithm_of(row.question) != row.algorithm) std::printf("# row %td\n", &row - kRows);
    assert_int_equal(static_cast<int>(worker_algorithm_of(row.question)), static_cast<int>(row.algorithm));
  }
}

// The traffic that the choice is based on, and how a slower link changes the choice.
void costs(void**) {
  constexpr std::size_t kRoom = 64 * kKi * kKi;
  constexpr auto kTogether = WorkerAlgorithm::kTogether;
  constexpr auto kOwner = WorkerAlgorithm::kOwner;
  constexpr WorkerAlgorithmQuestion kFour{4, 8, true, true, 16 * kKi, kRoom};
  constexpr WorkerTraffic kAll = worker_traffic_of(kTogether, kFour);
  static_assert(kAll.rounds == 1 && kAll.messages == 3 && kAll.bytes == std::size_t{6} * 16 * kKi);
  constexpr WorkerTraffic kRanges = worker_traffic_of(kOwner, kFour);
  // A quarter of six inputs, and three quarters of the result.
  static_assert(kRanges.rounds == 3 && kRanges.messages == 9 && kRanges.bytes == (24 + 12) * kKi);
  static_assert(worker_time_ns({2, 6, 1000}, {100, 10, 0.5}) == 2 * 100 + 4 * 10 + 500);
  constexpr WorkerAlgorithmQuestion kSixteen{16, 16, true, true, 7 * kKi, kRoom};
  static_assert(worker_algorithm_of(kSixteen) == kOwner);
  static_assert(worker_algorithm_of(kSixteen, {.latency_ns = 30'000}) == kTogether);
  static_assert(worker_algorithm_of(kSixteen, {.message_ns = 2000}) == kTogether);
  static_assert(worker_algorithm_of(kSixteen, {.byte_ns = 3.2}) == kOwner);
  static_assert(worker_algorithm_of({16, 16, true, true, kKi, kRoom}, {.byte_ns = 3.2}) == kOwner);
}

// A model, not a measurement: the cost per worker of an f32 all_reduce over many workers with one replica
// each.
void model_of_many_workers(void**) {
  constexpr WorkerLinkCosts kLink{.message_ns = 5000};
  std::printf(
      "# model of an all_reduce: 25 Gb/s, 15 us for a message, 5 us for each further one of a round\n");
  for (const int workers : {64, 256, 1024}) {
    for (const std::size_t bytes : {std::size_t{4}, kKi, 64 * kKi, kKi * kKi}) {
      const WorkerAlgorithmQuestion question{
          workers, static_cast<std::size_t>(workers), true, true, bytes, 64 * kKi * kKi};
      const WorkerAlgorithm algorithm = worker_algorithm_of(question, kLink);
      const WorkerTraffic traffic = worker_traffic_of(algorithm, question);
      std::printf("# %4d workers, %8zu bytes: %s, %4zu messages, %9zu bytes, %.1f ms\n", workers, bytes,
                  algorithm == WorkerAlgorithm::kTogether ? "together" : "owner   ", traffic.messages,
                  traffic.bytes, worker_time_ns(traffic, kLink) * 1e-6);
      // Every worker sends to all others in each round.
      assert_int_equal(traffic.messages, traffic.rounds * (workers - 1));
      assert_true(algorithm == WorkerAlgorithm::kTogether || bytes > 4);
    }
  }
}

// The calls of all members, and their schedule.
struct Plan {
  Plan(const Case& the_case, const std::vector<int>& layout, std::size_t n, std::mt19937_64& random)
      : firsts{0} {
    for (const int each : layout) firsts.push_back(firsts.back() + each);
    members.emplace(the_case, firsts.back(), n, random);
    for (int p = 0; p < firsts.back(); ++p) descriptors.push_back(&(*members)[p].descriptor);
    const Call& call = (*members)[0].call;
    tasks.emplace(call, firsts.back(), descriptors.data(), TaskList::Ranks{0, firsts.back()});
    schedule.emplace(call, *tasks, descriptors.data(), firsts);
  }
  std::vector<int> firsts;
  std::optional<Members> members;
  std::vector<const CallDescriptor*> descriptors;
  std::optional<TaskList> tasks;
  std::optional<WorkerSchedule> schedule;
};

// Returns the flows of a lane as text: "t0 1>2 src 3+4 dst 5+4", with "*" for all members, and without
// offsets if the whole tensor is meant.
std::string text_of(const WorkerSchedule& schedule, const WorkerSchedule::Lane& lane) {
  std::string text;
  WorkerSchedule::Cursor cursor = schedule.begin(lane);
  const auto rank = [](int which) { return which < 0 ? std::string("*") : std::to_string(which); };
  schedule.for_flows(lane, lane.units, cursor,
                     [&](const WorkerSchedule::Flow& flow, std::size_t first, std::size_t count) {
                       if (!text.empty()) text += ", ";
                       text += "t" + std::to_string(flow.t) + " " + rank(flow.from) + ">" + rank(flow.to);
                       if (flow.src_at >= 0) text += " from " + std::to_string(flow.src_at);
                       if (flow.dst_at >= 0) text += " at " + std::to_string(flow.dst_at);
                       text += " [" + std::to_string(first) + "+" + std::to_string(count) + "]";
                     });
  return text;
}

// Two workers, one with two members and one with one; the root is member 1. Tensors are f32[7, along, 3]. The
// members' parts along the axis are 1, 2 and 3. Collectives without parts have 5 (105 elements, 7 units of
// 16). In an all_to_all, member p sends p + r + 1 to r.
void lanes(void**) {
  struct Row {
    Collective collective;
    const char* lanes;  // "from>to: flows" of each pair, or "worker: flows" of each owner
  };
  // @every collective but NONE, RETURN, BARRIER, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD
  const Row rows[] = {
      {Collective::kAllReduce, "0: t0 *>* [0+64]; 1: t0 *>* [64+41]"},
      {Collective::kScan, "0: t0 *>* [0+64]; 1: t0 *>* [64+41]"},
      {Collective::kReduce, "0: t0 *>1 [0+105]; 1: "},
      {Collective::kReduceScatter, "0: t0 *>0 from 0 [0+21], t0 *>1 from 1 [0+42]; 1: t0 *>2 from 3 [0+63]"},
      {Collective::kBroadcast, "0>0: t0 1>* [0+105]; 0>1: t0 1>* [0+105]; 1>0: ; 1>1: "},
      {Collective::kScatter,
       "0>0: t0 1>0 from 0 [0+21], t0 1>1 from 1 [0+42]; 0>1: t0 1>2 from 3 [0+63]; 1>0: ; 1>1: "},
      {Collective::kAllGather,
       "0>0: t0 0>* at 0 [0+21], t0 1>* at 1 [0+42]; 0>1: t0 0>* at 0 [0+21], t0 1>* at 1 [0+42]; "
       "1>0: t0 2>* at 3 [0+63]; 1>1: t0 2>* at 3 [0+63]"},
      {Collective::kGather,
       "0>0: t0 0>1 at 0 [0+21], t0 1>1 at 1 [0+42]; 0>1: ; 1>0: t0 2>1 at 3 [0+63]; 1>1: "},
      {Collective::kAllToAll,
       "0>0: t0 0>0 from 0 at 0 [0+21], t0 1>0 from 0 at 1 [0+42], t0 0>1 from 1 at 0 [0+42], "
       "t0 1>1 from 2 at 2 [0+63]; "
       "0>1: t0 0>2 from 3 at 0 [0+63], t0 1>2 from 5 at 3 [0+84]; "
       "1>0: t0 2>0 from 0 at 3 [0+63], t0 2>1 from 3 at 5 [0+84]; 1>1: t0 2>2 from 7 at 7 [0+105]"},
      {Collective::kPermute, "0>0: t0 0>1 [0+105]; 0>1: t0 1>2 [0+105]; 1>0: t0 2>0 [0+105]; 1>1: "},
  };
  for (const Row& row : rows) {
    const bool reduces = traits_of(row.collective).reduces;
    const Case the_case{row.collective, reduces ? DIST_REDUCE_SUM : dist_reduce_op{},
                        row.collective == Collective::kScan ? DIST_SCAN_INCLUSIVE : 0, false,
                        row.collective == Collective::kAllToAll};
    // Searches for a seed with which the random parts of the three members are 1, 2 and 3.
    std::mt19937_64 random;
    for (uint64_t seed = 0;; ++seed) {
      random.seed(seed);
      if (random() % 5 == 1 && random() % 5 == 2 && random() % 5 == 3) {
        random.seed(seed);
        break;
      }
    }
    const Plan plan(the_case, {2, 1}, 1, random);
    const WorkerSchedule& schedule = *plan.schedule;
    std::string text;
    for (int from = 0; from < 2; ++from) {
      if (schedule.folds()) {
        text += std::string(text.empty() ? "" : "; ") + std::to_string(from) + ": " +
                text_of(schedule, schedule.owned(from));
        continue;
      }
      for (int to = 0; to < 2; ++to) {
        text += std::string(text.empty() ? "" : "; ") + std::to_string(from) + ">" + std::to_string(to) +
                ": " + text_of(schedule, schedule.between(from, to));
      }
    }
    if (text != row.lanes) std::printf("# %s\n", traits_of(row.collective).name);
    assert_string_equal(text.c_str(), row.lanes);
  }
}

// Pieces of any size have the same elements in the same order, and no piece exceeds the limit.
void pieces_are_the_whole(void**) {
  std::mt19937_64 random(kSeed);
  const std::vector<std::vector<int>> layouts = {{1, 1}, {2, 1}, {3, 1, 2}, {1, 1, 1, 1}};
  for (const auto& layout : layouts) {
    for (const Case& each : kCases) {
      const Plan plan(each, layout, 3, random);
      const WorkerSchedule& schedule = *plan.schedule;
      const int workers = schedule.workers();
      for (const std::size_t slice : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1000}}) {
        const std::size_t pieces = schedule.pieces(slice);
        for (int w = 0; w < workers * (schedule.folds() ? 1 : workers); ++w) {
          const WorkerSchedule::Lane lane =
              schedule.folds() ? schedule.owned(w) : schedule.between(w / workers, w % workers);
          using Key = std::tuple<std::size_t, int, int>;
          std::map<Key, std::size_t> whole;
          std::map<Key, std::size_t> next;
          const auto key = [](const WorkerSchedule::Flow& f) { return Key{f.t, f.from, f.to}; };
          WorkerSchedule::Cursor cursor = schedule.begin(lane);
          schedule.for_flows(lane, lane.units, cursor,
                             [&](const WorkerSchedule::Flow& f, std::size_t first, std::size_t count) {
                               next[key(f)] = first;
                               whole[key(f)] = first + count;
                             });
          cursor = schedule.begin(lane);
          for (std::size_t i = 0; i < pieces; ++i) {
            const Range piece = WorkerSchedule::piece_of(lane, slice, i);
            assert_true(piece.end - piece.begin <= slice);
            std::size_t elements = 0;
            schedule.for_flows(lane, piece, cursor,
                               [&](const WorkerSchedule::Flow& f, std::size_t first, std::size_t count) {
                                 assert_int_equal(next[key(f)], first);
                                 next[key(f)] = first + count;
                                 elements += count;
                               });
            assert_true(elements <= slice * (kUnitBytes / sizeof(float)));
          }
          assert_true(next == whole);
        }
      }
    }
  }
}

void staging_is_shared_out(void**) {
  std::mt19937_64 random(kSeed);
  const Case all_reduce{Collective::kAllReduce, DIST_REDUCE_SUM, 0, false, false};
  const Plan plan(all_reduce, {1, 1, 1, 1}, 2, random);
  // In an all_reduce, a worker of one member keeps 4 lists and a result of its own lane, and a list and a
  // result of each of the three others: 11 units for each unit of every lane.
  assert_int_equal(plan.schedule->slice(11 * 64), 1);
  assert_int_equal(plan.schedule->slice(22 * 64 - 1), 1);
  assert_int_equal(plan.schedule->slice(22 * 64), 2);
  assert_int_equal(plan.schedule->slice(0), 1);
  // 14 units in 4 lanes.
  assert_int_equal(plan.schedule->pieces(1), 4);
  assert_int_equal(plan.schedule->pieces(2), 2);
  assert_int_equal(plan.schedule->pieces(4), 1);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  const CMUnitTest tests[] = {cmocka_unit_test(algorithms),
                              cmocka_unit_test(costs),
                              cmocka_unit_test(model_of_many_workers),
                              cmocka_unit_test(lanes),
                              cmocka_unit_test(pieces_are_the_whole),
                              cmocka_unit_test(staging_is_shared_out)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
