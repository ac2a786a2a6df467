// SPDX-License-Identifier: Apache-2.0
// dist_bench_serve: the overhead of requests and batches in libdist, and how they delay each other.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tests/bench/serve/rows.hpp"

namespace bench::serve {
namespace {

constexpr char kHelp[] =
    "usage: dist_bench_serve [options]\n"
    "Times requests and compares them with a thread pool that uses a condition variable, and times batches.\n"
    "\n"
    "  --quick            few short rounds, which are not compared with the limits\n"
    "  --help             print this text\n"
    "\n"
    "Exit status: 0 success; 1 a row misses its limit; 2 the run failed.\n";

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Returns whether the row is within its limit.
bool print(const Row& row, bool judged) {
  const double middle = middle_of(row.rounds);
  const auto [low, high] = std::minmax_element(row.rounds.begin(), row.rounds.end());
  std::printf("%-44s %9.2f %s  (%.2f to %.2f)", row.name.c_str(), middle, row.unit.c_str(), *low, *high);
  if (!row.naive.empty()) std::printf("  by hand %.2f", middle_of(row.naive));
  const bool met = row.limit == 0 || (row.limit_is_least ? middle >= row.limit : middle <= row.limit);
  if (row.limit != 0) {
    std::printf("  %s %.2f%s", row.limit_is_least ? "at least" : "at most", row.limit,
                !judged ? ""
                : met   ? ": met"
                        : ": MISSED");
  }
  std::printf("\n");
  return met;
}

int run(const Settings& settings) {
  std::printf("# medians of %d rounds (least to greatest)\n", settings.rounds);
  bool met = true;
  const auto show = [&](const Row& row) { met = print(row, !settings.quick) && met; };
  show(dispatch(settings, false));
  show(dispatch(settings, true));
  show(throughput(settings, 1));
  show(throughput(settings, 2));
  show(back_to_back(settings));
  show(four_requests(settings));
  show(gang_of_four(settings));
  show(item_overhead(settings));
  show(batched_throughput(settings));
  show(overload(settings));
  return met || settings.quick ? 0 : 1;
}

}  // namespace
}  // namespace bench::serve

int main(int argc, char** argv) {
  using namespace bench::serve;
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") return std::fputs(kHelp, stdout), 0;
    if (argument != "--quick") return std::fputs(kHelp, stderr), 2;
    settings = {true, 2};
  }
  try {
    return run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_bench_serve: %s\n", error.what());
    return 2;
  }
}
