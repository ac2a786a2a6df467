/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics: the sum, mean or accuracy over the updates of all replicas, under every strategy. The bits do not
 * depend on how the same numbers are distributed.
 */
#include "metric_support.h"

#include <fenv.h>
#include <math.h>
#include <unistd.h>

enum { LENGTH = 200 };

/* ---- Results ---- */

/* Replica r adds r + 1 numbers with the value r + 1 and the weight r. */
static void sums_and_means_are_over_all_replicas(dist_strategy *strategy) {
  const int32_t n = dist_strategy_num_replicas(strategy);
  float data[8][8], weight[8];
  int64_t length[8];
  dist_tensor values[8], weights[8];
  batch plain[8], weighted[8];
  double count = 0, sum = 0, weight_sum = 0, weighted_sum = 0;
  for (int32_t r = 0; r < n; r++) {
    length[r] = r + 1;
    for (int i = 0; i <= r; i++) data[r][i] = (float)(r + 1);
    weight[r] = (float)r;
    values[r] = tensor_of(data[r], DIST_F32, 1, &length[r]);
    weights[r] = tensor_of(&weight[r], DIST_F32, 0, NULL);
    plain[r] = (batch){r, &values[r], NULL, NULL};
    weighted[r] = (batch){r, &values[r], NULL, &weights[r]};
    count += r + 1;
    sum += (r + 1) * (r + 1);
    weight_sum += r * (r + 1);
    weighted_sum += r * (r + 1) * (r + 1);
  }
  assert_true(result_by(strategy, DIST_METRIC_SUM, plain, (size_t)n) == sum);
  assert_true(result_by(strategy, DIST_METRIC_MEAN, plain, (size_t)n) == sum / count);
  assert_true(result_by(strategy, DIST_METRIC_SUM, weighted, (size_t)n) == weighted_sum);
  assert_true(result_by(strategy, DIST_METRIC_MEAN, weighted, (size_t)n) ==
              (weight_sum == 0 ? 0 : weighted_sum / weight_sum));
}

