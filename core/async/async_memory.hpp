// SPDX-License-Identifier: Apache-2.0
// AsyncMemory: how much a strategy's queued asynchronous collectives may take together, and do.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dist {

class AsyncMemory {
 public:
  // Enough for thousands in flight; with very many replicas, each of which brings its part to each, more.
  static constexpr std::size_t default_bytes(int replicas) noexcept {
    return std::max<std::size_t>(std::size_t{64} << 20, static_cast<std::size_t>(replicas) << 21);
  }

  explicit AsyncMemory(std::size_t limit) noexcept : limit_(limit) {}

  // False: there is no room now.
  bool take(std::size_t bytes) noexcept {
    // relaxed, here and below: a number is counted, and nothing handed over.
    std::size_t taken = taken_.load(std::memory_order_relaxed);
    do {
      if (taken > limit_ || bytes > limit_ - taken) {
        refusals_.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
    } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
    return true;
  }
  // What nobody may be refused, lest it never go on.
  void take_anyway(std::size_t bytes) noexcept { taken_.fetch_add(bytes, std::memory_order_relaxed); }
  void give_back(std::size_t bytes) noexcept { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::size_t limit() const noexcept { return limit_; }
  // So far; who keeps what it does not need lets go of it where there have been more.
  uint32_t refusals() const noexcept { return refusals_.load(std::memory_order_relaxed); }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> taken_{0};
  std::atomic<uint32_t> refusals_{0};
};

}  // namespace dist
