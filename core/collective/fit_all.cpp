// SPDX-License-Identifier: Apache-2.0
// Exchange::first_refusing(): checks in one pass whether the tensors of all members fit together. Comparing
// every member with every other one would take longer than the exchange itself.
#include <algorithm>

#include "core/base/on_stack.hpp"
#include "core/collective/exchange.hpp"
#include "core/collective/extent.hpp"

namespace dist {

// The outputs of one tensor of all members, ordered by address.
class Exchange::Outputs {
 public:
  struct Output;
  // `room` has an element for each member.
  explicit Outputs(Output* room) noexcept : all_(room) {}

  struct Output {
    Extent extent;
    int rank;
  };

  void add(const Extent& extent, int rank) noexcept {
    if (extent.bytes != 0) all_[n_++] = {extent, rank};
  }
  // Members that all receive the same result may share one output.
  bool share_one() noexcept {
    const bool shared =
        n_ > 1 && std::all_of(all_, all_ + n_, [&](const Output& o) { return o.extent == all_[0].extent; });
    if (shared) n_ = 1;
    return shared;
  }
  // Returns false if some of them overlap.
  bool sort() noexcept {
    std::sort(all_, all_ + n_, [](const Output& a, const Output& b) { return begin(a) < begin(b); });
    for (std::size_t i = 1; i < n_; ++i) {
      if (all_[i - 1].extent.meets(all_[i].extent)) return false;
    }
    return true;
  }
  // The first output that an input overlaps; NULL: none.
  const Output* met_by(const Extent& input) const noexcept {
    const Output* const at =
        std::partition_point(all_, all_ + n_, [&](const Output& o) { return end(o) <= begin_of(input); });
    return at != all_ + n_ && at->extent.meets(input) ? at : nullptr;
  }

 private:
  static uintptr_t begin_of(const Extent& extent) noexcept {
    return reinterpret_cast<uintptr_t>(extent.data);
  }
  static uintptr_t begin(const Output& output) noexcept { return begin_of(output.extent); }
  static uintptr_t end(const Output& output) noexcept { return begin(output) + output.extent.bytes; }

  std::size_t n_ = 0;
  Output* const all_;
};

int Exchange::first_refusing(const MemberNames& group) const noexcept {
  if (differs_for_all(group, nullptr)) return 0;
  bool fit = !strided_ && (!call_.traits().swaps() || all_swaps_add_up());
  for (std::size_t t = 0; t < call_.n && fit; ++t) fit = all_apart(t);
  if (fit) return -1;
  // Something is unusual, although not necessarily wrong, so this checks member by member.
  int rank = 0;
  while (rank < size_ && !refuses(group, rank, nullptr)) ++rank;
  return rank < size_ ? rank : -1;
}

bool Exchange::all_swaps_add_up() const noexcept {
  const bool even = std::all_of(descriptors_, descriptors_ + size_,
                                [](const CallDescriptor* o) { return o->offsets == nullptr; });
  for (std::size_t t = 0; t < call_.n; ++t) {
    // If all members cut equal parts, all have the same size.
    int64_t size = swapped_size(0, t);
    for (int r = 0; r < size_; ++r) {
      if (!even) size = swapped_size(r, t);
      if (tasks_.whole(r, t) != size) return false;
    }
  }
  return true;
}

// Whether it is certain that no buffer of a tensor overlaps another one in a way that would produce a wrong
// result.
bool Exchange::all_apart(std::size_t t) const noexcept {
  const TaskList::Ranks local = tasks_.local();
  Outputs outputs(DIST_ON_STACK(Outputs::Output, local.end - local.begin));
  for (int p = local.begin; p < local.end; ++p) {
    if (call_.n == 1 && call_.plain()) {
      const Buffers own = buffers_of(p);
      outputs.add({own.out, own.out_bytes}, p);
    } else if (descriptors_[p]->out != nullptr) {
      outputs.add(Extent(descriptors_[p]->out[t], false), p);
    }
  }
  if (!(call_.traits().alike() && outputs.share_one()) && !outputs.sort()) return false;
  int64_t before = 0;
  for (int p = 0; p < local.end; ++p) {
    if (p >= local.begin && may_overlap(p, t, before, outputs)) return false;
    if (call_.joins() || call_.cuts()) before += tasks_.part(p, t);
  }
  return true;
}

// Whether an input of a member may overlap an output harmfully. It is harmless if the input is that output,
// because each element is read before it is written, or if it is the member's own part at its own place.
bool Exchange::may_overlap(int rank, std::size_t t, int64_t before, const Outputs& outputs) const noexcept {
  const auto harms = [&](const Extent& input) {
    const Outputs::Output* const met = input.bytes == 0 ? nullptr : outputs.met_by(input);
    if (met == nullptr) return false;
    const bool own = met->rank == rank;
    if (call_.traits().whole()) return met->extent != input || !(own || call_.traits().alike());
    return !own || !call_.traits().may_lie_inside() || misplaced(rank, t, before);
  };
  const CallDescriptor& descriptor = *descriptors_[rank];
  if (call_.n == 1 && call_.plain()) {
    const Buffers own = buffers_of(rank);
    return harms({own.in, own.in_bytes});
  }
  for (std::size_t j = 0; descriptor.in != nullptr && j < descriptor.contributions; ++j) {
    if (harms(Extent(descriptor.in[j * call_.n + t], false))) return true;
  }
  return false;
}

}  // namespace dist
