// SPDX-License-Identifier: Apache-2.0
// Which part of a batch a replica gets, with the arithmetic of tf.distribute.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dist {

struct Part {
  int64_t first = 0;
  int64_t count = 0;
};

// Replicas get consecutive pieces of ceil(elements / replicas). The last replicas may get fewer elements, or
// none. A partial batch is split by its own size, so that its work is distributed as well (10 elements in
// batches of 8 for 2 replicas: 4 4, then 1 1).
constexpr Part part_of(int64_t elements, int64_t replicas, int64_t replica) noexcept {
  const int64_t piece = elements / replicas + (elements % replicas != 0 ? 1 : 0);
  // A division detects a replica past the end, because a product could overflow.
  const int64_t first = piece == 0 || replica > elements / piece ? elements : piece * replica;
  return {first, std::min(piece, elements - first)};
}

// The size of a worker's piece number `index` (unbounded), if global batches are cut to sizes that add up
// over several workers. All workers together have `pieces` pieces per batch, and `offset` of them belong to
// the workers before this one. Sizes differ by at most 1. The larger ones rotate between workers, so that
// each step adds up to the batch and all workers get the same amount over time.
constexpr int64_t piece_size(int64_t batch, int64_t pieces, int64_t offset, int64_t index) noexcept {
  return batch / pieces + ((index % pieces + offset) % pieces < batch % pieces ? 1 : 0);
}

}  // namespace dist
