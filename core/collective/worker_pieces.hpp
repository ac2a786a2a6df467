// SPDX-License-Identifier: Apache-2.0
// WorkerPieces: one member's part in moving a collective's tensors between workers, piece by piece, according
// to the schedule. Members copy from their inputs to staging memory and from there to their outputs. A piece
// that is contiguous in the tensor is not copied if it is the only content of a message or is folded here;
// then peers, or a transport, access a member's buffers directly, but only between the steps below, while no
// member can leave. Nothing here waits:
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
    int member;               // of this worker's
    std::size_t cache_bytes;  // as in Exchange
  };
  // `room` has what needs() says. `offers` and the schedule are those of all members.
  WorkerPieces(const Side& side, const Call& call, const WorkerSchedule& schedule, const Offer* const* offers,
               Room& room) noexcept;
  // Takes its room without being made. `lists`: of all members.
  static void needs(int num_workers, int num_members, std::size_t lists, Room& room) noexcept;

  // False: there is no further piece, and this member's outputs are complete.
  bool next() noexcept;
  // How much staging memory the piece takes.
  std::size_t staging_bytes() const noexcept { return room_; }
  void pack() const noexcept;
  std::span<const Passage> ins() noexcept;
  bool folds() const noexcept { return schedule_.folds(); }
  // Part `part` of `parts`. It ends early where the group is poisoned.
  void fold(std::size_t part, std::size_t parts) const noexcept;
  bool has_outs() const noexcept { return folds() && schedule_.to_all(); }
  std::span<const Passage> outs() noexcept;
  void unpack() const noexcept;

 private:
  // A lane, and where its piece lies in staging memory: the elements of one list after another, and what they are
  // folded to.
  struct Way {
    WorkerSchedule::Lane lane;
    WorkerSchedule::Cursor cursor;
    WorkerSchedule::Cursor next;
    Range piece;
    std::size_t in;
    std::size_t in_bytes;  // from one list to the next
    std::size_t in_end;    // of one list
    std::size_t out;
    std::size_t out_bytes;  // the same of results
    std::size_t out_end;
    // The flow that the piece's elements are of, if it is one, and which of that.
    std::size_t flows;
    WorkerSchedule::Flow flow;
    std::size_t first;
    std::size_t count;
  };

  // Elements of one dtype that lie side by side in staging memory.
  struct Run {
    dist_dtype dtype = 0;
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
  // How many results of a lane the members of a worker want: one that is for all, or one each.
  std::size_t results_of(int worker) const noexcept {
    return prefixes() ? static_cast<std::size_t>(members_.count_of(worker)) : 1;
  }
  template <class Visit>
  WorkerSchedule::Cursor for_flows(const Way& way, bool results, Visit&& visit) const noexcept;
  // So many lists, or results, one behind the other.
  static std::size_t bytes_of(std::size_t lists, std::size_t each, std::size_t end) noexcept {
    return lists == 0 ? 0 : (lists - 1) * each + end;
  }
  // Where the piece lies in the tensors of one of this worker's members; NULL: not side by side.
  std::byte* in_tensor(const Way& way, int rank, std::size_t list) const noexcept;
  std::byte* out_tensor(const Way& way, int rank) const noexcept;
  // The same, where it goes from there to the lane's owner, and where the lane's owner sends it there.
  std::byte* sent_from(const Way& way) const noexcept;
  std::byte* sent_to(const Way& way) const noexcept;
  // Where the own lane's results for a member go: to its tensor, or to staging memory.
  std::byte* result_for(int rank) const noexcept;
  void lay_out(std::size_t slice, std::size_t index) noexcept;
  void lay_out_lanes() noexcept;
  void lay_out_pairs() noexcept;
  void pack(const Way& way, std::size_t list, std::size_t at) const noexcept;
  void fold(const Run& run, std::size_t part, std::size_t parts) const noexcept;
  void unpack(const Way& way, std::size_t at) const noexcept;
  bool written_by_another(std::size_t t) const noexcept;

  const Side side_;
  const WorkerMembers members_;
  const Call& call_;
  const WorkerSchedule& schedule_;
  const Offer* const* const offers_;
  const int me_;
  const int workers_;
  const std::size_t slice_;
  const std::size_t pieces_;
  std::size_t index_ = 0;  // of the next piece
  std::size_t room_ = 0;
  // By worker: where the schedule folds, the owners' lanes, and both are the same; else those to each worker, and
  // from each.
  Way* sent_;
  Way* got_;
  Passage* passages_;
  // For fold().
  Offer* folded_;
  const Offer** folded_at_;
  dist_tensor* folded_lists_;
};

}  // namespace dist
