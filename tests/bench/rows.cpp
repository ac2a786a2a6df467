// SPDX-License-Identifier: Apache-2.0
// Defines the rows, with the peers and targets of each.
#include "tests/bench/rows.hpp"

#include <algorithm>
#include <cstdio>

#include "tests/bench/row.hpp"

namespace bench {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kSizes[] = {4,         64,         kKiB, 4 * kKiB,  8 * kKiB, 16 * kKiB,
                             64 * kKiB, 256 * kKiB, kMiB, 16 * kMiB, 64 * kMiB};

std::string bytes_text(size_t bytes) {
  char text[32];
  const bool mib = bytes >= kMiB, kib = bytes >= kKiB;
  std::snprintf(text, sizeof text, "%zu %s",
                mib   ? bytes / kMiB
                : kib ? bytes / kKiB
                      : bytes,
                mib   ? "MiB"
                : kib ? "KiB"
                      : "B");
  return text;
}

MaybeTarget some(Target target) { return target.floor > 0 ? MaybeTarget(target) : std::nullopt; }

// Peers with tensors that replicas can write and read are judged in work loops. Loops that do not touch the
// tensors keep each half in one core's cache. Peers in Python have no such tensors, and are judged back to
// back.
bool has_tensors(PeerGroup group) { return group != PeerGroup::kJax && group != PeerGroup::kTensorFlow; }
// Peers made for inference have one table for all dtypes.
bool one_table(PeerGroup group) { return group == PeerGroup::kVllm || group == PeerGroup::kDeepSpeed; }
bool judged_at_work(PeerGroup group, const RowSpec& spec) {
  return has_tensors(group) && spec.operation == Operation::kAllReduce &&
         (spec.dtype == DIST_F32 || one_table(group));
}

// The target for libdist against a group's best form, on 2 replicas with one core each.
MaybeTarget peer_target(PeerGroup group, const RowSpec& spec) {
  if (spec.replicas != 2) return std::nullopt;
  if (spec.pace != (judged_at_work(group, spec) ? Pace::kWork : Pace::kHot)) return std::nullopt;
  if (spec.operation == Operation::kRun) {
    if (group == PeerGroup::kJax) return targets::kRunHotJax;
    if (group == PeerGroup::kTensorFlow) return targets::kRunHotTensorFlow;
  }
  if (spec.operation != Operation::kAllReduce || spec.layout != Layout::kInPlace) return std::nullopt;
  if (spec.dtype == DIST_F32 || one_table(group))
    return targets::all_reduce(group)[targets::size_class(spec.bytes)];
  if (spec.bytes == kMiB && group == PeerGroup::kJax) return targets::k16BitJax;
  if (spec.bytes == kMiB && group == PeerGroup::kOneCcl) return targets::k16BitOneCcl;
  return std::nullopt;
}

}  // namespace

std::string RowSpec::name() const {
  const std::string count = tensors == 0 ? "" : std::to_string(tensors) + " x ";
  const std::string what =
      network ? network_name(*network) : count + bytes_text(tensors == 0 ? bytes : bytes / tensors);
  std::string text;
  switch (operation) {
    case Operation::kAllReduce:
      text = std::string("all_reduce ") + dtype_name(dtype) + " " + bytes_text(bytes);
      if (bindings == Threads::kNone) text += std::string(" ") + layout_name(layout);
      break;
    case Operation::kBarrier: text = "barrier"; break;
    case Operation::kRun: text = caller_waits ? "empty dist_run on library threads" : "empty dist_run"; break;
    case Operation::kIdle: return "idle strategy x" + std::to_string(replicas);
    case Operation::kList: text = "all_reduce list " + what; break;
    case Operation::kReduceTo: text = "batch_reduce_to " + what; break;
    case Operation::kStep:
      text = std::string("reduce_apply sgd") + (step.momentum ? " momentum" : "") +
             (step.clip ? " clip " : " ") + what;
      break;
    case Operation::kWideSum:
      text = (numerics == DIST_NUMERICS_TREE ? "tree f32 8 x " : "reproducible f32 8 x ") + what + " 2^+-" +
             std::to_string(exponents);
      break;
    case Operation::kPlanned: text = "planned all_reduce f32 " + what; break;
    case Operation::kOverlap: text = "overlapped all_reduce f32 " + what; break;
    case Operation::kHanding: text = handing_name(handing) + (" f32 " + what); break;
    case Operation::kGrowth: text = std::string("growth of ") + growth_name(growth); break;
    default: break;  // rows of other benchmarks, which have their own names
  }
  const char* const whose = bindings == Threads::kLibrary ? "bindings "
                            : bindings == Threads::kHost  ? "bindings (host) "
                                                          : "";
  return whose + text + " x" + std::to_string(replicas) + ", " + pace_name(pace);
}

