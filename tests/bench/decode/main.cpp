// SPDX-License-Identifier: Apache-2.0
// dist_bench_decode: the cost of all_reduces per token in a split model, compared with inference engines,
// with all CPUs and with a CPU quota below the number of threads.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/decode/sides.hpp"
#include "tests/bench/decode/token.hpp"
#include "tests/bench/harness.hpp"
#include "tests/bench/targets.hpp"

namespace bench::decode {
namespace {

constexpr char kHelp[] =
    "usage: dist_bench_decode [--quick] libdist=PROGRAM [NAME=PROGRAM ...]\n"
    "Times the communication of a decoder: 64 all_reduces of bf16[4096] per token, each of which is written, "
    "reduced and\n"
    "read, without and with products between them. The programs run in turns.\n"
    "\n"
    "  --quick            few short turns, which only check the results\n"
    "  --help             print this text\n"
    "\n"
    "Exit status: 0 success; 1 a row is slower than its limit; 2 the run failed.\n";

constexpr int kMissedFloor = 1, kFailed = 2;
constexpr int kReduces = 64, kQuickReduces = 4;
constexpr int kRounds = 9, kMostRounds = 27, kQuickRounds = 1;
constexpr double kSeconds = 0.3, kQuickSeconds = 0.02;
constexpr int kMatrices = 16, kQuickMatrices = 1;  // 512 MiB: more than caches keep between two tokens
constexpr double kUndisturbed = 0.9;

struct Settings {
  bool quick = false;
  std::vector<SideProgram> sides;  // the first one is libdist
};

struct Row {
  int members;
  double cpus;    // of the quota; 0 = none
  bool products;  // with products between the all_reduces; `target` is then for one all_reduce
  MaybeTarget target;
};

// No floor for 2 members under a quota: it stops both at the same time, whether they spin or sleep, and the
// turns vary with its periods. No floor for more members than CPUs with products, because the share of each
// CPU is then random.
const Row kRows[] = {{2, 0, false, targets::kDecode},
                     {2, 0, true, targets::kDecodeReduce},
                     {4, 0, true, {}},
                     {2, 1, false, {}},
                     {4, 1, false, targets::kDecodeQuota}};

struct Spread {
  double low, middle, high;
};

Spread spread_of(Samples all) {
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  return {*low, median(all), *high};
}

// A row's turns as [side][round].
struct Turns {
  std::vector<std::vector<Turn>> of;
  int disturbed = 0;  // number of rounds that do not count
};

// The second side spins, so it uses all available CPU time. If it got less, other programs used some.
bool disturbed(const Row& row, const std::vector<Turn>& round) {
  const double cpus = static_cast<double>(usable_cpus().size());
  const double wanted =
      std::min(static_cast<double>(row.members), row.cpus > 0 ? std::min(cpus, row.cpus) : cpus);
  return round.size() > 1 && !round[1].late && round[1].cpus < kUndisturbed * wanted;
}

Turns take_row(const Settings& settings, const Row& row, const Quota* quota) {
  Turns turns{std::vector<std::vector<Turn>>(settings.sides.size()), 0};
  const int matrices = !row.products ? 0 : settings.quick ? kQuickMatrices : kMatrices;
  const Plan plan = settings.quick ? Plan{row.members, kQuickReduces, kQuickSeconds, matrices}
                                   : Plan{row.members, kReduces, kSeconds, matrices};
  const size_t rounds = settings.quick ? kQuickRounds : kRounds;
  while (turns.of[0].size() < rounds && turns.disturbed < kMostRounds) {
    std::vector<Turn> round;
    for (const SideProgram& side : settings.sides) round.push_back(take(side, plan, quota));
    if (!settings.quick && disturbed(row, round)) {
      ++turns.disturbed;
      continue;
    }
    for (size_t side = 0; side < round.size(); ++side) turns.of[side].push_back(round[side]);
  }
  return turns;
}

struct Floors {
  int judged = 0, missed = 0;
};

void print_row(const Settings& settings, const Row& row, const Turns& turns, Floors& floors) {
  if (turns.disturbed > 0)
    std::printf("  %d rounds do not count: other programs took CPU time from the spin barrier\n",
                turns.disturbed);
  if (turns.of[0].empty()) return;
  for (size_t side = 0; side < turns.of.size(); ++side) {
    Samples tokens, cpus, speeds, reduces;
    for (size_t round = 0; round < turns.of[side].size(); ++round) {
      const Turn& turn = turns.of[side][round];
      tokens.push_back(turn.tokens_a_second);
      cpus.push_back(turn.cpus);
      reduces.push_back(turn.reduce_us);
      const Turn& own = turns.of[0][round];
      speeds.push_back(row.products ? turn.reduce_us / own.reduce_us
                                    : own.tokens_a_second / turn.tokens_a_second);
    }
    const Spread rate = spread_of(tokens);
    std::printf("  %-24.24s %10.1f (%8.1f to %8.1f) %9.2f %6.2f", settings.sides[side].name.c_str(),
                rate.middle, rate.low, rate.high, median(reduces), median(cpus));
    if (side > 0) {
      const Spread speed = spread_of(speeds);
      std::printf("  %6.2f (%.2f to %.2f)", speed.middle, speed.low, speed.high);
      if (row.target) std::printf(" %5.2g", row.target->floor);
      if (row.target && !settings.quick) {
        const Verdict floor = judge(speed.middle, row.target->floor, true);
        const Verdict goal = judge(speed.middle, row.target->goal, true);
        ++floors.judged;
        floors.missed += floor == Verdict::kMissed;
        std::printf(" %s", floor == Verdict::kMissed                          ? "MISSED"
                           : goal == Verdict::kMet || goal == Verdict::kLevel ? "goal"
                           : floor == Verdict::kMet                           ? "met"
                                                                              : "level");
      }
    }
    std::printf("\n");
  }
}

int run(const Settings& settings) {
  std::printf("Tokens of %d all_reduces of bf16[%zu], each written, reduced and read; %d rounds.\n",
              settings.quick ? kQuickReduces : kReduces, kElements, settings.quick ? kQuickRounds : kRounds);
  std::printf("us: of one all_reduce from the arrival of the last member; CPUs: CPU time over time.\n");
  std::printf("A side without a token in a minute counts as having one.\n");
  std::printf(
      "speed: libdist's tokens a second over its, or with products its us over libdist's; of turns of one "
      "round, "
      "median (lowest to highest).\n\n");
  std::printf("  %-24s %10s %23s %9s %6s  %-22s %5s\n", "", "tokens/s", "", "us", "CPUs", "speed", "floor");
  Floors floors;
  for (const Row& row : kRows) {
    std::optional<Quota> quota;
    std::printf("%d members", row.members);
    if (row.products) {
      std::printf(", products of oneDNN");
      if (!Product::kAvailable) {
        std::printf(": skipped, since this build has no oneDNN\n");
        continue;
      }
    }
    try {
      if (row.cpus > 0) {
        std::printf(", a quota of %g CPUs", row.cpus);
        quota.emplace(row.cpus);
      }
    } catch (const std::runtime_error& error) {
      std::printf(": skipped, since %s\n", error.what());
      continue;
    }
    std::printf("\n");
    std::fflush(stdout);
    print_row(settings, row, take_row(settings, row, quota ? &*quota : nullptr), floors);
  }
  if (settings.quick)
    std::printf("\nResults are right. A quick run is too short to judge floors.\n");
  else
    std::printf("\nFloors: %d of %d held.\n", floors.judged - floors.missed, floors.judged);
  return floors.missed == 0 ? 0 : kMissedFloor;
}

}  // namespace
}  // namespace bench::decode

int main(int argc, char** argv) {
  using namespace bench::decode;
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (argument == "--help") return std::fputs(kHelp, stdout), 0;
    if (argument == "--quick")
      settings.quick = true;
    else if (equals != std::string::npos)
      settings.sides.push_back({argument.substr(0, equals), argument.substr(equals + 1)});
    else
      return std::fputs(kHelp, stderr), kFailed;
  }
  if (settings.sides.empty()) return std::fputs(kHelp, stderr), kFailed;
  try {
    return run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_bench_decode: %s\n", error.what());
    return kFailed;
  }
}
