// SPDX-License-Identifier: Apache-2.0
// Algorithm: how a collective is computed. It is a pure function of values that are equal for all members.
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
// Invariant: every algorithm folds an element in the same order, so all algorithms produce the same bits.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/comm/slot.hpp"

namespace dist {

enum class Algorithm {
  kNothing,  // there is no data to move: members only meet
  kTravels,  // the bytes travel with the slot, and each member reduces all of them to its output: one phase
  kAlone,    // the last member to arrive does the work for all
  kParts,    // each member does an equal part of the work
  kBlocks    // like kParts, and a member that has finished its part takes blocks of the others' parts
};

struct AlgorithmQuestion {
  int members;
  bool oversubscribed;
  bool nothing = false;     // there are no elements, or the only member reduces in place
  bool can_travel = false;  // one dense tensor that is reduced for all members
  std::size_t bytes = 0;
};

// Up to this many bytes, it is faster if each member reads and reduces all peers' tensors than if each does a
// part of the work and waits a second time: reading so little takes less time than a second wait between
// cores (1 KiB from one peer: 0.17 us instead of 0.25 us on two cores of a Zen 5; from seven: 1.3 to 2.1 us
// instead of 2.3 us on eight cores of a Xeon). Bytes that fit in the slot cost nothing extra.
constexpr std::size_t most_that_travels(int members) noexcept {
  constexpr std::size_t kOfEach = std::size_t{1} << 10;
  constexpr std::size_t kTogether = std::size_t{8} << 10;
  const auto peers = static_cast<std::size_t>(members > 1 ? members - 1 : 1);
  constexpr std::size_t kAlways = 96;
  const std::size_t of_many = std::min(kOfEach, kTogether / peers);
  return std::max({EagerPayload::kBytes / peers, of_many, kAlways});
}
// In an oversubscribed group, waiting members have to be woken. Up to this size, a single member finishes the
// work before the others could have started on it.
inline constexpr std::size_t kAloneBytes = std::size_t{64} << 10;
// Above this size, a member that has finished its part takes blocks of others' parts, so that a late member
// has less left to do. Each part is one range, because sequential memory access is faster (2.3 ms instead of
// 3.6 ms for 64 MiB on two cores of a Zen 5).
inline constexpr std::size_t kStaticBytes = std::size_t{1} << 20;

constexpr Algorithm algorithm_of(const AlgorithmQuestion& q) noexcept {
  if (q.nothing) return Algorithm::kNothing;
  if (q.can_travel && !q.oversubscribed && q.bytes <= most_that_travels(q.members))
    return Algorithm::kTravels;
  if (q.oversubscribed && q.bytes <= kAloneBytes) return Algorithm::kAlone;
  return q.oversubscribed || q.bytes > kStaticBytes ? Algorithm::kBlocks : Algorithm::kParts;
}

// The largest number of bytes, at least `q.bytes`, for which algorithm_of() chooses the same algorithm as for
// `q`.
constexpr std::size_t most_bytes_like(AlgorithmQuestion q) noexcept {
  const Algorithm algorithm = algorithm_of(q);
  for (std::size_t step = std::size_t{1} << 62; step != 0; step /= 2) {
    AlgorithmQuestion more = q;
    more.bytes += step;
    if (algorithm_of(more) == algorithm) q = more;
  }
  return q.bytes;
}

}  // namespace dist