std::vector<RowSpec> all_rows(const Settings& settings) {
  using enum Operation;
  std::vector<RowSpec> rows;
  for (const int r : settings.replicas) {
    for (const Layout layout : {Layout::kInPlace, Layout::kOutOfPlace}) {
      for (const Pace pace : {Pace::kHot, Pace::kWork}) {
        for (const size_t bytes : kSizes) rows.push_back({kAllReduce, r, pace, DIST_F32, bytes, layout});
      }
    }
    for (const size_t bytes : kSizes) {  // above 1 MiB, the effect of a pause is small
      if (bytes <= kMiB) rows.push_back({kAllReduce, r, Pace::kPaused, DIST_F32, bytes, Layout::kInPlace});
    }
    rows.push_back({kAllReduce, r, Pace::kHot, DIST_F32, 64 * kMiB, Layout::kOneOutput});
    for (const dist_dtype dtype : {DIST_F16, DIST_BF16}) {
      for (const size_t bytes : {kMiB, 16 * kMiB}) {
        if (r == 2) rows.push_back({kAllReduce, r, Pace::kHot, dtype, bytes, Layout::kInPlace});
      }
    }
    for (const dist_dtype dtype : {DIST_F16, DIST_BF16}) {
      for (const Layout layout : {Layout::kInPlace, Layout::kOutOfPlace}) {
        for (const size_t bytes : {size_t{64}, kKiB, 4 * kKiB, 8 * kKiB, 64 * kKiB, kMiB}) {
          if (r == 2) rows.push_back({kAllReduce, r, Pace::kWork, dtype, bytes, layout});
        }
      }
    }
    for (const Pace pace : {Pace::kHot, Pace::kPaused}) rows.push_back({kBarrier, r, pace, {}, 0, {}});
    for (const Pace pace : {Pace::kHot, Pace::kPaused, Pace::kAsleep}) {
      rows.push_back({kRun, r, pace, {}, 0, {}});
      rows.push_back({.operation = kRun, .replicas = r, .pace = pace, .caller_waits = true});
    }
    rows.push_back({kIdle, r, Pace::kPaused, {}, 0, {}});
    append_more_rows(settings, r, rows);
    if (!settings.bindings.empty()) append_binding_rows(r, rows);
  }
  append_growth_rows(rows);
  std::erase_if(rows, [&](const RowSpec& row) {
    return (!row.network && row.bytes > settings.most_bytes) ||
           row.name().find(settings.filter) == std::string::npos;
  });
  return rows;
}

