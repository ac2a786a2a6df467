/* SPDX-License-Identifier: Apache-2.0
 *
 * The warning about objects that outlive their strategy.
 */
#include "tests/abi/common.h"

typedef struct {
  int lines;
  int32_t level;
  char last[600];
} log_of;

static void take_line(int32_t level, const char *message, void *user_data) {
  log_of *const log = user_data;
  log->lines++;
  log->level = level;
  snprintf(log->last, sizeof log->last, "%s", message);
}

static dist_strategy *logging(log_of *log, int32_t late_destroys) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2;
  host.log = take_line;
  host.log_user_data = log;
  host.late_destroys = late_destroys;
  return strategy_with(options);
}

static dist_variable *variable(dist_strategy *strategy, const char *name) {
  float zero = 0.0f;
  const dist_tensor initial = {.data = &zero, .dtype = DIST_F32};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  dist_variable *made = NULL;
  options.name = name;
  assert_ok(dist_variable_create(strategy, &initial, &options, &made));
  return made;
}

static dist_dataset *dataset(dist_strategy *strategy) {
  static float rows[4];
  const int64_t length = 4;
  const dist_tensor tensor = vector_of(rows, DIST_F32, &length);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  dist_dataset *made = NULL;
  options.global_batch_size = 2;
  assert_ok(dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, &made));
  return made;
}

static void destroyed_objects_are_not_mentioned(void **state) {
  (void)state;
  log_of log = {0};
  dist_strategy *strategy = logging(&log, 0);
  dist_variable *const w = variable(strategy, "w");
  dist_value *value = NULL;
  assert_ok(dist_value_create_variable(w, &value)); /* keeps the variable, but is not its handle */
  dist_dataset *const rows = dataset(strategy);
  dist_iterator *pass = NULL;
  assert_ok(dist_iterator_create(rows, &pass));
  dist_metric *mean = NULL;
  assert_ok(dist_metric_create(strategy, DIST_METRIC_MEAN, NULL, &mean));
  dist_variable_destroy(w);
  dist_dataset_destroy(rows);
  dist_iterator_destroy(pass);
  dist_metric_destroy(mean);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(log.lines, 0);
  dist_value_release(value);
}

static void one_warning_states_what_is_left(void **state) {
  (void)state;
  log_of log = {0};
  dist_strategy *strategy = logging(&log, 0);
  dist_variable *const gone = variable(strategy, "gone"), *const first = variable(strategy, "fi\"rst"),
                       *const second = variable(strategy, "second");
  dist_dataset *const rows = dataset(strategy);
  dist_iterator *passes[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) assert_ok(dist_iterator_create(rows, &passes[i]));
  dist_metric *mean = NULL;
  assert_ok(dist_metric_create(strategy, DIST_METRIC_MEAN, NULL, &mean));
  dist_variable_destroy(gone);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(log.lines, 1);
  assert_int_equal(log.level, DIST_LOG_WARNING);
  assert_string_equal(
      log.last,
      "a strategy was destroyed before all of its objects: 2 variables (the first is \"fi\"rst\"), 1 "
      "dataset, 2 iterators and 1 metric. Each keeps its memory until it is destroyed. Set "
      "late_destroys if this is intended.");
  /* They can still be used and destroyed. */
  dist_variable_destroy(first);
  assert_string_equal(dist_variable_name(second), "second");
  dist_variable_destroy(second);
  for (int i = 0; i < 2; i++) dist_iterator_destroy(passes[i]);
  dist_dataset_destroy(rows);
  dist_metric_destroy(mean);
  assert_int_equal(log.lines, 1);
}

static void the_end_after_a_shutdown_warns_too(void **state) {
  (void)state;
  log_of log = {0};
  dist_strategy *strategy = logging(&log, 0);
  dist_variable *const w = variable(strategy, "w");
  assert_ok(dist_strategy_shutdown(strategy, 0));
  assert_int_equal(log.lines, 0);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(log.lines, 1);
  assert_has(log.last, "a strategy was destroyed before all of its objects: 1 variable (\"w\"). ");
  dist_variable_destroy(w);
}

static void late_destroys_can_be_announced(void **state) {
  (void)state;
  log_of log = {0};
  dist_strategy *strategy = logging(&log, 1);
  dist_variable *const w = variable(strategy, "w");
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(log.lines, 0);
  dist_variable_destroy(w);
}

/* A destroy that fails leaves the strategy as it is, and does not warn. */
static void a_failed_destroy_does_not_warn(void **state) {
  (void)state;
  log_of log = {0};
  dist_strategy *strategy = logging(&log, 0);
  dist_variable *const w = variable(strategy, "w");
  const int32_t both[] = {0, 1};
  dist_group *group = NULL;
  assert_ok(dist_group_create(strategy, both, 2, &group));
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "the strategy still has groups");
  assert_int_equal(log.lines, 0);
  assert_ok(dist_group_destroy(group));
  dist_variable_destroy(w);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(log.lines, 0);
}

static dist_status make_variable(dist_replica *replica, void *user_data) {
  (void)user_data;
  float zero = 0.0f;
  const dist_tensor initial = {.data = &zero, .dtype = DIST_F32};
  dist_variable *made = NULL;
  return dist_replica_variable(replica, "of the strategy", &initial, NULL, &made);
}

static dist_status make_dataset(dist_strategy *strategy, const dist_input_context *context,
                                dist_dataset **out, void *user_data) {
  (void)strategy;
  (void)context;
  static float rows[4];
  const int64_t length = 4;
  const dist_tensor tensor = vector_of(rows, DIST_F32, &length);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 1;
  return dist_dataset_create_from_tensors(user_data, &tensor, 1, &options, out);
}

static void objects_that_libdist_owns_do_not_count(void **state) {
  (void)state;
  log_of log = {0};
  dist_strategy *strategy = logging(&log, 0);
  dist_dataset *rows = NULL;
  assert_ok(dist_run(strategy, make_variable, NULL, NULL));
  assert_ok(dist_dataset_create_from_function(strategy, make_dataset, strategy, NULL, &rows));
  dist_dataset_destroy(rows);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(log.lines, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(destroyed_objects_are_not_mentioned),
      cmocka_unit_test(one_warning_states_what_is_left),
      cmocka_unit_test(the_end_after_a_shutdown_warns_too),
      cmocka_unit_test(late_destroys_can_be_announced),
      cmocka_unit_test(a_failed_destroy_does_not_warn),
      cmocka_unit_test(objects_that_libdist_owns_do_not_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
