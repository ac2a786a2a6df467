/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a tensor that each logical device has.
 */
#include "tests/abi/common.h"

static dist_partition split(const int64_t *shape, size_t ndim, const int64_t *parts, size_t n,
                            int32_t devices) {
  dist_partition partition = DIST_PARTITION_INIT;
  partition.shape = shape;
  partition.ndim = ndim;
  partition.dimensions = parts;
  partition.num_dimensions = n;
  partition.num_logical_devices = devices;
  return partition;
}

/* The documented example: images over eight logical devices, [1, 2, 4, 1]. */
static void the_documented_split(void **state) {
  (void)state;
  static const int64_t shape[] = {4, 4, 8, 3}, parts[] = {1, 2, 4, 1};
  const dist_partition partition = split(shape, 4, parts, 4, 8);
  assert_ok(dist_partition_check(&partition));
  for (int32_t d = 0; d < 8; d++) {
    int64_t tile[4], begin[4], size[4], elements = 0;
    assert_ok(dist_partition_shard(&partition, d, tile, begin, size, &elements));
    const int64_t tiles[] = {0, d / 4, d % 4, 0}, begins[] = {0, d / 4 * 2, d % 4 * 2, 0},
                  sizes[] = {4, 2, 2, 3};
    assert_memory_equal(tile, tiles, sizeof tile);
    assert_memory_equal(begin, begins, sizeof begin);
    assert_memory_equal(size, sizes, sizeof size);
    assert_int_equal(elements, 48);
  }
}

/* If several of TensorFlow's checks fail, the first one is reported. */
static void checks_come_in_order(void **state) {
  (void)state;
  static const struct {
    int64_t shape[3];
    size_t ndim;
    int64_t parts[3];
    size_t n;
    int32_t devices;
    const char *words;
  } cases[] = {
      {{3, 5, 7}, 3, {2, 2}, 2, 9, "2 partition dimensions, but the tensor has 3"},
      {{3, 5, 7},
       3,
       {2, 2, 2},
       3,
       4,
       "dimension 0 of the tensor is 3, which is not divisible by the partition's 2"},
      {{4, 5, 7}, 3, {2, 2, 2}, 3, 4, "dimension 1 of the tensor is 5"},
      {{4, 4, 8},
       3,
       {2, 2, 2},
       3,
       4,
       "product of the partition dimensions must be the number of logical devices, 4"},
      {{4, 4}, 2, {2, 2}, 2, 8, "logical devices, 8"},
      {{4}, 1, {0}, 1, 1, "not divisible"},
      {{-1}, 1, {0}, 1, 1, "product"},
      {{4}, 1, {-1}, 1, 1, "product"},
      {{4, 4}, 2, {-2, -2}, 2, 4, "product"},
      {{4, -1}, 2, {INT64_MIN, 2}, 2, 4, "divisible"},
      {{0, 0, 0}, 3, {INT64_MAX, INT64_MAX, 4}, 3, 4, "product"}, /* 4 in 64 bits */
      {{0, 0}, 2, {1LL << 32, 1LL << 32}, 2, 1, "product"},       /* 0 in 64 bits */
      {{0}, 0, {0}, 0, 2, "product"},
      {{0}, 0, {0}, 0, 1, "a scalar cannot be split"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const dist_partition partition =
        split(cases[i].shape, cases[i].ndim, cases[i].parts, cases[i].n, cases[i].devices);
    assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, cases[i].words);
    assert_fails(dist_partition_shard(&partition, 0, NULL, (int64_t[3]){0}, (int64_t[3]){0}, NULL),
                 DIST_INVALID_ARGUMENT, cases[i].words);
  }
}

/* As even as possible: the first parts have one more, and some may be empty. */
static void uneven_splits(void **state) {
  (void)state;
  static const struct {
    int64_t size, parts, begins[5], sizes[5];
  } cases[] = {
      {7, 3, {0, 3, 5}, {3, 2, 2}},
      {8, 3, {0, 3, 6}, {3, 3, 2}},
      {2, 4, {0, 1, 2, 2}, {1, 1, 0, 0}},
      {0, 2, {0, 0}, {0, 0}},
      {6, 3, {0, 2, 4}, {2, 2, 2}},
      {INT64_MAX, 2, {0, INT64_MAX / 2 + 1}, {INT64_MAX / 2 + 1, INT64_MAX / 2}},
      {9, 5, {0, 2, 4, 6, 8}, {2, 2, 2, 2, 1}},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    dist_partition partition = split(&cases[i].size, 1, &cases[i].parts, 1, (int32_t)cases[i].parts);
    const int divides = cases[i].size % cases[i].parts == 0;
    assert_int_equal(dist_partition_check(&partition), divides ? DIST_OK : DIST_INVALID_ARGUMENT);
    partition.uneven = 1;
    for (int32_t d = 0; d < (int32_t)cases[i].parts; d++) {
      int64_t begin = -1, size = -1, elements = -1;
      assert_ok(dist_partition_shard(&partition, d, NULL, &begin, &size, &elements));
      assert_true(begin == cases[i].begins[d] && size == cases[i].sizes[d] && elements == size);
    }
  }
  static const int64_t shape[] = {3, 5, 7}, parts[] = {2, 2, 2};
  dist_partition partition = split(shape, 3, parts, 3, 4);
  partition.uneven = 1; /* allows only uneven sizes */
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "product");
}

