/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of dist_reduce(), through libdist.so.
 */
#include <math.h>

#include "reduce_support.h"

static void every_dtype_sums_and_averages(void **state) {
  for (int i = 0; i < NUMERIC; i++) {
    const dist_dtype dtype = numeric[i];
    const double sum = 18;
    const double mean = 6;
    assert_reduced(*state, DIST_REDUCE_SUM, scalars(*state, dtype, 2, 5, 11), NULL, 0, dtype, 1, &sum);
    assert_reduced(*state, DIST_REDUCE_MEAN, scalars(*state, dtype, 2, 5, 11), NULL, 0, mean_of(dtype), 1,
                   &mean);
  }
  dist_value *flags = scalars(*state, DIST_BOOL, 0, 1, 1);
  dist_value *result = NULL;
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_SUM, flags, NULL, 0, &result), DIST_INVALID_ARGUMENT);
  assert_non_null(strstr(dist_last_error(), "value: SUM of bool"));
  dist_value_release(flags);
}

static void every_dtype_reduces_an_uneven_axis(void **state) {
  static const int64_t shapes[R][2] = {{2, 2}, {0, 2}, {1, 2}};
  static const double numbers[R][4] = {{1, 2, 3, 4}, {0}, {2, 6}};
  static const double sums[2] = {6, 12};
  static const double means[2] = {2, 4};
  const int32_t axis = 0;
  for (int i = 0; i < NUMERIC; i++) {
    for (int op = DIST_REDUCE_SUM; op <= DIST_REDUCE_MEAN; op++) {
      dist_value *items[R];
      for (int r = 0; r < R; r++) items[r] = tensor_of(*state, numeric[i], 2, shapes[r], numbers[r]);
      const int is_mean = op == DIST_REDUCE_MEAN;
      assert_reduced(*state, op, spread_of(*state, items), &axis, 1,
                     is_mean ? mean_of(numeric[i]) : numeric[i], 2, is_mean ? means : sums);
    }
  }
}

static void integers_wrap_and_their_mean_does_not_round(void **state) {
  const double third = 5.0 / 3.0;
  assert_reduced(*state, DIST_REDUCE_MEAN, scalars(*state, DIST_I32, 1, 1, 3), NULL, 0, DIST_F64, 1, &third);
  assert_reduced(*state, DIST_REDUCE_MEAN, scalars(*state, DIST_U8, 1, 1, 3), NULL, 0, DIST_F32, 1, &third);
  const double most = INT32_MAX;
  const double wrapped_sum = (double)INT32_MAX - 2; /* three times 2^31 - 1, minus 2^32 */
  const double wrapped_mean = wrapped_sum / 3;
  assert_reduced(*state, DIST_REDUCE_SUM, scalars(*state, DIST_I32, most, most, most), NULL, 0, DIST_I32, 1,
                 &wrapped_sum);
  assert_reduced(*state, DIST_REDUCE_MEAN, scalars(*state, DIST_I32, most, most, most), NULL, 0, DIST_F64, 1,
                 &wrapped_mean);
  /* Also within one replica. */
  const int64_t shape[1] = {2};
  const double pair[2] = {most, most};
  const double minus_one = -1;
  const int32_t axis = -1;
  dist_value *items[R];
  for (int r = 0; r < R; r++) items[r] = tensor_of(*state, DIST_I32, 1, shape, pair);
  assert_reduced(*state, DIST_REDUCE_MEAN, spread_of(*state, items), &axis, 1, DIST_F64, 1, &minus_one);
}

