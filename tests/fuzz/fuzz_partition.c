/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: a partition of a tensor with arbitrary numbers. The shards of a valid partition must lie
 * inside the tensor and cover it: together they have the same number of elements, and each one starts where
 * its neighbour ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <dist/dist.h>

#include "tests/fuzz/bytes.h"

enum { MOST = DIST_MAX_NDIM + 2, MOST_DEVICES = 256 };

static int64_t take_size(bytes* in) {
  const uint8_t kind = take(in);
  return kind < 200 ? kind % 24 : take_hostile(in);
}

static void check_shard(const dist_partition* p, int32_t device, int64_t* out_elements) {
  int64_t tile[DIST_MAX_NDIM], begin[DIST_MAX_NDIM], size[DIST_MAX_NDIM];
  assert_int_equal(dist_partition_shard(p, device, tile, begin, size, out_elements), DIST_OK);
  for (size_t i = 0; i < p->ndim; i++) {
    const int64_t parts = p->kind == DIST_PARTITION_SPLIT ? p->dimensions[i] : 1;
    assert_true(tile[i] >= 0 && tile[i] < parts);
    if (p->shape[i] < 0) continue;
    assert_true(begin[i] >= 0 && size[i] >= 0 && begin[i] <= p->shape[i] - size[i]);
    if (p->kind == DIST_PARTITION_SPLIT && tile[i] == 0) assert_true(begin[i] == 0);
    if (p->kind == DIST_PARTITION_SPLIT && tile[i] == parts - 1)
      assert_true(begin[i] + size[i] == p->shape[i]);
  }
}

/* Returns the number of elements of the tensor, or -1 if it is unknown. */
static int64_t elements_of(const dist_partition* p) {
  int64_t elements = 1;
  for (size_t i = 0; i < p->ndim; i++) {
    if (p->shape[i] == 0) return 0;
  }
  for (size_t i = 0; i < p->ndim; i++) {
    if (p->shape[i] < 0) return -1;
    elements *= p->shape[i];
  }
  return elements;
}

static void check_shards(const dist_partition* p) {
  const int64_t whole = elements_of(p);
  int64_t sum = 0, elements = 0;
  for (int32_t d = 0; d < p->num_logical_devices; d++) {
    check_shard(p, d, &elements);
    if (whole < 0) continue;
    assert_true(elements >= 0 && elements <= whole);
    if (p->kind == DIST_PARTITION_REPLICATE) assert_true(elements == whole);
    sum += p->kind == DIST_PARTITION_REPLICATE ? 0 : elements;
  }
  if (whole >= 0 && p->kind != DIST_PARTITION_REPLICATE) assert_true(sum == whole);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  const uint8_t flags = take(&in);
  int64_t shape[MOST], parts[MOST], product = 1;
  dist_partition p = DIST_PARTITION_INIT;
  p.ndim = (size_t)take_below(&in, flags & 1 ? MOST : 5);
  p.num_dimensions = flags & 2 ? (size_t)take_below(&in, MOST) : p.ndim;
  for (size_t i = 0; i < MOST; i++) {
    parts[i] = in.left == 0 ? 1 : flags & 4 ? take_hostile(&in) : 1 + take_below(&in, 4);
    shape[i] = in.left == 0 ? 1 : take_size(&in);
    if (i < p.num_dimensions && parts[i] > 0 && parts[i] <= MOST_DEVICES && product <= MOST_DEVICES)
      product *= parts[i];
    if (flags & 8 && shape[i] >= 0 && shape[i] < 1000 && parts[i] > 0 && parts[i] < 1000)
      shape[i] *= parts[i];
  }
  p.shape = shape;
  p.dimensions = parts;
  p.kind = DIST_PARTITION_SPLIT + take(&in) % 4;
  p.num_logical_devices = flags & 16 ? (int32_t)take_hostile(&in) : (int32_t)product;
  p.logical_device = (int32_t)take_hostile(&in);
  p.uneven = flags >> 5 & 1;
  p.spmd = flags >> 6 & 1;
  const dist_status status = dist_partition_check(&p);
  if (status != DIST_OK) {
    assert_int_equal(status, DIST_INVALID_ARGUMENT);
    assert_int_equal(dist_partition_shard(&p, 0, NULL, shape, shape, NULL), DIST_INVALID_ARGUMENT);
    return 0;
  }
  int64_t begin[DIST_MAX_NDIM], sizes[DIST_MAX_NDIM];
  assert_int_equal(dist_partition_shard(&p, -1, NULL, begin, sizes, NULL), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_partition_shard(&p, p.num_logical_devices, NULL, begin, sizes, NULL),
                   DIST_INVALID_ARGUMENT);
  if (p.num_logical_devices <= MOST_DEVICES * 4) check_shards(&p);
  return 0;
}
