// SPDX-License-Identifier: Apache-2.0
// Slot: what a member publishes to its peers when it arrives at a round. group.hpp describes which threads
// may read and write it, and when.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/comm/call_descriptor.hpp"
#include "core/comm/sync.hpp"
#include "core/comm/word.hpp"

namespace dist {

// A pair of cache lines: most CPUs fetch them together.
inline constexpr std::size_t kApart = 128;
inline constexpr std::size_t kCacheLine = 64;

// The largest group whose members meet by reading each other's slots. In a larger group that would take too
// long, so it meets like an oversubscribed one (oversubscribed_barrier.hpp), where a member's cost does not
// depend on the number of members.
inline constexpr int kMostBySlots = 256;

// One member's publication in one round.
template <class Sync>
struct alignas(kApart) BasicSlot {
  // Up to this many bytes are stored in the slot's first cache line, beside the round's number. Larger
  // payloads of up to kInlineBytes are stored in the second line. No payload is split over both: while its
  // owner waited for the second line, a peer that polls the round's number could take the first one away
  // again.
  static constexpr std::size_t kHeadBytes = 32;
  static constexpr std::size_t kInlineBytes = 64;
  static constexpr int32_t kStays = -1;

  BasicWord<Sync> round;  // written last, as the publication of the rest
  uint64_t digest = 0;
  // The CPU on which the member published; a hint for its peers.
  typename Sync::template Atomic<int> cpu{-1};
  // Number of bytes that travel beside the slot; kStays if the member's tensors stay where they are. Used
  // only by collectives that support it (travel.hpp).
  int32_t travels = kStays;
  // all_reduce in the slot: the output. merge_call: the arguments. Collectives whose tensors may travel: the
  // number of bytes that the member expects.
  const void* extra = nullptr;
  union {
    CallDescriptor descriptor;
    std::byte bytes[kHeadBytes + kInlineBytes];
  };

  BasicSlot() noexcept : descriptor{} {}
  std::byte* inline_bytes(std::size_t size) noexcept {
    return size <= kHeadBytes ? bytes : bytes + kHeadBytes;
  }
  const std::byte* inline_bytes(std::size_t size) const noexcept {
    return size <= kHeadBytes ? bytes : bytes + kHeadBytes;
  }
};
using Slot = BasicSlot<OsSync>;
static_assert(sizeof(Slot) == kApart, "a slot is one pair of cache lines");
static_assert(offsetof(Slot, descriptor) + offsetof(CallDescriptor, in) == kApart / 2,
              "the descriptor's head is in the first");

// A member's bytes if its slot is too small for them. Like slots, they stay valid until the round after the
// next. Each payload has pages of its own: the hardware prefetcher of a CPU that reads memory sequentially
// continues until the end of the page, and would fetch lines that another member is about to write.
struct alignas(4096) EagerPayload {
  static constexpr std::size_t kBytes = 2048;

  std::byte bytes[kBytes];
};

}  // namespace dist
