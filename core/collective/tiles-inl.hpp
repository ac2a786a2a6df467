// SPDX-License-Identifier: Apache-2.0
// Common parts of the collectives on tiles: the round, and copies between members.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>

#include "core/base/on_stack.hpp"
#include "core/base/tensor.hpp"
#include "core/collective/call.hpp"
#include "core/collective/collectives.hpp"

namespace dist {

// The bytes from a tensor's first element to its last one, whatever the direction of its strides.
struct MemoryRange {
  explicit MemoryRange(const dist_tensor& tensor) noexcept {
    if (elements_of(tensor) == 0) return;
    int64_t made[DIST_MAX_NDIM];
    const int64_t* const strides = strides_of(tensor, made);
    const auto size = static_cast<int64_t>(dtype_size(tensor.dtype));
    int64_t low = 0;
    int64_t high = 0;
    for (int32_t i = 0; i < tensor.ndim; ++i) {
      const int64_t reach = (tensor.shape[i] - 1) * strides[i];
      (reach < 0 ? low : high) += reach;
    }
    first = static_cast<const std::byte*>(tensor.data) + low * size;
    bytes = static_cast<std::size_t>((high - low + 1) * size);
  }
  const std::byte* first = nullptr;
  std::size_t bytes = 0;
};

// A part of a tensor with strides of its own. A stride of 0 repeats an element; a negative one goes
// backwards.
struct View {
  std::byte* data;
  int64_t shape[DIST_MAX_NDIM];
  int64_t strides[DIST_MAX_NDIM];
};

// Copies in small pieces until go_on() returns false.
template <class GoOn>
bool copy_view(dist_dtype dtype, int32_t ndim, const View& from, const View& to, GoOn&& go_on) noexcept {
  constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
  if (std::find(from.shape, from.shape + ndim, 0) != from.shape + ndim) return true;
  dist_tensor source{from.data, dtype, ndim, from.shape, from.strides};
  dist_tensor target{to.data, dtype, ndim, from.shape, to.strides};
  const std::size_t row = ndim == 0 ? 0 : elements_of(source) / static_cast<std::size_t>(from.shape[0]);
  const std::size_t row_bytes = row * dtype_size(dtype);
  if (ndim == 0 || static_cast<std::size_t>(from.shape[0]) * row_bytes <= kPieceBytes) {
    copy_elements(source, target);
    return go_on();
  }
  const auto rows = static_cast<int64_t>(std::max<std::size_t>(1, kPieceBytes / row_bytes));
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  View piece = from;
  source.shape = target.shape = piece.shape;
  for (int64_t first = 0; first < from.shape[0]; first += rows) {
    piece.shape[0] = std::min(rows, from.shape[0] - first);
    source.data = from.data + first * from.strides[0] * size;
    target.data = to.data + first * to.strides[0] * size;
    if (row_bytes <= kPieceBytes) {
      copy_elements(source, target);
    } else {
      // A single row is too long, so it is copied in pieces, too.
      View inner_from;
      View inner_to;
      inner_from.data = static_cast<std::byte*>(source.data);
      inner_to.data = static_cast<std::byte*>(target.data);
      std::copy_n(from.shape + 1, ndim - 1, inner_from.shape);
      std::copy_n(from.strides + 1, ndim - 1, inner_from.strides);
      std::copy_n(to.strides + 1, ndim - 1, inner_to.strides);
      if (ndim > 1 && !copy_view(dtype, ndim - 1, inner_from, inner_to, go_on)) return false;
    }
    if (!go_on()) return false;
  }
  return true;
}

// "logical device 3"; for messages.
struct NameText {
  NameText(const Group& group, int rank) noexcept {
    std::snprintf(text, sizeof text, "%s %d", group.naming().word(), group.name(rank).number());
  }
  char text[32];
};

// Adds to a signature the shape of the whole, or of the grid into which it is cut.
inline void state_shape(std::span<const int64_t> shape, Signature& signature) noexcept {
  signature.ndim = static_cast<int32_t>(shape.size());
  for (std::size_t i = 0; i < shape.size() && i < Signature::kDims; ++i) signature.shape[i] = shape[i];
}

// Which member differs from the others, among those for which has(r) is true. As in all reports, `expected`
// is a member of the majority, or in a tie the one with the lowest rank; `received` is the lowest one that
// differs from it. -1: all are equal.
struct Dissent {
  int expected = -1;
  int received = -1;
};
template <class Has, class Alike>
Dissent dissent_of(int size, Has&& has, Alike&& alike) noexcept {
  Dissent found;
  int most = 0;
  for (int r = 0; r < size; ++r) {
    if (!has(r)) continue;
    int followers = 0;
    for (int p = 0; p < size; ++p) followers += has(p) && alike(r, p);
    if (followers <= most) continue;
    most = followers;
    found.expected = r;
  }
  for (int p = 0; p < size && found.received < 0; ++p) {
    if (has(p) && !alike(found.expected, p)) found.received = p;
  }
  return found.received < 0 ? Dissent{} : found;
}

// A member's contribution to the round. A tensor is NULL if the member has none.
struct Bringing {
  const dist_tensor* in;
  const dist_tensor* out;
  std::size_t bytes;  // of `out`
};

// The contributions of all members, by rank.
struct Brought {
  const dist_tensor** in;
  const dist_tensor** out;
};

// Meets with the signature that `draft` fills in and this function completes, then calls work(brought, why).
// If the round must fail, work() writes `why` and returns false. Checks that concern all members must have
// the same result on each of them.
template <class Draft, class Work>
Status meet_on_tiles(const Member& member, const Bringing& bringing, Draft&& draft, Work&& work) noexcept {
  Group& group = member.group;
  const int me = member.me;
  DIST_TRY(group.open());
  Signature& signature = group.draft(me);
  draft(signature);
  close_digest(signature, member.tag);
  CallDescriptor& descriptor = group.outgoing(me).descriptor;
  descriptor = CallDescriptor{};
  descriptor.in = bringing.in;
  descriptor.out = bringing.out;
  const auto published = [&] { record_arrival(member, signature, bringing.bytes, 0); };
  DIST_TRY(group.arrive(me, member.timeout_ns, published));
  if (member.recorder != nullptr) member.recorder->arrived();
  if (group.enter(me)) {
    const Brought brought{DIST_ON_STACK(const dist_tensor*, group.size()),
                          DIST_ON_STACK(const dist_tensor*, group.size())};
    for (int p = 0; p < group.size(); ++p) {
      brought.in[p] = group.slot(me, p).descriptor.in;
      brought.out[p] = group.slot(me, p).descriptor.out;
    }
    ErrorRecord why;
    why.code = DIST_INVALID_ARGUMENT;
    if (!work(brought, &why)) {
      Call call;
      call.collective = signature.collective;
      return group.refuse(me, refusal(group, call.collective, member.tag, group.sequence(me), why));
    }
  }
  return group.finish(me);
}

// Returns false if `out` overlaps the input of some member, which peers may still be reading.
inline bool lies_apart(const Member& member, const dist_tensor& out, const Brought& brought,
                       ErrorRecord* why) noexcept {
  const MemoryRange own(out);
  for (int p = 0; p < member.group.size(); ++p) {
    if (brought.in[p] == nullptr) continue;
    const MemoryRange theirs(*brought.in[p]);
    if (own.bytes == 0 || theirs.bytes == 0) continue;
    if (!overlap(own.first, own.bytes, theirs.first, theirs.bytes)) continue;
    why->culprit = member.group.name(member.me);
    copy_text(why->expected, "memory of its own for every tensor");
    copy_text(why->received, "buffers that overlap");
    copy_text(why->hint, "give each of them its own buffers");
    std::snprintf(why->message, sizeof why->message, "out of %s overlaps in of %s",
                  NameText(member.group, member.me).text, NameText(member.group, p).text);
    return false;
  }
  return true;
}

}  // namespace dist
