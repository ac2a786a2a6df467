// SPDX-License-Identifier: Apache-2.0
// TaskList: the tasks of a collective. A task makes one tensor from others: it copies or reduces a region of
// tensors of some members into tensors of other members. The list depends only on sizes and reads no element,
// so the buffers may be anywhere.
//
// core/base/collective_traits.hpp defines the tasks of each collective:
//
//     collective         tasks of a tensor           sources                  destinations
//     all_reduce         one                         all inputs               all outputs, or the shared one
//     reduce_to_root     one                         all inputs               the root's output
//     reduce_scatter     one for each r              all inputs' part r       output r
//     broadcast          one                         the root's input         all outputs
//     scatter_from_root  one for each r              the root's part r        output r
//     all_gather         one for each p              input p                  place p in all outputs
//     gather_to_root     one for each p              input p                  place p in the root's output
//     all_to_all         one for each r              part r of each input p   place p in output r
//     permute            one for each r              the input of r's source  output r
//     scan               one                         all inputs               all outputs, each a prefix
//
// Laid end to end, the tasks form a space of units (partition.hpp) that the members share.
//
// Invariant: the fold of an element does not depend on its unit, so the bits do not depend on which member
// does it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/collective/call.hpp"
#include "core/collective/partition.hpp"
#include "core/comm/call_descriptor.hpp"

namespace dist {

class TaskList {
 public:
  // A position in the list of tasks. It makes finding a range of units that follows the previous one fast.
  struct Cursor {
    std::size_t task = 0;
    std::size_t unit = 0;  // where the task begins
    int64_t before = 0;    // total size along the axis of lower ranks' parts of the task's tensor
  };
  struct Ranks {
    int begin;
    int end;
  };
  // The part of a tensor that moves from a task's sources to its destinations. It consists of runs of `run`
  // elements. In a source, the first run begins src_first elements after the tensor's first element, and each
  // further run src_step elements after the previous one; dst_first and dst_step have the same
  // meaning for a destination. On a side that is not cut, the runs are contiguous.
  struct Region {
    std::size_t run = 0;
    std::size_t src_step = 0;
    std::size_t dst_step = 0;
    std::size_t src_first = 0;
    std::size_t dst_first = 0;
    int64_t src_offset = 0;  // where the region begins, in steps along the axis
    int64_t dst_offset = 0;
  };

  // `descriptors[p]` belongs to rank p; its sizes are read, but no elements. `local` are the members whose
  // outputs are written in this process: all members, unless some belong to other processes. A region that
  // only remote members receive is not a task here. The call and the descriptors must outlive the list.
  TaskList(const Call& call, int size, const CallDescriptor* const* descriptors, Ranks local) noexcept;

  std::size_t units() const noexcept { return units_; }
  std::size_t unit_bytes() const noexcept { return unit_bytes_; }

  std::size_t tensor_of(std::size_t task) const noexcept { return parts_ == 1 ? task : task / parts_; }
  // The member that a task belongs to, if a tensor has one task for each member; otherwise 0.
  int member_of(std::size_t task) const noexcept { return parts_ == 1 ? 0 : static_cast<int>(task % parts_); }
  std::size_t elements(std::size_t task) const noexcept;
  std::size_t element_bytes(std::size_t task) const noexcept { return dtype_size(dtype_of(tensor_of(task))); }
  dist_dtype dtype_of(std::size_t t) const noexcept { return like(t).dtype; }
  // sources(): the members whose inputs a task reads. destinations(): the local members whose outputs it
  // writes.
  Ranks local() const noexcept { return local_; }
  Ranks sources(int member) const noexcept;
  Ranks destinations(int member) const noexcept;

  // Sizes along the axis: of a member's part, of the whole tensor that it has, and, in an all_to_all, of what
  // rank p sends to rank r.
  int64_t part(int rank, std::size_t t) const noexcept;
  int64_t whole(int rank, std::size_t t) const noexcept;
  int64_t split(int p, int r, std::size_t t) const noexcept {
    const int64_t* const offsets = descriptors_[p]->offsets;
    return offsets != nullptr ? offsets[r + 1] - offsets[r] : part(p, t) / size_;
  }
  int64_t split_begin(int p, int r, std::size_t t) const noexcept;
  // Number of elements in one step along the axis: in the dimensions after the axis, and in all other
  // dimensions.
  std::size_t inner(std::size_t t) const noexcept { return steps(t).inner; }
  std::size_t around(std::size_t t) const noexcept { return steps(t).around; }

  // The region of a task whose tensors are cut or joined. Other tasks use all of the tensor.
  Region region(const Cursor& at) const noexcept;
  // The region that comes from rank p in a task of an all_to_all, after `before` steps from lower ranks.
  Region region_from(const Cursor& at, int p, int64_t before) const noexcept;

