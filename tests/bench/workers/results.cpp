// SPDX-License-Identifier: Apache-2.0
// Ratios are taken only between times of the same round, because a disturbance affects all turns of its
// round.
#include "tests/bench/workers/results.hpp"

#include <algorithm>

#include "tests/bench/harness.hpp"
#include "tests/bench/workers/gloo.hpp"
#include "tests/bench/workers/worker.hpp"

namespace bench {
namespace {

MaybeTarget target_of(const Page& page, const SizeTimes& times, std::size_t side) {
  if (page.transport == DIST_TRANSPORT_AUTO) return targets::kWorkersByShm;
  const bool large = times.size.bytes >= kMiB;
  if (page.transport != DIST_TRANSPORT_GLOO && side == kExchange && large)
    return targets::kLargeWorkersByGrpc;
  if (page.transport != DIST_TRANSPORT_GLOO || times.sides[side].library != gloo_name()) return {};
  return large ? targets::kLargeWorkersByGloo : targets::kWorkersByGloo;
}

Comparison beside(const Page& page, const SizeTimes& times, std::size_t side) {
  const std::vector<double>&mine = times.sides[0].us, &its = times.sides[side].us;
  Samples ratios;
  // A peer that left early has fewer rounds.
  const std::size_t rounds = std::min(mine.size(), its.size());
  for (std::size_t round = 0; round < rounds; ++round) ratios.push_back(mine[round] / its[round]);
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  Comparison c{side,           *low,          median(ratios), *high, target_of(page, times, side),
               Verdict::kNone, Verdict::kNone};
  if (c.target && !page.quick) {
    c.floor = judge(c.speed(), c.target->floor, true);
    c.goal = judge(c.speed(), c.target->goal, true);
  }
  return c;
}

}  // namespace

std::vector<SizeTimes> no_times(const Page& page) {
  std::vector<SizeTimes> all;
  for (int s = 0; s < page.sizes; ++s) all.push_back({kSizes[static_cast<std::size_t>(s)], {}});
  return all;
}

void put_inner_times(const Page& page, std::vector<SizeTimes>& all) {
  for (std::size_t s = 0; s < all.size(); ++s) {
    std::vector<SideTimes> sides = inner_sides();
    for (std::size_t side = 0; side < sides.size(); ++side) {
      for (int round = 0; round < page.rounds; ++round) {
        if (page.us[s][round][side] > 0) sides[side].us.push_back(page.us[s][round][side]);
      }
    }
    std::erase_if(sides, [](const SideTimes& side) { return side.us.empty(); });
    all[s].sides.insert(all[s].sides.begin(), sides.begin(), sides.end());
  }
}

std::vector<Comparison> compare(const Page& page, const SizeTimes& times) {
  std::vector<std::size_t> fastest;  // of the sides of each library
  for (std::size_t side = 1; side < times.sides.size(); ++side) {
    const SideTimes& it = times.sides[side];
    const auto known = std::find_if(fastest.begin(), fastest.end(), [&](std::size_t other) {
      return times.sides[other].library == it.library;
    });
    if (known == fastest.end()) {
      fastest.push_back(side);
    } else if (median(it.us) < median(times.sides[*known].us)) {
      *known = side;
    }
  }
  std::vector<Comparison> all;
  for (const std::size_t side : fastest) all.push_back(beside(page, times, side));
  return all;
}

}  // namespace bench