static void sixteen_bit_floats_round_once(void **state) {
  /* In bf16, 256 + 1 is 256; but 256 + 1 + 1, rounded once, is 258. */
  const double sum = 258;
  assert_reduced(*state, DIST_REDUCE_SUM, scalars(*state, DIST_BF16, 256, 1, 1), NULL, 0, DIST_BF16, 1, &sum);
  const int64_t shape[1] = {3};
  const double numbers[3] = {256, 1, 1};
  const double axis_sum = 776; /* 774 is a tie between 772 and 776 */
  const int32_t axis = 0;
  dist_value *items[R];
  for (int r = 0; r < R; r++) items[r] = tensor_of(*state, DIST_BF16, 1, shape, numbers);
  assert_reduced(*state, DIST_REDUCE_SUM, spread_of(*state, items), &axis, 1, DIST_BF16, 1, &axis_sum);
}

static void sums_fold_from_left_to_right(void **state) {
  const double big = 16777216; /* 2^24: + 1 is lost in f32, + 2 is not */
  const double left = 16777216;
  const double right = 16777218;
  assert_reduced(*state, DIST_REDUCE_SUM, scalars(*state, DIST_F32, big, 1, 1), NULL, 0, DIST_F32, 1, &left);
  assert_reduced(*state, DIST_REDUCE_SUM, scalars(*state, DIST_F32, 1, 1, big), NULL, 0, DIST_F32, 1, &right);
  /* Each replica is reduced over its axis first, and then the replicas are. */
  const int64_t one[1] = {1};
  const int64_t two[1] = {2};
  const double ones[2] = {1, 1};
  const double zero = 0;
  const int32_t axis = 0;
  dist_value *const items[R] = {tensor_of(*state, DIST_F32, 1, one, &big),
                                tensor_of(*state, DIST_F32, 1, two, ones),
                                tensor_of(*state, DIST_F32, 1, one, &zero)};
  const double grouped = 16777218;
  assert_reduced(*state, DIST_REDUCE_SUM, spread_of(*state, items), &axis, 1, DIST_F32, 1, &grouped);
}

