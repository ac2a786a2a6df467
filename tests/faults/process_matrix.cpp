// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/process_matrix.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <tuple>

#include "tests/faults/worker_expected.hpp"

namespace faults {

std::vector<WorkerCell> process_cells_of(WorkerFault fault, bool whole, uint64_t seed) {
  constexpr int kMostProcesses = 3;
  std::vector<WorkerCell> cells;
  WorkerCell cell;
  cell.fault = fault;
  cell.checked = true;
  for (cell.workers = 2; cell.workers <= kMostProcesses; ++cell.workers)
    for (cell.replicas = 1; cell.replicas <= 2; ++cell.replicas)
      for (cell.guilty = 0; cell.guilty < cell.workers; ++cell.guilty)
        for (cell.local = cell.replicas == 1 ? 0 : -1; cell.local < cell.replicas; ++cell.local)
          for (const Form form : {Form::kBlocking, Form::kAsynchronous, Form::kPlanned})
            for (int when = 0; when < kWhens; ++when)
              for (const int32_t collective : kCollectives)
                for (int size = 0; size < kSizes; ++size) {
                  cell.when = static_cast<When>(when), cell.size = static_cast<Size>(size);
                  cell.collective = collective, cell.form = form;
                  if (means_something(cell)) cells.push_back(cell);
                }
  std::mt19937_64 random(seed + static_cast<uint64_t>(fault));
  std::shuffle(cells.begin(), cells.end(), random);
  // Keep one of the cells that differ only in randomly chosen axes.
  const auto key = [whole](const WorkerCell& c) {
    const int32_t collective = c.fault == WorkerFault::kNobody ? c.collective : 0;
    return whole ? std::tuple(c.form, c.workers, c.replicas, c.guilty, c.local, collective)
                 : std::tuple(c.form, 0, 0, 0, 0, 0);
  };
  if (fault == WorkerFault::kNobody) {
    for (WorkerCell& each : cells) each.guilty = each.local = -1;
  }
  const auto less = [&](const WorkerCell& a, const WorkerCell& b) { return key(a) < key(b); };
  std::stable_sort(cells.begin(), cells.end(), less);
  const auto alike = [&](const WorkerCell& a, const WorkerCell& b) { return key(a) == key(b); };
  cells.erase(std::unique(cells.begin(), cells.end(), alike), cells.end());
  return cells;
}

void play_and_count(const WorkerCell& cell, const ProcessSetup& setup, Tally& result) {
  const std::string text = cell.text();
  playing(text);
  ++result.cells;
  const auto outcome = std::make_unique<WorkerOutcome>();
  std::string wrong = play_processes(cell, setup, *outcome);
  if (wrong.empty()) wrong = judge(cell, *outcome);
  if (!wrong.empty()) {
    ++result.wrong;
    result.find(text + ": " + wrong);
    return;
  }
  const int64_t cause = outcome->cause_ns.load();
  for (int w = 0; w < cell.workers && cause != 0; ++w) {
    const int64_t returned = outcome->runs[w].returned_ns;
    if (w != cell.guilty && returned >= cause) result.latencies_ns.push_back(returned - cause);
  }
}

std::vector<ProcessResult> play_all_processes(WorkerFault fault, const Options& options) {
  std::vector<ProcessResult> results(kForms);
  for (int form = 0; form < kForms; ++form) {
    results[static_cast<std::size_t>(form)].fault = fault;
    results[static_cast<std::size_t>(form)].form = static_cast<Form>(form);
  }
  for (const WorkerCell& cell : process_cells_of(fault, options.whole, options.seed)) {
    if (cell.text().find(options.filter) == std::string::npos) continue;
    play_and_count(cell, {}, results[static_cast<std::size_t>(cell.form)]);
  }
  std::erase_if(results, [](const ProcessResult& result) { return result.cells == 0; });
  playing("");
  return results;
}

int64_t most_ns_of(WorkerFault fault) {
  switch (fault) {
    case WorkerFault::kKilled:
    case WorkerFault::kExited: return 500'000'000;
    case WorkerFault::kStopped:
    case WorkerFault::kCutOff: return kProcessLeaseNs + 2'000'000'000;
    default: return 0;
  }
}

}  // namespace faults
