// SPDX-License-Identifier: Apache-2.0
// Statistics about a batcher: outcomes and times of its items, and the sizes and times of its steps. Written
// under the batcher's mutex, except for refusals; any thread may read.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/serve/request_numbers.hpp"
#include "core/trace/histogram.hpp"

namespace dist {

// A histogram of step sizes with the bounds 1, 2, 4, ...
class StepSizes {
 public:
  static constexpr int kBounds = 13;
  static constexpr std::size_t bound(int place) noexcept { return std::size_t{1} << place; }
  // The maximum number of items per step and per instance.
  static constexpr std::size_t kMost = std::size_t{1} << (kBounds - 1);

  // `size` must be in [1, kMost].
  void add(std::size_t size) noexcept {
    counts_[std::bit_width(size - 1)].add(1);
    sum_.add(size);
  }
  uint64_t count(int place) const noexcept { return counts_[place].get(); }
  uint64_t sum() const noexcept { return sum_.get(); }

 private:
  Sum counts_[kBounds];
  Sum sum_;
};

struct ItemNumbers {
  Sum accepted;
  std::atomic<uint64_t> refused[kRefusals] = {};
  Sum ended[kRequestEnds];
  // Only items that were in a step.
  Histogram queued;  // from dist_batcher_submit() to the start of the first step
  Histogram waited;  // from dist_batcher_submit() to the end
  // Finished steps.
  StepSizes sizes;
  Histogram computed;
};

}  // namespace dist
