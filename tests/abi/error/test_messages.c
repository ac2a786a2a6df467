/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of common mistakes, in full: what failed, with the values, and then what to do about it.
 */
#include "tests/abi/common.h"

static dist_strategy *strategy; /* has two replicas */

#define SAYS(call, message)                            \
  do {                                                 \
    assert_true((call) != DIST_OK);                    \
    assert_string_equal(dist_last_error(), (message)); \
  } while (0)

static dist_status reduce(dist_replica *replica, dist_dtype dtype, int64_t length) {
  static double memory[2][8];
  double *own = memory[dist_replica_id(replica)];
  const dist_tensor in = {own, dtype, 1, &length, NULL};
  dist_tensor out = in;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "grads";
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, &options, NULL);
}

static dist_status other_dtype(dist_replica *replica, void *user_data) {
  (void)user_data;
  return reduce(replica, dist_replica_id(replica) == 0 ? DIST_F32 : DIST_F64, 3);
}

static dist_status other_collective(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) == 0 ? reduce(replica, DIST_F32, 3) : dist_barrier(replica, NULL, NULL);
}

static dist_status returns_early(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) == 0 ? reduce(replica, DIST_F32, 3) : DIST_OK;
}

static void collectives_that_do_not_match(void **state) {
  (void)state;
  SAYS(dist_run(strategy, other_dtype, NULL, NULL),
       "all_reduce #1 (tag \"grads\"): replica 1 passed f64[3], but replica 0 passed f32[3]. All replicas "
       "must pass "
       "the same dtype and shape.");
  SAYS(dist_run(strategy, other_collective, NULL, NULL),
       "all_reduce #1 (tag \"grads\"): replica 1 called barrier without a tag, but replica 0 called "
       "all_reduce with "
       "tag \"grads\". All replicas must call the same collectives in the same order, with the same "
       "arguments.");
  SAYS(dist_run(strategy, returns_early, NULL, NULL),
       "all_reduce #1 (tag \"grads\"): replica 1 returned early. All replicas must call the same "
       "collectives; a "
       "replica without input takes part with an empty batch. Details: replica 0: all_reduce SUM f32[3] (tag "
       "\"grads\")");
}

static dist_replica *handle_of_0;

static dist_status uses_handle_of_0(dist_replica *replica, void *user_data) {
  (void)user_data;
  if (dist_replica_id(replica) == 0) handle_of_0 = replica;
  dist_status met = dist_barrier(replica, NULL, NULL);
  if (met != DIST_OK) return met;
  const dist_status wrong = dist_replica_id(replica) == 0 ? DIST_OK : dist_barrier(handle_of_0, NULL, NULL);
  met = dist_barrier(replica, NULL, NULL); /* replica 0 is still inside */
  return met != DIST_OK ? met : wrong;
}

static dist_status runs_inside(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) == 0 ? dist_run(strategy, runs_inside, NULL, NULL) : DIST_OK;
}

static void calls_in_the_wrong_place(void **state) {
  (void)state;
  assert_int_equal(dist_run(strategy, uses_handle_of_0, NULL, NULL), DIST_FAILED_PRECONDITION);
  assert_has(
      dist_last_error(),
      "dist_barrier(): this is the handle of replica 0, but the calling thread is in the function of replica "
      "1. Use the handle that was passed to this function.");
  assert_int_equal(dist_run(strategy, runs_inside, NULL, NULL), DIST_FAILED_PRECONDITION);
  assert_has(dist_last_error(),
             "dist_run() was called inside replica 0's function, but runs do not nest. Use the replica's "
             "collectives, or run inside a merge function (dist_merge_call()).");
}

static void arguments_and_options(void **state) {
  (void)state;
  SAYS(dist_run(strategy, NULL, NULL, NULL), "dist_run(): fn is NULL");
  dist_strategy *other = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = -1;
  SAYS(dist_strategy_create(&options, &other),
       "num_replicas is -1, but must be at least 1, or 0 for the number of usable CPUs");
  options = (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT;
  options.struct_size = 0;
  SAYS(dist_strategy_create(&options, &other),
       "dist_strategy_options.struct_size is 0: initialize the struct with its INIT macro, or with its init "
       "function "
       "and sizeof(dist_strategy_options)");
  dist_budget *budget = NULL;
  SAYS(dist_budget_create(NULL, 0, &budget), "dist_budget_create(): threads is 0, but must be 1 to 65536");
}

static void variables_and_files(void **state) {
  (void)state;
  const float two[2] = {1, 2}, three[3] = {1, 2, 3};
  const int64_t lengths[] = {2, 3};
  const dist_tensor initial = {(void *)two, DIST_F32, 1, &lengths[0], NULL};
  const dist_tensor longer = {(void *)three, DIST_F32, 1, &lengths[1], NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = "w";
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(strategy, &initial, &options, &variable));
  dist_value *value = NULL;
  assert_ok(dist_value_create_tensor(strategy, &longer, &value));
  SAYS(dist_variable_assign(strategy, variable, DIST_ASSIGN, value),
       "variable \"w\" is f32[2], but value is f32[3]. Both must have the same dtype and shape.");
  dist_value_release(value);
  SAYS(dist_variable_create(strategy, NULL, NULL, &variable),
       "dist_variable_create(): initial and options->initial_fn are both NULL. Set one of them.");
  dist_checkpoint *file = NULL;
  SAYS(dist_checkpoint_open(strategy, "/nowhere/model.safetensors", &file),
       "\"/nowhere/model.safetensors\": cannot be opened: No such file or directory");
  dist_group *group = NULL;
  const int32_t ids[] = {0, 2};
  SAYS(dist_group_create(strategy, ids, 2, &group),
       "dist_group_create(): replica_ids[1] is 2, but this strategy's replicas are 0 to 1");
  dist_variable_destroy(variable);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collectives_that_do_not_match),
      cmocka_unit_test(calls_in_the_wrong_place),
      cmocka_unit_test(arguments_and_options),
      cmocka_unit_test(variables_and_files),
  };
  strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return dist_strategy_destroy(strategy) == DIST_OK ? failed : 1;
}
