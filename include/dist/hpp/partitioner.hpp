// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/partitioner.hpp: partitioner.h for C++: the division of a variable into parts, and the rows of each part.
//
//     const std::vector<int64_t> parts = dist::fixed_shards({10, 4}, 0, 3);           // {3, 1}
//     const dist::rows rows = dist::rows_of_part(10, 3, 0);                           // part 0 has rows 0 .. 3
//     const dist::row_place place = dist::part_of_row(10, 3, 7);                      // row 7 is row 0 of part 2
#ifndef DIST_HPP_PARTITIONER_HPP
#define DIST_HPP_PARTITIONER_HPP

#include <vector>

#include "error.hpp"

namespace dist {
namespace detail {
template <class Divide>
std::vector<int64_t> partitions(const std::vector<int64_t> &shape, Divide &&divide) {
  std::vector<int64_t> parts(shape.size() + 1);  // never empty, so that the pointer is not NULL
  check(divide(shape.data(), shape.size(), parts.data()));
  parts.pop_back();
  return parts;
}
}  // namespace detail

// The number of parts of each dimension: `num_shards` along the axis, and 1 along the others.
inline std::vector<int64_t> fixed_shards(const std::vector<int64_t> &shape, int32_t axis,
                                         int32_t num_shards) {
  return detail::partitions(shape, [&](const int64_t *sizes, std::size_t ndim, int64_t *out) {
    return dist_partitions_fixed_shards(sizes, ndim, axis, num_shards, out);
  });
}

// As many parts along the axis as possible with about min_shard_bytes each, at most max_shards.
inline std::vector<int64_t> min_size_shards(const std::vector<int64_t> &shape, int32_t axis,
                                            std::size_t element_bytes,
                                            std::size_t min_shard_bytes = DIST_PARTITIONER_MIN_SHARD_BYTES,
                                            int32_t max_shards = DIST_PARTITIONER_MAX_SHARDS) {
  return detail::partitions(shape, [&](const int64_t *sizes, std::size_t ndim, int64_t *out) {
    return dist_partitions_min_size(sizes, ndim, axis, element_bytes, min_shard_bytes, max_shards, out);
  });
}

// As few parts along the axis as possible with at most max_shard_bytes each; max_shards 0 = no limit.
inline std::vector<int64_t> max_size_shards(const std::vector<int64_t> &shape, int32_t axis,
                                            std::size_t element_bytes, std::size_t max_shard_bytes,
                                            int32_t max_shards = 0) {
  return detail::partitions(shape, [&](const int64_t *sizes, std::size_t ndim, int64_t *out) {
    return dist_partitions_max_size(sizes, ndim, axis, element_bytes, max_shard_bytes, max_shards, out);
  });
}

// Rows begin .. begin + size - 1.
struct rows {
  int64_t begin;
  int64_t size;
};
inline rows rows_of_part(int64_t num_rows, int64_t num_parts, int64_t part) {
  rows found{};
  check(dist_partitions_part(num_rows, num_parts, part, &found.begin, &found.size));
  return found;
}

// Row `offset` of a part.
struct row_place {
  int64_t part;
  int64_t offset;
};
inline row_place part_of_row(int64_t num_rows, int64_t num_parts, int64_t row) {
  row_place found{};
  check(dist_partitions_part_of(num_rows, num_parts, row, &found.part, &found.offset));
  return found;
}

}  // namespace dist

#endif  // DIST_HPP_PARTITIONER_HPP