void Runner::add_all_reduce(Row& row) {
  const RowSpec& spec = row.spec;
  const bool hot = spec.pace == Pace::kHot, in_place = spec.layout == Layout::kInPlace;
  const bool at_work = spec.pace == Pace::kWork;
  const bool cores_enough = spec.replicas <= cpus_, judged_size = hot && in_place;
  Data& data = row.add_data(spec.dtype, spec.layout);
  row.add(libdist_all_reduce(strategy(spec.replicas), data, seen_));

  if (spec.dtype != DIST_F32) {
    Data& as_f32 = row.add_data(DIST_F32, spec.layout);
    const size_t f32 = row.add(libdist_all_reduce(strategy(spec.replicas), as_f32, seen_), "libdist, f32");
    row.compare(Unit::kTimePerByte, {f32},
                spec.bytes >= 16 * kMiB ? some(targets::kTimePerByte16) : std::nullopt);
    if (!at_work || !cores_enough) return;
    row.compare(Unit::kTimesAsFast, {row.add(naive_all_reduce(Naive::kSpin, data))},
                targets::kSpinBarrier16Bit);
    if (spec.bytes <= targets::kOnePhaseBytes)
      row.compare(Unit::kTimesAsFast, {row.add(naive_one_phase(data))}, targets::kOnePhase);
    row.limits = {hop(row)};
    return;
  }
  if (spec.layout == Layout::kOneOutput) {
    Data& separate = row.add_data(DIST_F32, Layout::kInPlace);
    const size_t side =
        row.add(libdist_all_reduce(strategy(spec.replicas), separate, seen_), "libdist, in place");
    row.compare(Unit::kTimesAsFast, {side},
                spec.bytes >= targets::kLargeBytes ? some(targets::kOneOutput) : std::nullopt);
    return;
  }

  MaybeTarget by_std, by_spin;
  if (at_work && !cores_enough) {
    by_std = spec.bytes <= 16 * kKiB ? targets::kOversubscribedSmall : targets::kOversubscribedLarge;
  }
  if (at_work && cores_enough && spec.replicas == 2) {
    by_std = targets::kStdBarrier[targets::size_class(spec.bytes)];
    by_spin = targets::kSpinBarrier[targets::size_class(spec.bytes)];
  }
  row.compare(Unit::kTimesAsFast, {row.add(naive_all_reduce(Naive::kSpin, data))}, by_spin);
  row.compare(Unit::kTimesAsFast, {row.add(naive_all_reduce(Naive::kStd, data))}, by_std);
  if (cores_enough && spec.bytes <= targets::kOnePhaseBytes) {
    MaybeTarget target;
    if (at_work && spec.replicas == 2) target = targets::kOnePhase;
    row.compare(Unit::kTimesAsFast, {row.add(naive_one_phase(data))}, target);
  }
  if (!cores_enough) {
    MaybeTarget target;
    if (at_work) target = targets::kLastSums;
    row.compare(Unit::kTimesAsFast, {row.add(naive_last_sums(data))}, target);
  }

  if (at_work) {
    if (spec.replicas == 2 && cpus_ >= 2) row.limits = {hop(row)};
    if (in_place) return;
    Data& same = row.add_data(DIST_F32, Layout::kInPlace);
    const size_t side =
        row.add(libdist_all_reduce(strategy(spec.replicas), same, seen_), "libdist, in place");
    const bool judged = cores_enough && spec.replicas == 2 && spec.bytes <= kMiB;
    return row.compare(Unit::kOfInPlace, {side}, judged ? some(targets::kOutOfPlace) : std::nullopt);
  }
  MaybeTarget openmp;
  if (judged_size && cores_enough && spec.replicas == 2)
    openmp = some(targets::kOpenMp[targets::size_class(spec.bytes)]);
  row.compare(Unit::kTimesAsFast, {row.add(openmp_all_reduce(data))}, openmp);

  if (judged_size && spec.replicas == 2 && cpus_ >= 2) {
    const size_t hop = this->hop(row);
    row.limits.push_back(hop);
    if (spec.bytes <= kKiB) {
      row.compare(Unit::kHops, {hop}, spec.bytes == 64 ? some(targets::kAllReduceHops) : std::nullopt);
    } else {
      row.limits.push_back(row.add(loops_alone(data, seen_)));
      row.compare(Unit::kOfLimit, {row.limits.back()}, std::nullopt);
    }
  }
  if (hot && spec.bytes >= targets::kLargeBytes) {
    const size_t memory = row.add(memory_rmw2(std::min(spec.replicas, cpus_)));
    // Every replica's data are read once, and its result is written once.
    const double moved = 2.0 * static_cast<double>(spec.replicas) * static_cast<double>(spec.bytes);
    row.compare(Unit::kOfLimit, {memory},
                some(in_place ? targets::kMemoryInPlace : targets::kMemoryOutOfPlace),
                moved / static_cast<double>(kRmw2Bytes));
  }
}

