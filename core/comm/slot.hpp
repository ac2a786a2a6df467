// SPDX-License-Identifier: Apache-2.0
// Slot: what a member publishes to its peers when it arrives at a round (group.hpp). See there for who may
// read and write it, and when.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/comm/offer.hpp"
#include "core/comm/sync.hpp"
#include "core/comm/word.hpp"

namespace dist {

// Two cache lines: most CPUs fetch them in pairs.
inline constexpr std::size_t kApart = 128;
inline constexpr std::size_t kCacheLine = 64;

// What one member shows in one round.
template <class Sync>
struct alignas(kApart) BasicSlot {
  static constexpr std::size_t kInlineBytes = 96;
  static constexpr int32_t kStays = -1;

  BasicWord<Sync> round;  // published last
  uint64_t digest = 0;
  // The CPU on which the member published: a hint for those who wait for it.
  typename Sync::template Atomic<int> cpu{-1};
  // How many bytes travel beside the slot; kStays: the member's tensors stay where they are. Only in rounds
  // of collectives that look at it (travel.hpp).
  int32_t travels = kStays;
  // all_reduce in the slot: the output; merge_call: the arguments; where tensors may travel: how many bytes
  // the member is to get.
  const void* extra = nullptr;
  union {
    Offer offer;
    std::byte bytes[kInlineBytes];
  };

  BasicSlot() noexcept : offer{} {}
};
using Slot = BasicSlot<OsSync>;
static_assert(sizeof(Slot) == kApart, "a slot is one pair of cache lines");
static_assert(offsetof(Slot, offer) + offsetof(Offer, in) == kApart / 2, "the offer's head is in the first");

// The bytes that a member brings to a round where its slot is too short for them. As with slots, they stay
// until the round after the next. Each payload has a page of its own: a CPU that reads memory in order also
// fetches the lines behind it, up to the page's end, and these would be lines that another member is about to
// write.
struct alignas(4096) EagerPayload {
  static constexpr std::size_t kBytes = 2048;

  std::byte bytes[kBytes];
};

}  // namespace dist