static void axes_of_a_box(void **state) {
  /* [2, 3, 2]; element (i, j, k) of replica r is 100 i + 10 j + k + r. */
  const int64_t shape[3] = {2, 3, 2};
  double numbers[12];
  static const struct {
    int32_t axes[3];
    size_t num_axes, count;
    double sums[12];
  } cases[] = {
      {{0}, 1, 6, {306, 312, 366, 372, 426, 432}},
      {{1}, 1, 4, {99, 108, 999, 1008}},
      {{-1}, 1, 6, {9, 69, 129, 609, 669, 729}},
      {{0, 2}, 2, 3, {618, 738, 858}},
      {{2, -3}, 2, 3, {618, 738, 858}},
      {{1, 2}, 2, 2, {207, 2007}},
      {{2, 0, 1}, 3, 1, {2214}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    dist_value *items[R];
    for (int r = 0; r < R; r++) {
      for (int e = 0; e < 12; e++) {
        const int i = e / 6;
        const int j = e / 2 % 3;
        const int k = e % 2;
        numbers[e] = 100 * i + 10 * j + k + r;
      }
      items[r] = tensor_of(*state, DIST_F64, 3, shape, numbers);
    }
    assert_reduced(*state, DIST_REDUCE_SUM, spread_of(*state, items), cases[c].axes, cases[c].num_axes,
                   DIST_F64, cases[c].count, cases[c].sums);
  }
}

static void nothing_sums_to_zero_and_averages_to_nan(void **state) {
  const int64_t shape[2] = {0, 2};
  const int32_t axis = 0;
  for (int i = 0; i < NUMERIC; i++) {
    dist_value *items[R];
    for (int r = 0; r < R; r++) items[r] = tensor_of(*state, numeric[i], 2, shape, NULL);
    dist_value *spread = spread_of(*state, items);
    const double zeros[2] = {0, 0};
    dist_value_retain(spread);
    if (numeric[i] != DIST_COMPLEX64) {
      assert_reduced(*state, DIST_REDUCE_SUM, spread, &axis, 1, numeric[i], 2, zeros);
    } else {
      dist_value_release(spread);
    }
    dist_value *mean = NULL;
    assert_int_equal(dist_reduce(*state, DIST_REDUCE_MEAN, spread, &axis, 1, &mean), DIST_OK);
    dist_tensor tensor;
    assert_int_equal(dist_value_tensor(mean, &tensor), DIST_OK);
    assert_int_equal(tensor.dtype, mean_of(numeric[i]));
    if (tensor.dtype == DIST_F32) assert_true(isnan(((float *)tensor.data)[1]));
    if (tensor.dtype == DIST_F64) assert_true(isnan(((double *)tensor.data)[1]));
    if (tensor.dtype == DIST_BF16) assert_true((((uint16_t *)tensor.data)[1] & 0x7FFF) > 0x7F80);
    if (tensor.dtype == DIST_F16) assert_true((((uint16_t *)tensor.data)[1] & 0x7FFF) > 0x7C00);
    dist_value_release(mean);
    /* Without axes there are no elements to fold, and the result is empty. */
    assert_reduced(*state, DIST_REDUCE_SUM, spread, NULL, 0, numeric[i], 0, NULL);
  }
  /* A replica without elements does not contribute +0 either. */
  const int64_t one[1] = {1};
  const int64_t none[1] = {0};
  const double minus_zero = -0.0;
  dist_value *const items[R] = {tensor_of(*state, DIST_F64, 1, none, NULL),
                                tensor_of(*state, DIST_F64, 1, one, &minus_zero),
                                tensor_of(*state, DIST_F64, 1, none, NULL)};
  assert_reduced(*state, DIST_REDUCE_SUM, spread_of(*state, items), &axis, 1, DIST_F64, 1, &minus_zero);
}

static void tensors_with_gaps_reduce_as_they_read(void **state) {
  float data[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const int64_t shape[2] = {3, 2};
  const int64_t strides[2] = {1, 3};
  const dist_tensor transposed = {data, DIST_F32, 2, shape, strides};
  const int32_t axis = 1;
  static const double sums[6] = {3, 12, 6, 15, 9, 18};
  static const double axis_sums[3] = {15, 21, 27};
  dist_value *items[R];
  for (int r = 0; r < R; r++)
    assert_int_equal(dist_value_wrap_tensor(*state, &transposed, NULL, NULL, &items[r]), DIST_OK);
  dist_value *spread = dist_value_retain(spread_of(*state, items));
  assert_reduced(*state, DIST_REDUCE_SUM, spread, NULL, 0, DIST_F32, 6, sums);
  assert_reduced(*state, DIST_REDUCE_SUM, spread, &axis, 1, DIST_F32, 3, axis_sums);
}

/* Makes a tensor of random numbers for each replica. The caller frees `data`, which keeps the numbers. */
static dist_value *random_parts(dist_strategy *strategy, uint32_t seed, int32_t ndim, const int64_t *shape,
                                float *data[R]) {
  print_message("# seed %u\n", seed);
  int64_t n = 1;
  for (int32_t d = 0; d < ndim; d++) n *= shape[d];
  dist_value *items[R];
  for (int r = 0; r < R; r++) {
    data[r] = malloc((size_t)n * sizeof(float));
    assert_non_null(data[r]);
    for (int64_t i = 0; i < n; i++) {
      seed = seed * 1664525u + 1013904223u;
      data[r][i] = (float)(int32_t)seed * 1e-9f;
    }
    const dist_tensor tensor = {data[r], DIST_F32, ndim, shape, NULL};
    assert_int_equal(dist_value_wrap_tensor(strategy, &tensor, NULL, NULL, &items[r]), DIST_OK);
  }
  return spread_of(strategy, items);
}

/* Above 256 KiB, oneTBB divides the work. The bits equal those of a plain loop. */
static void large_tensors_give_the_bits_of_a_plain_loop(void **state) {
  enum { ROWS = 1037, COLUMNS = 513, N = ROWS * COLUMNS };
  const int64_t shape[2] = {ROWS, COLUMNS};
  float *data[R];
  float *wanted = malloc(N * sizeof(float));
  assert_non_null(wanted);
  dist_value *spread = random_parts(*state, 12345, 2, shape, data);
  dist_value *result = NULL;
  dist_tensor tensor;
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_MEAN, spread, NULL, 0, &result), DIST_OK);
  for (int i = 0; i < N; i++) {
    const volatile float sum = data[0][i] + data[1][i];
    const volatile float all = sum + data[2][i];
    wanted[i] = all / 3.0f;
  }
  assert_int_equal(dist_value_tensor(result, &tensor), DIST_OK);
  assert_memory_equal(tensor.data, wanted, N * sizeof(float));
  dist_value_release(result);

  const int32_t axes[2] = {0, 1};
  for (int a = 0; a < 2; a++) {
    const int kept = a == 0 ? COLUMNS : ROWS;
    const int gone = N / kept;
    assert_int_equal(dist_reduce(*state, DIST_REDUCE_SUM, spread, &axes[a], 1, &result), DIST_OK);
    for (int k = 0; k < kept; k++) {
      volatile float all = 0;
      for (int r = 0; r < R; r++) {
        volatile float sum = 0;
        for (int g = 0; g < gone; g++) {
          const float element = a == 0 ? data[r][g * COLUMNS + k] : data[r][k * COLUMNS + g];
          sum = g == 0 ? element : sum + element;
        }
        all = r == 0 ? sum : all + sum;
      }
      wanted[k] = all;
    }
    assert_int_equal(dist_value_tensor(result, &tensor), DIST_OK);
    assert_memory_equal(tensor.data, wanted, (size_t)kept * sizeof(float));
    dist_value_release(result);
  }
  dist_value_release(spread);
  for (int r = 0; r < R; r++) free(data[r]);
  free(wanted);
}

