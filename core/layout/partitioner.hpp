// SPDX-License-Identifier: Apache-2.0
// Partitioners: the number of parts of a variable along one dimension, and the rows of each part. Pure
// arithmetic on checked numbers.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.hpp"

namespace dist {

// The variable to divide. A negative `axis` counts from the end.
struct Partitioned {
  std::span<const int64_t> shape;
  int32_t axis;
  int64_t element_bytes;  // not used for a fixed number of shards
};

// `out` has one number per dimension. Fails with INVALID_ARGUMENT as described in partitioner.h.
Status fixed_shards(const Partitioned& what, int32_t num_shards, int64_t* out) noexcept;
Status min_size(const Partitioned& what, int64_t min_shard_bytes, int32_t max_shards, int64_t* out) noexcept;
Status max_size(const Partitioned& what, int64_t max_shard_bytes, int32_t max_shards, int64_t* out) noexcept;

// Divides num_rows into num_parts: the first num_rows % num_parts parts have one more row than the others.
Status rows_of_part(int64_t num_rows, int64_t num_parts, int64_t part, int64_t* begin,
                    int64_t* size) noexcept;
Status part_of_row(int64_t num_rows, int64_t num_parts, int64_t row, int64_t* part, int64_t* offset) noexcept;

}  // namespace dist
