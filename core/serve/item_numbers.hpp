// SPDX-License-Identifier: Apache-2.0
// ItemNumbers: what the items of one batcher came to, how long they took, and what its steps were like. Written under the
// batcher's mutex, but for what is refused; any thread reads.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/serve/request_numbers.hpp"
#include "core/trace/histogram.hpp"

namespace dist {

// How many steps had up to 1, 2, 4, ... items.
class StepSizes {
 public:
  static constexpr int kBounds = 13;
  static constexpr std::size_t bound(int place) noexcept { return std::size_t{1} << place; }
  // Of a step, and of an instance.
  static constexpr std::size_t kMost = std::size_t{1} << (kBounds - 1);

  // 1 .. kMost.
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
  // Of those that a step had.
  Histogram queued;  // from dist_batcher_submit() until the first one began
  Histogram waited;  // and until the end
  // Of steps that are over.
  StepSizes sizes;
  Histogram computed;
};

}  // namespace dist
