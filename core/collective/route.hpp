// SPDX-License-Identifier: Apache-2.0
// Route: which way a collective goes, as a pure function of what all members know alike.
//
//     bytes                     a CPU for every member               oversubscribed
//     <= most_that_travels()    all_reduce of one tensor: kTravels   kAlone, where all know the bytes before
//     <= kAloneBytes            kParts                               they meet, else kBlocks
//     <= kStaticBytes           kParts                               kBlocks
//     above                     kBlocks                              kBlocks
//
// An element's fold is the same on all of them, so are the bits.
#pragma once

#include <cstddef>

#include "core/comm/slot.hpp"

namespace dist {

enum class Route {
  kNothing,  // there is nothing to do: members only meet
  kTravels,  // the bytes travel with the slot: each member reduces everything, into its own output; one phase
  kAlone,    // the last member to come does the work for all
  kParts,    // each member does an equal part of the work
  kBlocks    // the same, and who is done takes blocks of the others' parts
};

struct RouteQuestion {
  int members;
  bool oversubscribed;
  bool nothing = false;      // no elements, or one member's, which stay what they are
  bool can_travel = false;   // one dense tensor that is reduced for all
  bool sized_alike = false;  // all members know `bytes` before they meet
  std::size_t bytes = 0;
};

// Up to how many bytes each member had better read all of its peers' tensors and reduce by itself, than do
// its part and wait once more: what it reads then costs less than another way between cores (1 KiB of one
// peer: 0.17 us against 0.25 us on two cores of a Zen 5). What slots hold they bring in any case.
constexpr std::size_t most_that_travels(int members) noexcept {
  const auto peers = static_cast<std::size_t>(members > 1 ? members - 1 : 1);
  const std::size_t beside = EagerPayload::kBytes / peers;
  return beside > Slot::kInlineBytes ? beside : Slot::kInlineBytes;
}
// Oversubscribed members wake and sleep; up to this size one of them does the work sooner than all could
// begin.
inline constexpr std::size_t kAloneBytes = std::size_t{64} << 10;
// Above, a member that is done with its part takes blocks of others' parts: a late one then has less to do.
// Parts stay whole ranges, since memory likes to be read in order (2.3 against 3.6 ms for 64 MiB on two cores
// of a Zen 5).
inline constexpr std::size_t kStaticBytes = std::size_t{1} << 20;

constexpr Route route_of(const RouteQuestion& q) noexcept {
  if (q.nothing) return Route::kNothing;
  if (q.can_travel && !q.oversubscribed && q.bytes <= most_that_travels(q.members)) return Route::kTravels;
  if (q.oversubscribed && q.sized_alike && q.bytes <= kAloneBytes) return Route::kAlone;
  return q.oversubscribed || q.bytes > kStaticBytes ? Route::kBlocks : Route::kParts;
}

// The most bytes that go the way of `q.bytes`, from there on.
constexpr std::size_t most_bytes_like(RouteQuestion q) noexcept {
  const Route route = route_of(q);
  for (std::size_t step = std::size_t{1} << 62; step != 0; step /= 2) {
    RouteQuestion more = q;
    more.bytes += step;
    if (route_of(more) == route) q = more;
  }
  return q.bytes;
}

}  // namespace dist
