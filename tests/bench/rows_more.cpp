// SPDX-License-Identifier: Apache-2.0
// The rows that involve more than one all_reduce of one tensor: lists of gradients, training steps, exact
// sums, plans, overlap, and the other collectives.
#include <numeric>

#include "tests/bench/row.hpp"

namespace bench {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kPlannedSizes[] = {64, kKiB, 16 * kKiB, 256 * kKiB, kMiB};
constexpr StepForm kStepForms[] = {{}, {.momentum = true}, {.clip = true}, {.momentum = true, .clip = true}};
constexpr int kContributions = 8;  // in total over all replicas
constexpr size_t kLongList = 1000;

std::vector<size_t> counts_of(const RowSpec& spec, const Settings& settings) {
  const size_t tensors = std::max<size_t>(spec.tensors, 1);
  return spec.network ? tensor_counts(*spec.network, settings.list_share)
                      : std::vector<size_t>(tensors, spec.bytes / sizeof(float) / tensors);
}

MaybeTarget if_cores(bool enough, Target target) { return enough ? MaybeTarget(target) : std::nullopt; }

}  // namespace

void append_more_rows(const Settings& settings, int replicas, std::vector<RowSpec>& rows) {
  using enum Operation;
  const auto add = [&](Operation operation, size_t bytes) -> RowSpec& {
    return rows.emplace_back(RowSpec{operation, replicas, Pace::kHot, DIST_F32, bytes});
  };
  const auto add_network = [&](Operation operation, Network network) -> RowSpec& {
    const std::vector<size_t> counts = tensor_counts(network, settings.list_share);
    RowSpec& row = add(operation, sizeof(float) * std::accumulate(counts.begin(), counts.end(), size_t{0}));
    row.network = network;
    return row;
  };
  add_network(kList, Network::kResNet50);
  if (replicas == 2) add_network(kList, Network::kBertBase);
  add_network(kReduceTo, Network::kResNet50);
  for (const StepForm form : kStepForms) {
    add_network(kStep, Network::kResNet50).step = form;
    if (replicas == 2) add(kStep, kMiB).step = form;
  }
  if (kContributions % replicas == 0) {
    for (const int exponents : {10, 20}) add(kWideSum, kMiB).exponents = exponents;
    RowSpec& tree = add(kWideSum, kMiB);
    tree.exponents = 10;
    tree.numerics = DIST_NUMERICS_TREE;
  }
  for (const size_t bytes : kPlannedSizes) add(kPlanned, bytes);
  for (const size_t bytes : {kMiB, 16 * kMiB}) add(kOverlap, bytes);
  for (const Handing handing : {Handing::kAllGather, Handing::kReduceScatter, Handing::kBroadcast,
                                Handing::kAllToAll, Handing::kScatter, Handing::kScan}) {
    for (const size_t bytes : {size_t{64}, kKiB, 8 * kKiB, 64 * kKiB, kMiB})
      add(kHanding, bytes).handing = handing;
  }
  for (const size_t bytes : {size_t{256}, kKiB, 16 * kKiB}) add(kList, bytes).tensors = 4;
  for (const size_t bytes : {size_t{64}, kKiB, 16 * kKiB}) {
    if (replicas != 2) continue;
    for (const Pace pace : {Pace::kHot, Pace::kWork}) {
      RowSpec& row = add(kList, kLongList * bytes);
      row.tensors = kLongList;
      row.pace = pace;
    }
  }
}

void Runner::add_list(Row& row) {
  const RowSpec& spec = row.spec;
  DataList& list = row.own(std::make_unique<DataList>(counts_of(spec, settings_), spec.replicas));
  row.add(libdist_list(strategy(spec.replicas), list, false));
  row.compare(Unit::kTimesAsFast, {row.add(libdist_list(strategy(spec.replicas), list, true))}, std::nullopt);
  const bool long_list = spec.tensors == kLongList, small = spec.bytes <= kLongList * 64;
  const bool judged = spec.replicas == 2 && cpus_ >= 2 && (!long_list || spec.pace == Pace::kWork);
  if (long_list) {
    Data& flat = row.add_data(DIST_F32, Layout::kInPlace);
    row.compare(Unit::kTimesAsFast,
                {row.add(libdist_all_reduce(strategy(spec.replicas), flat, seen_), "libdist, one tensor")},
                if_cores(judged && small, targets::kListOfOne));
  }
  row.compare(Unit::kTimesAsFast, {row.add(naive_list(Naive::kSpin, list))},
              if_cores(judged && !spec.network && !(long_list && small),
                       long_list ? targets::kLongList : targets::kHanding));
  row.compare(Unit::kTimesAsFast, {row.add(naive_list(Naive::kStd, list))}, std::nullopt);
}

