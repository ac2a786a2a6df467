// SPDX-License-Identifier: Apache-2.0
// Prints a line for libdist and one for the fastest form of each peer.
#include "tests/bench/servers/report.hpp"

#include <algorithm>
#include <cstdio>

#include "tests/bench/harness.hpp"

namespace bench::servers {
namespace {

std::string name_of(const RowTimes& row) {
  if (row.operation == Operation::kClosure || row.operation == Operation::kClosurePush) {
    const char* const what =
        row.operation == Operation::kClosure ? "closure of nothing" : "closure, push 4 B";
    const std::string many = ", " + std::to_string(row.closures_at_a_time) + " at a time";
    return row.closures_at_a_time == 1 ? what : what + many;
  }
  const char* const what = row.operation == Operation::kPush ? "push " : "pull ";
  if (row.bytes < 1024) return what + std::to_string(row.bytes) + " B";
  if (row.bytes < std::size_t{1} << 20) return what + std::to_string(row.bytes >> 10) + " KiB";
  return what + std::to_string(row.bytes >> 20) + " MiB";
}

// libdist's speed relative to one other side, from turns of the same round.
struct Speed {
  double low, middle, high;
};

Speed speed_of(const RowTimes& row, const SideTimes& side) {
  const std::vector<double>& mine = row.sides.front().us;
  Samples speeds;
  for (std::size_t round = 0; round < mine.size(); ++round) speeds.push_back(side.us[round] / mine[round]);
  const auto [low, high] = std::minmax_element(speeds.begin(), speeds.end());
  return {*low, median(speeds), *high};
}

// Returns the fastest form of each library, in the order of the row.
std::vector<const SideTimes*> fastest(const RowTimes& row) {
  std::vector<const SideTimes*> sides;
  for (const SideTimes& side : row.sides) {
    const auto known = std::find_if(sides.begin(), sides.end(),
                                    [&](const SideTimes* other) { return other->library == side.library; });
    if (known == sides.end()) {
      sides.push_back(&side);
    } else if (median(side.us) < median((*known)->us)) {
      *known = &side;
    }
  }
  return sides;
}

void print_time(const RowTimes& row, const SideTimes& side, const std::string& name) {
  const double us = median(side.us);
  const bool closure = row.operation == Operation::kClosure || row.operation == Operation::kClosurePush;
  std::printf("%-40.40s %9.1f %8.0f %6.0f", name.c_str(), us, 1e6 / us,
              closure ? 0 : static_cast<double>(row.bytes) / us);
}

const char* verdict_text(Verdict floor, Verdict goal) {
  if (floor == Verdict::kMissed) return "MISSED";
  if (goal == Verdict::kMet || goal == Verdict::kLevel) return "goal";
  return floor == Verdict::kMet ? "met" : "level";
}

}  // namespace

bool print(const std::vector<RowTimes>& rows, bool quick, const std::vector<std::string>& skipped) {
  std::printf(
      "Variables and closures of one parameter server and one worker, processes on loopback; %zu rounds.\n",
      rows.front().sides.front().us.size());
  std::printf("us: of one push, pull or closure; MB/s: a tensor's bytes by that.\n");
  std::printf(
      "A worker has one closure at a time, if nothing else is said. Of each library the fastest form "
      "counts.\n");
  std::printf("speed: libdist's over its, median (lowest to highest) of the rounds.\n\n");
  std::printf("%-40s %9s %8s %6s  %-22s %5s\n", "libdist; beside what", "us", "a second", "MB/s", "speed",
              "floor");
  int judged = 0, missed = 0;
  for (const RowTimes& row : rows) {
    for (const SideTimes* side : fastest(row)) {
      const bool first = side == &row.sides.front();
      const std::string form = side->form.empty() ? "" : ", " + side->form;
      print_time(row, *side, first ? name_of(row) + ": libdist" : "  " + side->library + form);
      if (!first) {
        const Speed speed = speed_of(row, *side);
        std::printf("  %5.2f (%.2f to %.2f)", speed.middle, speed.low, speed.high);
        if (side->target) std::printf(" %5.2g", side->target->floor);
        if (side->target && !quick) {
          const Verdict floor = judge(speed.middle, side->target->floor, true);
          std::printf(" %s", verdict_text(floor, judge(speed.middle, side->target->goal, true)));
          ++judged;
          missed += floor == Verdict::kMissed;
        }
      }
      std::printf("\n");
    }
  }
  if (!skipped.empty()) std::printf("\nPeers that took no part, or not to the end:\n");
  for (const std::string& reason : skipped) std::printf("  %s\n", reason.c_str());
  if (quick) {
    std::printf("\nResults are right. A quick run is too short to judge floors.\n");
  } else {
    std::printf("\nFloors: %d of %d held.\n", judged - missed, judged);
  }
  return missed == 0;
}

}  // namespace bench::servers
