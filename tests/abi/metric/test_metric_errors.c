/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics reject invalid updates without adding any part of them. Each function works only in its context,
 * and a rejected memory request causes an error status.
 */
#include "metric_support.h"
#include "tests/abi/alloc_support.h"

static void what_does_not_fit_is_refused_and_not_added(void **state) {
  float numbers[6] = {1, 2, 3, 4, 5, 6};
  const int64_t two = 2, three = 3, three_two[] = {3, 2}, three_one[] = {3, 1}, cube[] = {3, 1, 2};
  const dist_tensor v3 = tensor_of(numbers, DIST_F32, 1, &three), v2 = tensor_of(numbers, DIST_F32, 1, &two);
  const dist_tensor v32 = tensor_of(numbers, DIST_F32, 2, three_two);
  const dist_tensor v31 = tensor_of(numbers, DIST_F32, 2, three_one);
  const dist_tensor v312 = tensor_of(numbers, DIST_F32, 3, cube);
  const dist_tensor complex_numbers = tensor_of(numbers, DIST_COMPLEX64, 1, &two);
  const dist_tensor no_dtype = tensor_of(numbers, 77, 1, &two);
  dist_metric *mean = metric_of(*state, DIST_METRIC_MEAN),
              *accuracy = metric_of(*state, DIST_METRIC_ACCURACY);
  const struct {
    dist_metric *metric;
    batch batch;
    const char *words;
  } rows[] = {
      {mean, {0, &v3, NULL, &v2}, "weights are f32[2], but must be a scalar or fit values of shape [3]"},
      {mean, {0, &v3, NULL, &v32}, "weights are f32[3, 2], but must be a scalar or fit values of shape [3]"},
      {mean,
       {0, &v312, NULL, &v3},
       "weights are f32[3], but must be a scalar or fit values of shape [3, 1, 2]"},
      {mean, {0, &v3, &v3, NULL}, "metric \"mean\" takes no labels"},
      {mean, {0, &complex_numbers, NULL, NULL}, "values are complex64"},
      {mean, {0, &v2, NULL, &complex_numbers}, "weights are complex64"},
      {mean, {0, &no_dtype, NULL, NULL}, "values: 77 is not a dtype"},
      {accuracy, {0, &v3, NULL, NULL}, "metric \"accuracy\" is an accuracy metric. Pass labels"},
      {accuracy, {0, &v2, &complex_numbers, NULL}, "labels are complex64"},
      {accuracy, {0, &v3, &v2, NULL}, "values are f32[3], but the labels are f32[2]"},
      {accuracy, {0, &v31, &v3, NULL}, "of 2 or more classes"},
      {accuracy,
       {0, &v32, &v3, &v32},
       "weights are f32[3, 2], but must be a scalar or fit labels of shape [3]"},
      {mean, {0, NULL, NULL, NULL}, "values is NULL"},
      {NULL, {0, &v3, NULL, NULL}, "metric is NULL"},
  };
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    assert_fails(update_by(*state, rows[i].metric, &rows[i].batch, 1), DIST_INVALID_ARGUMENT, rows[i].words);
  }
  const batch good[] = {{1, &v2, NULL, NULL}}, right[] = {{1, &v2, &v2, NULL}};
  assert_ok(update_by(*state, mean, good, 1));
  assert_ok(update_by(*state, accuracy, right, 1));
  assert_true(result_of(*state, mean) == 1.5);
  assert_true(result_of(*state, accuracy) == 1);
  dist_metric_destroy(mean);
  dist_metric_destroy(accuracy);
}