  // Calls piece(cursor, first_element, count) for the elements of each task in a range of units, in pieces of
  // at most `most_units` units. Ends early if piece() returns false. Afterwards `cursor` is at the end of the
  // range.
  template <class Piece>
  void for_pieces(Range range, Cursor& cursor, std::size_t most_units, Piece&& piece) const noexcept {
    if (range.begin < cursor.unit) cursor = Cursor{};
    while (cursor.task < tasks_ && cursor.unit < range.end) {
      const std::size_t all = elements(cursor.task);
      const std::size_t bytes = element_bytes(cursor.task);
      const std::size_t units = units_of(all * bytes, unit_bytes_);
      const std::size_t per_unit = unit_bytes_ / bytes;
      std::size_t begin = std::max(range.begin, cursor.unit) - cursor.unit;
      const std::size_t end = std::min(range.end, cursor.unit + units) - cursor.unit;
      for (; begin < end; begin += most_units) {
        const std::size_t first = begin * per_unit;
        const std::size_t last = std::min(std::min(end, begin + most_units) * per_unit, all);
        if (!piece(static_cast<const Cursor&>(cursor), first, last - first)) return;
      }
      if (cursor.unit + units > range.end) return;
      next(cursor, units);
    }
  }

 private:
  struct Steps {
    std::size_t inner;
    std::size_t around;
  };
  Steps steps(std::size_t t) const noexcept { return t == 0 ? first_ : steps_of(t); }
  Steps steps_of(std::size_t t) const noexcept;
  const dist_tensor& like(std::size_t t) const noexcept {
    return call_.in != nullptr ? call_.in[t] : call_.out[t];
  }
  void next(Cursor& cursor, std::size_t units) const noexcept {
    if (cuts_or_joins_) {
      const int member = member_of(cursor.task);
      // The sum may wrap around, since an empty tensor may have any size.
      cursor.before = static_cast<int64_t>(static_cast<uint64_t>(cursor.before) +
                                           static_cast<uint64_t>(part(member, tensor_of(cursor.task))));
      if (static_cast<std::size_t>(member) + 1 == parts_) cursor.before = 0;
    }
    cursor.unit += units;
    ++cursor.task;
  }

  const Call& call_;
  const CallDescriptor* const* descriptors_;
  const int size_;
  const Ranks local_;
  const bool some_remote_;
  const bool cuts_or_joins_;
  Steps first_{1, 1};      // of the first tensor
  std::size_t parts_ = 1;  // number of tasks of a tensor
  std::size_t tasks_ = 0;
  std::size_t units_ = 0;
  std::size_t unit_bytes_;
};

inline TaskList::Ranks TaskList::sources(int member) const noexcept {
  switch (call_.traits().sources) {
    case Ends::kAll: break;
    case Ends::kRoot: return {call_.root, call_.root + 1};
    case Ends::kMember: return {member, member + 1};
    case Ends::kPeer: {
      const int peer = descriptors_[member]->source;
      return peer < 0 ? Ranks{0, 0} : Ranks{peer, peer + 1};
    }
  }
  return {0, size_};
}

inline TaskList::Ranks TaskList::destinations(int member) const noexcept {
  int rank = member;
  switch (call_.traits().destinations) {
    case Ends::kRoot: rank = call_.root; break;
    case Ends::kMember: break;
    default: return local_;
  }
  return rank >= local_.begin && rank < local_.end ? Ranks{rank, rank + 1} : Ranks{0, 0};
}

inline std::size_t TaskList::elements(std::size_t task) const noexcept {
  const std::size_t t = tensor_of(task);
  const int member = member_of(task);
  if (some_remote_) {
    if (const Ranks to = destinations(member); to.begin == to.end) return 0;
  }
  if (!cuts_or_joins_) return elements_of(like(t));
  const int64_t along = call_.traits().swaps() ? whole(member, t) : part(member, t);
  return static_cast<std::size_t>(along) * around(t);
}

// For a single tensor the size is in the slot. Reading a peer's dist_tensor would move another cache line
// between cores.
inline int64_t TaskList::part(int rank, std::size_t t) const noexcept {
  const CallDescriptor& descriptor = *descriptors_[rank];
  if (call_.n == 1) return descriptor.part();
  return (call_.joins() ? descriptor.in : descriptor.out)[t].shape[call_.axis_of(t)];
}

inline int64_t TaskList::whole(int rank, std::size_t t) const noexcept {
  const CallDescriptor& descriptor = *descriptors_[rank];
  if (call_.n == 1) return descriptor.whole();
  return (call_.joins() ? descriptor.out : descriptor.in)[t].shape[call_.axis_of(t)];
}

}  // namespace dist
