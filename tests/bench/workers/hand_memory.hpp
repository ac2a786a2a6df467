// SPDX-License-Identifier: Apache-2.0
// The memory that by_hand.cpp uses.
#pragma once

#include <atomic>
#include <cstddef>

namespace bench {

struct HandMemory {
  static constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
  static constexpr int kMostWorkers = 16;
  struct alignas(128) Flag {
    std::atomic<unsigned long> pieces{0};
  };
  Flag flags[kMostWorkers];
  alignas(4096) float stages[2][kMostWorkers][kPieceBytes / sizeof(float)];
};

}  // namespace bench