/* Results of 64 MB in total are stored past most caches, while a single one is not. */
static void a_batch_larger_than_the_cache(void **state) {
  enum { N = 400003, VALUES = 40 };
  const int64_t shape[1] = {N};
  float *data[R];
  dist_value *spread = random_parts(*state, 54321, 1, shape, data);
  dist_value *values[VALUES], *results[VALUES], *alone = NULL;
  for (int v = 0; v < VALUES; v++) values[v] = spread;
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_SUM, spread, NULL, 0, &alone), DIST_OK);
  assert_int_equal(dist_batch_reduce_to(*state, DIST_REDUCE_SUM, values, NULL, VALUES, NULL, results),
                   DIST_OK);
  dist_tensor wanted, tensor;
  assert_int_equal(dist_value_tensor(alone, &wanted), DIST_OK);
  for (int v = 0; v < VALUES; v++) {
    dist_value *const first = dist_value_item(results[v], 0);
    assert_int_equal(dist_value_tensor(first != NULL ? first : results[v], &tensor), DIST_OK);
    assert_memory_equal(tensor.data, wanted.data, N * sizeof(float));
    dist_value_release(results[v]);
  }
  dist_value_release(alone);
  dist_value_release(spread);
  for (int r = 0; r < R; r++) free(data[r]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_dtype_sums_and_averages),
      cmocka_unit_test(every_dtype_reduces_an_uneven_axis),
      cmocka_unit_test(integers_wrap_and_their_mean_does_not_round),
      cmocka_unit_test(sixteen_bit_floats_round_once),
      cmocka_unit_test(sums_fold_from_left_to_right),
      cmocka_unit_test(axes_of_a_box),
      cmocka_unit_test(nothing_sums_to_zero_and_averages_to_nan),
      cmocka_unit_test(tensors_with_gaps_reduce_as_they_read),
      cmocka_unit_test(large_tensors_give_the_bits_of_a_plain_loop),
      cmocka_unit_test(a_batch_larger_than_the_cache),
  };
  return cmocka_run_group_tests_name("reduce", tests, make_strategy, end_strategy);
}
