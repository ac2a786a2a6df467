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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/on_stack.hpp"
#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/collective/partition.hpp"
#include "core/collective/scratch.hpp"
#include "core/collective/task_list.hpp"
#include "core/comm/call_descriptor.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {

class Exchange {
 public:
  // Between blocks, members check whether the group is aborted.
  static constexpr std::size_t kBlockUnits = (std::size_t{64} << 10) / kUnitBytes;

  // `descriptors[p]` belongs to rank p. `call` and `descriptors` must outlive the exchange. `cache_bytes` is
  // the size of the last-level cache.
  Exchange(const Call& call, int size, const CallDescriptor* const* descriptors,
           std::size_t cache_bytes) noexcept
      : Exchange(call, size, descriptors, cache_bytes, {0, size}) {}
  // Constructs an exchange among members in several processes. `local` are the members of this process, whose
  // outputs the exchange writes. The other members' descriptors contain sizes, and inputs in staging memory;
  // their outputs are not used.
  Exchange(const Call& call, int size, const CallDescriptor* const* descriptors, std::size_t cache_bytes,
           TaskList::Ranks local) noexcept;

  const TaskList& tasks() const noexcept { return tasks_; }
  std::size_t units() const noexcept { return tasks_.units(); }
  std::size_t bytes() const noexcept { return tasks_.units() * tasks_.unit_bytes(); }
  // The largest number of bytes that any member reads or writes.
  std::size_t bytes_each() const noexcept;
  // Number of units in a block.
  std::size_t block_units() const noexcept { return block_units_; }
  // Results above this size that are not in place are stored past the caches. exchange.cpp explains the upper
  // limit.
  static constexpr std::size_t stream_bytes(std::size_t members, std::size_t cache_bytes) noexcept {
    return std::min(cache_bytes / (2 * members), std::size_t{8} << 20);
  }

  // Whether the members' tensors do not fit together for member `member` of `group`. If so, `out_why`
  // receives the report, without the fields that refusal() adds to all reports. out_why may be NULL.
  bool refuses(const MemberNames& group, int member, ErrorRecord* out_why) const noexcept;
  // The first member for which refuses() is true, or -1. Takes about as long as a single refuses().
  int first_refusing(const MemberNames& group) const noexcept;

  // Processes a range of units in pieces, and ends early if go_on() returns false. The caller keeps `cursor`
  // for the next range, which is found faster if it follows this one.
  template <class GoOn>
  void run(Range range, TaskList::Cursor& cursor, GoOn&& go_on) const noexcept {
    if (folds_dense_) return static_cast<void>(fold_dense(range, cursor, false, std::forward<GoOn>(go_on)));
    tasks_.for_pieces(range, cursor, block_units_,
                      [&](const TaskList::Cursor& at, std::size_t first, std::size_t count) {
                        run_piece(at, first, count);
                        return go_on();
                      });
  }
  // Does all of the work on one thread.
  void run_all() const noexcept;
  // Whether it is an all_reduce of a list of dense tensors in one process, for which fold_dense() is faster
  // than refuses() and run().
  bool folds_dense() const noexcept { return folds_dense_; }
  // Like run(), for such a list. With `checks`, returns false if buffers of a tensor in the range may
  // overlap; then the caller must call first_refusing().
  template <class GoOn>
  bool fold_dense(Range range, TaskList::Cursor& cursor, bool checks, GoOn&& go_on) const noexcept;
  // Whether the host's operator has thrown, or the group of a call with such an operator has failed for
  // another reason.
  bool failed() const noexcept { return call_.group != nullptr && call_.group->aborted(); }
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
  // Up to this many members are compared pair by pair; the outputs of more members are sorted.
  static constexpr int kFewMembers = 8;
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
  // The state of a thread that folds a list of dense tensors.
  struct DenseFold;
  static constexpr std::size_t kAhead = 8;
  void fetch_tensor(const DenseFold& fold, std::size_t t) const noexcept;
  void fold_tensor(DenseFold& fold, std::size_t t, std::size_t first, std::size_t count) const noexcept;
  bool dense_apart(const DenseFold& fold, std::size_t t, std::size_t elements) const noexcept;
  void run_piece(const TaskList::Cursor& at, std::size_t first, std::size_t count) const noexcept;
  void run_swap(const TaskList::Cursor& at, std::size_t first, std::size_t count) const noexcept;
  void run_swap_row(const TaskList::Cursor& at, std::size_t begin, std::size_t end) const noexcept;
  bool joins_once() const noexcept;
  const std::byte* in_of(int rank, std::size_t t) const noexcept {
    return call_.n == 1 ? descriptors_[rank]->in_data
                        : static_cast<const std::byte*>(descriptors_[rank]->in[t].data);
  }
  std::byte* out_of(int rank, std::size_t t) const noexcept {
    return call_.n == 1 ? descriptors_[rank]->out_data
                        : static_cast<std::byte*>(descriptors_[rank]->out[t].data);
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
  const CallDescriptor* const* descriptors_;
  const int size_;
  const TaskList tasks_;
  std::size_t block_units_ = kBlockUnits;
  std::size_t sources_ = 0;  // contributions of all members
  bool strided_ = false;
  bool weighted_ = false;
  bool stream_ = false;
  bool folds_dense_ = false;
};

struct Exchange::DenseFold {
  // The members' lists, and their buffers of one tensor.
  const dist_tensor** in;
  const dist_tensor** out;
  const std::byte** src;
  std::byte** dst;
  dist_dtype dtype{};
  ReduceKernel kernel = nullptr;
  std::size_t in_size = 0;  // of an element
  std::size_t out_size = 0;