static void arguments_are_checked(void **state) {
  dist_metric *metric = NULL;
  double result = 0;
  assert_fails(dist_metric_create(NULL, DIST_METRIC_SUM, NULL, &metric), DIST_INVALID_ARGUMENT, "strategy");
  assert_fails(dist_metric_create(*state, DIST_METRIC_SUM, NULL, NULL), DIST_INVALID_ARGUMENT, "out_metric");
  assert_fails(dist_metric_create(*state, 0, NULL, &metric), DIST_INVALID_ARGUMENT,
               "kind is 0; use one of DIST_METRIC_...");
  assert_fails(dist_metric_create(*state, 4, NULL, &metric), DIST_INVALID_ARGUMENT, "kind is 4");
  assert_null(metric);
  assert_ok(dist_metric_create(*state, DIST_METRIC_SUM, "examples", &metric));
  assert_string_equal(dist_metric_name(metric), "examples");
  assert_string_equal(dist_metric_name(NULL), "");
  assert_int_equal(dist_metric_kind_of(NULL), 0);
  assert_fails(dist_metric_result(*state, metric, NULL), DIST_INVALID_ARGUMENT, "out_result is NULL");
  assert_fails(dist_metric_result(*state, NULL, &result), DIST_INVALID_ARGUMENT, "metric is NULL");
  assert_fails(dist_metric_result(NULL, metric, &result), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_fails(dist_metric_reset(*state, NULL), DIST_INVALID_ARGUMENT, "metric is NULL");
  assert_fails(dist_metric_update(NULL, metric, NULL, NULL, NULL), DIST_INVALID_ARGUMENT, "replica is NULL");
  dist_metric_destroy(NULL);

  dist_strategy *const other = strategy_of_kind(DIST_STRATEGY_MIRRORED, 4);
  double number = 1;
  const dist_tensor one = tensor_of(&number, DIST_F64, 0, NULL);
  const batch batches[] = {{0, &one, NULL, NULL}};
  assert_fails(dist_metric_result(other, metric, &result), DIST_INVALID_ARGUMENT,
               "metric \"examples\" belongs to another strategy");
  assert_fails(dist_metric_reset(other, metric), DIST_INVALID_ARGUMENT, "another strategy");
  assert_fails(update_by(other, metric, batches, 1), DIST_INVALID_ARGUMENT, "another strategy");
  assert_ok(dist_strategy_destroy(other));
  dist_metric_destroy(metric);
}

typedef struct contexts {
  dist_metric *metric;
  dist_replica *replica; /* of the run, to be used after it */
  int where;
  double result;
} contexts;

static dist_status inside_merge(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  contexts *c = user_data;
  double number = 1;
  const dist_tensor one = tensor_of(&number, DIST_F64, 0, NULL);
  if (c->where == 1) return dist_metric_update(c->replica, c->metric, &one, NULL, NULL);
  return dist_metric_result(strategy, c->metric, &c->result);
}

static dist_status in_the_wrong_place(dist_replica *replica, void *user_data) {
  contexts *c = user_data;
  dist_strategy *const strategy = dist_replica_strategy(replica);
  if (dist_replica_id(replica) == 0) c->replica = replica;
  switch (c->where) {
    case 0: {
      double number = 4;
      const dist_tensor four = tensor_of(&number, DIST_F64, 0, NULL);
      return dist_metric_update(replica, c->metric, &four, NULL, NULL);
    }
    case 1:
    case 2: return dist_merge_call(replica, inside_merge, c, NULL, NULL, NULL, NULL);
    case 3: {
      double result;
      return dist_metric_result(strategy, c->metric, &result);
    }
    case 4: return dist_metric_reset(strategy, c->metric);
    default: {
      dist_metric *metric;
      return dist_metric_create(strategy, DIST_METRIC_SUM, NULL, &metric);
    }
  }
}

static void contexts_are_kept_apart(void **state) {
  contexts c = {.metric = metric_of(*state, DIST_METRIC_SUM)};
  assert_ok(dist_run(*state, in_the_wrong_place, &c, NULL));
  double number = 1;
  const dist_tensor one = tensor_of(&number, DIST_F64, 0, NULL);
  assert_fails(dist_metric_update(c.replica, c.metric, &one, NULL, NULL), DIST_FAILED_PRECONDITION,
               "dist_metric_update");
  static const struct {
    int where;
    const char *words;
  } rows[] = {{1, "dist_metric_update"},
              {3, "dist_metric_result"},
              {4, "dist_metric_reset"},
              {5, "dist_metric_create"}};
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    c.where = rows[i].where;
    assert_fails(dist_run(*state, in_the_wrong_place, &c, NULL), DIST_FAILED_PRECONDITION, rows[i].words);
  }
  c.where = 2; /* in a merge function, no replica makes updates, so the metric may be read */
  assert_ok(dist_run(*state, in_the_wrong_place, &c, NULL));
  assert_true(c.result == 16);
  assert_true(result_of(*state, c.metric) == 16);
  dist_metric_destroy(c.metric);
}

static dist_status make_and_use(dist_strategy *strategy) {
  double number = 1, result = 0;
  const dist_tensor one = tensor_of(&number, DIST_F64, 0, NULL);
  const batch batches[] = {{0, &one, NULL, NULL}, {1, &one, NULL, &one}};
  dist_metric *metric = NULL;
  dist_status status =
      dist_metric_create(strategy, DIST_METRIC_SUM, "a name that is not short at all", &metric);
  if (status == DIST_OK) status = update_by(strategy, metric, batches, 2);
  if (status == DIST_OK) status = dist_metric_result(strategy, metric, &result);
  if (status == DIST_OK && result != 2) status = dist_fail(DIST_INTERNAL, "a wrong sum");
  if (status == DIST_OK) status = dist_metric_reset(strategy, metric);
  dist_metric_destroy(metric);
  return status;
}

static void refused_memory_is_a_status(void **state) {
  (void)state;
  assert_true(refuse_every_request(3, make_and_use) >= 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_does_not_fit_is_refused_and_not_added),
      cmocka_unit_test(arguments_are_checked),
      cmocka_unit_test(contexts_are_kept_apart),
      cmocka_unit_test(refused_memory_is_a_status),
  };
  return cmocka_run_group_tests_name("metric errors", tests, make_strategy, end_strategy);
}
