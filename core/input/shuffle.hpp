// SPDX-License-Identifier: Apache-2.0
// Shuffle: a permutation of 0 .. n-1 that depends on (seed, pass, n) alone, the same on every platform.
//
// Forward Fisher-Yates, for i = 0, 1, ...: swap p[i] with p[i + below(n - i)]. Its first k entries are final
// after k steps, so a pass pays for its permutation batch by batch and an early end saves the rest.
//
// Draw k (k = 1, 2, ...) is mix(key + k * G), G = 0x9E3779B97F4A7C15, key = mix(mix(seed + G) + pass), where
// mix is SplitMix64's finalizer. below(bound) masks a draw to bound - 1's bits and draws again while that is
// not below bound: every value is equally likely. This must never change: orders are part of a
// training run.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

namespace dist {

// Numbers that are a function of (seed, pass) and how many came before.
class CounterRandom {
 public:
  CounterRandom(uint64_t seed, uint64_t pass) noexcept;
  uint64_t draw() noexcept;
  // Each of 0 .. bound-1 with the same probability; bound >= 1.
  uint64_t below(uint64_t bound) noexcept;

 private:
  uint64_t state_;
};

class Shuffle {
 public:
  // Allocates n indices.
  Shuffle(std::pmr::memory_resource& memory, uint64_t seed, uint64_t pass, int64_t n);
  // The next `count` entries of the permutation, at most as many as are left. Valid while the Shuffle is.
  std::span<const int64_t> take(int64_t count) noexcept;
  // Entry `index` of the permutation; the entries before it are taken too.
  int64_t at(int64_t index) noexcept {
    const auto wanted = static_cast<std::size_t>(index);
    if (wanted >= taken_) take(static_cast<int64_t>(wanted - taken_) + 1);
    return order_[wanted];
  }

 private:
  CounterRandom random_;
  std::pmr::vector<int64_t> order_;
  std::size_t taken_ = 0;
};

}  // namespace dist
