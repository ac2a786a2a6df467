/* SPDX-License-Identifier: Apache-2.0
 *
 * Scopes: the current strategy and replica of a thread, and the operations that each context rejects.
 */
#include <dist/tf.h>
#include "tests/abi/common.h"

#include <sys/wait.h>
#include <unistd.h>

enum { R = 3 };

static dist_strategy *strategy_of_kind(int32_t kind) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = kind;
  return strategy_with(options);
}

static void assert_outside(void) {
  assert_int_equal(dist_has_strategy(), 0);
  assert_int_equal(dist_in_cross_replica_context(), 0);
  dist_replica *replica = dist_get_replica();
  assert_non_null(replica);
  assert_int_equal(dist_replica_id(replica), 0);
  assert_int_equal(dist_replica_num_replicas(replica), 1);
  assert_ptr_equal(dist_replica_strategy(replica), dist_get_strategy());
}

static void assert_in_scope_of(dist_strategy *strategy) {
  assert_ptr_equal(dist_get_strategy(), strategy);
  assert_int_equal(dist_has_strategy(), 1);
  assert_int_equal(dist_in_cross_replica_context(), 1);
  assert_null(dist_get_replica());
}

/* ---- Outside ---- */

static dist_status give_one(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                            dist_value **out_result, void *user_data) {
  (void)kwargs;
  int *calls = user_data;
  ++*calls;
  if (dist_in_cross_replica_context() != 1 || dist_get_replica() != NULL || dist_get_strategy() != strategy)
    return dist_fail(DIST_INTERNAL, "not in the cross-replica context");
  *out_result = dist_value_retain(args);
  return dist_run(strategy, healthy, NULL, NULL);
}

static dist_status give_up(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                           dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)user_data, (void)kwargs;
  return dist_fail(DIST_NOT_FOUND, "no such row");
}

static void a_thread_is_a_replica_of_its_own(void **state) {
  (void)state;
  assert_outside();
  dist_strategy *own = dist_get_strategy();
  assert_ptr_equal(dist_get_strategy(), own);
  assert_int_equal(dist_strategy_num_replicas(own), 1);
  assert_fails(dist_strategy_destroy(own), DIST_FAILED_PRECONDITION, "ends with its thread");
  dist_replica *replica = dist_get_replica();
  for (int i = 0; i < 3; i++) {
    assert_ok(healthy(replica, NULL));
    assert_ok(dist_run(own, healthy, NULL, NULL)); /* runs do not change the scope */
  }
  int calls = 0;
  dist_value *result = NULL;
  assert_ok(dist_merge_call(replica, give_one, &calls, NULL, NULL, NULL, &result));
  assert_int_equal(calls, 1);
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_LIST);
  dist_value_release(result);
  /* The failure ends with the call, because there is no run that would start over. */
  assert_fails(dist_merge_call(replica, give_up, NULL, NULL, NULL, NULL, NULL), DIST_NOT_FOUND,
               "no such row");
  assert_fails(dist_all_reduce(replica, DIST_REDUCE_SUM, NULL, NULL, 1, NULL, NULL), DIST_INVALID_ARGUMENT,
               "in is NULL");
  assert_ok(dist_strategy_cancel(own));
  assert_ok(healthy(replica, NULL));
  int64_t length = 2;
  float numbers[] = {1, 2};
  dist_tensor tensor = vector_of(numbers, DIST_F32, &length);
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  assert_ok(dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &work));
  assert_ok(dist_work_wait(work, DIST_NO_TIMEOUT));
  dist_work_destroy(work);
  assert_outside();
}

static void *own_strategy(void *user_data) {
  *(dist_strategy **)user_data = dist_get_strategy();
  return healthy(dist_get_replica(), NULL) == DIST_OK ? user_data : NULL;
}

