// SPDX-License-Identifier: Apache-2.0
// Route: the algorithm of a collective. It is a pure function of values that are equal for all members.
//
//     bytes                     a CPU for every member               oversubscribed
//     <= most_that_travels()    all_reduce of one tensor: kTravels   kAlone
//     <= kAloneBytes            kParts                               kAlone
//     <= kStaticBytes           kParts                               kBlocks
//     above                     kBlocks                              kBlocks
//
// In an oversubscribed group the last member to arrive decides, because it sees what all members bring;
// `bytes` is then the size of one member's result.
//
// Invariant: every route folds an element in the same order, so all routes produce the same bits.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/comm/slot.hpp"

namespace dist {

enum class Route {
  kNothing,  // there is nothing to do: members only meet
  kTravels,  // the bytes travel with the slot; each member reduces all of them into its own output; one phase
  kAlone,    // the last member to come does the work for all
  kParts,    // each member does an equal part of the work
  kBlocks    // the same, and a member that is done takes blocks of the others' parts
};

struct RouteQuestion {
  int members;
  bool oversubscribed;
  bool nothing = false;     // there are no elements, or those of one member, which do not change
  bool can_travel = false;  // one dense tensor that is reduced for all
  std::size_t bytes = 0;
};

// Up to this many bytes it is faster if each member reads all of its peers' tensors and reduces them by
// itself than if it does its part and waits once more: reading so little costs less than a second wait
// between cores (1 KiB of one peer: 0.17 us against 0.25 us on two cores of a Zen 5; of seven: 1.3 to 2.1
// against 2.3 us on eight of a Xeon). Bytes that fit in the slot cost nothing more.
constexpr std::size_t most_that_travels(int members) noexcept {
  constexpr std::size_t kOfEach = std::size_t{1} << 10;
  constexpr std::size_t kTogether = std::size_t{8} << 10;
  const auto peers = static_cast<std::size_t>(members > 1 ? members - 1 : 1);
  const std::size_t of_many = std::min(kOfEach, kTogether / peers);
  return std::max({EagerPayload::kBytes / peers, of_many, Slot::kInlineBytes});
}
// In an oversubscribed group members must be woken. Up to this size, one of them does the work sooner than
// all could begin with it.
inline constexpr std::size_t kAloneBytes = std::size_t{64} << 10;
// Above this size, a member that is done with its part takes blocks of others' parts, so that a late member
// has less to do. Each part is one range, since memory is read faster in order (2.3 against 3.6 ms for 64 MiB
// on two cores of a Zen 5).
inline constexpr std::size_t kStaticBytes = std::size_t{1} << 20;

constexpr Route route_of(const RouteQuestion& q) noexcept {
  if (q.nothing) return Route::kNothing;
  if (q.can_travel && !q.oversubscribed && q.bytes <= most_that_travels(q.members)) return Route::kTravels;
  if (q.oversubscribed && q.bytes <= kAloneBytes) return Route::kAlone;
  return q.oversubscribed || q.bytes > kStaticBytes ? Route::kBlocks : Route::kParts;
}

// The largest number of bytes, from `q.bytes` on, that takes the same route.
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
