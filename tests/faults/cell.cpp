// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/cell.hpp"

#include <algorithm>
#include <random>
#include <tuple>

namespace faults {

bool Cell::tensors() const {
  return collective != DIST_COLLECTIVE_BARRIER && collective != DIST_COLLECTIVE_MERGE_CALL;
}

bool Cell::reduces() const {
  return collective == DIST_COLLECTIVE_ALL_REDUCE || collective == DIST_COLLECTIVE_REDUCE ||
         collective == DIST_COLLECTIVE_REDUCE_SCATTER || collective == DIST_COLLECTIVE_SCAN;
}

bool Cell::rooted() const {
  return collective == DIST_COLLECTIVE_REDUCE || collective == DIST_COLLECTIVE_GATHER ||
         collective == DIST_COLLECTIVE_BROADCAST || collective == DIST_COLLECTIVE_SCATTER;
}

bool Cell::at_planning() const {
  if (form != Form::kPlanned) return false;
  switch (fault) {
    case Fault::kSkipped:
    case Fault::kExtra:
    case Fault::kSwappedOrder: return order == Order::kRace;
    case Fault::kWrongDtype:
    case Fault::kWrongCount:
    case Fault::kWrongOp:
    case Fault::kWrongRoot:
    case Fault::kOtherFunction:
    case Fault::kOppositeGroups: return true;
    default: return false;
  }
}

bool Cell::disagrees() const {
  return fault >= Fault::kSkipped && fault <= Fault::kOtherFunction && !cycle();
}

bool Cell::cycle() const {
  if (fault == Fault::kOppositeGroups) return true;
  const bool elsewhere = fault == Fault::kSkipped || fault == Fault::kExtra || fault == Fault::kSwappedOrder;
  return elsewhere && form == Form::kPlanned && !at_planning();
}

bool Cell::timed() const {
  switch (fault) {
    case Fault::kStalled:
    case Fault::kPastDeadline: return true;
    case Fault::kCancelled:
    case Fault::kCancelledOutside:
    case Fault::kWorkCancelled: return order == Order::kPeersFirst;
    default: return false;
  }
}

std::string Cell::text() const {
  static const char* const sizes[] = {"small", "list", "large"};
  return std::string(fault_name(fault)) + ": " + collective_name(collective) + ", " + form_name(form) +
         (devices() ? ", device " : ", replica ") + std::to_string(guilty) + " of " +
         std::to_string(members) + (devices() ? " of replica " + std::to_string(part_of) : "") +
         ", threads " + threads_name(threads) + ", " + sizes[static_cast<int>(size)] +
         (order == Order::kRace ? ", race" : ", peers first") + (grouped ? ", in a group" : "");
}

const char* fault_name(Fault fault) {
  static const char* const names[] = {
      "early_return",   "error_returned", "error_under_way", "skipped",        "extra",
      "swapped_order",  "wrong_dtype",    "wrong_count",     "wrong_op",       "wrong_root",
      "other_split",    "other_function", "stalled",         "cancelled",      "cancelled_outside",
      "work_cancelled", "past_deadline",  "thread_gone",     "opposite_groups"};
  static_assert(std::size(names) == kFaults);
  return names[static_cast<int>(fault)];
}

const char* form_name(Form form) {
  static const char* const names[] = {"blocking", "asynchronous", "polled", "planned"};
  return names[static_cast<int>(form)];
}

const char* threads_name(dist_threads threads) {
  static const char* const names[] = {"CALLER", "LIBRARY", "HOST"};
  return names[threads - DIST_THREADS_CALLER];
}

// @every collective but NONE, RETURN, REDUCE_APPLY: like kCollectives
const char* collective_name(int32_t collective) {
  switch (collective) {
    case DIST_COLLECTIVE_ALL_REDUCE: return "all_reduce";
    case DIST_COLLECTIVE_REDUCE: return "reduce_to_root";
    case DIST_COLLECTIVE_REDUCE_SCATTER: return "reduce_scatter";
    case DIST_COLLECTIVE_ALL_GATHER: return "all_gather";
    case DIST_COLLECTIVE_GATHER: return "gather_to_root";
    case DIST_COLLECTIVE_BROADCAST: return "broadcast";
    case DIST_COLLECTIVE_SCATTER: return "scatter_from_root";
    case DIST_COLLECTIVE_ALL_TO_ALL: return "all_to_all";
    case DIST_COLLECTIVE_SCAN: return "scan";
    case DIST_COLLECTIVE_PERMUTE: return "permute";
    case DIST_COLLECTIVE_BARRIER: return "barrier";
    case DIST_COLLECTIVE_MERGE_CALL: return "merge_call";
    case DIST_COLLECTIVE_HALO_EXCHANGE: return "halo_exchange";
    case DIST_COLLECTIVE_RESHARD: return "reshard";
    default: return "?";
  }
}

bool among_devices(int32_t collective) {
  return collective == DIST_COLLECTIVE_HALO_EXCHANGE || collective == DIST_COLLECTIVE_RESHARD;
}

namespace {

bool means_something(const Cell& cell) {
  if (cell.collective == DIST_COLLECTIVE_MERGE_CALL && (cell.form != Form::kBlocking || cell.grouped))
    return false;
  if (among_devices(cell.collective) != cell.devices()) return false;
  // Devices have only the blocking form, single tensors, and library threads.
  if (cell.devices() && (cell.form != Form::kBlocking || cell.size == Size::kList)) return false;
  if (cell.devices() && cell.threads == DIST_THREADS_HOST) return false;
  if (!cell.tensors() && cell.size != Size::kSmall) return false;
  if (cell.form == Form::kPolled && (cell.timed() || cell.cycle())) return false;
  switch (cell.fault) {
    case Fault::kWrongDtype:
    case Fault::kWrongCount: return cell.tensors();
    case Fault::kWrongOp: return cell.reduces();
    case Fault::kWrongRoot: return cell.rooted();
    case Fault::kOtherSplit: return cell.devices();
    case Fault::kOtherFunction: return cell.reduces() || cell.collective == DIST_COLLECTIVE_MERGE_CALL;
    case Fault::kStalled: return cell.order == Order::kPeersFirst;
    case Fault::kWorkCancelled: return cell.form != Form::kBlocking && cell.order == Order::kPeersFirst;
    case Fault::kPastDeadline:
      // Only runs have a deadline.
      return cell.threads != DIST_THREADS_HOST && cell.order == Order::kPeersFirst;
    case Fault::kOppositeGroups: return cell.grouped || cell.collective == DIST_COLLECTIVE_MERGE_CALL;
    default: return true;
  }
}

std::vector<int> positions(int members) {
  if (members == 2) return {0, 1};
  return {0, members / 2, members - 1};
}

std::vector<Cell> all_of(Fault fault) {
  std::vector<Cell> cells;
  Cell cell;
  cell.fault = fault;
  for (const dist_threads threads : {DIST_THREADS_CALLER, DIST_THREADS_LIBRARY, DIST_THREADS_HOST})
    for (const int members : kMembers)
      for (const int32_t collective : kCollectives)
        for (int form = 0; form < kForms; ++form)
          for (int size = 0; size < kSizes; ++size)
            for (int variant = 0; variant < 4; ++variant)
              for (const int guilty : positions(members))
                for (int part_of = -1; part_of < kReplicasOfDevices; ++part_of) {
                  cell.threads = threads, cell.members = members, cell.collective = collective;
                  cell.guilty = guilty;
                  cell.form = static_cast<Form>(form), cell.size = static_cast<Size>(size);
                  cell.order = variant % 2 == 0 ? Order::kPeersFirst : Order::kRace;
                  cell.grouped = variant >= 2;
                  cell.part_of = part_of;
                  if (means_something(cell)) cells.push_back(cell);
                }
  return cells;
}

}  // namespace

std::vector<Cell> cells_of(Fault fault, bool whole, uint64_t seed) {
  std::vector<Cell> cells = all_of(fault);
  std::mt19937_64 random(seed + static_cast<uint64_t>(fault));
  std::shuffle(cells.begin(), cells.end(), random);
  const auto key = [whole](const Cell& c) {
    return whole ? std::tuple(c.collective, c.form, c.members, c.threads, c.guilty, c.order)
                 : std::tuple(c.collective, c.form, 0, 0, 0, Order::kRace);
  };
  // Keep one of the cells that differ only in randomly chosen axes.
  std::stable_sort(cells.begin(), cells.end(), [&](const Cell& a, const Cell& b) { return key(a) < key(b); });
  cells.erase(
      std::unique(cells.begin(), cells.end(), [&](const Cell& a, const Cell& b) { return key(a) == key(b); }),
      cells.end());
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    return std::tuple(a.threads, a.members, a.devices()) < std::tuple(b.threads, b.members, b.devices());
  });
  return cells;
}

}  // namespace faults
