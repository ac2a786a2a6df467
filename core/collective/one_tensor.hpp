// SPDX-License-Identifier: Apache-2.0
// all_reduce of one tensor per member in a group with a CPU for every member. Training and inference loops
// repeat this call, so it has a fast path without a task list.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>

#include "core/collective/call.hpp"
#include "core/collective/member.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {

// The tensor's properties that are known before the members meet. They are equal for all members.
struct OneTensor {
  ReduceKernel kernel = nullptr;
  std::size_t bytes = 0;      // size of an input
  std::size_t out_bytes = 0;  // size of an output; a mean may have another dtype
  int log_in_size = 0;        // binary logarithm of an element's size
  std::size_t out_size = 0;

  OneTensor() noexcept = default;
  // `call` must have been validated.
  explicit OneTensor(const Call& call) noexcept;
  std::size_t elements() const noexcept { return bytes >> log_in_size; }
};

// Whether the members do equal parts of the work, without tickets and without non-temporal stores.
bool reduces_in_parts(const Member& member, const OneTensor& one, bool in_place) noexcept;
// After enter(): does this member's part for all members. Returns false without having done anything if some
// tensor is strided or two buffers overlap; Exchange handles these cases.
bool reduce_part(const Member& member, const OneTensor& one) noexcept;

// Fails because a peer's buffer overlaps this member's output.
Status refuse_overlap(const Member& member, Collective collective, int peer) noexcept;

// Called when all members have arrived and the bytes have travelled with the slots. Each member reduces all
// elements into its own output with fold(src), which gets an address for each member. `strided`: this
// member's output is strided.
template <class Fold>
Status reduce_brought(const Member& member, const OneTensor& one, bool strided, Fold&& fold) noexcept {
  Group& group = member.group;
  const std::byte* src[kMostBySlots];
  const int size = group.size();
  const void* const own = group.slot(member.me, member.me).extra;
  bool shared = size > 1;
  int overlapping = -1;
  for (int p = 0; p < size; ++p) {
    const Slot& theirs = group.slot(member.me, p);
    src[p] = group.bytes(member.me, p, one.bytes);
    shared = shared && theirs.extra == own;
    if (p == member.me || !overlap(theirs.extra, one.out_bytes, own, one.out_bytes)) continue;
    // Another output may lie in the gaps of a strided one.
    if (!strided && theirs.travels != Slot::kStays) overlapping = p;
  }
  // The peers' inputs have been copied, so only outputs can overlap.
  if (overlapping >= 0 && !shared) return refuse_overlap(member, Collective::kAllReduce, overlapping);
  // An output that members share is also a peer's buffer, which may be touched only after enter().
  if (shared && !group.enter(member.me)) return group.finish(member.me);
  if (!shared || member.me == 0) std::forward<Fold>(fold)(src);
  return shared ? group.finish(member.me) : kOk;
}

}  // namespace dist
