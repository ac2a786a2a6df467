// SPDX-License-Identifier: Apache-2.0
// WorkerPieces: a collective's tensors on their way between workers, as the schedule says, piece by piece. Members
// copy from their inputs to staging memory, and from there to their outputs; no member touches a peer's buffers.
//
//     reserve     room for a piece                               carrier
//     pack        own tensors' elements                          each member its own
//     pass        to owners; where nothing is folded, to those who want them
//     fold        what all members bring for this worker's lane  members share it
//     pass        results, where all workers want them
//     unpack      into own outputs                               each member its own
#pragma once

#include <cstddef>

#include "core/collective/collectives.hpp"
#include "core/collective/worker_payload.hpp"
#include "core/collective/worker_schedule.hpp"
#include "core/comm/workers.hpp"

namespace dist {

class WorkerPieces {
 public:
  // `room` has what needs() says. `offers` and the schedule are those of all members.
  WorkerPieces(const Member& member, WorkerMeeting& meeting, const Call& call, const WorkerSchedule& schedule,
               const Offer* const* offers, Room& room) noexcept;
  // Takes its room without being made. `lists`: of all members.
  static void needs(int num_workers, int num_members, std::size_t lists, Room& room) noexcept;

  // False: the group is poisoned.
  bool run() noexcept;

 private:
  // A lane, and where its piece lies in staging memory: the elements of one list after another, and what they are
  // folded to.
  struct Way {
    WorkerSchedule::Lane lane;
    WorkerSchedule::Cursor cursor;
    WorkerSchedule::Cursor next;
    Range piece;
    std::size_t in;
    std::size_t in_bytes;  // of one list
    std::size_t out;
    std::size_t out_bytes;  // of one result
  };

  int rank() const noexcept { return meeting_.first() + member_.me; }
  bool folds() const noexcept { return schedule_.folds(); }
  bool prefixes() const noexcept { return call_.traits().prefixes; }
  std::size_t lists_before(int rank) const noexcept;
  std::size_t lists_of(int worker) const noexcept {
    return lists_before(meeting_.first_of(worker + 1)) - lists_before(meeting_.first_of(worker));
  }
  // How many results of a lane the members of a worker want: one that is for all, or one each.
  std::size_t results_of(int worker) const noexcept {
    return prefixes() ? static_cast<std::size_t>(meeting_.first_of(worker + 1) - meeting_.first_of(worker))
                      : 1;
  }
  template <class Visit>
  WorkerSchedule::Cursor for_flows(const Way& way, bool results, Visit&& visit) const noexcept;
  void lay_out(std::size_t slice, std::size_t index) noexcept;
  void lay_out_lanes() noexcept;
  void lay_out_pairs() noexcept;
  bool piece(std::size_t slice, std::size_t index) noexcept;
  void pack() const noexcept;
  void pack(const Way& way, std::size_t list, std::size_t at) const noexcept;
  void fold() const noexcept;
  void fold_run(dist_dtype dtype, std::size_t in, std::size_t out, std::size_t count) const noexcept;
  void unpack() const noexcept;
  void unpack(const Way& way, std::size_t at) const noexcept;
  bool written_by_another(std::size_t t) const noexcept;
  Status pass_in() noexcept;
  Status pass_out() noexcept;

  const Member& member_;
  WorkerMeeting& meeting_;
  const Call& call_;
  const WorkerSchedule& schedule_;
  const Offer* const* const offers_;
  const int me_;
  const int workers_;
  std::size_t room_ = 0;  // of staging memory, for the piece
  // By worker: where the schedule folds, the owners' lanes, and both are the same; else those to each worker, and
  // from each.
  Way* sent_;
  Way* got_;
  Passage* passages_;
  // For fold_run().
  Offer* folded_;
  const Offer** folded_at_;
  dist_tensor* folded_lists_;
};

}  // namespace dist
