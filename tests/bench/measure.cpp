// SPDX-License-Identifier: Apache-2.0
// Measures one row. All sides take turns in every round, and ratios are taken only between medians of the
// same round.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "tests/bench/row.hpp"

namespace bench {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;

int iterations_for(size_t bytes) {
  if (bytes <= 16 * kKiB) return 100;
  if (bytes <= 256 * kKiB) return 20;
  if (bytes <= kMiB) return 8;
  if (bytes <= 16 * kMiB) return 4;
  return bytes <= 64 * kMiB ? 2 : 1;
}

// Returns the memory that is available without swapping; 0 = unknown.
size_t available_bytes() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/meminfo", "r"), std::fclose);
  char line[128];
  unsigned long long kib = 0;
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
  }
  return static_cast<size_t>(kib) * 1024;
}

// The length of a block. Sides that run in the runtime of another language get longer blocks, and so does C
// next to them: after a sleep, a runtime takes about 10 ms to settle (at first, Go's monitor thread checks
// every 20 us, on a CPU that a replica wants). Compared with one batch, a command to a process and waiting
// for its sleep take long; compared with several, they do not.
struct Pacing {
  double blocks;
  int trial_batches, most_batches;
};
constexpr Pacing kPacing{1, 1, 500}, kBindingPacing{10, 20, 10'000};

double ratio_of(Unit unit, double libdist_us, double other_us, double scale) {
  if (unit == Unit::kOfC) return other_us / libdist_us / scale;  // both are libdist
  if (unit == Unit::kAboveC)
    return std::max(other_us - libdist_us, 1e-3);  // positive, because judge()
                                                   // divides by it
  if (unit == Unit::kExponent) return std::log(libdist_us / other_us) / std::log(scale);
  return more_is_better(unit) ? scale * other_us / libdist_us : libdist_us / other_us / scale;
}

}  // namespace

const Strategy& Runner::strategy(int replicas, dist_threads threads) {
  std::unique_ptr<Strategy>& strategy = strategies_[{replicas, threads}];
  if (!strategy) strategy = std::make_unique<Strategy>(replicas, threads);
  return *strategy;
}

int Runner::most_iterations(const Row& row) const {
  int most = iterations_for(row.spec.bytes);
  if (row.spec.pace == Pace::kPaused) most = 20;
  if (row.spec.pace == Pace::kAsleep) most = 10;
  most = std::min(most, settings_.most_iterations);
  for (const auto& data : row.data) most = std::min(most, data->most_iterations());
  return most;
}

// Chooses the number of batches that fill the block, from the duration of one with its overhead.
Plan Runner::plan_for(const Row& row, Side& side) const {
  const Pacing pacing = row.spec.bindings == Threads::kNone ? kPacing : kBindingPacing;
  const double block_us = pacing.blocks * settings_.block_us;
  Plan plan{row.spec.pace, most_iterations(row), pacing.trial_batches};
  Samples samples;
  if (plan.pace == Pace::kHot) {  // few at first, because many would take seconds with some peers
    Plan few = plan;
    few.iterations = std::min(few.iterations, 4);
    few.batches = 1;
    side.block(few, samples);
    plan.iterations =
        std::clamp(static_cast<int>(4 * settings_.block_us / median(samples)), 1, plan.iterations);
  }
  const double begin = now_us();
  side.block(plan, samples);
  const double batch_us = (now_us() - begin) / (plan.batches + 1);
  plan.batches =
      std::clamp(static_cast<int>(block_us / batch_us), plan.pace == Pace::kHot ? 3 : 1, pacing.most_batches);
  return plan;
}

Round Runner::run_round(Row& row, const std::vector<Plan>& plans, std::string& note) {
  Round round;
  const auto own_cpu_us = [&] { return process_cpu_us() + peers_.cpu_us() + bindings_.cpu_us(); };
  const double begin = now_us(), all_begin = machine_cpu_us(), own_begin = own_cpu_us();
  for (size_t s = 0; s < row.sides.size(); ++s) {
    if (!wait_until_quiet()) note = "threads still ran before the turn of " + row.names[s];
    Samples samples;
    row.sides[s]->block(plans[s], samples);
    round.median_us.push_back(median(samples));
    round.min_us.push_back(*std::min_element(samples.begin(), samples.end()));
    for (const auto& data : row.data) {
      if (data->wrong() != 0)
        throw std::runtime_error(row.spec.name() + ": " + row.names[s] + ": wrong result");
    }
  }
  const double others_us = (machine_cpu_us() - all_begin) - (own_cpu_us() - own_begin);
  round.others_cpu = std::clamp(others_us / (now_us() - begin) / online_cpus(), 0.0, 1.0);
  return round;
}

