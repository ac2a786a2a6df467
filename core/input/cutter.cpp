// SPDX-License-Identifier: Apache-2.0
#include "core/input/cutter.hpp"

#include <algorithm>
#include <limits>

namespace dist {

int64_t Cutter::wanted() const noexcept {
  if (division_.cut != Division::Cut::kSizes) return division_.batch;
  int64_t sum = 0;
  for (int64_t r = 0; r < division_.replicas; ++r) {
    const int64_t size = division_.size(batches_ + r, batch_examples_);
    sum += std::min(size, std::numeric_limits<int64_t>::max() - sum);
  }
  return sum;
}

bool Cutter::cut(int64_t found) noexcept {
  if (division_.cut == Division::Cut::kSizes) return cut_to_sizes(found);
  // An element that is a batch is one however many examples it has.
  const bool full = division_.batch == 0 || found == division_.batch;
  if (!full && (found == 0 || division_.drop_remainder)) return false;
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    const auto replica = static_cast<int64_t>(r);
    parts_[r] = part_of(found, division_.pieces, division_.first_piece + replica * division_.piece_step);
  }
  ++batches_;
  return true;
}

// A piece of size 0 is one as long as the source was not seen to end.
bool Cutter::cut_to_sizes(int64_t found) noexcept {
  bool any = false;
  int64_t first = 0;
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    parts_[r] = {first, 0};
    if (ended_) continue;
    const int64_t size = division_.size(batches_ + static_cast<int64_t>(r), batch_examples_);
    const int64_t count = std::min(size, found - first);
    ended_ = count < size;
    if (ended_ && (count == 0 || division_.drop_remainder)) continue;
    any = true;
    parts_[r].count = count;
    first += count;
  }
  batches_ += static_cast<int64_t>(parts_.size());
  return any;
}

}  // namespace dist
