/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica's share of a loss: dist_average_loss() and dist_scale_regularization_loss() return what the two
 * functions of tf.nn return, for every number of replicas.
 */
#include "tests/abi/common.h"

#include <math.h>

typedef struct call {
  const dist_tensor *loss, *weights;
  int64_t global_batch_size;
  int regularization;
  float result[8];
  dist_tensor *out; /* NULL = a scalar in `result` */
} call;

static dist_status share_of_loss(dist_replica *replica, void *user_data) {
  call *c = user_data;
  dist_tensor own = {&c->result[dist_replica_id(replica)], DIST_F32, 0, NULL, NULL};
  dist_tensor *out = c->out != NULL ? c->out : &own;
  if (c->regularization) return dist_scale_regularization_loss(replica, c->loss, out);
  return dist_average_loss(replica, c->loss, c->weights, c->global_batch_size, out);
}

static dist_tensor tensor_of(void *data, dist_dtype dtype, int32_t ndim, const int64_t *shape) {
  return (dist_tensor){data, dtype, ndim, shape, NULL};
}

/* Asserts that all replicas get the same share, `expected`, of the same loss. */
static void assert_share(dist_strategy *strategy, call c, float expected) {
  assert_ok(dist_run(strategy, share_of_loss, &c, NULL));
  for (int32_t r = 0; r < dist_strategy_num_replicas(strategy); r++) assert_true(c.result[r] == expected);
}

static void shares_are_those_of_tensorflow(void **state) {
  (void)state;
  float losses[] = {1, 2, 3}, weights[] = {1, 0, 2}, six = 6;
  const int64_t three = 3;
  const dist_tensor loss = tensor_of(losses, DIST_F32, 1, &three),
                    w = tensor_of(weights, DIST_F32, 1, &three);
  const dist_tensor whole = tensor_of(&six, DIST_F32, 0, NULL);
  for (int32_t n = 1; n <= 8; n++) {
    dist_strategy *const strategy = strategy_of(n, DIST_THREADS_CALLER);
    assert_share(strategy, (call){.loss = &loss}, 6.0f / (3.0f * (float)n));
    assert_share(strategy, (call){.loss = &loss, .global_batch_size = 12}, 0.5f);
    assert_share(strategy, (call){.loss = &loss, .weights = &w}, 7.0f / (3.0f * (float)n));
    assert_share(strategy, (call){.loss = &loss, .weights = &w, .global_batch_size = 2}, 3.5f);
    assert_share(strategy, (call){.loss = &whole, .regularization = 1}, 6.0f / (float)n);
    assert_share(strategy, (call){.loss = &loss, .regularization = 1}, 6.0f / (float)n);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void weights_and_layouts_stretch(void **state) {
  float grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
  double of_rows[] = {1, 10}, half = 0.5;
  const int64_t two_three[] = {2, 3}, three_two[] = {3, 2}, one_three[] = {1, 3};
  const int64_t transposed[] = {1, 3};
  float of_columns[] = {1, 0, -1};
  const dist_tensor loss = tensor_of(grid, DIST_F32, 2, two_three),
                    scalar = tensor_of(&half, DIST_F64, 0, NULL);
  const dist_tensor columns = {grid, DIST_F32, 2, three_two, transposed};
  const dist_tensor rows = tensor_of(of_rows, DIST_F64, 1, two_three);
  const dist_tensor across = tensor_of(of_columns, DIST_F32, 2, one_three);
  assert_share(*state, (call){.loss = &loss, .global_batch_size = 1}, 21);
  assert_share(*state, (call){.loss = &columns, .global_batch_size = 1}, 21);
  assert_share(*state, (call){.loss = &loss, .weights = &scalar, .global_batch_size = 1}, 10.5f);
  assert_share(*state, (call){.loss = &loss, .weights = &rows, .global_batch_size = 1}, 156);
  assert_share(*state, (call){.loss = &loss, .weights = &across, .global_batch_size = 1}, -4);
  assert_share(*state, (call){.loss = &loss}, 21.0f / (2 * 4)); /* the first dimension is the batch */
}

/* The sum is exact, and only the quotient is rounded. In f32, the ones would be lost next to 2^30. */
static void sums_are_exact(void **state) {
  float losses[] = {0x1p30f, 1, 1, 1, 1, -0x1p30f}, infinite[] = {1, INFINITY};
  const int64_t six = 6, two = 2, none[] = {0, 2};
  const dist_tensor loss = tensor_of(losses, DIST_F32, 1, &six), inf = tensor_of(infinite, DIST_F32, 1, &two);
  const dist_tensor empty = tensor_of(NULL, DIST_F32, 2, none);
  assert_share(*state, (call){.loss = &loss, .global_batch_size = 8}, 0.5f);
  assert_share(*state, (call){.loss = &inf}, INFINITY);
  assert_share(*state, (call){.loss = &empty}, 0);
  assert_share(*state, (call){.loss = &empty, .global_batch_size = 3}, 0);
  assert_share(*state, (call){.loss = &empty, .regularization = 1}, 0);
}

static void the_share_has_the_losses_dtype(void **state) {
  (void)state;
  uint16_t f16[] = {0x3C00, 0x4000, 0x4200}, bf16[] = {0x3F80, 0x4000, 0x4040}, half = 0; /* 1, 2, 3 */
  double f64[] = {1, 2, 3}, wide = 0;
  const int64_t three = 3;
  dist_tensor out16 = tensor_of(&half, DIST_F16, 0, NULL), out64 = tensor_of(&wide, DIST_F64, 0, NULL);
  dist_tensor loss = tensor_of(f16, DIST_F16, 1, &three);
  /* With the size of the batch, no replica is needed. */
  assert_ok(dist_average_loss(NULL, &loss, NULL, 9, &out16));
  assert_int_equal(half, 0x3955); /* 0.66650390625 */
  loss = tensor_of(bf16, DIST_BF16, 1, &three);
  out16.dtype = DIST_BF16;
  assert_ok(dist_average_loss(NULL, &loss, NULL, 9, &out16));
  assert_int_equal(half, 0x3F2B); /* 0.66796875 */
  loss = tensor_of(f64, DIST_F64, 1, &three);
  assert_ok(dist_average_loss(NULL, &loss, NULL, 9, &out64));
  assert_true(wide == 6.0 / 9.0);
}

static void what_does_not_fit_is_refused(void **state) {
  float losses[] = {1, 2, 3}, number = -1;
  int32_t integers[] = {1, 2, 3};
  const int64_t three = 3, two = 2, one = 1;
  const dist_tensor loss = tensor_of(losses, DIST_F32, 1, &three),
                    scalar = tensor_of(losses, DIST_F32, 0, NULL);
  const dist_tensor counts = tensor_of(integers, DIST_I32, 1, &three),
                    w2 = tensor_of(losses, DIST_F32, 1, &two);
  const dist_tensor complex_weights = tensor_of(losses, DIST_COMPLEX64, 1, &one);
  dist_tensor wide = tensor_of(&number, DIST_F64, 0, NULL), vector = tensor_of(&number, DIST_F32, 1, &one);
  const struct {
    call call;
    const char *words;
  } rows[] = {
      {{.loss = &scalar}, "per_example_loss is a scalar. Pass one loss for each example"},
      {{.loss = &counts}, "per_example_loss is i32, but a loss must be f16, bf16, f32 or f64"},
      {{.loss = &counts, .regularization = 1}, "loss is i32"},
      {{.loss = &loss, .global_batch_size = -3}, "global_batch_size is -3"},
      {{.loss = &loss, .weights = &w2},
       "weights are f32[2], but must be a scalar or fit a loss of shape [3]"},
      {{.loss = &loss, .weights = &complex_weights}, "sample_weight is complex64"},
      {{.loss = &loss, .out = &wide}, "out is f64[], but the loss is one number. Pass a scalar f32."},
      {{.loss = &loss, .out = &vector, .regularization = 1}, "out is f32[1]"},
      {{.loss = NULL}, "per_example_loss is NULL"},
      {{.loss = NULL, .regularization = 1}, "loss is NULL"},
  };
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    call c = rows[i].call;
    assert_fails(dist_run(*state, share_of_loss, &c, NULL), DIST_INVALID_ARGUMENT, rows[i].words);
  }
  assert_true(number == -1);
  assert_fails(dist_average_loss(NULL, &loss, NULL, 3, NULL), DIST_INVALID_ARGUMENT, "out is NULL");
}

typedef struct merged {
  dist_replica *replica;
  const dist_tensor *loss;
} merged;

static dist_status in_merge(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                            dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)kwargs;
  const merged *m = user_data;
  float number;
  dist_tensor out = tensor_of(&number, DIST_F32, 0, NULL);
  return dist_average_loss(m->replica, m->loss, NULL, 0, &out);
}