static void every_thread_has_its_own(void **state) {
  (void)state;
  dist_strategy *mine = dist_get_strategy(), *its = NULL;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  assert_ok(dist_scope_enter(strategy));
  pthread_t thread;
  void *done = NULL;
  assert_int_equal(pthread_create(&thread, NULL, own_strategy, &its), 0);
  assert_int_equal(pthread_join(thread, &done), 0);
  assert_ptr_equal(done, &its);
  assert_non_null(its);
  assert_ptr_not_equal(its, mine);
  assert_ptr_not_equal(its, strategy); /* scopes belong to a thread */
  assert_ok(dist_scope_exit(strategy));
  assert_ok(dist_strategy_destroy(strategy));
}

static int child_of_fork(dist_strategy *before) {
  if (dist_get_strategy() == NULL || dist_has_strategy() != 0) return 1;
  if (dist_run(before, healthy, NULL, NULL) != DIST_FAILED_PRECONDITION) return 2;
  if (dist_scope_enter(before) != DIST_FAILED_PRECONDITION) return 3;
  return healthy(dist_get_replica(), NULL) == DIST_OK ? 0 : 4;
}

static void a_forked_child_has_a_new_one(void **state) {
  (void)state;
  dist_strategy *own = dist_get_strategy();
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(child_of_fork(own));
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- Scopes ---- */

static void scopes_nest_in_themselves(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  dist_strategy *other = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE);
  assert_fails(dist_scope_exit(strategy), DIST_FAILED_PRECONDITION, "innermost scope");
  for (int depth = 0; depth < 3; depth++) {
    assert_ok(dist_scope_enter(strategy));
    assert_in_scope_of(strategy);
  }
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_in_scope_of(strategy);
  assert_fails(dist_scope_enter(other), DIST_FAILED_PRECONDITION, "scope of another strategy");
  assert_fails(dist_scope_exit(other), DIST_FAILED_PRECONDITION, "innermost scope");
  assert_fails(dist_run(other, healthy, NULL, NULL), DIST_FAILED_PRECONDITION, "scope of another strategy");
  assert_fails(dist_set_strategy(strategy), DIST_FAILED_PRECONDITION, "dist_scope_exit() first");
  assert_fails(dist_set_strategy(NULL), DIST_FAILED_PRECONDITION, "dist_scope_exit() first");
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "in the strategy's scope");
  for (int depth = 0; depth < 3; depth++) {
    assert_in_scope_of(strategy);
    assert_ok(dist_scope_exit(strategy));
  }
  assert_outside();
  assert_healthy(DIST_THREADS_CALLER, other);
  assert_ok(dist_strategy_destroy(other));
  assert_ok(dist_strategy_destroy(strategy));
}

