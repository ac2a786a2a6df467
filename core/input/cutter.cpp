// SPDX-License-Identifier: Apache-2.0
#include "core/input/cutter.hpp"

#include <algorithm>
#include <limits>

namespace dist {

int64_t Cutter::wanted() const noexcept {
  if (division_.cut != Division::Cut::kSizes) return division_.batch;
  int64_t sum = 0;
  for (int64_t piece = 0; piece < division_.step_pieces; ++piece) {
    const int64_t size = division_.size(batches_ + piece, batch_examples_);
    sum += std::min(size, std::numeric_limits<int64_t>::max() - sum);
  }
  return sum;
}

bool Cutter::cut(int64_t found) noexcept {
  if (division_.cut == Division::Cut::kSizes) return cut_to_sizes(found);
  // An element that is a batch counts as full, regardless of its number of examples.
  const bool full = division_.batch == 0 || found == division_.batch;
  if (!full && (found == 0 || division_.drop_remainder)) return false;
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    parts_[r] = part_of(found, division_.pieces, division_.piece(static_cast<int64_t>(r)));
  }
  ++batches_;
  return true;
}

// A piece of size 0 counts as a piece unless the source is known to have ended.
bool Cutter::cut_to_sizes(int64_t found) noexcept {
  bool any = false;
  int64_t first = 0;
  for (int64_t piece = 0; piece < division_.step_pieces; ++piece) {
    const int64_t replica = piece - division_.first_piece;
    const bool own = replica >= 0 && replica < division_.replicas;
    if (own) parts_[static_cast<std::size_t>(replica)] = {first, 0};
    if (ended_) continue;
    const int64_t size = division_.size(batches_ + piece, batch_examples_);
    const int64_t count = std::min(size, found - first);
    ended_ = count < size;
    if (ended_ && (count == 0 || division_.drop_remainder)) continue;
    any = true;
    if (own) parts_[static_cast<std::size_t>(replica)].count = count;
    first += count;
  }
  batches_ += division_.step_pieces;
  return any;
}

}  // namespace dist
