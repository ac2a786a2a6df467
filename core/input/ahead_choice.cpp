// SPDX-License-Identifier: Apache-2.0
#include "core/input/ahead_choice.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dist {

// Begins to measure the current mode.
void AheadChoice::begin_measuring() noexcept {
  window_ = in_window_ = 0;
  count_ = {};
  last_ns_ = kNone;
}

bool AheadChoice::gave_at(int64_t now_ns) noexcept {
  const int64_t before_ns = last_ns_;
  last_ns_ = now_ns;
  if (before_ns == kNone || in_window_++ < kSkipped) return false;
  const auto way = static_cast<std::size_t>(ahead_);
  times_ns_[way][static_cast<std::size_t>(count_[way]++)] = now_ns - before_ns;
  if (in_window_ < kSkipped + kCounted) return false;
  in_window_ = 0;
  ahead_ = !ahead_;
  if (++window_ < kWindows) return false;
  choose();
  return true;
}

// Chooses prefetching only if it is clearly faster, because it uses more of the machine.
void AheadChoice::choose() noexcept {
  for (std::size_t way = 0; way < 2; ++way) {
    const auto middle = times_ns_[way].begin() + kOfEach / 2;
    std::nth_element(times_ns_[way].begin(), middle, times_ns_[way].end());
    median_ns_[way] = *middle;
  }
  ahead_ = ahead_ns() < in_place_ns() - in_place_ns() / 32;
  const bool again = std::exchange(chosen_, ahead_) == ahead_;
  keep_ = again ? std::min(2 * keep_, kMostKept) : kLeastKept;
  left_ = keep_;
}

}  // namespace dist