static void functions_of_another_strategy(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  dist_strategy *other = strategy_of(R, DIST_THREADS_HOST);
  float one = 1;
  const dist_tensor scalar = {&one, DIST_F32, 0, NULL, NULL};
  dist_value *value = NULL, *result = NULL;
  dist_replica *replica = NULL;
  assert_ok(dist_value_create_tensor(other, &scalar, &value));
  assert_ok(dist_scope_enter(strategy));
  assert_fails(dist_reduce(other, DIST_REDUCE_MEAN, value, NULL, 0, &result), DIST_FAILED_PRECONDITION,
               "scope of another strategy");
  assert_fails(dist_replica_enter(other, 0, &replica), DIST_FAILED_PRECONDITION, "scope of another strategy");
  assert_null(result);
  assert_null(replica);
  assert_ok(dist_scope_exit(strategy));
  assert_ok(dist_reduce(other, DIST_REDUCE_MEAN, value, NULL, 0, &result));
  dist_value_release(result);
  dist_value_release(value);
  assert_ok(dist_strategy_destroy(other));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- In replica and merge functions ---- */

typedef struct inside {
  dist_strategy *strategy, *other;
  int wrong[MOST];
  dist_status scope_of_own[MOST], scope_of_other[MOST], set[MOST];
  report own[MOST], mixed[MOST];
  int wrong_in_merge;
} inside;

static dist_status leaves_its_scope_open(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                         dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  inside *s = user_data;
  s->wrong_in_merge = dist_get_strategy() != strategy || dist_has_strategy() != 1 ||
                      dist_in_cross_replica_context() != 1 || dist_get_replica() != NULL ||
                      dist_scope_enter(s->other) != DIST_FAILED_PRECONDITION ||
                      dist_set_strategy(NULL) != DIST_FAILED_PRECONDITION;
  return dist_scope_enter(strategy);
}

static dist_status look_around(dist_replica *replica, void *user_data) {
  inside *s = user_data;
  const int32_t me = dist_replica_id(replica);
  const dist_status status = dist_merge_call(replica, leaves_its_scope_open, s, NULL, NULL, NULL, NULL);
  s->wrong[me] = dist_get_strategy() != s->strategy || dist_has_strategy() != 1 ||
                 dist_in_cross_replica_context() != 0 || dist_get_replica() != replica;
  s->scope_of_own[me] = dist_scope_enter(s->strategy);
  read_report(&s->own[me]);
  s->scope_of_other[me] = dist_scope_enter(s->other);
  read_report(&s->mixed[me]);
  s->set[me] = dist_set_strategy(s->strategy);
  return status;
}

static void replicas_are_with_their_strategy(void **state) {
  (void)state;
  static inside s;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    s = (inside){.strategy = strategy_of(R, threads), .other = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE)};
    report error;
    assert_int_equal(run_on(threads, s.strategy, look_around, &s, &error), DIST_OK);
    assert_int_equal(s.wrong_in_merge, 0);
    for (int r = 0; r < R; r++) {
      assert_int_equal(s.wrong[r], 0);
      assert_int_equal(s.scope_of_own[r], DIST_FAILED_PRECONDITION);
      assert_has(s.own[r].message, "must be called in the cross-replica context");
      assert_has(s.own[r].message, "dist_merge_call");
      assert_int_equal(s.scope_of_other[r], DIST_FAILED_PRECONDITION);
      assert_has(s.mixed[r].message, "of another strategy");
      assert_int_equal(s.set[r], DIST_FAILED_PRECONDITION);
    }
    assert_outside();
    assert_ok(dist_strategy_destroy(s.other));
    assert_ok(dist_strategy_destroy(s.strategy));
  }
}

static void a_run_in_a_scope_comes_back_to_it(void **state) {
  (void)state;
  static inside s;
  s = (inside){.strategy = strategy_of(R, DIST_THREADS_CALLER), .other = dist_get_strategy()};
  assert_ok(dist_scope_enter(s.strategy));
  assert_ok(dist_run(s.strategy, look_around, &s, NULL));
  for (int r = 0; r < R; r++) assert_int_equal(s.wrong[r], 0);
  assert_in_scope_of(s.strategy);
  assert_ok(dist_scope_exit(s.strategy));
  assert_fails(dist_scope_exit(s.strategy), DIST_FAILED_PRECONDITION, "innermost scope");
  assert_ok(dist_strategy_destroy(s.strategy));
}

/* ---- A strategy that is set ---- */

static void a_strategy_is_set(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  dist_strategy *other = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE);
  assert_ok(dist_set_strategy(strategy));
  assert_in_scope_of(strategy);
  assert_ok(dist_scope_enter(strategy));
  assert_in_scope_of(strategy);
  assert_ok(dist_scope_exit(strategy));
  assert_in_scope_of(strategy); /* it was set and not entered */
  assert_fails(dist_scope_exit(strategy), DIST_FAILED_PRECONDITION, "innermost scope");
  assert_fails(dist_scope_enter(other), DIST_FAILED_PRECONDITION, "dist_set_strategy(NULL)");
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "dist_set_strategy(NULL)");
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_in_scope_of(strategy);
  assert_ok(dist_set_strategy(other));
  assert_in_scope_of(other);
  assert_ok(dist_set_strategy(NULL));
  assert_outside();
  assert_ok(dist_set_strategy(other));
  assert_ok(dist_set_strategy(dist_get_strategy()));
  dist_strategy *plain = strategy_of_kind(DIST_STRATEGY_DEFAULT);
  assert_ok(dist_set_strategy(plain)); /* setting a default strategy has no effect */
  assert_outside();
  assert_ok(dist_strategy_destroy(plain));
  assert_ok(dist_strategy_destroy(other));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Default strategies behave like no strategy ---- */

