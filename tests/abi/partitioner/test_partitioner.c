/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitioners, and the rows in each part of a partitioned dimension.
 */
#include "../common.h"

static void fixed_shards_stop_at_the_size(void **state) {
  (void)state;
  const int64_t shape[] = {5, 3};
  int64_t parts[2] = {0, 0};
  assert_ok(dist_partitions_fixed_shards(shape, 2, 0, 4, parts));
  assert_int_equal(parts[0], 4);
  assert_int_equal(parts[1], 1);
  assert_ok(dist_partitions_fixed_shards(shape, 2, -1, 9, parts));
  assert_int_equal(parts[0], 1);
  assert_int_equal(parts[1], 3);
  assert_ok(dist_partitions_fixed_shards(shape, 2, 0, -7, parts));
  assert_int_equal(parts[0], -7);
}

static void sizes_bound_the_parts(void **state) {
  (void)state;
  const int64_t shape[] = {10, 4}; /* 160 bytes of f32, 16 per row */
  int64_t parts[2] = {0, 0};
  assert_ok(dist_partitions_min_size(shape, 2, 0, 4, 50, 8, parts));
  assert_int_equal(parts[0], 4); /* ceil(160 / 50) */
  int64_t begin = 0, rows = 0;
  assert_ok(dist_partitions_part(10, parts[0], 0, &begin, &rows));
  assert_int_equal(rows, 3); /* 48 bytes: even the largest part is smaller than the minimum */
  assert_ok(dist_partitions_min_size(shape, 2, 0, 4, 1, 1000, parts));
  assert_int_equal(parts[0], 10);
  assert_ok(dist_partitions_max_size(shape, 2, 0, 4, 50, 0, parts));
  assert_int_equal(parts[0], 4); /* 3 rows in each part */
  assert_ok(dist_partitions_max_size(shape, 2, 0, 4, 50, 2, parts));
  assert_int_equal(parts[0], 2);
  assert_ok(dist_partitions_max_size(shape, 2, 0, 4, 1, 0, parts));
  assert_int_equal(parts[0], 10); /* a part has at least one row */
}

static void every_row_is_in_one_part(void **state) {
  (void)state;
  for (int64_t rows = 0; rows < 20; rows++) {
    for (int64_t n = 1; n < 8; n++) {
      int64_t next = 0;
      for (int64_t part = 0; part < n; part++) {
        int64_t begin = -1, size = -1;
        assert_ok(dist_partitions_part(rows, n, part, &begin, &size));
        assert_int_equal(begin, next);
        assert_int_equal(size, rows / n + (part < rows % n));
        for (int64_t k = 0; k < size; k++) {
          int64_t found = -1, offset = -1;
          assert_ok(dist_partitions_part_of(rows, n, begin + k, &found, &offset));
          assert_int_equal(found, part);
          assert_int_equal(offset, k);
        }
        next += size;
      }
      assert_int_equal(next, rows);
    }
  }
}

static void what_has_no_parts_is_refused(void **state) {
  (void)state;
  const int64_t shape[] = {4, 4}, none[] = {0, 4}, negative[] = {4, -1};
  const int64_t huge[] = {INT64_MAX, 2}, ones[DIST_MAX_NDIM + 1] = {1};
  int64_t parts[DIST_MAX_NDIM + 1] = {7, 7}, other = 0;
  assert_fails(dist_partitions_fixed_shards(shape, 2, 2, 1, parts), DIST_INVALID_ARGUMENT, "axis is 2");
  assert_fails(dist_partitions_fixed_shards(shape, 2, -3, 1, parts), DIST_INVALID_ARGUMENT, "axis is -3");
  assert_fails(dist_partitions_fixed_shards(NULL, 0, 0, 1, parts), DIST_INVALID_ARGUMENT, "axis is 0");
  assert_fails(dist_partitions_fixed_shards(NULL, 2, 0, 1, parts), DIST_INVALID_ARGUMENT, "shape is NULL");
  assert_fails(dist_partitions_fixed_shards(shape, 2, 0, 1, NULL), DIST_INVALID_ARGUMENT, "out_partitions");
  assert_fails(dist_partitions_fixed_shards(ones, DIST_MAX_NDIM + 1, 0, 1, parts), DIST_INVALID_ARGUMENT,
               "17 dimensions");
  assert_fails(dist_partitions_fixed_shards(negative, 2, 0, 1, parts), DIST_INVALID_ARGUMENT, "is -1");
  assert_fails(dist_partitions_min_size(shape, 2, 0, 0, 4, 1, parts), DIST_INVALID_ARGUMENT, "element_bytes");
  assert_fails(dist_partitions_min_size(shape, 2, 0, 4, 0, 1, parts), DIST_INVALID_ARGUMENT,
               "min_shard_bytes");
  assert_fails(dist_partitions_min_size(shape, 2, 0, 4, 4, 0, parts), DIST_INVALID_ARGUMENT, "max_shards");
  assert_fails(dist_partitions_min_size(huge, 2, 0, 4, 4, 1, parts), DIST_INVALID_ARGUMENT, "63 bits");
  assert_fails(dist_partitions_max_size(huge, 2, 0, 4, 4, 1, parts), DIST_INVALID_ARGUMENT, "63 bits");
  assert_fails(dist_partitions_max_size(shape, 2, 0, 4, 0, 1, parts), DIST_INVALID_ARGUMENT,
               "max_shard_bytes");
  assert_fails(dist_partitions_max_size(shape, 2, 0, 4, 4, -1, parts), DIST_INVALID_ARGUMENT, "max_shards");
  assert_fails(dist_partitions_max_size(none, 2, 0, 4, 4, 1, parts), DIST_INVALID_ARGUMENT, "no elements");
  assert_fails(dist_partitions_max_size(none, 2, 1, 4, 4, 1, parts), DIST_INVALID_ARGUMENT, "no elements");
  assert_int_equal(parts[0], 7); /* nothing was written */
  assert_fails(dist_partitions_part(-1, 2, 0, parts, &other), DIST_INVALID_ARGUMENT, "num_rows");
  assert_fails(dist_partitions_part(4, 0, 0, parts, &other), DIST_INVALID_ARGUMENT, "num_parts");
  assert_fails(dist_partitions_part(4, 2, 2, parts, &other), DIST_INVALID_ARGUMENT, "part is 2");
  assert_fails(dist_partitions_part_of(4, 2, 4, parts, &other), DIST_INVALID_ARGUMENT, "row is 4");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fixed_shards_stop_at_the_size),
      cmocka_unit_test(sizes_bound_the_parts),
      cmocka_unit_test(every_row_is_in_one_part),
      cmocka_unit_test(what_has_no_parts_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
