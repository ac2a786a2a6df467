/* SPDX-License-Identifier: Apache-2.0
 *
 * Communication options of dist_reduce_to() and dist_batch_reduce_to() over several workers.
 */
#include "../workers_support.h"

typedef struct reduction {
  dist_communication_options options[2]; /* of each worker's call */
  int batch;
  atomic_int returned; /* worker 0's call has returned; with `late`, worker 1 makes its call only then */
  int late;
} reduction;

static dist_status reduce_with_options(dist_strategy *strategy, int worker, void *user_data) {
  reduction *given = user_data;
  float two[] = {1, 2};
  dist_value *items[2] = {0}, *values[2] = {0}, *results[2] = {0};
  dist_status status = DIST_OK;
  for (int i = 0; i < 2 && status == DIST_OK; ++i) {
    const dist_tensor tensor = {&two[i], DIST_F32, 0, NULL, NULL};
    status = dist_value_create_tensor(strategy, &tensor, &items[i]);
    if (status == DIST_OK) status = dist_value_create_per_replica(strategy, &items[i], 1, &values[i]);
  }
  while (given->late && worker == 1 && !atomic_load(&given->returned)) sched_yield();
  if (status == DIST_OK && given->batch) {
    status =
        dist_batch_reduce_to(strategy, DIST_REDUCE_SUM, values, NULL, 2, &given->options[worker], results);
  } else if (status == DIST_OK) {
    status = dist_reduce_to(strategy, DIST_REDUCE_SUM, values[0], NULL, &given->options[worker], &results[0]);
  }
  if (worker == 0) atomic_store(&given->returned, 1);
  for (int i = 0; i < 2; ++i) {
    dist_value_release(results[i]);
    dist_value_release(values[i]);
    dist_value_release(items[i]);
  }
  return status;
}

/* The strategies wait for 600 s, which is the default, or without limit. */
static void a_calls_timeout_overrides_the_strategys(void **state) {
  (void)state;
  for (int variant = 0; variant < 4; ++variant) {
    dist_communication_options of_strategy = DIST_COMMUNICATION_OPTIONS_INIT;
    of_strategy.timeout_ns = DIST_NO_TIMEOUT;
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    if (variant & 2) options.communication = &of_strategy;
    workers all = workers_of("1+1", options);
    reduction given = {.batch = variant & 1, .late = 1};
    for (int w = 0; w < 2; ++w)
      given.options[w] = (dist_communication_options)DIST_COMMUNICATION_OPTIONS_INIT;
    given.options[0].timeout_ns = 20000000;
    worker_thread threads[MOST_WORKERS];
    on_workers(&all, reduce_with_options, &given, threads);
    assert_int_equal(threads[0].status, DIST_DEADLINE_EXCEEDED);
    assert_non_null(strstr(threads[0].error.message, "worker 1"));
    assert_int_equal(threads[1].status, DIST_DEADLINE_EXCEEDED);
    /* The next call has the strategy's timeout again. */
    given.late = 0;
    given.options[0].timeout_ns = 0;
    all_workers(&all, reduce_with_options, &given);
    end_workers(&all);
  }
}

/* Workers that divide a list at different places disagree, which shows that the sizes are used. */
static void a_calls_pack_size_overrides_the_strategys(void **state) {
  (void)state;
  static const struct {
    int64_t of_strategy, of_calls[2];
    dist_status wanted;
  } kCases[] = {
      {0, {0, 0}, DIST_OK}, {0, {1, 0}, DIST_INVALID_ARGUMENT}, {0, {1, 4}, DIST_OK}, {1, {0, 0}, DIST_OK},
      {1, {0, 1}, DIST_OK}, {1, {0, 8}, DIST_INVALID_ARGUMENT}, {1, {8, 8}, DIST_OK}};
  for (size_t k = 0; k < COUNT_OF(kCases); ++k) {
    dist_communication_options of_strategy = DIST_COMMUNICATION_OPTIONS_INIT;
    of_strategy.bytes_per_pack = kCases[k].of_strategy;
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.communication = &of_strategy;
    workers all = workers_of("1+1", options);
    reduction given = {.batch = 1};
    for (int w = 0; w < 2; ++w) {
      given.options[w] = (dist_communication_options)DIST_COMMUNICATION_OPTIONS_INIT;
      given.options[w].bytes_per_pack = kCases[k].of_calls[w];
    }
    worker_thread threads[MOST_WORKERS];
    on_workers(&all, reduce_with_options, &given, threads);
    for (int w = 0; w < 2; ++w) assert_int_equal(threads[w].status, kCases[k].wanted);
    end_workers(&all);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_calls_timeout_overrides_the_strategys),
      cmocka_unit_test(a_calls_pack_size_overrides_the_strategys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
