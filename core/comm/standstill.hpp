// SPDX-License-Identifier: Apache-2.0
// Standstill: detects, during a wait with a deadline, that the process did not run for a while, for example
// because it was stopped. Messages that arrived meanwhile have not been delivered yet. A deadline that passed
// during that time must therefore be checked again a little later: otherwise a report would blame workers
// that were in time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/os/clock.hpp"

namespace dist {

class Standstill {
 public:
  // Call this in each round of the loop, with the time since the wait began by the host's clock: the process
  // may have been stopped before the first round. Returns true if the deadline must not be applied yet.
  bool forgives(int64_t waited_ns) noexcept {
    const int64_t now = steady_now_ns();
    const int64_t gap_ns = looked_ns_ == 0 ? waited_ns : now - looked_ns_;
    looked_ns_ = now;
    if (gap_ns >= kLeastNs) until_ns_ = now + std::min(gap_ns, kMostNs);
    return now < until_ns_;
  }

 private:
  // Longer than any loop sleeps at a time.
  static constexpr int64_t kLeastNs = 250'000'000;
  static constexpr int64_t kMostNs = 1'000'000'000;

  int64_t looked_ns_ = 0;
  int64_t until_ns_ = 0;
};

}  // namespace dist
