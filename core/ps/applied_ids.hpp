// SPDX-License-Identifier: Apache-2.0
// AppliedIds: which closures have had their effects on a parameter server, so that each has them once. Those below the mark
// are over and forgotten; of those above it there is a bit each.
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
  // A closure's number is below the mark plus this.
  static constexpr int64_t kMostAhead = int64_t{1} << 24;

  explicit AppliedIds(Memory& memory) : bits_(&memory) {}

  int64_t mark() const noexcept { return first_ + skipped_; }
  // Whether this closure has been applied, or is over.
  bool has(int64_t id) const noexcept;
  // Room for it, so that add() takes no memory. INVALID_ARGUMENT: it is too far ahead, or below 0.
  Status reserve(int64_t id);
  void add(int64_t id) noexcept;
  // Those below are over. A mark never goes back.
  void forget_below(int64_t mark) noexcept;

  // What it knows, as numbers: the mark, and behind it 64 ids in each, from the mark rounded down to a multiple of 64.
  void write(std::pmr::vector<int64_t>* out) const;
  // INVALID_ARGUMENT where they are none, or too many.
  Status read(std::span<const int64_t> numbers);

 private:
  static constexpr int64_t kWord = 64;

  int64_t first_ = 0;    // the first id of the first word: a multiple of 64
  int64_t skipped_ = 0;  // ids of the first word below the mark
  std::pmr::deque<uint64_t> bits_;
};

}  // namespace dist
