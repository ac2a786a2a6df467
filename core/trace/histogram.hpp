// SPDX-License-Identifier: Apache-2.0
// Histogram: counts durations by magnitude. One thread adds to it; any thread may read it at any time.
//
// It counts clock ticks, so that adding needs no conversion: four buckets for each power of two, in a fixed
// amount of memory. The output has fewer buckets, in nanoseconds; there a duration may be overstated by up to
// a quarter, but is never understated.
#pragma once

#include <bit>
#include <cstdint>

#include "core/trace/recorder.hpp"

namespace dist {

class Histogram {
 public:
  static constexpr int kBuckets = 4 * 44;  // the last bucket counts hours and more

  void add(uint64_t ticks) noexcept {
    buckets_[place_of(ticks)].add(1);
    sum_.add(ticks);
  }

  uint64_t count(int bucket) const noexcept { return buckets_[bucket].get(); }
  uint64_t sum() const noexcept { return sum_.get(); }

  static constexpr int place_of(uint64_t ticks) noexcept {
    if (ticks < 4) return static_cast<int>(ticks);
    const int power = std::bit_width(ticks) - 1;
    // The two bits below the highest one are the place within the power; the shifted value is 4 to 7.
    const int place = 4 * (power - 2) + static_cast<int>(ticks >> (power - 2));
    return place < kBuckets ? place : kBuckets - 1;
  }
  // The lower bound of a bucket.
  static constexpr uint64_t begin_of(int bucket) noexcept {
    if (bucket < 4) return static_cast<uint64_t>(bucket);
    return (uint64_t{4} + static_cast<uint64_t>(bucket % 4)) << (bucket / 4 - 1);
  }

 private:
  Sum buckets_[kBuckets];
  Sum sum_;
};

}  // namespace dist
