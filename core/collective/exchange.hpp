// SPDX-License-Identifier: Apache-2.0
// Exchange: the work of one collective on which all members agree, split into pieces that any thread may do.
//
// The work is a list of tasks (task_list.hpp), which depends only on sizes. This class adds the buffers that
// a task reads and writes, and the operation on the elements. A thread may run pieces only while the members'
// buffers may be touched, that is between enter() and finish() in a group, or while the pack is open.
//
// Invariant: an element is folded in the same order whichever thread does it and however the work is cut, so
// the bits never depend on that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/collective/partition.hpp"
#include "core/collective/scratch.hpp"
#include "core/collective/task_list.hpp"
#include "core/comm/offer.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {

class Exchange {
 public:
  // Members check between blocks whether the group is poisoned.
  static constexpr std::size_t kBlockUnits = (std::size_t{64} << 10) / kUnitBytes;

  // `offers[p]` belongs to rank p. `call` and `offers` must outlive the exchange. Results larger than
  // cache_bytes are stored with non-temporal stores.
  Exchange(const Call& call, int size, const Offer* const* offers, std::size_t cache_bytes) noexcept
      : Exchange(call, size, offers, cache_bytes, {0, size}) {}
  // For members in several processes. `local` are the members of this process, whose outputs the exchange
  // writes. The other members' offers contain sizes, and inputs in staging memory; their outputs are not
  // used.
  Exchange(const Call& call, int size, const Offer* const* offers, std::size_t cache_bytes,
           TaskList::Ranks local) noexcept;

  const TaskList& tasks() const noexcept { return tasks_; }
  std::size_t units() const noexcept { return tasks_.units(); }
  std::size_t bytes() const noexcept { return tasks_.units() * tasks_.unit_bytes(); }
  // The largest number of bytes that any member reads or writes.
  std::size_t bytes_each() const noexcept;
  // Number of units in a block.
  std::size_t block_units() const noexcept { return block_units_; }
  // Results above this size that are not in place would evict everything else from the cache.
  static constexpr std::size_t stream_bytes(std::size_t members, std::size_t cache_bytes) noexcept {
    return cache_bytes / (2 * members);
  }

  // Whether the members' tensors do not fit together, as far as rank `member` of `group` is concerned. If so,
  // `out_why` receives the report, without the fields that refusal() adds to all reports. out_why may be
  // NULL.
  bool refuses(const MemberNames& group, int member, ErrorRecord* out_why) const noexcept;
  // The first member for which refuses() is true, or -1. Takes about as long as a single refuses().
  int first_refusing(const MemberNames& group) const noexcept;

  // Processes a range of units in pieces, and ends early if go_on() returns false. `cursor` belongs to the
  // caller, for consecutive ranges.
  template <class GoOn>
  void run(Range range, TaskList::Cursor& cursor, GoOn&& go_on) const noexcept {
    tasks_.for_pieces(range, cursor, block_units_,
                      [&](const TaskList::Cursor& at, std::size_t first, std::size_t count) {
                        run_piece(at, first, count);
                        return go_on();
                      });
  }
  // Does all of the work on one thread.
  void run_all() const noexcept;
  // Whether the host's operator has thrown, or the group of a call with such an operator has failed otherwise.
  bool failed() const noexcept { return call_.group != nullptr && call_.group->poisoned(); }
  // Whether all members receive copies of the same few bytes, each into an output of its own. Then it is
  // fastest if each member writes its own output, because a core can have more cache lines of peers in flight
  // for reading than for writing. Larger data are read once and written to all outputs (1 MiB on two cores of
  // a Zen 5: 13 us instead of 19 us).
  static constexpr std::size_t kPullBytes = std::size_t{64} << 10;
  bool pulls() const noexcept;
  // Writes the output of `member`. Calls go_on() between inputs.
  template <class GoOn>
  void pull(int member, GoOn&& go_on) const noexcept {
    for (std::size_t t = 0; t < call_.n; ++t) {
      std::byte* to = out_of(member, t);
      const std::size_t step = tasks_.inner(t) * dtype_size(tasks_.dtype_of(t));
      const TaskList::Ranks from = call_.joins() ? TaskList::Ranks{0, size_} : tasks_.sources(member);
      for (int p = from.begin; p < from.end && go_on(); ++p) {
        const std::size_t bytes = call_.joins() ? static_cast<std::size_t>(tasks_.part(p, t)) * step
                                                : tasks_.elements(t) * dtype_size(tasks_.dtype_of(t));
        if (bytes != 0 && in_of(p, t) != to) std::memcpy(to, in_of(p, t), bytes);
        to += bytes;
      }
    }
  }

