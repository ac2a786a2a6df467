// SPDX-License-Identifier: Apache-2.0
// Prints the table.
#include "tests/bench/report.hpp"

#include "tests/bench/machine.hpp"

namespace bench {
namespace {

const char* unit_text(Unit unit) {
  switch (unit) {
    case Unit::kTimesAsFast: return "x";
    case Unit::kOfLimit: return "of limit";
    case Unit::kHops: return "hops <";
    case Unit::kTimePerByte: return "f32 <";
    case Unit::kCpuShare: return "CPUs <";
    case Unit::kOfOrdered: return "order. <";
    case Unit::kOfLonger: return "longer <";
    case Unit::kOfInPlace: return "place <";
    case Unit::kExponent: return "exp. <";
    case Unit::kOfC: return "C <";
    case Unit::kAboveC: return "us+C <";
  }
  return "?";
}

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNone: return "";
    case Verdict::kMet: return "met";
    case Verdict::kLevel: return "level";
    case Verdict::kMissed: return "MISSED";
  }
  return "?";
}

// Four significant digits, from nanoseconds to seconds.
std::string time_text(double us) {
  char text[32];
  if (us < 100) {
    std::snprintf(text, sizeof text, us < 10 ? "%.3f" : "%.2f", us);
  } else {
    std::snprintf(text, sizeof text, us < 1000 ? "%.1f" : "%.0f", us);
  }
  return text;
}

// Three significant digits without an exponent.
std::string ratio_text(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, ratio < 1000 ? "%.3g" : "%.0f", ratio);
  return text;
}

// Returns one verdict for both, because the goal is above the floor.
const char* verdict_text(const Comparison& c) {
  const bool goal = c.goal == Verdict::kMet || c.goal == Verdict::kLevel;
  return goal && c.floor != Verdict::kMissed ? "goal" : verdict_text(c.floor);
}

void print_comparison(const RowResult& row, const Comparison& c) {
  const std::string range = ratio_text(c.ratio_min) + ".." + ratio_text(c.ratio_max);
  char hop[16] = "";
  if (row.hop_us != 0) std::snprintf(hop, sizeof hop, "%.3f", row.hop_us);
  std::printf("  %-34.34s %8s %7s %-8s %-13s %6s", c.with.c_str(),
              time_text(row.sides[c.side].median_us).c_str(), ratio_text(c.ratio).c_str(), unit_text(c.unit),
              range.c_str(), hop);
  if (c.target) std::printf(" %5.3g", c.target->floor);
  if (c.floor != Verdict::kNone) std::printf(" %s", verdict_text(c));
  std::printf("\n");
  if (c.out_of_reach()) std::printf("  %-34s (what limits this row reaches %.3g itself)\n", "", c.most);
}

}  // namespace

Tally tally(const std::vector<RowResult>& rows) {
  Tally sum;
  for (const RowResult& row : rows) {
    for (const Comparison& c : row.comparisons) {
      sum.met += c.floor == Verdict::kMet;
      sum.level += c.floor == Verdict::kLevel;
      sum.missed += c.floor == Verdict::kMissed;
      sum.out_of_reach += c.out_of_reach();
      sum.missed_disturbed += c.floor == Verdict::kMissed && row.others_cpu > kDisturbed;
      sum.goals += c.goal != Verdict::kNone;
      sum.goals_met += c.goal == Verdict::kMet || c.goal == Verdict::kLevel;
    }
  }
  return sum;
}

void print_head(const Settings& settings) {
  std::printf(
      "%s\n%d rounds. Times are medians in us, ratios medians of the rounds' ratios, with lowest..highest.\n"
      "hop: a cache line's way between the replicas' CPUs, in us, measured in the same rounds.\n\n",
      machine_line().c_str(), settings.rounds);
  std::printf("%-36s %8s %7s %-8s %-13s %6s %5s\n", "row, libdist's time; beside what", "us", "ratio", "",
              "rounds", "hop", "floor");
}

void print_row(const RowResult& row) {
  const std::string us = row.sides.empty() ? "" : time_text(row.sides[0].median_us) + " us";
  std::printf("%s: %s\n", row.spec.name().c_str(), us.c_str());
  for (const Comparison& c : row.comparisons) print_comparison(row, c);
  if (row.others_cpu > kDisturbed)
    std::printf("  (other programs took up to %.0f %% of the CPUs)\n", 100 * row.others_cpu);
  if (!row.note.empty()) std::printf("  %s\n", row.note.c_str());
  std::fflush(stdout);
}

void print_tail(const Tally& tally, const Settings& settings, const Runner& runner) {
  for (const Peers* programs : {&runner.peers(), &runner.bindings()}) {
    if (programs->skipped().empty()) continue;
    std::printf("\n%s that took no part, or not to the end:\n",
                programs == &runner.peers() ? "Peers" : "Bindings");
    for (const std::string& reason : programs->skipped()) std::printf("  %s\n", reason.c_str());
  }
  if (!settings.judged) {
    std::printf("\nResults are right. A quick run is too short to judge floors.\n");
    return;
  }
  std::printf(
      "\nFloors: %d met, %d level, %d missed (%d of these while other programs ran, %d above what limits\n"
      "their row on this machine). Goals: %d of %d met or level.\n",
      tally.met, tally.level, tally.missed, tally.missed_disturbed, tally.out_of_reach, tally.goals_met,
      tally.goals);
}

}  // namespace bench
