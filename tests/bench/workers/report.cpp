// SPDX-License-Identifier: Apache-2.0
// Prints a line for libdist and one for each peer at each size. The file contains every form and every round.
#include "tests/bench/workers/report.hpp"

#include <cstdio>

#include "tests/bench/harness.hpp"

namespace bench {
namespace {

const char* transport_name(const Page& page) {
  return page.transport == DIST_TRANSPORT_GLOO   ? "gloo"
         : page.transport == DIST_TRANSPORT_GRPC ? "grpc"
                                                 : "shm";
}

void print_time(const SizeTimes& times, std::size_t side) {
  const SideTimes& it = times.sides[side];
  const double us = median(it.us);
  const std::string name = side == 0 ? std::string(times.size.name) + ": " + it.name() : "  " + it.name();
  std::printf("%-36.36s %9.1f %6.0f", name.c_str(), us, static_cast<double>(times.size.bytes) / us);
}

void print_head(const Page& page) {
  std::printf(
      "all_reduce of f32 over %d processes of one replica each, by %s on loopback; %d rounds of turns.\n",
      page.workers, transport_name(page), page.rounds);
  std::printf("round trip: each worker's bytes to worker 0 and as many back; exchange: both ways at once.\n");
  std::printf(
      "MB/s: a tensor's bytes by the time of one operation. Of each library the fastest form counts.\n");
  std::printf(
      "ratio: libdist's time over its, median (lowest to highest) of the rounds; speed: one over that.\n\n");
  std::printf("%-36s %9s %6s  %-23s %5s %5s\n", "size: libdist; beside what", "us", "MB/s", "ratio", "speed",
              "floor");
}

// One word for floor and goal: the goal is never below the floor.
const char* verdict_text(const Comparison& c) {
  if (c.floor == Verdict::kMissed) return "MISSED";
  if (c.goal == Verdict::kMet || c.goal == Verdict::kLevel) return "goal";
  return c.floor == Verdict::kMet ? "met" : c.floor == Verdict::kLevel ? "level" : "";
}

void print_comparison(const Comparison& c) {
  char ratio[64];
  std::snprintf(ratio, sizeof ratio, "%.2f (%.2f to %.2f)", c.middle, c.low, c.high);
  std::printf("  %-23s %5.2f", ratio, c.speed());
  if (c.target) std::printf(" %5.2g %s", c.target->floor, verdict_text(c));
  std::printf("\n");
}

void write_rounds(std::FILE* file, const std::vector<double>& us) {
  for (const double& each : us) std::fprintf(file, "%s%.2f", &each == &us.front() ? "" : ", ", each);
}

void write_row(std::FILE* file, const Page& page, const SizeTimes& times) {
  std::fprintf(file, "  {\"bytes\": %zu, \"sides\": [", times.size.bytes);
  for (const SideTimes& side : times.sides) {
    std::fprintf(file, "%s\n    {\"name\": %s, \"median_us\": %.2f, \"round_us\": [",
                 &side == &times.sides.front() ? "" : ",", quoted(side.name()).c_str(), median(side.us));
    write_rounds(file, side.us);
    std::fprintf(file, "]}");
  }
  std::fprintf(file, "],\n   \"comparisons\": [");
  bool first = true;
  for (const Comparison& c : compare(page, times)) {
    std::fprintf(file, "%s\n    {\"with\": %s, \"ratio\": %.3f, \"ratio_min\": %.3f, \"ratio_max\": %.3f",
                 first ? "" : ",", quoted(times.sides[c.side].name()).c_str(), c.middle, c.low, c.high);
    if (c.target) {
      std::fprintf(file, ", \"speed\": %.3f, \"floor\": %g, \"goal\": %g, \"verdict\": \"%s\"", c.speed(),
                   c.target->floor, c.target->goal, verdict_text(c));
    }
    std::fprintf(file, "}");
    first = false;
  }
  std::fprintf(file, "]}");
}

}  // namespace

bool print(const Page& page, const std::vector<SizeTimes>& all, const std::vector<std::string>& skipped) {
  print_head(page);
  int judged = 0, missed = 0;
  for (const SizeTimes& times : all) {
    print_time(times, 0);
    std::printf("\n");
    for (const Comparison& c : compare(page, times)) {
      print_time(times, c.side);
      print_comparison(c);
      judged += c.floor != Verdict::kNone;
      missed += c.floor == Verdict::kMissed;
    }
  }
  if (!skipped.empty()) std::printf("\nPeers that took no part, or not to the end:\n");
  for (const std::string& reason : skipped) std::printf("  %s\n", reason.c_str());
  if (page.quick) {
    std::printf("\nResults are right. A quick run is too short to judge floors.\n");
  } else {
    std::printf("\nFloors: %d of %d held.\n", judged - missed, judged);
  }
  return missed == 0;
}

bool write_json(const char* path, const Page& page, const std::vector<SizeTimes>& all,
                const std::vector<std::string>& skipped) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return std::perror(path), false;
  std::fprintf(file, "{\"workers\": %d, \"transport\": \"%s\", \"rounds\": %d, \"rows\": [\n", page.workers,
               transport_name(page), page.rounds);
  for (const SizeTimes& times : all) {
    write_row(file, page, times);
    std::fprintf(file, "%s\n", &times == &all.back() ? "" : ",");
  }
  std::fprintf(file, "], \"peers_skipped\": [");
  for (const std::string& reason : skipped)
    std::fprintf(file, "%s%s", &reason == &skipped.front() ? "" : ", ", quoted(reason).c_str());
  std::fprintf(file, "]}\n");
  if (std::fclose(file) == 0) return true;
  return std::perror(path), false;
}

}  // namespace bench