  // Writes the reduced elements of a part of tensor t to a dense buffer. All tensors must be dense. Uses
  // fold_bytes() of the scratch memory while it runs.
  void reduce(std::size_t t, std::size_t first, std::size_t count, std::byte* to,
              Scratch& scratch) const noexcept;
  std::size_t fold_bytes() const noexcept {
    return Scratch::bytes_of<const std::byte*>(sources_) +
           (weighted_ ? Scratch::bytes_of<double>(sources_) : 0);
  }

 private:
  struct Job;
  struct Place {
    std::size_t t;  // the tensor
    TaskList::Ranks sources;
    TaskList::Ranks destinations;
    TaskList::Region region;
  };
  // Folds num_src dense sources into num_dst dense destinations.
  struct Fold {
    dist_dtype dtype;
    const std::byte* const* src;
    std::size_t num_src;
    const double* weights;  // one for each source; NULL: none
    std::byte* const* dst;
    std::size_t num_dst;
    std::size_t count;  // number of elements
  };
  void run_piece(const TaskList::Cursor& at, std::size_t first, std::size_t count) const noexcept;
  void run_swap(const TaskList::Cursor& at, std::size_t first, std::size_t count) const noexcept;
  void run_swap_row(const TaskList::Cursor& at, std::size_t begin, std::size_t end) const noexcept;
  bool joins_once() const noexcept;
  const std::byte* in_of(int rank, std::size_t t) const noexcept {
    return call_.n == 1 ? offers_[rank]->in_data : static_cast<const std::byte*>(offers_[rank]->in[t].data);
  }
  std::byte* out_of(int rank, std::size_t t) const noexcept {
    return call_.n == 1 ? offers_[rank]->out_data : static_cast<std::byte*>(offers_[rank]->out[t].data);
  }
  void run_region(const Place& place, std::size_t first, std::size_t count) const noexcept;
  void collect(Job& job) const noexcept;
  template <class Use>
  void for_sources(const Job& job, Use&& use) const noexcept;
  template <class Use>
  void for_destinations(const Job& job, Use&& use) const noexcept;
  void shape_region(Job& job) const noexcept;
  std::byte* begin_of(const Job& job, const dist_tensor& tensor, int64_t offset) const noexcept;
  void run_strided(const Job& job, Scratch& scratch, std::size_t first, std::size_t count) const noexcept;
  void run_rows(const Job& job, std::size_t first, std::size_t count) const noexcept;
  void run_kernel(const Job& job, std::size_t count) const noexcept;
  void run_scan(const Job& job, std::size_t count) const noexcept;
  bool scans_on() const noexcept;
  void scan_on(const Job& job, std::size_t count) const noexcept;
  void scan_on_by_user(const Job& job, std::size_t count) const noexcept;
  void fold(const Fold& f) const noexcept;
  void fold_by_user(const Fold& f) const noexcept;
  void fold_tree_by_user(const Fold& f) const noexcept;
  void fold_exactly(const Fold& f) const noexcept;
  const double* collect_weights(Scratch& scratch) const noexcept;
  std::size_t unwritten(const Job& job) const noexcept;

  bool differs_for_all(const MemberNames& group, ErrorRecord* out_why) const noexcept;
  bool sizes_differ(const MemberNames& group, ErrorRecord* out_why) const noexcept;
  bool swaps_differ(const MemberNames& group, int member, ErrorRecord* out_why) const noexcept;
  bool all_swaps_add_up() const noexcept;
  bool size_differs(const MemberNames& group, std::size_t t, int rank, int64_t parts,
                    ErrorRecord* out_why) const noexcept;
  int64_t swapped_size(int rank, std::size_t t) const noexcept;
  bool pairs_differ(const MemberNames& group, ErrorRecord* out_why) const noexcept;
  bool misplaced(int rank, std::size_t t, int64_t before) const noexcept;
  bool overlaps(const MemberNames& group, int member, ErrorRecord* out_why) const noexcept;
  struct Buffers {
    const std::byte* in;
    std::size_t in_bytes;
    std::byte* out;
    std::size_t out_bytes;
  };
  Buffers buffers_of(int rank) const noexcept;
  bool surely_apart(int member) const noexcept;
  class Outputs;
  bool all_apart(std::size_t t) const noexcept;
  bool may_overlap(int rank, std::size_t t, int64_t before, const Outputs& outputs) const noexcept;

  const Call& call_;
  const Offer* const* offers_;
  const int size_;
  const TaskList tasks_;
  std::size_t block_units_ = kBlockUnits;
  std::size_t sources_ = 0;  // contributions of all members
  bool strided_ = false;
  bool weighted_ = false;
  bool stream_ = false;
};

}  // namespace dist
