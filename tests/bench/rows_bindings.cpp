// SPDX-License-Identifier: Apache-2.0
// The rows of the bindings: the cost of an operation from Go, Java and Python (folder bindings), compared
// with C.
#include "tests/bench/row.hpp"

namespace bench {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Python has none, and the empty run has none: each is a thread's wake-up, here a function's call as well.
MaybeTarget binding_target(PeerGroup group, const RowSpec& spec) {
  const bool judged =
      spec.operation == Operation::kAllReduce && spec.replicas == 2 && group != PeerGroup::kPython;
  if (!judged) return std::nullopt;
  return spec.bytes == kMiB ? targets::kBinding1MiB : targets::kBinding4Bytes;
}

}  // namespace

void append_binding_rows(int replicas, std::vector<RowSpec>& rows) {
  const auto add = [&](Threads threads, Operation operation, dist_dtype dtype, size_t bytes) {
    RowSpec& row =
        rows.emplace_back(RowSpec{operation, replicas, Pace::kHot, dtype, bytes, Layout::kInPlace});
    row.bindings = threads;
  };
  add(Threads::kLibrary, Operation::kRun, 0, 0);
  for (const Threads threads : {Threads::kLibrary, Threads::kHost}) {
    for (const size_t bytes : {sizeof(float), kMiB}) add(threads, Operation::kAllReduce, DIST_F32, bytes);
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
  row.add(spec.operation == Operation::kRun
              ? libdist_run(strategy)
              : libdist_all_reduce(strategy, row.add_data(spec.dtype, spec.layout), seen_),
          "libdist from C");
  bindings_.start(spec.replicas);
  const peers::Request request{"",         spec.operation, spec.dtype,
                               spec.bytes, spec.layout,    {spec.pace, most_iterations(row), 1}};
  for (const PeerGroup group : kBindings) {
    for (auto& side : bindings_.sides(group, request, host))
      row.compare(Unit::kOfC, {row.add(std::move(side))}, binding_target(group, spec), 1, group_word(group));
  }
  if (row.pairings.empty()) row.skipped = "no binding takes part";
}

}  // namespace bench