// The side that measures a cache-line hop between the replicas' CPUs. Every row has it, because most ratios
// depend on it.
size_t Runner::hop(Row& row) {
  if (!row.hop) row.hop = row.add(cache_line_hop(seen_));
  return *row.hop;
}

void Runner::add_barrier(Row& row) {
  const RowSpec& spec = row.spec;
  row.add(libdist_barrier(strategy(spec.replicas), seen_));
  MaybeTarget by_spin;
  if (spec.pace == Pace::kHot && spec.replicas == 2 && cpus_ >= 2) by_spin = targets::kSpinBarrierAlone;
  row.compare(Unit::kTimesAsFast, {row.add(naive_barrier(Naive::kSpin, spec.replicas))}, by_spin);
  row.compare(Unit::kTimesAsFast, {row.add(naive_barrier(Naive::kStd, spec.replicas))}, std::nullopt);
  row.compare(Unit::kTimesAsFast, {row.add(openmp_barrier(spec.replicas))}, std::nullopt);
  if (spec.pace == Pace::kHot && spec.replicas == 2 && cpus_ >= 2) {
    row.compare(Unit::kHops, {hop(row)}, some(targets::kBarrierHops));
  }
}

void Runner::add_run(Row& row) {
  const RowSpec& spec = row.spec;
  MaybeTarget pool, openmp;
  if (spec.replicas == 2 && cpus_ >= 2 && spec.pace != Pace::kPaused) {
    pool = targets::kRunPool;
    openmp = spec.pace == Pace::kHot ? targets::kRunHot : targets::kRunFromSleep;
  }
  if (spec.caller_waits) {
    row.add(libdist_run(strategy(spec.replicas, DIST_THREADS_LIBRARY)));
    row.compare(Unit::kTimesAsFast, {row.add(naive_pool(spec.replicas, false))}, pool);
    const size_t caller = row.add(libdist_run(strategy(spec.replicas)), "libdist, the caller is replica 0");
    return row.compare(Unit::kTimesAsFast, {caller}, std::nullopt);
  }
  row.add(libdist_run(strategy(spec.replicas)));
  if (openmp && spec.pace == Pace::kHot) {  // to the other replica and back
    row.limits = {hop(row), hop(row)};
  }
  row.compare(Unit::kTimesAsFast, {row.add(naive_pool(spec.replicas, true))}, pool);
  row.compare(Unit::kTimesAsFast, {row.add(openmp_empty_region(spec.replicas))}, openmp);
}

void Runner::add_idle(Row& row) {
  row.add(libdist_idle(strategy(row.spec.replicas)));
  row.compare(Unit::kCpuShare, {row.add(wall_time(kIdleUs))}, some(targets::kIdle));
}

// Peers spin. With more ranks than CPUs, the scheduler would be measured.
void Runner::add_peers(Row& row) {
  const RowSpec& spec = row.spec;
  const bool theirs = spec.operation == Operation::kAllReduce || spec.operation == Operation::kBarrier ||
                      spec.operation == Operation::kRun;
  if (peers_.empty() || !theirs || spec.caller_waits || spec.replicas < 2 || spec.replicas > cpus_ ||
      spec.pace == Pace::kAsleep) {
    return;
  }
  peers_.start(spec.replicas);
  const peers::Request request{"",         spec.operation, spec.dtype,
                               spec.bytes, spec.layout,    {spec.pace, most_iterations(row), 1}};
  for (const PeerGroup group : kPeerGroups) {
    std::vector<size_t> sides;
    if (spec.pace == Pace::kWork && !has_tensors(group)) continue;
    for (auto& side : peers_.sides(group, request)) sides.push_back(row.add(std::move(side)));
    if (!sides.empty())
      row.compare(Unit::kTimesAsFast, sides, peer_target(group, spec), 1, group_word(group));
  }
}

}  // namespace bench
