/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs inside merge functions. Their replicas are different from the ones that wait.
 */
#include "tests/abi/clock.h"

typedef struct inner {
  int depth; /* number of nested runs that are still to start */
  int32_t threads;
  atomic_int runs, replicas, merges;
  int32_t fail_at; /* the replica of the innermost run that fails; -1 = none */
  dist_status inner_status;
  report inner_error;
  int has_outer_deadline; /* the outer run has the deadline, instead of the inner one */
  stepping_clock clock;
  atomic_int let_out, outside_of;
} inner;

static dist_status level(dist_replica *replica, void *user_data);

static dist_status run_again(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)kwargs;
  inner *in = user_data;
  (void)args, (void)out_result;
  atomic_fetch_add(&in->merges, 1);
  in->depth--;
  const dist_status status = dist_run(strategy, level, in, NULL);
  if (status == DIST_OK && dist_run(strategy, healthy, NULL, NULL) != DIST_OK)
    return dist_fail(DIST_INTERNAL, "the second run fails");
  in->depth++;
  return status;
}

static dist_status level(dist_replica *replica, void *user_data) {
  inner *in = user_data;
  atomic_fetch_add(&in->replicas, 1);
  if (dist_replica_id(replica) == 0) atomic_fetch_add(&in->runs, 1);
  const int innermost = in->depth == 0;
  dist_status status = healthy(replica, NULL);
  if (status == DIST_OK && innermost && in->fail_at == dist_replica_id(replica))
    return dist_fail(DIST_NOT_FOUND, "no such row");
  if (status == DIST_OK && !innermost)
    status = dist_merge_call(replica, run_again, in, NULL, NULL, NULL, NULL);
  return status != DIST_OK ? status : healthy(replica, NULL);
}

static void runs_in_merge_functions_nest(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    for (int32_t n = 1; n <= 3; n++) {
      dist_strategy *strategy = strategy_of(n, threads);
      for (int round = 0; round < 3; round++) {
        inner in = {.depth = 2, .fail_at = -1};
        assert_ok(dist_run(strategy, level, &in, NULL));
        assert_int_equal(atomic_load(&in.runs), 3);
        assert_int_equal(atomic_load(&in.merges), 2);
        assert_int_equal(atomic_load(&in.replicas), 3 * n);
        assert_int_equal(in.depth, 2);
      }
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}

static void its_failure_is_the_merge_functions(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  for (int32_t who = 0; who < 3; who++) {
    inner in = {.depth = 1, .fail_at = who};
    assert_fails(dist_run(strategy, level, &in, NULL), DIST_NOT_FOUND, "no such row");
    in = (inner){.depth = 1, .fail_at = -1};
    assert_ok(dist_run(strategy, level, &in, NULL));
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static void the_hosts_threads_are_all_taken(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_HOST);
  inner in = {.depth = 1, .fail_at = -1};
  report error;
  assert_int_equal(run_on(DIST_THREADS_HOST, strategy, level, &in, &error), DIST_FAILED_PRECONDITION);
  assert_has(error.message, "DIST_THREADS_HOST");
  assert_healthy(DIST_THREADS_HOST, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Values, and the replicas they belong to ---- */

static dist_status twice_the_id(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)kwargs, (void)user_data;
  dist_tensor own;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &own);
  if (status != DIST_OK) return status;
  if (*(int32_t *)own.data != dist_replica_id(replica))
    return dist_fail(DIST_INTERNAL, "another's component");
  int32_t number = 2 * dist_replica_id(replica);
  const dist_tensor tensor = {&number, DIST_I32, 0, NULL, NULL};
  return dist_value_create_tensor(dist_replica_strategy(replica), &tensor, out_result);
}

static dist_status run_on_arguments(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                    dist_value **out_result, void *user_data) {
  (void)user_data, (void)kwargs;
  return dist_run_values(strategy, twice_the_id, NULL, args, NULL, NULL, out_result);
}

static dist_status merge_ids(dist_replica *replica, void *user_data) {
  int32_t *numbers = user_data;
  const int32_t me = dist_replica_id(replica);
  const dist_tensor tensor = {(void *)(uintptr_t)&me, DIST_I32, 0, NULL, NULL};
  dist_value *id = NULL, *args = NULL, *result = NULL;
  dist_strategy *strategy = dist_replica_strategy(replica);
  dist_status status = dist_value_create_tensor(strategy, &tensor, &id);
  if (status == DIST_OK) status = dist_value_create_tuple(strategy, &id, 1, &args);
  if (status == DIST_OK) status = dist_merge_call(replica, run_on_arguments, NULL, args, NULL, NULL, &result);
  dist_tensor mine;
  if (status == DIST_OK) status = dist_value_tensor(result, &mine);
  if (status == DIST_OK) numbers[me] = *(int32_t *)mine.data;
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(id);
  return status;
}

static void values_go_in_and_come_out(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_LIBRARY);
  int32_t numbers[3] = {-1, -1, -1};
  assert_ok(dist_run(strategy, merge_ids, numbers, NULL));
  for (int r = 0; r < 3; r++) assert_int_equal(numbers[r], 2 * r);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Groups, deadlines, cancelling ---- */

static dist_status barrier_of_group(dist_replica *replica, void *user_data) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = user_data;
  return dist_barrier(replica, &options, NULL);
}

static dist_status run_with_group(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                  dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  return dist_run(strategy, barrier_of_group, user_data, NULL);
}

static dist_status merge_with_group(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, run_with_group, user_data, NULL, NULL, NULL, NULL);
}

