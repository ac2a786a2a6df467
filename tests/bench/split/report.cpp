// SPDX-License-Identifier: Apache-2.0
// Prints two lines for one device and thread, two for two of them, and the collectives' share of the time.
#include "tests/bench/split/report.hpp"

#include <algorithm>
#include <cstdio>

#include "tests/bench/harness.hpp"
#include "tests/bench/targets.hpp"

namespace bench::split {
namespace {

constexpr size_t kFewestJudged = 3;

struct Spread {
  double low, middle, high;
};

template <class Of>
Spread spread_of(const std::vector<Round>& rounds, Of of) {
  Samples all;
  for (const Round& round : rounds) all.push_back(of(round));
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  return {*low, median(all), *high};
}

const char* verdict_text(double value, Target target, bool more_is_better) {
  const Verdict floor = judge(value, target.floor, more_is_better);
  if (floor == Verdict::kMissed) return "MISSED";
  const Verdict goal = judge(value, target.goal, more_is_better);
  if (goal == Verdict::kMet || goal == Verdict::kLevel) return "goal";
  return floor == Verdict::kMet ? "met" : "level";
}

// Prints these rounds. Counts floors only if they are judged.
class Table {
 public:
  Table(const std::vector<Round>& rounds, const Sides& sides, bool judges)
      : rounds_(rounds), sides_(sides), judges_(judges) {}

  void print() {
    std::printf("%-32s %28s  %-22s %5s\n", "", "ms of a pass", "speed", "floor");
    for (const int index : {0, 1}) {
      const std::string count = std::to_string(index + 1);
      if (!sides_.peer.empty()) {
        print_ms(sides_.peer + ", " + count + (index == 0 ? " thread" : " threads"),
                 [&](const Round& round) { return round.threads[index].us; });
        std::printf("\n");
      }
      print_ms("libdist, " + count + (index == 0 ? " device" : " devices"),
               [&](const Round& round) { return round.devices[index].us; });
      if (!sides_.peer.empty()) {
        const Spread speed = spread_of(
            rounds_, [&](const Round& round) { return round.threads[index].us / round.devices[index].us; });
        std::printf("  %5.2f (%.2f to %.2f) ", speed.middle, speed.low, speed.high);
        verdict(speed.middle, index == 0 ? targets::kSplitOne : targets::kSplitTwo, true);
      }
      std::printf("\n");
    }
    const Spread own = spread_of(rounds_, [](const Round& round) { return 100 * round.devices[1].own; });
    const Spread waiting =
        spread_of(rounds_, [](const Round& round) { return 100 * round.devices[1].waiting; });
    std::printf("2 devices' collectives, %% of a pass: %.2f (%.2f to %.2f) ", own.middle, own.low, own.high);
    verdict(own.middle / 100, targets::kSplitCollectives, false);
    std::printf("\n  and beside it, waiting for the later device: %.2f (%.2f to %.2f)\n", waiting.middle,
                waiting.low, waiting.high);
    const Spread scales =
        spread_of(rounds_, [](const Round& round) { return round.devices[0].us / round.devices[1].us; });
    std::printf("Two are so many times as fast as one: libdist %.2f (%.2f to %.2f)", scales.middle,
                scales.low, scales.high);
    if (!sides_.peer.empty()) {
      const Spread theirs =
          spread_of(rounds_, [](const Round& round) { return round.threads[0].us / round.threads[1].us; });
      std::printf(", %s %.2f (%.2f to %.2f)", sides_.peer.c_str(), theirs.middle, theirs.low, theirs.high);
    }
    std::printf("\n");
  }

  int floors() const { return floors_; }
  int missed() const { return missed_; }

 private:
  template <class Of>
  void print_ms(const std::string& name, Of us) {
    const Spread ms = spread_of(rounds_, us);
    std::printf("%-32.32s %8.2f (%7.2f to %7.2f)", name.c_str(), ms.middle / 1e3, ms.low / 1e3,
                ms.high / 1e3);
  }

  void verdict(double value, Target target, bool more_is_better) {
    std::printf("%5.2g", target.floor);
    if (!judges_) return;
    std::printf(" %s", verdict_text(value, target, more_is_better));
    ++floors_;
    missed_ += judge(value, target.floor, more_is_better) == Verdict::kMissed;
  }

  const std::vector<Round>& rounds_;
  const Sides& sides_;
  const bool judges_;
  int floors_ = 0, missed_ = 0;
};

}  // namespace

bool judged(const Round& round) {
  return round.threads[1].us > 0 && round.threads[0].us >= targets::kSplitScales * round.threads[1].us;
}

bool print(const std::vector<Round>& rounds, const Sides& sides, bool quick) {
  std::printf("One text through an encoder on one replica of 1 or 2 logical devices, by %s; %zu rounds.\n",
              sides.engine.c_str(), rounds.size());
  std::printf("Outputs are within %.1e of ONNX Runtime's.\n", static_cast<double>(sides.difference));
  std::printf(
      "speed: libdist's over its, of turns of one round; median (lowest to highest) of the rounds.\n");
  std::vector<Round> good, others;
  for (const Round& round : rounds) (judged(round) ? good : others).push_back(round);
  const bool judges = !quick && good.size() >= kFewestJudged;
  int floors = 0, missed = 0;
  if (!others.empty()) {
    std::printf("\nNot judged: %zu rounds%s\n", others.size(),
                sides.peer.empty() ? " without ONNX Runtime"
                                   : " in which its two threads were less than 1.6 times as fast as its one");
    Table(others, sides, false).print();
  }
  if (!good.empty()) {
    std::printf("\n%s: %zu rounds in which its two threads were at least 1.6 times as fast as its one\n",
                judges ? "Judged" : "Not judged, as too few", good.size());
    Table table(good, sides, judges);
    table.print();
    floors = table.floors();
    missed = table.missed();
  }
  if (!sides.missing.empty()) std::printf("\nONNX Runtime takes no part: %s\n", sides.missing.c_str());
  if (quick)
    std::printf("\nResults are right. A quick run is too short to judge floors.\n");
  else
    std::printf("\nFloors: %d of %d held.\n", floors - missed, floors);
  return missed == 0;
}

}  // namespace bench::split