static void every_strategy_has_metrics(void **state) {
  (void)state;
  for (int32_t n = 1; n <= 8; n++) {
    dist_strategy *const mirrored = strategy_of_kind(DIST_STRATEGY_MIRRORED, n);
    dist_strategy *const central = strategy_of_kind(DIST_STRATEGY_CENTRAL_STORAGE, n);
    sums_and_means_are_over_all_replicas(mirrored);
    sums_and_means_are_over_all_replicas(central);
    assert_ok(dist_strategy_destroy(mirrored));
    assert_ok(dist_strategy_destroy(central));
  }
  static const int32_t kinds[] = {DIST_STRATEGY_ONE_DEVICE, DIST_STRATEGY_DEFAULT};
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    dist_strategy *const strategy = strategy_of_kind(kinds[i], 1);
    sums_and_means_are_over_all_replicas(strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void metrics_go_on_from_run_to_run(void **state) {
  dist_metric *metric = metric_of(*state, DIST_METRIC_MEAN);
  assert_true(result_of(*state, metric) == 0); /* before the first update */
  double number = 3;
  const dist_tensor three = tensor_of(&number, DIST_F64, 0, NULL);
  const batch only_one[] = {{2, &three, NULL, NULL}, {2, &three, NULL, NULL}}; /* others need not update */
  for (int step = 0; step < 4; step++) {
    number = step;
    assert_ok(update_by(*state, metric, only_one, COUNT_OF(only_one)));
  }
  assert_true(result_of(*state, metric) == 1.5);
  assert_true(result_of(*state, metric) == 1.5); /* reading changes nothing */
  assert_ok(dist_metric_reset(*state, metric));
  assert_true(result_of(*state, metric) == 0);
  number = 7;
  assert_ok(update_by(*state, metric, only_one, 1));
  assert_true(result_of(*state, metric) == 7);
  dist_metric_destroy(metric);
}

static uint64_t bits_of(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

static uint64_t next_random(uint64_t *seed) { /* splitmix64 */
  uint64_t z = (*seed += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* The same numbers of all magnitudes, distributed to 1 to 8 replicas in random batches. */
static void the_bits_depend_on_the_numbers_alone(void **state) {
  (void)state;
  uint64_t seed = 20250131;
  print_message("# seed %llu\n", (unsigned long long)seed);
  static double numbers[LENGTH], weights[LENGTH];
  for (int i = 0; i < LENGTH; i++) {
    numbers[i] = ldexp((double)(int64_t)next_random(&seed), (int)(next_random(&seed) % 1000) - 563);
    weights[i] = (double)(next_random(&seed) % 1000) / 8;
  }
  uint64_t sum_bits = 0, mean_bits = 0;
  for (int32_t n = 1; n <= 8; n++) {
    for (int i = LENGTH - 1; i > 0; i--) { /* a different order each time */
      const int j = (int)(next_random(&seed) % (uint64_t)(i + 1));
      const double number = numbers[i], weight = weights[i];
      numbers[i] = numbers[j], weights[i] = weights[j];
      numbers[j] = number, weights[j] = weight;
    }
    dist_strategy *const strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, n);
    dist_tensor values[LENGTH], weight_of[LENGTH];
    int64_t length[LENGTH];
    batch plain[LENGTH], weighted[LENGTH];
    size_t used = 0;
    for (int at = 0; at < LENGTH; used++) {
      length[used] = 1 + (int64_t)(next_random(&seed) % 20);
      if (length[used] > LENGTH - at) length[used] = LENGTH - at;
      values[used] = tensor_of(numbers + at, DIST_F64, 1, &length[used]);
      weight_of[used] = tensor_of(weights + at, DIST_F64, 1, &length[used]);
      const int32_t r = (int32_t)(next_random(&seed) % (uint64_t)n);
      plain[used] = (batch){r, &values[used], NULL, NULL};
      weighted[used] = (batch){r, &values[used], NULL, &weight_of[used]};
      at += (int)length[used];
    }
    const uint64_t sum = bits_of(result_by(strategy, DIST_METRIC_SUM, plain, used));
    const uint64_t mean = bits_of(result_by(strategy, DIST_METRIC_MEAN, weighted, used));
    if (n == 1) sum_bits = sum, mean_bits = mean;
    assert_true(sum == sum_bits);
    assert_true(mean == mean_bits);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void sums_are_exact(void **state) {
  double huge[] = {1e300, 1, -1e300}, tiny[] = {0x1p-1074, 0x1p-1074, 1}, special[] = {1, INFINITY};
  double minus[] = {-INFINITY}, most[] = {1.7976931348623157e308, 1.7976931348623157e308};
  double back[] = {-1.7976931348623157e308};
  const int64_t one = 1, two = 2, three = 3;
  const dist_tensor h = tensor_of(huge, DIST_F64, 1, &three), t = tensor_of(tiny, DIST_F64, 1, &two);
  const dist_tensor s = tensor_of(special, DIST_F64, 1, &two), m = tensor_of(minus, DIST_F64, 1, &one);
  const dist_tensor a = tensor_of(most, DIST_F64, 1, &two), b = tensor_of(back, DIST_F64, 1, &one);
  const batch cancels[] = {{0, &h, NULL, NULL}}, small[] = {{1, &t, NULL, NULL}};
  const batch infinite[] = {{0, &s, NULL, NULL}}, not_a_number[] = {{0, &s, NULL, NULL}, {3, &m, NULL, NULL}};
  const batch beyond[] = {{0, &a, NULL, NULL}}, not_beyond[] = {{0, &a, NULL, NULL}, {2, &b, NULL, NULL}};
  assert_true(result_by(*state, DIST_METRIC_SUM, cancels, 1) == 1);
  assert_true(result_by(*state, DIST_METRIC_SUM, small, 1) == 0x1p-1073);
  assert_true(result_by(*state, DIST_METRIC_SUM, infinite, 1) == INFINITY);
  assert_true(isnan(result_by(*state, DIST_METRIC_SUM, not_a_number, 2)));
  assert_true(result_by(*state, DIST_METRIC_SUM, beyond, 1) == INFINITY);
  assert_true(result_by(*state, DIST_METRIC_SUM, not_beyond, 2) == most[0]); /* no overflow in between */
}

static dist_status update_rounding_upward(dist_replica *replica, void *user_data) {
  const int before = fegetround();
  fesetround(FE_UPWARD);
  const dist_status status = update_own(replica, user_data);
  fesetround(before);
  return status;
}

static void the_hosts_rounding_mode_does_not_matter(void **state) {
  double numbers[] = {0.1, 0.7}, weights[] = {0.3, 1.1};
  const int64_t two = 2;
  const dist_tensor values = tensor_of(numbers, DIST_F64, 1, &two), w = tensor_of(weights, DIST_F64, 1, &two);
  const batch batches[] = {{1, &values, NULL, &w}};
  const double expected = result_by(*state, DIST_METRIC_MEAN, batches, 1);
  dist_metric *metric = metric_of(*state, DIST_METRIC_MEAN);
  job j = {metric, batches, 1};
  assert_ok(dist_run(*state, update_rounding_upward, &j, NULL));
  fesetround(FE_UPWARD);
  const double upward = result_of(*state, metric);
  fesetround(FE_TONEAREST);
  assert_true(bits_of(upward) == bits_of(expected));
  dist_metric_destroy(metric);
}

/* Saved with n replicas and loaded with others, under another strategy: the bits are the same, and updates
 * continue. */
static void checkpoints_keep_the_bits(void **state) {
  (void)state;
  double numbers[] = {1e300, 0.1, -3, 1e-300, 7, -1e300, 0.7};
  const int64_t seven = 7;
  const dist_tensor values = {numbers, DIST_F64, 1, &seven, NULL};
  char path[] = "test_metric_XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  for (int32_t n = 1; n <= 8; n += 2) {
    dist_strategy *const saver = strategy_of_kind(DIST_STRATEGY_MIRRORED, n);
    dist_metric *saved = metric_of(saver, DIST_METRIC_MEAN);
    const batch batches[] = {{0, &values, NULL, NULL}, {n - 1, &values, NULL, NULL}};
    assert_ok(update_by(saver, saved, batches, 2));
    dist_variable *variable = dist_metric_variable(saved);
    assert_ok(dist_checkpoint_save(saver, path, &variable, 1, NULL));
    const uint64_t expected = bits_of(result_of(saver, saved));
    assert_ok(update_by(saver, saved, batches, 1));
    const uint64_t expected_next = bits_of(result_of(saver, saved));
    for (int32_t m = 1; m <= 8; m += 3) {
      const int32_t kind = m % 2 == 0 ? DIST_STRATEGY_CENTRAL_STORAGE : DIST_STRATEGY_MIRRORED;
      dist_strategy *const loader = strategy_of_kind(kind, m);
      dist_metric *loaded = metric_of(loader, DIST_METRIC_MEAN);
      assert_ok(update_by(loader, loaded, batches, 1)); /* loading replaces this */
      variable = dist_metric_variable(loaded);
      assert_ok(dist_checkpoint_load(loader, path, &variable, 1, NULL));
      assert_true(bits_of(result_of(loader, loaded)) == expected);
      assert_ok(update_by(loader, loaded, batches, 1));
      assert_true(bits_of(result_of(loader, loaded)) == expected_next);
      dist_metric_destroy(loaded);
      assert_ok(dist_strategy_destroy(loader));
    }
    dist_metric_destroy(saved);
    assert_ok(dist_strategy_destroy(saver));
  }
  assert_int_equal(unlink(path), 0);
  assert_null(dist_metric_variable(NULL));
}

/* ---- Inputs ---- */

static void every_dtype_and_layout_is_read(void **state) {
  uint16_t f16[] = {0x3C00, 0x4100}, bf16[] = {0x3F80, 0x4020};
  float f32[] = {1, 2.5f};
  double f64[] = {1, 2.5};
  int8_t i8[] = {-1, 3};
  uint8_t u8[] = {1, 200}, boolean[] = {0, 7};
  int16_t i16[] = {-300, 3};
  uint16_t u16[] = {1, 60000};
  int32_t i32[] = {-70000, 3};
  uint32_t u32[] = {1, 4000000000u};
  int64_t i64[] = {-1, 1ll << 40};
  uint64_t u64[] = {1, 1ull << 63};
  typedef struct row {
    void *data;
    dist_dtype dtype;
    double sum;
  } row;
  /* @every dtype but COMPLEX64: metrics reject it */
  const row rows[] = {
      {f16, DIST_F16, 3.5},    {bf16, DIST_BF16, 3.5},   {f32, DIST_F32, 3.5},        {f64, DIST_F64, 3.5},
      {i8, DIST_I8, 2},        {u8, DIST_U8, 201},       {i16, DIST_I16, -297},       {u16, DIST_U16, 60001},
      {i32, DIST_I32, -69997}, {u32, DIST_U32, 4e9 + 1}, {i64, DIST_I64, 0x1p40 - 1}, {u64, DIST_U64, 0x1p63},
      {boolean, DIST_BOOL, 1}};
  const int64_t two = 2;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    const dist_tensor values = tensor_of(rows[i].data, rows[i].dtype, 1, &two);
    const batch batches[] = {{0, &values, NULL, NULL}};
    assert_true(result_by(*state, DIST_METRIC_SUM, batches, 1) == rows[i].sum);
  }
  /* Transposed and with gaps, with one weight for each row: (0+10+20) * 1 + (1+11+21) * 100. */
  float grid[3][4] = {{0, 1, -1, -1}, {10, 11, -1, -1}, {20, 21, -1, -1}};
  double row_weights[] = {1, 100};
  const int64_t shape[] = {2, 3}, strides[] = {1, 4};
  const dist_tensor transposed = {grid, DIST_F32, 2, shape, strides};
  const dist_tensor weights = tensor_of(row_weights, DIST_F64, 1, &two);
  const batch batches[] = {{3, &transposed, NULL, &weights}};
  assert_true(result_by(*state, DIST_METRIC_SUM, batches, 1) == 3330);
  assert_true(result_by(*state, DIST_METRIC_MEAN, batches, 1) == 3330.0 / 303);
}

static void weights_stretch(void **state) {
  float values[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 10, 100, 1000, 10000, 100000};
  const int64_t two_three[] = {2, 3}, two_one[] = {2, 1}, one_three[] = {1, 3}, with_one[] = {2, 3, 1};
  const dist_tensor v = tensor_of(values, DIST_F32, 2, two_three);
  const struct {
    int32_t ndim;
    const int64_t *shape;
    double sum;
  } rows[] = {{0, NULL, 21},          {1, two_three, 6 + 150},
              {2, two_one, 6 + 150},  {2, one_three, 5 + 70 + 900},
              {2, two_three, 654321}, {3, with_one, 654321}};
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    const dist_tensor weights = tensor_of(w, DIST_F32, rows[i].ndim, rows[i].shape);
    const batch batches[] = {{0, &v, NULL, &weights}};
    assert_true(result_by(*state, DIST_METRIC_SUM, batches, 1) == rows[i].sum);
  }
}

static void accuracy_counts_what_is_equal(void **state) {
  int32_t predictions[] = {1, 2, 3, 4};
  float labels[] = {1, 2, 0, 4}, weights[] = {1, 1, 4, 2};
  const int64_t four = 4, two = 2;
  const dist_tensor p = tensor_of(predictions, DIST_I32, 1, &four), l = tensor_of(labels, DIST_F32, 1, &four);
  const dist_tensor w = tensor_of(weights, DIST_F32, 1, &four);
  const batch plain[] = {{0, &p, &l, NULL}}, weighted[] = {{1, &p, &l, &w}};
  assert_true(result_by(*state, DIST_METRIC_ACCURACY, plain, 1) == 0.75);
  assert_true(result_by(*state, DIST_METRIC_ACCURACY, weighted, 1) == 0.5);
  /* Integers that become the same double but differ, and a sign that is not a bit of the number. */
  int64_t large[] = {(1ll << 53) + 1, -1};
  uint64_t as_large[] = {1ull << 53, UINT64_MAX};
  const dist_tensor a = tensor_of(large, DIST_I64, 1, &two), b = tensor_of(as_large, DIST_U64, 1, &two);
  const batch integers[] = {{0, &a, &b, NULL}}, themselves[] = {{0, &a, &a, NULL}};
  assert_true(result_by(*state, DIST_METRIC_ACCURACY, integers, 1) == 0);
  assert_true(result_by(*state, DIST_METRIC_ACCURACY, themselves, 1) == 1);
}

static void scores_predict_their_largest(void **state) {
  float scores[5][3] = {{0, 2, 1}, {5, 5, 1}, {NAN, -7, -8}, {NAN, NAN, NAN}, {-INFINITY, -INFINITY, -1}};
  int64_t labels[] = {1, 0, 1, 0, 2};
  const int64_t shape[] = {5, 3};
  dist_tensor v = tensor_of(scores, DIST_F32, 2, shape), l = tensor_of(labels, DIST_I64, 1, shape);
  const batch batches[] = {{0, &v, &l, NULL}};
  for (int wrong = -1; wrong < 5; wrong++) {
    if (wrong >= 0) labels[wrong] += 1;
    assert_true(result_by(*state, DIST_METRIC_ACCURACY, batches, 1) == (wrong < 0 ? 1 : 0.8));
    if (wrong >= 0) labels[wrong] -= 1;
  }
}

static void an_empty_batch_adds_nothing(void **state) {
  const int64_t none[] = {0, 3};
  float number = 5;
  const dist_tensor empty = {NULL, DIST_F32, 2, none, NULL}, labels = {NULL, DIST_I32, 1, none, NULL};
  const dist_tensor five = tensor_of(&number, DIST_F32, 0, NULL);
  const batch batches[] = {{0, &empty, NULL, NULL}, {1, &five, NULL, NULL}, {2, &empty, NULL, &labels}};
  assert_true(result_by(*state, DIST_METRIC_MEAN, batches, 3) == 5);
  const batch scores[] = {{0, &empty, &labels, NULL}};
  assert_true(result_by(*state, DIST_METRIC_ACCURACY, scores, 1) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_strategy_has_metrics),
      cmocka_unit_test(metrics_go_on_from_run_to_run),
      cmocka_unit_test(the_bits_depend_on_the_numbers_alone),
      cmocka_unit_test(checkpoints_keep_the_bits),
      cmocka_unit_test(sums_are_exact),
      cmocka_unit_test(the_hosts_rounding_mode_does_not_matter),
      cmocka_unit_test(every_dtype_and_layout_is_read),
      cmocka_unit_test(weights_stretch),
      cmocka_unit_test(accuracy_counts_what_is_equal),
      cmocka_unit_test(scores_predict_their_largest),
      cmocka_unit_test(an_empty_batch_adds_nothing),
  };
  return cmocka_run_group_tests_name("metric", tests, make_strategy, end_strategy);
}
