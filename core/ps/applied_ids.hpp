// SPDX-License-Identifier: Apache-2.0
// AppliedIds: the closures whose effects have been applied on a parameter server, so that each is applied
// once.
//
// Closures below the watermark have ended and are forgotten; for those above it there is one bit each. The watermark
// never decreases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class AppliedIds {
 public:
  // Ids must be less than the watermark plus this.
  static constexpr int64_t kMostAhead = int64_t{1} << 24;

  explicit AppliedIds(Memory& memory) : bits_(&memory) {}

  int64_t watermark() const noexcept { return first_ + skipped_; }
  // Whether this closure was applied or has ended.
  bool has(int64_t id) const noexcept;
  // Allocates memory so that add() needs none. INVALID_ARGUMENT if the id is too far ahead or negative.
  Status reserve(int64_t id);
  void add(int64_t id) noexcept;
  // Closures below `watermark` have ended. A lower watermark than the current one has no effect.
  void forget_below(int64_t watermark) noexcept;

  // The state as numbers: the watermark, then 64 ids in each number, beginning at the watermark rounded down to a
  // multiple of 64.
  void write(std::pmr::vector<int64_t>* out) const;
  // INVALID_ARGUMENT if the numbers are invalid or too many.
  Status read(std::span<const int64_t> numbers);

 private:
  static constexpr int64_t kWord = 64;

  int64_t first_ = 0;    // first id of the first word, a multiple of 64
  int64_t skipped_ = 0;  // ids of the first word that are below the watermark
  std::pmr::deque<uint64_t> bits_;
};

}  // namespace dist
