// SPDX-License-Identifier: Apache-2.0
// Counts the futures that have completed. Each instance has its own counts, so that instances do not compete
// for a cache line; all other threads share one.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/comm/slot.hpp"

namespace dist {

struct alignas(kApart) Endings {
  // For the instance itself, the only thread that changes its counts.
  void own_completed() noexcept {
    completed.store(completed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // For any thread.
  void one_completed() noexcept { completed.fetch_add(1, std::memory_order_relaxed); }
  std::atomic<uint64_t> completed{0};  // counted just before the completion is published
  std::atomic<uint64_t> delivered{0};  // counted after that, once the host was notified
};

}  // namespace dist