static void sizes_may_be_unknown(void **state) {
  (void)state;
  static const int64_t shape[] = {-1, 4}, parts[] = {3, 2}, one[] = {1, 2};
  dist_partition partition = split(shape, 2, parts, 2, 6);
  int64_t begin[2], size[2], elements = 0;
  assert_ok(dist_partition_shard(&partition, 5, NULL, begin, size, &elements));
  assert_true(begin[0] == -1 && size[0] == -1 && begin[1] == 2 && size[1] == 2 && elements == -1);
  partition = split(shape, 2, one, 2, 2); /* it is not split along the first axis, and begins at 0 */
  assert_ok(dist_partition_shard(&partition, 1, NULL, begin, size, &elements));
  assert_true(begin[0] == 0 && size[0] == -1 && begin[1] == 2 && elements == -1);
  static const int64_t nothing[] = {-1, 0};
  partition = split(nothing, 2, one, 2, 2); /* regardless of the other size */
  assert_ok(dist_partition_shard(&partition, 1, NULL, begin, size, &elements));
  assert_int_equal(elements, 0);
}

static void one_device_may_have_it_all(void **state) {
  (void)state;
  static const int64_t shape[] = {2, -1};
  dist_partition partition = split(shape, 2, NULL, 0, 3);
  partition.kind = DIST_PARTITION_ASSIGN;
  partition.logical_device = 1;
  int64_t tile[2], begin[2], size[2], elements = 7;
  assert_ok(dist_partition_shard(&partition, 1, tile, begin, size, &elements));
  assert_true(tile[0] == 0 && begin[0] == 0 && size[0] == 2 && begin[1] == 0 && size[1] == -1 &&
              elements == -1);
  assert_ok(dist_partition_shard(&partition, 2, tile, begin, size, &elements));
  assert_true(size[0] == 0 && size[1] == 0 && elements == 0);
  partition.ndim = 0; /* a scalar */
  assert_ok(dist_partition_shard(&partition, 1, NULL, NULL, NULL, &elements));
  assert_int_equal(elements, 1);
  assert_ok(dist_partition_shard(&partition, 0, NULL, NULL, NULL, &elements));
  assert_int_equal(elements, 0);
  for (int32_t d = -1; d <= 3; d += 4) {
    partition.logical_device = d;
    assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "A replica has 3");
  }
  partition.spmd = 1; /* checked first */
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "SPMD");
  partition.kind = DIST_PARTITION_REPLICATE;
  partition.ndim = 2;
  for (int32_t d = 0; d < 3; d++) {
    assert_ok(dist_partition_shard(&partition, d, tile, begin, size, NULL));
    assert_true(begin[0] == 0 && size[0] == 2 && begin[1] == 0 && size[1] == -1);
  }
}

static void wrong_partitions(void **state) {
  (void)state;
  static const int64_t shape[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const int64_t huge[] = {1LL << 40, 1LL << 40}, below[] = {-2};
  int64_t begin[2], size[2];
  dist_partition partition = split(shape, 17, shape, 17, 1);
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT,
               "17 dimensions, but may have at most 16");
  partition = split(shape, 16, shape, 16, 1);
  assert_ok(dist_partition_check(&partition));
  partition = split(huge, 2, shape, 2, 1);
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "more elements than 64 bits");
  partition = split(below, 1, shape, 1, 1);
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "shape[0] is -2");
  for (int32_t n = -1; n < 1; n++) {
    partition = split(shape, 1, shape, 1, n);
    assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "num_logical_devices is");
  }
  partition = split(shape, 2, shape, 2, 1);
  for (int32_t d = -1; d <= 1; d += 2)
    assert_fails(dist_partition_shard(&partition, d, NULL, begin, size, NULL), DIST_INVALID_ARGUMENT,
                 "there is no logical device");
  assert_fails(dist_partition_shard(&partition, 0, NULL, NULL, size, NULL), DIST_INVALID_ARGUMENT,
               "out_begin");
  assert_fails(dist_partition_shard(&partition, 0, NULL, begin, NULL, NULL), DIST_INVALID_ARGUMENT,
               "out_size");
  partition.kind = 3;
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "kind is 3; use DIST_PARTITION_");
  partition.shape = NULL;
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "partition->shape is NULL");
  partition = split(shape, 1, NULL, 1, 1);
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "partition->dimensions is NULL");
  assert_fails(dist_partition_check(NULL), DIST_INVALID_ARGUMENT, "partition is NULL");
  partition.struct_size = 0;
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "struct_size is 0");
  dist_partition_init(&partition, sizeof partition);
  assert_int_equal(partition.struct_size, sizeof partition);
  assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "num_logical_devices is 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_documented_split),
      cmocka_unit_test(checks_come_in_order),
      cmocka_unit_test(uneven_splits),
      cmocka_unit_test(sizes_may_be_unknown),
      cmocka_unit_test(one_device_may_have_it_all),
      cmocka_unit_test(wrong_partitions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
