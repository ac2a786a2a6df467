// SPDX-License-Identifier: Apache-2.0
#include "core/input/shuffle.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

namespace dist {
namespace {

constexpr uint64_t kGamma = 0x9E3779B97F4A7C15u;

constexpr uint64_t mix(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

CounterRandom::CounterRandom(uint64_t seed, uint64_t pass) noexcept
    : state_(mix(mix(seed + kGamma) + pass)) {}

uint64_t CounterRandom::draw() noexcept { return mix(state_ += kGamma); }

uint64_t CounterRandom::below(uint64_t bound) noexcept {
  if (bound == 1) return 0;
  const uint64_t mask = std::numeric_limits<uint64_t>::max() >> std::countl_zero(bound - 1);
  for (;;) {
    const uint64_t drawn = draw() & mask;
    if (drawn < bound) return drawn;
  }
}

Shuffle::Shuffle(std::pmr::memory_resource& memory, uint64_t seed, uint64_t pass, int64_t n)
    : random_(seed, pass), order_(static_cast<std::size_t>(n), &memory) {
  std::iota(order_.begin(), order_.end(), int64_t{0});
}

std::span<const int64_t> Shuffle::take(int64_t count) noexcept {
  const std::size_t first = taken_;
  const std::size_t end = first + static_cast<std::size_t>(count);
  while (taken_ < end) {
    std::size_t partners[kTogether];
    const std::size_t steps = std::min(kTogether, end - taken_);
    for (std::size_t i = 0; i < steps; ++i) {
      partners[i] = taken_ + i + random_.below(order_.size() - taken_ - i);
      __builtin_prefetch(&order_[partners[i]], 1);
    }
    for (std::size_t i = 0; i < steps; ++i) std::swap(order_[taken_ + i], order_[partners[i]]);
    taken_ += steps;
  }
  return std::span(order_).subspan(first, end - first);
}

}  // namespace dist