void Runner::add_reduce_to(Row& row) {
  const RowSpec& spec = row.spec;
  DataList& list = row.own(std::make_unique<DataList>(counts_of(spec, settings_), spec.replicas));
  row.add(libdist_reduce_to(strategy(spec.replicas), list, false));
  row.compare(Unit::kTimesAsFast, {row.add(libdist_reduce_to(strategy(spec.replicas), list, true))},
              if_cores(spec.replicas == 2 && cpus_ >= 2, targets::kBatchReduceTo));
}

void Runner::add_step(Row& row) {
  const RowSpec& spec = row.spec;
  StepData& data = row.own(std::make_unique<StepData>(counts_of(spec, settings_), spec.replicas, spec.step));
  row.add(libdist_fused_step(strategy(spec.replicas), data));
  row.compare(Unit::kTimesAsFast, {row.add(libdist_separate_step(strategy(spec.replicas), data))},
              if_cores(spec.replicas == 2 && cpus_ >= 2, targets::kFusedStep));
}

void Runner::add_wide_sum(Row& row) {
  const RowSpec& spec = row.spec;
  const auto add = [&](dist_numerics numerics) {
    Exchanged& data = row.own(wide_range_sum(spec.bytes / sizeof(float), spec.replicas,
                                             kContributions / spec.replicas, spec.exponents, numerics));
    return row.add(libdist_sum(strategy(spec.replicas), data, numerics));
  };
  add(spec.numerics);
  const Target& target = spec.numerics == DIST_NUMERICS_TREE ? targets::kTree : targets::kReproducible;
  row.compare(Unit::kOfOrdered, {add(DIST_NUMERICS_ORDERED)},
              if_cores(spec.replicas == 2 && cpus_ >= 2, target));
}

void Runner::add_planned(Row& row) {
  const RowSpec& spec = row.spec;
  Data& data = row.add_data(DIST_F32, Layout::kInPlace);
  row.add(libdist_planned(strategy(spec.replicas), data), "libdist, planned");
  row.compare(Unit::kTimesAsFast,
              {row.add(libdist_all_reduce(strategy(spec.replicas), data, seen_), "libdist, blocking call")},
              std::nullopt);
}

void Runner::add_overlap(Row& row) {
  const RowSpec& spec = row.spec;
  if (spec.replicas + 1 > cpus_) {
    row.skipped =
        "no CPU is free beside " + std::to_string(spec.replicas) + " replicas on " + std::to_string(cpus_);
    return;
  }
  const Strategy& strategy = this->strategy(spec.replicas);
  Data& data = row.add_data(DIST_F32, Layout::kOutOfPlace);
  auto alone = libdist_overlapped(strategy, data, Overlap::kExchange, 0);
  const int64_t rounds = rounds_as_long_as(strategy, *alone);
  row.add(libdist_overlapped(strategy, data, Overlap::kTogether, rounds));
  const size_t exchange = row.add(std::move(alone));
  row.compare(Unit::kOfLonger, {exchange, row.add(libdist_computed(strategy, rounds))},
              MaybeTarget(targets::kOverlap));
}

void Runner::add_handing(Row& row) {
  const RowSpec& spec = row.spec;
  Exchanged& data = row.own(handed(spec.handing, spec.bytes, spec.replicas));
  row.add(libdist_handing(strategy(spec.replicas), spec.handing, data));
  const bool judged = spec.replicas == 2 && cpus_ >= 2 && spec.bytes <= 64 * kKiB;
  row.compare(Unit::kTimesAsFast, {row.add(naive_handing(Naive::kSpin, spec.handing, data))},
              if_cores(judged, targets::kHanding));
  row.compare(Unit::kTimesAsFast, {row.add(naive_handing(Naive::kStd, spec.handing, data))}, std::nullopt);
}

}  // namespace bench
