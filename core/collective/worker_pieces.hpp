// SPDX-License-Identifier: Apache-2.0
// WorkerPieces: one member's part in moving a collective's tensors between workers, piece by piece, according
// to the schedule. Members copy from their inputs to staging memory and from there to their outputs. A piece
// that is contiguous in the tensor is not copied if it is the only content of a message or is folded here.
// Peers, or a transport, then access a member's buffers directly, but only between the steps below, while no
// member can leave. No function here waits:
//
//     next          finds the place of the next piece in staging memory, which is made large enough once
//     pack          copies elements of the member's own tensors    each member its own
//     ins           sends them to owners; if nothing is folded, to the workers that need them
//     fold          folds what all members bring for this worker   members share it
//     outs          sends results, if all workers need them
//     unpack        copies into the member's own outputs           each member its own
//
// Invariant: a step begins when all members of the worker have completed the previous one.
#pragma once

#include <cstddef>
#include <span>

#include "core/collective/worker_payload.hpp"
#include "core/collective/worker_schedule.hpp"
#include "core/comm/group.hpp"
#include "core/comm/worker_round.hpp"

namespace dist {

class WorkerPieces {
 public:
  struct Side {
    const Group& group;
    WorkerRound& round;
    int member;               // rank among this worker's members
    std::size_t cache_bytes;  // size of the last-level cache
  };
  // `room` must have the size that needs() computes. `descriptors` and the schedule are those of all members.
  WorkerPieces(const Side& side, const Call& call, const WorkerSchedule& schedule,
               const CallDescriptor* const* descriptors, Room& room) noexcept;
  // Computes the size of the room. `lists` counts those of all members.
  static void needs(int num_workers, int num_members, std::size_t lists, Room& room) noexcept;

  // Returns false if there is no further piece, and this member's outputs are complete.
  bool next() noexcept;
  // The size of the staging memory that the piece needs.
  std::size_t staging_bytes() const noexcept { return room_; }
  void pack() const noexcept;
  std::span<const Passage> ins() noexcept;
  bool folds() const noexcept { return schedule_.folds(); }
  // Does part `part` of `parts`. Ends early if the group is aborted.
  void fold(std::size_t part, std::size_t parts) const noexcept;
  bool has_outs() const noexcept { return folds() && schedule_.to_all(); }
  std::span<const Passage> outs() noexcept;
  void unpack() const noexcept;

 private:
  // A lane, and the place of its piece in staging memory: the elements of each list, and then the results.
  struct StagedLane {
    WorkerSchedule::Lane lane;
    WorkerSchedule::Cursor cursor;
    WorkerSchedule::Cursor next;
    Range piece;
    std::size_t in;
    std::size_t in_bytes;  // distance between lists
    std::size_t in_end;    // size of one list
    std::size_t out;
    std::size_t out_bytes;  // the same for results
    std::size_t out_end;
    // The flow to which the piece's elements belong, if there is only one, and its position.
    std::size_t flows;
    WorkerSchedule::Flow flow;
    std::size_t first;
    std::size_t count;
  };

  // Elements of one dtype that are contiguous in staging memory.
  struct Run {
    dist_dtype dtype{};
    std::size_t in = 0;
    std::size_t out = 0;
    std::size_t count = 0;
  };

  int rank() const noexcept { return members_.first() + side_.member; }
  bool prefixes() const noexcept { return call_.traits().prefixes; }
  std::size_t lists_before(int rank) const noexcept;
  std::size_t lists_of(int worker) const noexcept {
    return lists_before(members_.first_of(worker + 1)) - lists_before(members_.first_of(worker));
  }
  // Number of results of a lane that a worker's members need: one for all, or one for each.
  std::size_t results_of(int worker) const noexcept {
    return prefixes() ? static_cast<std::size_t>(members_.count_of(worker)) : 1;
  }
  template <class Visit>
  WorkerSchedule::Cursor for_flows(const StagedLane& staged, bool results, Visit&& visit) const noexcept;
  // The size of this many lists, or results, in sequence.
  static std::size_t bytes_of(std::size_t lists, std::size_t each, std::size_t end) noexcept {
    return lists == 0 ? 0 : (lists - 1) * each + end;
  }
  // The address of the piece in the tensors of one of this worker's members; NULL if it is not contiguous.
  std::byte* in_tensor(const StagedLane& staged, int rank, std::size_t list) const noexcept;
  std::byte* out_tensor(const StagedLane& staged, int rank) const noexcept;
  // Likewise, for data sent from there to the lane's owner, and by the lane's owner to there.
  std::byte* sent_from(const StagedLane& staged) const noexcept;
  std::byte* sent_to(const StagedLane& staged) const noexcept;
  // The destination of the own lane's results for a member: its tensor or staging memory.
  std::byte* result_for(int rank) const noexcept;
  void lay_out(std::size_t slice, std::size_t index) noexcept;
  void lay_out_lanes() noexcept;
  void lay_out_pairs() noexcept;
  void pack(const StagedLane& staged, std::size_t list, std::size_t at) const noexcept;
  void fold(const Run& run, std::size_t part, std::size_t parts) const noexcept;
  void unpack(const StagedLane& staged, std::size_t at) const noexcept;
  bool written_by_another(std::size_t t) const noexcept;

  const Side side_;
  const WorkerMembers members_;
  const Call& call_;
  const WorkerSchedule& schedule_;
  const CallDescriptor* const* const descriptors_;
  const int me_;
  const int workers_;
  const std::size_t slice_;
  const std::size_t pieces_;
  std::size_t index_ = 0;  // of the next piece
  std::size_t room_ = 0;
  // Indexed by worker. If the schedule folds, these are the owners' lanes, and both arrays are the same.
  // Otherwise they are the lanes to each worker, and from each worker.
  StagedLane* sent_;
  StagedLane* got_;
  Passage* passages_;
  // Used by fold().
  CallDescriptor* folded_;
  const CallDescriptor** folded_at_;
  dist_tensor* folded_lists_;
};

}  // namespace dist
