/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Partitioners: into how many parts a variable is divided, along one of its dimensions, and which rows each part has.
 *
 * Pure arithmetic with TensorFlow's answers (tf.distribute.experimental.partitioners). For an embedding of 10 rows:
 *
 *     dist_partitions_fixed_shards(shape, 2, 0, 3, parts);            parts = {3, 1}
 *     dist_partitions_part(10, 3, 0, &begin, &size);                  part 0 has rows 0 .. 3
 *     dist_partitions_part_of(10, 3, 7, &part, &offset);              row 7 is row 0 of part 2
 *
 * `axis` is the dimension; a negative one counts from the end, and -1 is the last. Every other dimension has one part.
 */
#ifndef DIST_PARTITIONER_H
#define DIST_PARTITIONER_H

#include "types.h"

#endif /* DIST_PARTITIONER_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_PARTITIONER_EXPERIMENTAL_H)
#define DIST_PARTITIONER_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** TensorFlow's defaults of MinSizePartitioner, and the size that it takes a text to have. */
enum {
  DIST_PARTITIONER_MIN_SHARD_BYTES = 262144,
  DIST_PARTITIONER_MAX_SHARDS = 1,
  DIST_PARTITIONER_BYTES_PER_TEXT = 16
};

/**
 * `num_shards` parts, or one for each element of the dimension where that has fewer (TensorFlow: FixedShardsPartitioner).
 * num_shards is not looked at: 0 and less come back as they are.
 *
 * Shape    shape, out_partitions: [ndim]
 * Errors   INVALID_ARGUMENT  NULL, a scalar, no such dimension, more than DIST_MAX_NDIM of them, a negative size.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_fixed_shards(const int64_t *shape, size_t ndim,
                                                                 int32_t axis, int32_t num_shards,
                                                                 int64_t *out_partitions);

/**
 * As many parts as the bytes of all elements have min_shard_bytes, but at least 1 and at most max_shards (TensorFlow:
 * MinSizePartitioner). The number is rounded up, so that all parts may be smaller than min_shard_bytes: where it does not
 * divide the bytes, and neither max_shards nor the dimension makes the parts fewer, they are smaller on average.
 *
 *     max(1, min(shape[axis], max_shards, ceil(bytes of all elements / min_shard_bytes)))
 *
 * Shape    shape, out_partitions: [ndim]
 * Errors   INVALID_ARGUMENT  as dist_partitions_fixed_shards(); element_bytes, min_shard_bytes or max_shards below 1; more
 *                            bytes than 63 bits count.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_min_size(const int64_t *shape, size_t ndim, int32_t axis,
                                                             int64_t element_bytes, int64_t min_shard_bytes,
                                                             int32_t max_shards, int64_t *out_partitions);

/**
 * As few parts as have at most max_shard_bytes each, but at most max_shards (0: any number), and at most one for each
 * element of the dimension (TensorFlow: MaxSizePartitioner).
 *
 *     ceil(shape[axis] / max(1, floor(max_shard_bytes / bytes of one slice)))
 *
 * Shape    shape, out_partitions: [ndim]
 * Errors   INVALID_ARGUMENT  as dist_partitions_min_size(), but that max_shards may be 0; no element at all.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_max_size(const int64_t *shape, size_t ndim, int32_t axis,
                                                             int64_t element_bytes, int64_t max_shard_bytes,
                                                             int32_t max_shards, int64_t *out_partitions);

/**
 * Which rows a part of a divided dimension has: `num_rows / num_parts` of them, one more in the first num_rows % num_parts
 * parts, in order and without gaps (TensorFlow: ShardedVariable, and the "div" strategy of embeddings).
 *
 * Errors   INVALID_ARGUMENT  NULL, num_rows below 0, num_parts below 1, no such part.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_part(int64_t num_rows, int64_t num_parts, int64_t part,
                                                         int64_t *out_begin, int64_t *out_size);

/**
 * Which part a row lies in, and which row of that part it is: the inverse of dist_partitions_part().
 *
 * Errors   INVALID_ARGUMENT  NULL, num_rows below 0, num_parts below 1, no such row.
 */
DIST_API DIST_NODISCARD dist_status dist_partitions_part_of(int64_t num_rows, int64_t num_parts, int64_t row,
                                                            int64_t *out_part, int64_t *out_offset);

#ifdef __cplusplus
}
#endif
#endif /* DIST_PARTITIONER_EXPERIMENTAL_H */