static dist_status merging(dist_replica *replica, void *user_data) {
  merged *m = user_data;
  if (dist_replica_id(replica) == 0) m->replica = replica;
  return dist_merge_call(replica, in_merge, m, NULL, NULL, NULL, NULL);
}

static void only_inside_replicas(void **state) {
  float losses[] = {1, 2, 3}, number;
  const int64_t three = 3;
  const dist_tensor loss = tensor_of(losses, DIST_F32, 1, &three);
  dist_tensor out = tensor_of(&number, DIST_F32, 0, NULL);
  assert_fails(dist_average_loss(NULL, &loss, NULL, 0, &out), DIST_FAILED_PRECONDITION,
               "dist_average_loss(): replica is NULL, as in the cross-replica context");
  assert_fails(dist_scale_regularization_loss(NULL, &loss, &out), DIST_FAILED_PRECONDITION,
               "dist_scale_regularization_loss(): replica is NULL");
  merged m = {NULL, &loss};
  assert_fails(dist_run(*state, merging, &m, NULL), DIST_FAILED_PRECONDITION, "dist_average_loss");
  assert_fails(dist_average_loss(m.replica, &loss, NULL, 3, &out), DIST_FAILED_PRECONDITION,
               "dist_average_loss");
  assert_fails(dist_scale_regularization_loss(m.replica, &loss, &out), DIST_FAILED_PRECONDITION,
               "dist_scale_regularization_loss");
}

static int make_strategy(void **state) {
  *state = strategy_of(4, DIST_THREADS_CALLER);
  return 0;
}

static int end_strategy(void **state) { return dist_strategy_destroy(*state); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_are_those_of_tensorflow),
      cmocka_unit_test(weights_and_layouts_stretch),
      cmocka_unit_test(sums_are_exact),
      cmocka_unit_test(the_share_has_the_losses_dtype),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(only_inside_replicas),
  };
  return cmocka_run_group_tests_name("loss", tests, make_strategy, end_strategy);
}