static void groups_are_those_of_the_outer_replicas(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  const int32_t ids[] = {0, 1};
  dist_group *group = NULL;
  assert_ok(dist_group_create(strategy, ids, 2, &group));
  assert_ok(dist_run(strategy, barrier_of_group, group, NULL));
  assert_fails(dist_run(strategy, merge_with_group, group, NULL), DIST_INVALID_ARGUMENT, "options->group");
  assert_ok(dist_run(strategy, barrier_of_group, group, NULL));
  assert_ok(dist_group_destroy(group));
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status last_stays(dist_replica *replica, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  inner *in = user_data;
  if (dist_replica_id(replica) == 0) return DIST_OK;
  atomic_store(&in->clock.step_ns, 2000000);
  while (!atomic_load(&in->let_out)) sched_yield();
  atomic_fetch_add(&in->outside_of, 1);
  return DIST_OK;
}

static dist_status run_past_its_deadline(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                         dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  inner *in = user_data;
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = in->has_outer_deadline ? 0 : 1000000;
  in->inner_status = dist_run_values(strategy, last_stays, in, NULL, NULL, &options, NULL);
  read_report(&in->inner_error);
  return DIST_OK;
}

static dist_status merge_late(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, run_past_its_deadline, user_data, NULL, NULL, NULL, NULL);
}

static void a_deadline_leaves_the_strategy_busy(void **state) {
  (void)state;
  /* The deadline of the inner run, or that of the run around it. */
  for (int outer = 0; outer < 2; outer++) {
    static inner in;
    in = (inner){.fail_at = -1, .has_outer_deadline = outer};
    dist_strategy *strategy = strategy_with(by_clock(&in.clock, 2, DIST_THREADS_CALLER));
    dist_run_options options = DIST_RUN_OPTIONS_INIT;
    options.timeout_ns = outer ? 1000000 : 0;
    const dist_status status = dist_run(strategy, merge_late, &in, &options);
    if (!outer || status != DIST_DEADLINE_EXCEEDED) assert_int_equal(status, DIST_OK);
    assert_int_equal(in.inner_status, DIST_DEADLINE_EXCEEDED);
    assert_has(in.inner_error.message, "the run's deadline of 1 ms");
    assert_has(in.inner_error.message, "These have not returned from their functions: replica 1");
    assert_fails(
        dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION,
        "dist_strategy_destroy(): a run reached its deadline, but these have not returned from their "
        "functions: replica 1");
    atomic_store(&in.let_out, 1);
    while (dist_strategy_destroy(strategy) == DIST_FAILED_PRECONDITION) sched_yield();
    assert_int_equal(atomic_load(&in.outside_of), 1);
  }
}

static dist_status cancel_and_wait(dist_replica *replica, void *user_data) {
  (void)user_data;
  if (dist_replica_id(replica) == 1) {
    const dist_status status = dist_strategy_cancel(dist_replica_strategy(replica));
    if (status != DIST_OK) return status;
  }
  return dist_barrier(replica, NULL, NULL);
}

static dist_status run_and_cancel(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                  dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  inner *in = user_data;
  in->inner_status = dist_run(strategy, cancel_and_wait, NULL, NULL);
  return DIST_OK;
}

static dist_status merge_cancelled(dist_replica *replica, void *user_data) {
  const dist_status status = dist_merge_call(replica, run_and_cancel, user_data, NULL, NULL, NULL, NULL);
  return status != DIST_OK ? status : dist_barrier(replica, NULL, NULL);
}

static void cancelling_ends_all_of_it(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  inner in = {.fail_at = -1};
  assert_int_equal(dist_run(strategy, merge_cancelled, &in, NULL), DIST_CANCELLED);
  assert_int_equal(in.inner_status, DIST_CANCELLED);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  in = (inner){.depth = 1, .fail_at = -1};
  assert_ok(dist_run(strategy, level, &in, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_in_merge_functions_nest),
      cmocka_unit_test(its_failure_is_the_merge_functions),
      cmocka_unit_test(the_hosts_threads_are_all_taken),
      cmocka_unit_test(values_go_in_and_come_out),
      cmocka_unit_test(groups_are_those_of_the_outer_replicas),
      cmocka_unit_test(a_deadline_leaves_the_strategy_busy),
      cmocka_unit_test(cancelling_ends_all_of_it),
  };
  return cmocka_run_group_tests_name("inner_run", tests, NULL, NULL);
}