static dist_status as_if_outside(dist_replica *replica, void *user_data) {
  inside *s = user_data;
  s->wrong[0] =
      dist_get_replica() != replica || dist_has_strategy() != 0 || dist_in_cross_replica_context() != 0;
  s->scope_of_own[0] = dist_scope_enter(s->strategy);
  s->wrong[1] = dist_get_replica() != replica;
  s->scope_of_other[0] = dist_scope_enter(s->other);
  s->wrong[2] = dist_get_strategy() != s->other || dist_get_replica() != NULL;
  s->set[0] = dist_run(s->strategy, healthy, NULL, NULL);
  if (dist_run(s->other, healthy, NULL, NULL) != DIST_OK)
    return dist_fail(DIST_INTERNAL, "no run in the scope");
  s->wrong[3] = dist_scope_exit(s->other) != DIST_OK || dist_get_replica() != replica;
  if (dist_run(s->other, healthy, NULL, NULL) != DIST_OK)
    return dist_fail(DIST_INTERNAL, "no run in the run");
  return dist_run(s->strategy, healthy, NULL, NULL);
}

static void default_strategies_change_nothing(void **state) {
  (void)state;
  static inside s;
  s = (inside){.strategy = strategy_of_kind(DIST_STRATEGY_DEFAULT),
               .other = strategy_of(R, DIST_THREADS_CALLER)};
  assert_ok(dist_scope_enter(s.strategy));
  assert_ok(dist_scope_enter(dist_get_strategy()));
  assert_outside();
  assert_fails(dist_set_strategy(NULL), DIST_FAILED_PRECONDITION, "a scope");
  assert_ok(dist_scope_enter(s.other));
  assert_in_scope_of(s.other);
  assert_fails(dist_scope_enter(s.strategy), DIST_FAILED_PRECONDITION, "scope of another strategy");
  assert_fails(dist_scope_exit(s.strategy), DIST_FAILED_PRECONDITION, "innermost scope");
  assert_ok(dist_scope_exit(s.other));
  assert_ok(dist_scope_exit(s.strategy));
  assert_ok(dist_scope_exit(s.strategy));
  assert_fails(dist_scope_exit(s.strategy), DIST_FAILED_PRECONDITION, "innermost scope");
  /* Its own runs still cannot be nested. */
  assert_fails(dist_run(s.strategy, as_if_outside, &s, NULL), DIST_FAILED_PRECONDITION, "do not nest");
  for (int i = 0; i < 4; i++) assert_int_equal(s.wrong[i], 0);
  assert_int_equal(s.scope_of_own[0], DIST_OK);
  assert_int_equal(s.scope_of_other[0], DIST_OK);
  assert_int_equal(s.set[0], DIST_FAILED_PRECONDITION);
  assert_outside();
  assert_ok(dist_strategy_destroy(s.other));
  assert_ok(dist_strategy_destroy(s.strategy));
}

static void null_arguments(void **state) {
  (void)state;
  assert_fails(dist_scope_enter(NULL), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_fails(dist_scope_exit(NULL), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_ok(dist_set_strategy(NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_is_a_replica_of_its_own),  cmocka_unit_test(every_thread_has_its_own),
      cmocka_unit_test(a_forked_child_has_a_new_one),      cmocka_unit_test(scopes_nest_in_themselves),
      cmocka_unit_test(functions_of_another_strategy),     cmocka_unit_test(replicas_are_with_their_strategy),
      cmocka_unit_test(a_run_in_a_scope_comes_back_to_it), cmocka_unit_test(a_strategy_is_set),
      cmocka_unit_test(default_strategies_change_nothing), cmocka_unit_test(null_arguments),
  };
  return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
