// SPDX-License-Identifier: Apache-2.0
// A turn consists of the same operations as libdist's, one after another, out of place. A slow peer makes
// fewer of them, for example one that spins with more ranks than CPUs.
#include "tests/bench/workers/outsiders.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace bench {
namespace {

constexpr double kFallAsleepUs = 2e6;

// Divides "Open MPI 5.0.3 over tcp, a form" into library and form.
SideTimes side_named(const std::string& name) {
  const std::size_t comma = std::min(name.find(", "), name.size());
  return {name.substr(0, comma), name.substr(std::min(comma + 2, name.size())), {}};
}

}  // namespace

struct Outsiders::Taking {
  std::unique_ptr<Side> side;
  SideTimes times;
  int turn_operations;  // maximum
  bool lost;
};

Outsiders::Outsiders(const std::string& list, int ranks) : peers_(list) { peers_.start(ranks); }

std::vector<Outsiders::Taking> Outsiders::all_that_can(const Page& page, const Size& size) {
  peers::Request request;
  request.bytes = size.bytes;
  request.layout = Layout::kOutOfPlace;
  request.plan = {Pace::kHot, page.most_operations(size), 1};
  std::vector<Taking> all;
  for (const PeerGroup group : kPeerGroups) {
    for (bool again = true; again;) {  // again without a peer that is lost in its trial
      try {
        for (std::unique_ptr<Side>& side : peers_.all_sides(group, request)) {
          SideTimes times = side_named(side->name());
          all.push_back({std::move(side), std::move(times), kWarmUp, false});
        }
        again = false;
      } catch (const PeerLost& lost) {
        std::fprintf(stderr, "dist_bench_workers: %s\n", lost.what());
        peers_.forget_lost();
      }
    }
  }
  return all;
}

void Outsiders::take_round(std::vector<Taking>& sides, int operations, bool counts) {
  for (Taking& taking : sides) {
    if (taking.lost) continue;
    Samples samples;
    try {
      const int now = std::min(operations, taking.turn_operations);
      taking.side->block({Pace::kHot, now, 1}, samples);
    } catch (const PeerLost& lost) {
      std::fprintf(stderr, "dist_bench_workers: %s\n", lost.what());
      taking.lost = true;
      continue;
    }
    if (counts) {
      taking.times.us.push_back(median(samples));
    } else {
      taking.turn_operations = operations_for(median(samples), operations);
    }
  }
}

void Outsiders::take_size(Page& page, const std::vector<pid_t>& workers, SizeTimes& times) {
  std::vector<Taking> sides;
  for (int round = -1; round < page.rounds; ++round) {
    page.meet_outside();
    if (!wait_until_quiet(workers, kFallAsleepUs))
      throw std::runtime_error("the workers do not sleep while it is others' turn");
    if (round < 0) sides = all_that_can(page, times.size);
    take_round(sides, page.most_operations(times.size), round >= 0);
    page.meet_outside();
  }
  // A peer that has not had all turns is not compared.
  for (Taking& taking : sides) {
    if (!taking.lost) times.sides.push_back(std::move(taking.times));
  }
}

void Outsiders::take_turns(Page& page, const std::vector<pid_t>& workers, std::vector<SizeTimes>& all) {
  for (int s = 0; s < page.sizes; ++s) {
    take_size(page, workers, all[static_cast<std::size_t>(s)]);
    peers_.forget_lost();
  }
}

}  // namespace bench
