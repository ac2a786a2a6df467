/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for the tests of dataset.h: expected batches, and rejected memory requests.
 */
#ifndef TESTS_ABI_DATASET_SUPPORT_H
#define TESTS_ABI_DATASET_SUPPORT_H

#include "tests/abi/alloc_support.h"

enum { TEXT_BYTES = 1024 };

/* A dist_text_fn that writes to char[TEXT_BYTES]. */
static inline void keep_text(const char *text, size_t size, void *user_data) {
  snprintf(user_data, TEXT_BYTES, "%.*s", (int)size, text);
}

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns component r of a leaf, or the leaf itself if there is one replica. */
static inline dist_tensor component(const dist_value *leaf, int32_t num_replicas, int32_t r) {
  dist_tensor tensor;
  if (num_replicas == 1) {
    assert_int_equal(dist_value_kind_of(leaf), DIST_VALUE_TENSOR);
    assert_ok(dist_value_tensor(leaf, &tensor));
    return tensor;
  }
  assert_int_equal(dist_value_kind_of(leaf), DIST_VALUE_PER_REPLICA);
  assert_int_equal(dist_value_size(leaf), num_replicas);
  assert_ok(dist_value_tensor(dist_value_item(leaf, (size_t)r), &tensor));
  return tensor;
}

/* Asserts that `leaf` has the i64 numbers expected[0 .. m-1], divided as dataset.h specifies. */
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

/* Reads the rest of a pass, whose batches have one tensor, into `out`. Returns how many numbers there
 * were. */
static inline int64_t read_pass(dist_iterator *iterator, int32_t num_replicas, int64_t *out, int64_t room) {
  int64_t n = 0;
  for (;;) {
    dist_value *batch = NULL;
    const dist_status status = dist_iterator_next(iterator, &batch);
    assert_ok(status);
    if (batch == NULL) return n;
    for (int32_t r = 0; r < num_replicas; r++) {
      const dist_tensor tensor = component(batch, num_replicas, r);
      assert_true(n + tensor.shape[0] <= room);
      if (tensor.shape[0] != 0) memcpy(out + n, tensor.data, (size_t)tensor.shape[0] * sizeof *out);
      n += tensor.shape[0];
    }
    dist_value_release(batch);
  }
}

/* Asserts that `work` fails exactly if its request number k is rejected, and leaks nothing. Returns whether
 * it makes this many requests. */
static inline int refuse_request(long k, dist_status (*work)(dist_strategy *strategy, void *user_data),
                                 void *user_data) {
  static refusals a;
  a = (refusals){.refuse_at = -1};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2;
  host.allocator = refusing(&a);
  dist_strategy *strategy = strategy_with(options);
  const long refused_one = atomic_load(&a.requests) + k;
  atomic_store(&a.refuse_at, refused_one);
  const dist_status status = work(strategy, user_data);
  atomic_store(&a.refuse_at, -1);
  const int refused = atomic_load(&a.requests) > refused_one;
  if (status != (refused ? DIST_RESOURCE_EXHAUSTED : DIST_OK)) {
    fail_msg("request %ld: %s: %s", k, dist_status_name(status), dist_last_error());
  }
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&a.live_blocks), 0);
  return refused;
}

#endif
