// SPDX-License-Identifier: Apache-2.0
// Which part of a batch a replica gets, by the arithmetic of tf.distribute.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dist {

struct Part {
  int64_t first = 0;
  int64_t count = 0;
};

// Pieces of ceil(elements / replicas), in order: the last replicas may get fewer, or none. A partial batch is
// split by its own size, so that its work is spread too (10 elements in batches of 8 over 2: 4 4, then 1 1).
constexpr Part part_of(int64_t elements, int64_t replicas, int64_t replica) noexcept {
  const int64_t piece = elements / replicas + (elements % replicas != 0 ? 1 : 0);
  // Division finds a replica past the end, as a product could overflow.
  const int64_t first = piece == 0 || replica > elements / piece ? elements : piece * replica;
  return {first, std::min(piece, elements - first)};
}

// Where global batches are cut to sizes that add up over several workers: the size of a worker's piece
// `index` (0, 1, 2, ... without end). There are `pieces` of a batch, of all workers together, and `offset` is
// how many belong to the workers before this one. Sizes differ by 1 at most; which ones are larger turns from
// worker to worker, so that each step adds up to the batch and each worker gets as much.
constexpr int64_t piece_size(int64_t batch, int64_t pieces, int64_t offset, int64_t index) noexcept {
  return batch / pieces + ((index % pieces + offset) % pieces < batch % pieces ? 1 : 0);
}

}  // namespace dist
