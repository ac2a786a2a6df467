// SPDX-License-Identifier: Apache-2.0
// Line: what a member of a group shows its peers when it comes to a meeting (group.hpp).
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

// One member's side of a meeting, as peers see it.
template <class Sync>
struct alignas(kApart) BasicLine {
  static constexpr std::size_t kInlineBytes = 96;

  BasicWord<Sync> meeting;  // published last
  uint64_t signature = 0;
  // Where the member was when it published: a hint for those who wait for it.
  typename Sync::template Atomic<int> cpu{-1};
  const void* extra = nullptr;  // all_reduce in the line: the output; merge_call: the arguments
  union {
    Offer offer;
    std::byte bytes[kInlineBytes];
  };

  BasicLine() noexcept : offer{} {}
};
using Line = BasicLine<OsSync>;
static_assert(sizeof(Line) == kApart, "a line is one pair of cache lines");
static_assert(offsetof(Line, offer) + offsetof(Offer, out) == kApart / 2, "the offer's head is in the first");

// Bytes that a member brings to a meeting and that its line is too short for. Used as lines are: what is
// published with a line lies there until the meeting after the next. A page each, since CPUs that read one in
// order go on to fetch what lies behind it, up to the page's end: lines that their owner is about to write.
struct alignas(4096) EagerPayload {
  static constexpr std::size_t kBytes = 1536;

  std::byte bytes[kBytes];
};

}  // namespace dist
