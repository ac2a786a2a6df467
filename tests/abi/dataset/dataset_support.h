/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of dataset.h (datasets) share: strategies, and what a batch should look like.
 */
#ifndef DATASET_SUPPORT_H
#define DATASET_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dist/dist.h>

#define assert_ok(call)                                                            \
  do {                                                                             \
    const dist_status assert_ok_status = (call);                                   \
    if (assert_ok_status != DIST_OK) fail_msg("%s: %s", #call, dist_last_error()); \
  } while (0)

/* The call fails with `status`, and its message holds `words`. */
#define assert_fails(call, status, words)                               \
  do {                                                                  \
    assert_int_equal(call, status);                                     \
    if (strstr(dist_last_error(), words) == NULL) {                     \
      fail_msg("%s: no '%s' in '%s'", #call, words, dist_last_error()); \
    }                                                                   \
  } while (0)

static inline dist_strategy *strategy_of(int32_t num_replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = num_replicas;
  dist_strategy *strategy = NULL;
  assert_ok(dist_strategy_create(&options, &strategy));
  return strategy;
}

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Component r of a leaf; the leaf itself where there is one replica. */
static inline dist_tensor component(const dist_value *leaf, int32_t num_replicas, int32_t r) {
  dist_tensor tensor;
  if (num_replicas == 1) {
    assert_int_equal(dist_value_kind(leaf), DIST_VALUE_TENSOR);
    assert_ok(dist_value_tensor(leaf, &tensor));
    return tensor;
  }
  assert_int_equal(dist_value_kind(leaf), DIST_VALUE_PER_REPLICA);
  assert_int_equal(dist_value_size(leaf), num_replicas);
  assert_ok(dist_value_tensor(dist_value_item(leaf, (size_t)r), &tensor));
  return tensor;
}

/* `leaf` holds the i64 numbers expected[0 .. m-1], split as dist.h says. */
static inline void check_leaf(const dist_value *leaf, int32_t num_replicas, const int64_t *expected,
                              int64_t m) {
  const int64_t q = (m + num_replicas - 1) / num_replicas;
  for (int32_t r = 0; r < num_replicas; r++) {
    const int64_t first = smaller(m, r * q), count = smaller(m, (r + 1) * q) - first;
    const dist_tensor tensor = component(leaf, num_replicas, r);
    assert_int_equal(tensor.dtype, DIST_I64);
    assert_int_equal(tensor.ndim, 1);
    assert_int_equal(tensor.shape[0], count);
    if (count != 0) assert_memory_equal(tensor.data, expected + first, (size_t)count * sizeof *expected);
  }
}

/* The whole rest of a pass, leaf by leaf of one tensor batches, written to `out`: how many numbers. */
static inline int64_t read_pass(dist_iterator *iterator, int32_t num_replicas, int64_t *out, int64_t room) {
  int64_t n = 0;
  for (;;) {
    dist_value *batch = NULL;
    const dist_status status = dist_iterator_next(iterator, &batch);
    if (status == DIST_OUT_OF_RANGE) return n;
    assert_ok(status);
    for (int32_t r = 0; r < num_replicas; r++) {
      const dist_tensor tensor = component(batch, num_replicas, r);
      assert_true(n + tensor.shape[0] <= room);
      if (tensor.shape[0] != 0) memcpy(out + n, tensor.data, (size_t)tensor.shape[0] * sizeof *out);
      n += tensor.shape[0];
    }
    dist_value_release(batch);
  }
}

/* A host's allocator that refuses request number `countdown`. */
typedef struct {
  atomic_long live, countdown;
  atomic_int refused;
} counting;

static inline void *counting_alloc(void *user_data, size_t size, size_t align) {
  counting *c = user_data;
  if (atomic_fetch_sub(&c->countdown, 1) == 0) {
    atomic_store(&c->refused, 1);
    return NULL;
  }
  void *memory = aligned_alloc(align, (size + align - 1) / align * align);
  if (memory == NULL) return NULL;
  atomic_fetch_add(&c->live, 1);
  return memory;
}

static inline void counting_free(void *user_data, void *memory, size_t size, size_t align) {
  (void)size, (void)align;
  atomic_fetch_sub(&((counting *)user_data)->live, 1);
  free(memory);
}

#endif
