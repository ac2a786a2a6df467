// SPDX-License-Identifier: Apache-2.0
// The rows of the bindings: the cost of an operation from Go, Java and Python (folder bindings), compared
// with C.
#include "tests/bench/row.hpp"

namespace bench {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;

// Python has no targets.
MaybeTarget binding_target(PeerGroup group, const RowSpec& spec) {
  if (spec.replicas != 2 || group == PeerGroup::kPython) return std::nullopt;
  return spec.bytes == kMiB ? targets::kBinding1MiB : targets::kBindingCall;
}

}  // namespace

void append_binding_rows(int replicas, std::vector<RowSpec>& rows) {
  const auto add = [&](Threads threads, Operation operation, dist_dtype dtype, size_t bytes) {
    RowSpec& row =
        rows.emplace_back(RowSpec{operation, replicas, Pace::kHot, dtype, bytes, Layout::kInPlace});
    row.bindings = threads;
  };
  add(Threads::kLibrary, Operation::kRun, {}, 0);
  for (const Threads threads : {Threads::kLibrary, Threads::kHost}) {
    for (const size_t bytes : {sizeof(float), kKiB, kMiB}) {
      add(threads, Operation::kAllReduce, DIST_F32, bytes);
    }
    add(threads, Operation::kBarrier, {}, 0);
  }
}

void Runner::add_bindings(Row& row) {
  const RowSpec& spec = row.spec;
  if (spec.replicas > cpus_) {
    row.skipped = std::to_string(spec.replicas) + " replicas on " + std::to_string(cpus_) + " CPUs";
    return;
  }
  const bool host = spec.bindings == Threads::kHost;
  const Strategy& strategy = this->strategy(spec.replicas, host ? DIST_THREADS_HOST : DIST_THREADS_CALLER);
  switch (spec.operation) {
    case Operation::kRun: row.add(libdist_run(strategy), "libdist from C"); break;
    case Operation::kBarrier: row.add(libdist_barrier(strategy, seen_), "libdist from C"); break;
    default:
      row.add(libdist_all_reduce(strategy, row.add_data(spec.dtype, spec.layout), seen_), "libdist from C");
  }
  bindings_.start(spec.replicas);
  const peers::Request request{"",         spec.operation, spec.dtype,
                               spec.bytes, spec.layout,    {spec.pace, most_iterations(row), 1}};
  const Unit unit = spec.bytes == kMiB ? Unit::kOfC : Unit::kAboveC;
  for (const PeerGroup group : kBindings) {
    for (auto& side : bindings_.sides(group, request, host))
      row.compare(unit, {row.add(std::move(side))}, binding_target(group, spec), 1, group_word(group));
  }
  if (row.pairings.empty()) row.skipped = "no binding takes part";
}

}  // namespace bench
