/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Partitioners: compute into how many parts to divide a variable along one of its dimensions, and the rows of each
 * part.
 *
 * For an embedding of 10 rows:
 *
 *     const int64_t shape[] = {10, 4};
 *     int64_t parts[2], begin, size, part, offset;
 *     dist_partitions_fixed_shards(shape, 2, 0, 3, parts);            // parts = {3, 1}
 *     dist_partitions_part(10, 3, 0, &begin, &size);                  // part 0 has rows 0 .. 3
 *     dist_partitions_part_of(10, 3, 7, &part, &offset);              // row 7 is row 0 of part 2
 *
 * These functions are pure arithmetic and return TensorFlow's results (tf.distribute.experimental.partitioners). `axis`
 * is the dimension to divide; a negative axis counts from the end, so that -1 is the last dimension. All other
 * dimensions have one part.
 */
#ifndef DIST_PARTITIONER_H
#define DIST_PARTITIONER_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** TensorFlow's defaults for MinSizePartitioner, and the size that it assumes for a text. */
enum {
  DIST_PARTITIONER_MIN_SHARD_BYTES = 262144,
  DIST_PARTITIONER_MAX_SHARDS = 1,
  DIST_PARTITIONER_BYTES_PER_TEXT = 16
};

/**
 * Divides a dimension into `num_shards` parts, or into one part per element if it has fewer elements (TensorFlow:
 * FixedShardsPartitioner). num_shards is not checked: 0 and negative numbers are returned unchanged.
 *
 * Shape    shape, out_partitions: [ndim]
 * Errors   INVALID_ARGUMENT  an argument is NULL, the shape is a scalar or has more than DIST_MAX_NDIM dimensions,
 *                            there is no such dimension, or a size is negative.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_fixed_shards(const int64_t *shape, size_t ndim,
                                                                 int32_t axis, int32_t num_shards,
                                                                 int64_t *out_partitions);

/**
 * Divides a dimension into as many parts as possible with about min_shard_bytes each, at least 1 and at most max_shards
 * (TensorFlow: MinSizePartitioner). The number is rounded up. If min_shard_bytes does not divide the total number of
 * bytes, and neither max_shards nor the dimension limits the number, the parts are therefore smaller than
 * min_shard_bytes on average.
 *
 *     max(1, min(shape[axis], max_shards, ceil(bytes of all elements / min_shard_bytes)))
 *
 * Shape    shape, out_partitions: [ndim]
 * Errors   INVALID_ARGUMENT  as for dist_partitions_fixed_shards(); or element_bytes, min_shard_bytes or max_shards is
 *                            below 1; or the number of bytes exceeds 63 bits.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_min_size(const int64_t *shape, size_t ndim, int32_t axis,
                                                             size_t element_bytes, size_t min_shard_bytes,
                                                             int32_t max_shards, int64_t *out_partitions);

/**
 * Divides a dimension into as few parts as possible with at most max_shard_bytes each (TensorFlow: MaxSizePartitioner).
 * There are at most max_shards parts (0: no limit), and at most one for each element of the dimension.
 *
 *     ceil(shape[axis] / max(1, floor(max_shard_bytes / bytes of one slice)))
 *
 * Shape    shape, out_partitions: [ndim]
 * Errors   INVALID_ARGUMENT  as for dist_partitions_min_size(), except that max_shards may be 0; or the shape has no
 *                            elements.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_max_size(const int64_t *shape, size_t ndim, int32_t axis,
                                                             size_t element_bytes, size_t max_shard_bytes,
                                                             int32_t max_shards, int64_t *out_partitions);

/**
 * Returns the rows of one part of a divided dimension. Each part has num_rows / num_parts rows, and the first num_rows
 * % num_parts parts have one more, in order and without gaps (TensorFlow: ShardedVariable, and the "div" strategy for
 * embeddings).
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL, num_rows is below 0, num_parts is below 1, or there is no such part.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_part(int64_t num_rows, int64_t num_parts, int64_t part,
                                                         int64_t *out_begin, int64_t *out_size);

/**
 * Returns the part in which a row lies, and the row's index in that part: the inverse of dist_partitions_part().
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL, num_rows is below 0, num_parts is below 1, or there is no such row.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_part_of(int64_t num_rows, int64_t num_parts, int64_t row,
                                                            int64_t *out_part, int64_t *out_offset);

#ifdef __cplusplus
}
#endif
#endif /* DIST_PARTITIONER_H */