// Repeats rounds that other programs disturb, as far as the settings allow. The least disturbed ones count.
std::vector<Round> Runner::run_rounds(Row& row, std::string& note) {
  std::vector<Plan> plans;
  for (const auto& side : row.sides) plans.push_back(plan_for(row, *side));
  const auto wanted = static_cast<size_t>(settings_.rounds),
             most = wanted + static_cast<size_t>(settings_.again);
  std::vector<Round> rounds;
  for (size_t undisturbed = 0; undisturbed < wanted && rounds.size() < most;) {
    rounds.push_back(run_round(row, plans, note));
    undisturbed += rounds.back().others_cpu <= kDisturbed;
  }
  std::stable_sort(rounds.begin(), rounds.end(),
                   [](const Round& a, const Round& b) { return a.others_cpu < b.others_cpu; });
  rounds.resize(wanted);
  return rounds;
}

void Runner::compare(const Row& row, RowResult& result) const {
  const SideResult& libdist = result.sides[0];
  for (const Row::Pairing& pairing : row.pairings) {
    const auto [fastest, slowest] = std::minmax_element(
        pairing.sides.begin(), pairing.sides.end(),
        [&](size_t a, size_t b) { return result.sides[a].median_us < result.sides[b].median_us; });
    const size_t best = *(pairing.unit == Unit::kOfLonger ? slowest : fastest);
    const SideResult& other = result.sides[best];
    Samples ratios;
    for (size_t round = 0; round < libdist.round_us.size(); ++round) {
      ratios.push_back(ratio_of(pairing.unit, libdist.round_us[round], other.round_us[round], pairing.scale));
    }
    const auto [lowest, highest] = std::minmax_element(ratios.begin(), ratios.end());
    Comparison comparison{other.name, pairing.group, pairing.unit,   best,           median(ratios),
                          *lowest,    *highest,      pairing.target, Verdict::kNone, Verdict::kNone};
    if (pairing.target && settings_.judged) {
      comparison.floor = judge(comparison.ratio, pairing.target->floor, more_is_better(pairing.unit));
      comparison.goal = judge(comparison.ratio, pairing.target->goal, more_is_better(pairing.unit));
    }
    if (!row.limits.empty() && pairing.unit == Unit::kTimesAsFast) {
      Samples most;
      for (size_t round = 0; round < other.round_us.size(); ++round) {
        double limit_us = 0;
        for (const size_t side : row.limits) limit_us += result.sides[side].round_us[round];
        most.push_back(other.round_us[round] / limit_us);
      }
      comparison.most = median(most);
    }
    result.comparisons.push_back(std::move(comparison));
  }
}

// A lost peer takes no further part. Its row starts over without it.
RowResult Runner::measure(const RowSpec& spec) {
  for (;;) {
    try {
      return measure_once(spec);
    } catch (const PeerLost& lost) {
      std::fprintf(stderr, "dist_bench: %s\n", lost.what());
      peers_.forget_lost();
      bindings_.forget_lost();
    }
  }
}

void Runner::add_sides(Row& row) {
  switch (row.spec.operation) {
    case Operation::kAllReduce: add_all_reduce(row); break;
    case Operation::kBarrier: add_barrier(row); break;
    case Operation::kRun: add_run(row); break;
    case Operation::kIdle: add_idle(row); break;
    case Operation::kList: add_list(row); break;
    case Operation::kReduceTo: add_reduce_to(row); break;
    case Operation::kStep: add_step(row); break;
    case Operation::kWideSum: add_wide_sum(row); break;
    case Operation::kPlanned: add_planned(row); break;
    case Operation::kOverlap: add_overlap(row); break;
    case Operation::kHanding: add_handing(row); break;
    case Operation::kGrowth: add_growth(row); break;
    case Operation::kPush:
    case Operation::kPull:
    case Operation::kClosure:
    case Operation::kClosurePush:
    case Operation::kEncode: break;  // not in this program
  }
  if (row.skipped.empty()) add_peers(row);
}

RowResult Runner::measure_once(const RowSpec& spec) {
  RowResult result;
  result.spec = spec;
  // Two sets of buffers, the shared one of a peer, and the arrays of the memory kernel.
  const size_t most = 2 * Data::memory_bytes(spec.bytes, spec.replicas, Layout::kOutOfPlace) + kRmw2Bytes;
  if (spec.bytes >= kMiB && available_bytes() != 0 && most > available_bytes()) {
    result.note = "skipped: wants " + std::to_string(most / kMiB) + " MiB of memory";
    return result;
  }
  Row row(spec);
  if (spec.bindings != Threads::kNone) {
    add_bindings(row);
  } else {
    add_sides(row);
  }
  if (row.skipped.empty() && cpus_ >= 2 && spec.operation != Operation::kIdle) (void)hop(row);
  if (!row.skipped.empty()) {
    result.note = "skipped: " + row.skipped;
    return result;
  }
  const std::vector<Round> rounds = run_rounds(row, result.note);
  for (size_t s = 0; s < row.sides.size(); ++s) {
    SideResult side{row.names[s], {}, 0, HUGE_VAL};
    for (const Round& round : rounds) {
      side.round_us.push_back(round.median_us[s]);
      side.min_us = std::min(side.min_us, round.min_us[s]);
    }
    side.median_us = median(side.round_us);
    result.sides.push_back(std::move(side));
  }
  if (row.hop) result.hop_us = result.sides[*row.hop].median_us;
  result.others_cpu = rounds.back().others_cpu;
  compare(row, result);
  return result;
}

}  // namespace bench
