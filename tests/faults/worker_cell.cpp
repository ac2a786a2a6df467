// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/worker_cell.hpp"

#include <algorithm>
#include <iterator>
#include <random>
#include <tuple>

namespace faults {

std::string WorkerCell::text() const {
  static const char* const sizes[] = {"small", "list", "large"};
  const std::string who = local < 0 ? "all" : "replica " + std::to_string(local);
  return std::string(worker_fault_name(fault)) + ": " + collective_name(collective) + ", " + when_name(when) +
         ", worker " + std::to_string(guilty) + " of " + std::to_string(workers) + " with " +
         std::to_string(replicas) + " (" + who + "), threads " + threads_name(threads) + ", " +
         sizes[static_cast<int>(size)] + ", " + form_name(form);
}

const char* worker_fault_name(WorkerFault fault) {
  static const char* const names[] = {"early_return", "error_returned", "thrown",      "other_collective",
                                      "other_op",     "other_dtype",    "other_shape", "other_root",
                                      "late",         "cancelled",      "shut_down",   "destroyed",
                                      "other_rank",   "other_order",    "killed",      "exited",
                                      "stopped",      "never_started",  "cut_off",     "nobody"};
  static_assert(std::size(names) == static_cast<int>(WorkerFault::kNobody) + 1);
  return names[static_cast<int>(fault)];
}

const char* when_name(When when) {
  static const char* const names[] = {"first", "middle", "last"};
  static_assert(std::size(names) == kWhens);
  return names[static_cast<int>(when)];
}

bool means_something(const WorkerCell& cell) {
  Cell like;
  like.collective = cell.collective;
  if (cell.collective == DIST_COLLECTIVE_MERGE_CALL || among_devices(cell.collective)) return false;
  if (!like.tensors() && cell.size != Size::kSmall) return false;
  switch (cell.fault) {
    case WorkerFault::kOtherCollective: return like.tensors();
    case WorkerFault::kOtherOp: return like.reduces();
    case WorkerFault::kOtherDtype:
    case WorkerFault::kOtherShape:
    case WorkerFault::kOtherRank:
    case WorkerFault::kOtherOrder: return like.tensors();
    case WorkerFault::kOtherRoot: return like.rooted();
    case WorkerFault::kDestroyed: return cell.when == When::kFirst && (cell.replicas == 1 || cell.local < 0);
    case WorkerFault::kShutDown: return cell.local >= 0;
    case WorkerFault::kNeverStarted: return cell.when == When::kFirst && cell.local <= 0;
    default: return true;
  }
}

std::vector<WorkerCell> worker_cells_of(WorkerFault fault, bool whole, uint64_t seed) {
  std::vector<WorkerCell> cells;
  WorkerCell cell;
  cell.fault = fault;
  for (cell.workers = 2; cell.workers <= kMostWorkers; ++cell.workers)
    for (cell.replicas = 1; cell.replicas <= 2; ++cell.replicas)
      for (cell.guilty = 0; cell.guilty < cell.workers; ++cell.guilty)
        for (cell.local = cell.replicas == 1 ? 0 : -1; cell.local < cell.replicas; ++cell.local)
          for (int when = 0; when < kWhens; ++when)
            for (const int32_t collective : kCollectives)
              for (int size = 0; size < kSizes; ++size)
                for (const Form form : {Form::kBlocking, Form::kAsynchronous, Form::kPlanned})
                  for (const dist_threads threads : {DIST_THREADS_CALLER, DIST_THREADS_LIBRARY}) {
                    cell.threads = threads;
                    cell.when = static_cast<When>(when), cell.size = static_cast<Size>(size);
                    cell.collective = collective, cell.form = form;
                    if (means_something(cell)) cells.push_back(cell);
                  }
  // The peers of a late worker 0 wait one second for its report.
  const auto slow = [](const WorkerCell& c) { return c.timed() && c.guilty == 0 && c.workers > 2; };
  if (!whole) std::erase_if(cells, slow);
  std::mt19937_64 random(seed + static_cast<uint64_t>(fault));
  std::shuffle(cells.begin(), cells.end(), random);
  const auto key = [whole](const WorkerCell& c) {
    return std::tuple(c.workers, c.replicas, c.guilty, c.local, c.when, whole ? c.collective : 0);
  };
  // Keep one of the cells that differ only in randomly chosen axes.
  const auto less = [&](const WorkerCell& a, const WorkerCell& b) { return key(a) < key(b); };
  std::stable_sort(cells.begin(), cells.end(), less);
  const auto alike = [&](const WorkerCell& a, const WorkerCell& b) { return key(a) == key(b); };
  cells.erase(std::unique(cells.begin(), cells.end(), alike), cells.end());
  std::stable_sort(cells.begin(), cells.end(), [](const WorkerCell& a, const WorkerCell& b) {
    return std::tuple(a.threads, a.workers, a.replicas) < std::tuple(b.threads, b.workers, b.replicas);
  });
  return cells;
}

void WorkerCell::spoil(int32_t* kind, Fault* wrong) const {
  switch (fault) {
    case WorkerFault::kOtherCollective: *kind = DIST_COLLECTIVE_BARRIER; break;
    case WorkerFault::kOtherOp: *wrong = Fault::kWrongOp; break;
    case WorkerFault::kOtherDtype: *wrong = Fault::kWrongDtype; break;
    case WorkerFault::kOtherShape: *wrong = Fault::kWrongCount; break;
    case WorkerFault::kOtherRoot: *wrong = Fault::kWrongRoot; break;
    default: break;
  }
}

}  // namespace faults
