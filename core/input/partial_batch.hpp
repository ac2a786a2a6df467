// SPDX-License-Identifier: Apache-2.0
// Which part of a batch a replica gets: pure arithmetic, that of tf.distribute.
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
constexpr Part part_of(int64_t elements, int32_t replicas, int32_t replica) noexcept {
  const int64_t piece = elements / replicas + (elements % replicas != 0 ? 1 : 0);
  // A replica past the end is told by division: multiplying could overflow.
  const int64_t first = piece == 0 || replica > elements / piece ? elements : piece * replica;
  return {first, std::min(piece, elements - first)};
}

}  // namespace dist
