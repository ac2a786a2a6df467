// SPDX-License-Identifier: Apache-2.0
// How the time of an operation grows: from 32 to 256 replicas with a fixed number of bytes per member, from
// 100 to 10,000 tensors in a list, and with groups that a run does not use.
#include "tests/bench/row.hpp"

namespace bench {
namespace {

constexpr size_t kPiece = 16;  // bytes that a member has, or sends to each other
constexpr int kFew = 32, kMany = 256;
constexpr size_t kShortList = 100, kLongList = 10'000, kTensor = 64;
constexpr int kGroups = 1000, kReplicasWithGroups = 8;

struct Kind {
  const char* name;
  bool of_pieces;  // each member has one piece for each other
};
constexpr Kind kKinds[] = {
    {"all_gather 16 B", true},  {"all_to_all 16 B", true},  {"reduce_scatter 16 B", true},
    {"all_reduce 16 B", false}, {"broadcast 16 B", false},  {"scan 16 B", false},
    {"barrier", false},         {"stragglers", false},      {"metrics", false},
    {"trace", false},           {"all_reduce list", false}, {"unused groups", false},
};

}  // namespace

const char* growth_name(Growth growth) { return kKinds[static_cast<size_t>(growth)].name; }

void append_growth_rows(std::vector<RowSpec>& rows) {
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    const auto growth = static_cast<Growth>(i);
    const int replicas = growth == Growth::kListLength     ? 2
                         : growth == Growth::kUnusedGroups ? kReplicasWithGroups
                                                           : kMany;
    RowSpec& row = rows.emplace_back(RowSpec{Operation::kGrowth, replicas, Pace::kHot, DIST_F32});
    row.growth = growth;
  }
}

namespace {

template <class Row>
std::unique_ptr<Side> side_of(Row& row, Growth growth, const Strategy& strategy, CpuPair& seen) {
  const auto replicas = static_cast<size_t>(strategy.replicas());
  const auto hand = [&](Handing handing, size_t bytes) {
    return libdist_handing(strategy, handing, row.own(handed(handing, bytes, strategy.replicas())));
  };
  switch (growth) {
    case Growth::kAllGather: return hand(Handing::kAllGather, replicas * kPiece);
    case Growth::kAllToAll: return hand(Handing::kAllToAll, replicas * kPiece);
    case Growth::kReduceScatter: return hand(Handing::kReduceScatter, replicas * kPiece);
    case Growth::kBroadcast: return hand(Handing::kBroadcast, kPiece);
    case Growth::kScan: return hand(Handing::kScan, kPiece);
    case Growth::kStragglers: return libdist_inspect(strategy, Inspect::kStragglers);
    case Growth::kMetrics: return libdist_inspect(strategy, Inspect::kMetrics);
    case Growth::kTrace: return libdist_inspect(strategy, Inspect::kTrace);
    case Growth::kBarrier: return libdist_barrier(strategy, seen);
    case Growth::kUnusedGroups: return libdist_run(strategy);
    default: break;
  }
  Data& data = row.own(std::make_unique<Data>(DIST_F32, kPiece, strategy.replicas(), Layout::kOutOfPlace));
  return libdist_all_reduce(strategy, data, seen);
}

}  // namespace

void Runner::add_growth(Row& row) {
  const Growth growth = row.spec.growth;
  if (growth == Growth::kListLength) {
    const auto add = [&](size_t tensors) {
      DataList& list = row.own(std::make_unique<DataList>(
          std::vector<size_t>(tensors, kTensor / sizeof(float)), row.spec.replicas));
      return row.add(libdist_list(strategy(row.spec.replicas), list, false),
                     "libdist, " + std::to_string(tensors) + " tensors");
    };
    add(kLongList);
    return row.compare(Unit::kExponent, {add(kShortList)}, targets::kGrowth,
                       static_cast<double>(kLongList) / kShortList);
  }
  const auto add = [&](int replicas, int groups, const std::string& name) {
    Strategy& made = *row.strategies.emplace_back(std::make_unique<Strategy>(replicas));
    made.make_groups(groups);
    return row.add(side_of(row, growth, made, seen_), "libdist, " + name);
  };
  if (growth == Growth::kUnusedGroups) {
    add(kReplicasWithGroups, kGroups, std::to_string(kGroups) + " groups");
    return row.compare(Unit::kTimesAsFast, {add(kReplicasWithGroups, 0, "no group")}, targets::kUnusedGroups);
  }
  const bool of_pieces = kKinds[static_cast<size_t>(growth)].of_pieces;
  add(kMany, 0, std::to_string(kMany) + " replicas");
  row.compare(Unit::kExponent, {add(kFew, 0, std::to_string(kFew) + " replicas")},
              of_pieces ? targets::kGrowthOfPieces : targets::kGrowth, static_cast<double>(kMany) / kFew);
}

}  // namespace bench
