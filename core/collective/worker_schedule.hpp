// SPDX-License-Identifier: Apache-2.0
// WorkerSchedule: which part of which tensor goes from which worker to which. Like the task list that it is
// derived from, it depends only on sizes, and all workers compute the same one.
//
//     collective                          lane               its flows
//     all_reduce, scan                    one per owner      a range of all units, of each tensor
//     reduce_to_root                      the root's         each tensor
//     reduce_scatter                      one per owner      part r of each tensor, for each r of the
//                                                            owner's members
//     broadcast                           from the root's    the root's tensors, to all
//     all_gather                          one per sender     what its members bring, to all
//     gather_to_root, scatter_from_root,  one per pair       what members of one bring for members of the
//     all_to_all, permute                                    other
//
// If a collective reduces, the flows of a lane are what its owner receives from every member and folds;
// all_reduce and scan then send the results back. In other collectives, flows are copied from one member to
// others.
//
// The flows of a lane lie end to end in a space of units (partition.hpp). Piece k of a collective consists of
// the units k * slice to (k + 1) * slice of every lane, so that all workers have work in every piece.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/collective/partition.hpp"
#include "core/collective/task_list.hpp"

namespace dist {

class WorkerSchedule {
 public:
  using Ranks = TaskList::Ranks;
  static constexpr int kAllRanks = -1;

  // A region of tensor t that goes from one member, or from all, to one member, or to all.
  struct Flow {
    std::size_t t = 0;
    int from = kAllRanks;
    int to = kAllRanks;
    // The start of the region along the axis, and its length; negative: the whole tensor on that side.
    int64_t src_at = -1;
    int64_t dst_at = -1;
    int64_t along = 0;
    std::size_t elements = 0;
  };
  struct Lane {
    Ranks tasks;  // of each tensor (TaskList::member_of())
    Ranks from;   // the members that bring tensors
    Range units;
  };
  // A position in a lane.
  struct Cursor {
    std::size_t t = 0;
    int task = 0;
    int from = 0;
    std::size_t unit = 0;
    int64_t before = 0;  // size along the axis in front of the region
  };

  // `firsts`: the first member of each worker, then the number of all members. All members are local ones in
  // `tasks`. The arguments must outlive the schedule.
  WorkerSchedule(const Call& call, const TaskList& tasks, const CallDescriptor* const* descriptors,
                 std::span<const int> firsts) noexcept;

  int workers() const noexcept { return static_cast<int>(firsts_.size()) - 1; }
  bool folds() const noexcept { return call_.reduces(); }
  // Whether every worker receives what a lane produces or carries.
  bool to_all() const noexcept { return call_.traits().destinations == Ends::kAll; }
  Ranks members(int worker) const noexcept {
    return {firsts_[static_cast<std::size_t>(worker)], firsts_[static_cast<std::size_t>(worker) + 1]};
  }

  // The lane of an owner. Only if folds().
  Lane owned(int worker) const noexcept;
  // The lane from one worker to another, or to itself. Only if not folds().
  Lane between(int from, int to) const noexcept;
  Cursor begin(const Lane& lane) const noexcept;

  // slice() is the number of units in a piece of each lane: at least one, and so few that no worker needs
  // more than most_bytes of staging memory. pieces() is the number of pieces.
  std::size_t slice(std::size_t most_bytes) const noexcept;
  std::size_t pieces(std::size_t slice) const noexcept;

  // Calls visit(flow, first, count) for the elements of each flow in a range of the lane's units, which must
  // not begin before the cursor. Afterwards the cursor is at the end of the range.
  template <class Visit>
  void for_flows(const Lane& lane, Range range, Cursor& cursor, Visit&& visit) const noexcept {
    while (cursor.t < call_.n && cursor.unit < range.end) {
      const Flow flow = flow_at(lane, cursor);
      const std::size_t size = dtype_size(tasks_.dtype_of(flow.t));
      const std::size_t units = units_of(flow.elements * size, tasks_.unit_bytes());
      const std::size_t begin = std::max(range.begin, cursor.unit) - cursor.unit;
      const std::size_t end = std::min(range.end - cursor.unit, units);
      if (begin < end) {
        const std::size_t per_unit = tasks_.unit_bytes() / size;
        const std::size_t first = begin * per_unit;
        visit(flow, first, std::min(end * per_unit, flow.elements) - first);
      }
      if (cursor.unit + units > range.end) return;
      cursor.unit += units;
      advance(lane, cursor);
    }
  }
  // Piece `index` of a lane.
  static constexpr Range piece_of(const Lane& lane, std::size_t slice, std::size_t index) noexcept {
    const Range range = block_of(lane.units.end - lane.units.begin, slice, index);
    return {lane.units.begin + range.begin, lane.units.begin + range.end};
  }

 private:
  Flow flow_at(const Lane& lane, const Cursor& cursor) const noexcept;
  void advance(const Lane& lane, Cursor& cursor) const noexcept;
  int64_t before(const Lane& lane, std::size_t t, int task) const noexcept;
  std::size_t units_in(const Lane& lane) const noexcept;

  const Call& call_;
  const TaskList& tasks_;
  const CallDescriptor* const* descriptors_;
  const std::span<const int> firsts_;
  std::size_t units_ = 0;  // if folds() and to_all(): units of all tensors
};

}  // namespace dist
