// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/overlap/report.hpp"

#include <algorithm>
#include <cstdio>

#include "tests/bench/harness.hpp"
#include "tests/bench/targets.hpp"

namespace bench::overlap {
namespace {

constexpr const char* kModes[] = {"computation on the CPU", "computation on a device (the thread sleeps)"};

std::vector<double> exposed_by_round(const Times& times) {
  std::vector<double> exposed;
  for (std::size_t r = 0; r < times.step.size(); ++r)
    exposed.push_back(times.step[r] - times.compute_only[r]);
  return exposed;
}

// Returns the peer with the least exposed communication, or NULL if there is none, or if the turns vary by
// more than what is exposed.
const SideResult* best_peer(const Results& results, int mode) {
  const SideResult* best = nullptr;
  for (const SideResult& side : results.sides) {
    if (side.library == "libdist") continue;
    if (best == nullptr || side.times[mode].exposed() < best->times[mode].exposed()) best = &side;
  }
  return best != nullptr && best->times[mode].exposed() > 0 ? best : nullptr;
}

// Only libdist's default transport on one machine has a limit.
Verdict verdict_of(const Results& results, const SideResult& side, double ratio) {
  if (results.quick || side.name != "libdist, shm") return Verdict::kNone;
  return ratio <= 0 ? Verdict::kMet : judge(ratio, targets::kExposed.floor, false);
}

// Returns whether the limit was missed.
bool print_side(const Results& results, const SideResult& side, int mode) {
  const Times& times = side.times[mode];
  const std::vector<double> exposed = exposed_by_round(times);
  const auto [low, high] = std::minmax_element(exposed.begin(), exposed.end());
  char range[48];
  std::snprintf(range, sizeof range, "%.1f (%.1f to %.1f)", times.exposed(), *low, *high);
  std::printf("  %-40.40s %8.1f %8.1f  %-24s %6.1f", side.name.c_str(), median(times.step),
              median(times.compute_only), range, median(times.cpu));
  const SideResult* const peer = best_peer(results, mode);
  bool missed = false;
  if (peer != nullptr && side.library == "libdist") {
    const double ratio = times.exposed() / peer->times[mode].exposed();
    const Verdict verdict = verdict_of(results, side, ratio);
    missed = verdict == Verdict::kMissed;
    std::printf("  %5.2f%s", ratio, missed ? " MISSED" : verdict == Verdict::kNone ? "" : " met");
  }
  std::printf("\n");
  return missed;
}

void write_times(std::FILE* file, const char* name, const std::vector<double>& times) {
  std::fprintf(file, ", \"%s\": [", name);
  for (const double& each : times) std::fprintf(file, "%s%.3f", &each == &times.front() ? "" : ", ", each);
  std::fprintf(file, "]");
}

}  // namespace

double Times::exposed() const { return median(step) - median(compute_only); }

bool print(const Results& results) {
  std::printf(
      "The gradients of ResNet-50 over %d processes of one replica each; %d rounds of turns. Buckets in MiB:",
      results.workers, results.rounds);
  for (const std::size_t elements : results.buckets)
    std::printf(" %.1f", static_cast<double>(elements * sizeof(float)) / (1 << 20));
  std::printf(
      "\nA step is a backward pass of %.0f ms of computation, whose buckets are averaged meanwhile. Exposed: "
      "the step\n"
      "minus the same computation without communication. CPU: what the step takes beyond the computation, "
      "for each\n"
      "process. Ratio: exposed, over that of the best peer. Medians of the rounds, lowest to highest. Other "
      "programs\n"
      "used %.2f CPUs.\n",
      results.compute_ms, results.others);
  bool missed = false;
  for (const int mode : {0, 1}) {
    std::printf("\n%-42s %8s %8s  %-24s %6s  %s\n", kModes[mode], "step ms", "compute", "exposed ms",
                "CPU ms", "ratio");
    for (const SideResult& side : results.sides) missed |= print_side(results, side, mode);
  }
  if (!results.skipped.empty()) std::printf("\nPeers that took no part, or not to the end:\n");
  for (const std::string& reason : results.skipped) std::printf("  %s\n", reason.c_str());
  if (results.quick) std::printf("\nResults are right. A quick run is too short to judge times.\n");
  return !missed;
}

bool write_json(const char* path, const Results& results) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return std::perror(path), false;
  std::fprintf(file,
               "{\"workers\": %d, \"rounds\": %d, \"compute_ms\": %.1f, \"others_cpus\": %.3f, \"sides\": [",
               results.workers, results.rounds, results.compute_ms, results.others);
  for (const SideResult& side : results.sides) {
    for (const int mode : {0, 1}) {
      std::fprintf(file, "%s\n  {\"name\": %s, \"mode\": \"%s\", \"exposed_ms\": %.3f",
                   &side == &results.sides.front() && mode == 0 ? "" : ",", quoted(side.name).c_str(),
                   mode == 0 ? "cpu" : "device", side.times[mode].exposed());
      write_times(file, "step_ms", side.times[mode].step);
      write_times(file, "compute_only_ms", side.times[mode].compute_only);
      write_times(file, "cpu_ms", side.times[mode].cpu);
      std::fprintf(file, "}");
    }
  }
  std::fprintf(file, "], \"peers_skipped\": [");
  for (const std::string& reason : results.skipped)
    std::fprintf(file, "%s%s", &reason == &results.skipped.front() ? "" : ", ", quoted(reason).c_str());
  std::fprintf(file, "]}\n");
  if (std::fclose(file) == 0) return true;
  return std::perror(path), false;
}

}  // namespace bench::overlap
