// SPDX-License-Identifier: Apache-2.0
// Shuffle: a permutation of 0 .. n-1 that depends only on (seed, pass, n) and is the same on every platform.
//
// The algorithm is a forward Fisher-Yates shuffle: for i = 0, 1, ... swap p[i] with p[i + below(n - i)]. Its
// first k entries are final after k steps. So the cost is spread over the pass, and a pass that ends early
// saves the rest.
//
// Draw k (k = 1, 2, ...) is mix(key + k * G) with G = 0x9E3779B97F4A7C15, key = mix(mix(seed + G) + pass),
// and the finalizer of SplitMix64 as mix. below(bound) masks a draw to the bits of bound - 1 and repeats
// until the result is less than bound, so all values are equally likely.
//
// A draw does not depend on the swaps before it. So several steps draw first and prefetch the entries that
// they will swap, because in a long pass these entries are not in a cache.
//
// Invariant: this algorithm must never change, because orders are part of a training run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

namespace dist {

// A counter-based generator: each number is a function of (seed, pass) and of how many numbers have been
// drawn before.
class CounterRandom {
 public:
  CounterRandom(uint64_t seed, uint64_t pass) noexcept;
  uint64_t draw() noexcept;
  // Returns each of 0 .. bound-1 with the same probability; bound >= 1.
  uint64_t below(uint64_t bound) noexcept;

 private:
  uint64_t state_;
};

class Shuffle {
 public:
  // Allocates memory for n indices.
  Shuffle(std::pmr::memory_resource& memory, uint64_t seed, uint64_t pass, int64_t n);
  // Returns the next `count` entries of the permutation, or as many as are left. They are valid as long as
  // the Shuffle exists.
  std::span<const int64_t> take(int64_t count) noexcept;
  // Returns entry `index` of the permutation. The entries before it are drawn too, and some after it.
  int64_t at(int64_t index) noexcept {
    const auto wanted = static_cast<std::size_t>(index);
    if (wanted >= taken_) [[unlikely]]
      take(static_cast<int64_t>(std::min(order_.size(), wanted + kBlock) - taken_));
    return order_[wanted];
  }

 private:
  static constexpr std::size_t kTogether = 32;  // steps that draw before the first of them swaps
  static constexpr std::size_t kBlock = 64;     // number of steps that at() takes at once

  CounterRandom random_;
  std::pmr::vector<int64_t> order_;
  std::size_t taken_ = 0;
};

}  // namespace dist