  void set(dist_dtype tensors, dist_reduce_op op, dist_dtype result) noexcept {
    dtype = tensors;
    kernel = reduce_kernel(tensors, op);
    in_size = dtype_size(tensors);
    out_size = dtype_size(result);
  }
};

template <class GoOn>
bool Exchange::fold_dense(Range range, TaskList::Cursor& cursor, bool checks, GoOn&& go_on) const noexcept {
  DenseFold fold{.in = DIST_ON_STACK(const dist_tensor*, size_),
                 .out = DIST_ON_STACK(const dist_tensor*, size_),
                 .src = DIST_ON_STACK(const std::byte*, size_),
                 .dst = DIST_ON_STACK(std::byte*, size_)};
  for (int p = 0; p < size_; ++p) {
    fold.in[p] = descriptors_[p]->in;
    fold.out[p] = descriptors_[p]->out;
  }
  if (range.begin < cursor.unit) cursor = TaskList::Cursor{};
  bool apart = true;
  for (; cursor.task < call_.n && cursor.unit < range.end; ++cursor.task) {
    const std::size_t t = cursor.task;
    const dist_tensor& tensor = call_.in[t];
    if (tensor.dtype != fold.dtype) [[unlikely]]
      fold.set(tensor.dtype, call_.op, call_.out_dtype(tensor.dtype));
    const std::size_t elements = elements_of(tensor);
    const std::size_t units = units_of(elements * fold.in_size);
    const std::size_t next = cursor.unit + units;
    if (next > range.begin && elements != 0) {
      if (t + kAhead < call_.n) fetch_tensor(fold, t + kAhead);
      if (checks) apart = dense_apart(fold, t, elements) && apart;
      if (cursor.unit >= range.begin && next <= range.end && units <= block_units_) [[likely]] {
        fold_tensor(fold, t, 0, elements);
        if (!go_on()) return apart;
      } else {
        const std::size_t per_unit = kUnitBytes / fold.in_size;
        const std::size_t end = std::min(range.end, next) - cursor.unit;
        for (std::size_t at = std::max(range.begin, cursor.unit) - cursor.unit; at < end;
             at += block_units_) {
          const std::size_t last = std::min(std::min(end, at + block_units_) * per_unit, elements);
          fold_tensor(fold, t, at * per_unit, last - at * per_unit);
          if (!go_on()) return apart;
        }
        if (next > range.end) return apart;
      }
    }
    cursor.unit = next;
  }
  return apart;
}

// Prefetches the first lines of a tensor of all members. The loop knows the addresses of later tensors, but a
// CPU that waits for the lines of a peer does not reach them. A line that is read and written is fetched
// once, for writing.
inline void Exchange::fetch_tensor(const DenseFold& fold, std::size_t t) const noexcept {
  for (int p = 0; p < size_; ++p) {
    if (fold.in[p][t].data != fold.out[p][t].data) __builtin_prefetch(fold.in[p][t].data);
    __builtin_prefetch(fold.out[p][t].data, 1);
  }
}

// Folds elements of tensor t of all members into all outputs, or into the one that they share.
inline void Exchange::fold_tensor(DenseFold& fold, std::size_t t, std::size_t first,
                                  std::size_t count) const noexcept {
  const auto size = static_cast<std::size_t>(size_);
  bool shared = true;
  for (std::size_t p = 0; p < size; ++p) {
    fold.src[p] = static_cast<const std::byte*>(fold.in[p][t].data) + first * fold.in_size;
    fold.dst[p] = static_cast<std::byte*>(fold.out[p][t].data) + first * fold.out_size;
    shared = shared && fold.dst[p] == fold.dst[0];
  }
  fold.kernel({fold.src, fold.dst, size, shared ? 1 : size, count, static_cast<double>(size), stream_});
}

// Whether no buffers of tensor t overlap in a way that would produce a wrong result. May return false if it
// is not certain.
inline bool Exchange::dense_apart(const DenseFold& fold, std::size_t t, std::size_t elements) const noexcept {
  if (size_ > kFewMembers) return all_apart(t);
  const std::size_t in_bytes = elements * fold.in_size;
  const std::size_t out_bytes = elements * fold.out_size;
  bool apart = true;
  for (int p = 0; p < size_; ++p) {
    const void* const out = fold.out[p][t].data;
    for (int q = 0; q < size_; ++q) {
      if (q == p) continue;
      const void* const in = fold.in[q][t].data;
      // An element is read before it is written.
      apart = apart && ((in == out && in_bytes == out_bytes) || !overlap(in, in_bytes, out, out_bytes));
      if (q < p) apart = apart && !overlap(fold.out[q][t].data, out_bytes, out, out_bytes);
    }
  }
  return apart || all_apart(t);
}

}  // namespace dist
