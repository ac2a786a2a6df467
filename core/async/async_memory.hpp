// SPDX-License-Identifier: Apache-2.0
// AsyncMemory: accounts for and limits the memory of a strategy's queued asynchronous collectives.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dist {

class AsyncMemory {
 public:
  // Enough for thousands of collectives under way. Each replica brings its own tensors to each collective, so
  // the default grows with the number of replicas.
  static constexpr std::size_t default_bytes(int replicas) noexcept {
    return std::max<std::size_t>(std::size_t{64} << 20, static_cast<std::size_t>(replicas) << 21);
  }

  explicit AsyncMemory(std::size_t limit) noexcept : limit_(limit) {}

  // Returns false if the limit would be exceeded.
  bool take(std::size_t bytes) noexcept {
    // relaxed, here and below: these are counters, and publish no other data.
    std::size_t taken = taken_.load(std::memory_order_relaxed);
    do {
      if (taken > limit_ || bytes > limit_ - taken) {
        refusals_.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
    } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
    return true;
  }
  // Takes memory that must not be refused, because the group could not continue without it.
  void take_anyway(std::size_t bytes) noexcept { taken_.fetch_add(bytes, std::memory_order_relaxed); }
  void give_back(std::size_t bytes) noexcept { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::size_t limit() const noexcept { return limit_; }
  // Number of times that take() has refused. When it grows, channels release memory that they keep for later
  // use.
  uint32_t refusals() const noexcept { return refusals_.load(std::memory_order_relaxed); }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> taken_{0};
  std::atomic<uint32_t> refusals_{0};
};

}  // namespace dist
