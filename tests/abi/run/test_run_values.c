/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs with arguments, results and a deadline.
 */
#include "tests/abi/clock.h"

static dist_value *number(dist_strategy *strategy, int64_t n) {
  dist_tensor tensor = {&n, DIST_I64, 0, NULL, NULL};
  dist_value *value = NULL;
  assert_ok(dist_value_create_tensor(strategy, &tensor, &value));
  return value;
}

static int64_t number_in(const dist_value *value) {
  dist_tensor tensor;
  if (value == NULL || dist_value_tensor(value, &tensor) != DIST_OK || tensor.dtype != DIST_I64) return -1;
  return *(int64_t *)tensor.data;
}

/* Values are destroyed at the end of the test. A container keeps its own references. */
static dist_value *container(dist_strategy *strategy, int kind, const char *const *keys, dist_value **items,
                             size_t n) {
  dist_value *value = NULL;
  switch (kind) {
    case DIST_VALUE_LIST: assert_ok(dist_value_create_list(strategy, items, n, &value)); break;
    case DIST_VALUE_DICT: assert_ok(dist_value_create_dict(strategy, keys, items, n, &value)); break;
    case DIST_VALUE_MIRRORED: assert_ok(dist_value_create_mirrored(strategy, items, n, &value)); break;
    default: assert_ok(dist_value_create_per_replica(strategy, items, n, &value)); break;
  }
  for (size_t i = 0; i < n; i++) dist_value_release(items[i]);
  return value;
}

enum { R = 3 };

typedef struct seen {
  int64_t plain[R], own[R], mirrored[R], deep[R], named[R];
} seen;

/* args: [7, per-replica, [mirrored, per-replica]]; kwargs: {"x": per-replica} */
static dist_status look_at_arguments(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                     dist_value **out_result, void *user_data) {
  seen *s = user_data;
  const int32_t me = dist_replica_id(replica);
  s->plain[me] = number_in(dist_value_item(args, 0));
  s->own[me] = number_in(dist_value_item(args, 1));
  const dist_value *nested = dist_value_item(args, 2);
  s->mirrored[me] = number_in(dist_value_item(nested, 0));
  s->deep[me] = number_in(dist_value_item(nested, 1));
  s->named[me] = number_in(dist_value_item(kwargs, 0));
  return *out_result == NULL ? DIST_OK : DIST_INTERNAL;
}

static dist_value *per_replica(dist_strategy *strategy, int kind, int64_t first) {
  dist_value *items[R];
  for (int r = 0; r < R; r++) items[r] = number(strategy, first + r);
  return container(strategy, kind, NULL, items, R);
}

static dist_status look_at_the_only_argument(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                             dist_value **out_result, void *user_data) {
  (void)out_result, (void)kwargs;
  seen *s = user_data;
  if (dist_value_kind_of(args) != DIST_VALUE_TUPLE || dist_value_size(args) != 1)
    return dist_fail(DIST_INTERNAL, "not one argument");
  dist_value *only = dist_value_item(args, 0);
  if (dist_value_kind_of(only) == DIST_VALUE_DICT) only = dist_value_get(only, "x");
  s->own[dist_replica_id(replica)] = number_in(only);
  return DIST_OK;
}

static void a_value_that_is_no_list_is_the_only_argument(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  static const char *const keys[] = {"x"};
  dist_value *named[] = {per_replica(strategy, DIST_VALUE_PER_REPLICA, 40)};
  dist_value *const args[] = {number(strategy, 7), per_replica(strategy, DIST_VALUE_PER_REPLICA, 10),
                              per_replica(strategy, DIST_VALUE_MIRRORED, 20),
                              container(strategy, DIST_VALUE_DICT, keys, named, 1)};
  static const int64_t first[] = {7, 10, 20, 40};
  for (int i = 0; i < 4; i++) {
    seen s;
    assert_ok(dist_run_values(strategy, look_at_the_only_argument, &s, args[i], NULL, NULL, NULL));
    for (int r = 0; r < R; r++) assert_int_equal(s.own[r], first[i] + (i == 0 ? 0 : r));
    dist_value_release(args[i]);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static void replicas_find_their_components(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    dist_strategy *strategy = strategy_of(R, threads);
    dist_value *nested[] = {per_replica(strategy, DIST_VALUE_MIRRORED, 100),
                            per_replica(strategy, DIST_VALUE_PER_REPLICA, 200)};
    dist_value *items[] = {number(strategy, 7), per_replica(strategy, DIST_VALUE_PER_REPLICA, 10),
                           container(strategy, DIST_VALUE_LIST, NULL, nested, 2)};
    dist_value *args = container(strategy, DIST_VALUE_LIST, NULL, items, 3);
    static const char *const keys[] = {"x"};
    dist_value *named[] = {per_replica(strategy, DIST_VALUE_PER_REPLICA, 300)};
    dist_value *kwargs = container(strategy, DIST_VALUE_DICT, keys, named, 1);
    seen s;
    dist_value *result = (dist_value *)&s;
    assert_ok(dist_run_values(strategy, look_at_arguments, &s, args, kwargs, NULL, &result));
    assert_null(result);
    for (int r = 0; r < R; r++) {
      assert_int_equal(s.plain[r], 7);
      assert_int_equal(s.own[r], 10 + r);
      assert_int_equal(s.mirrored[r], 100 + r);
      assert_int_equal(s.deep[r], 200 + r);
      assert_int_equal(s.named[r], 300 + r);
    }
    assert_ok(dist_run_values(strategy, look_at_arguments, &s, args, kwargs, NULL, NULL));
    assert_fails(dist_run_values(strategy, look_at_arguments, &s, NULL, args, NULL, NULL),
                 DIST_INVALID_ARGUMENT, "kwargs is");
    assert_fails(dist_run_values(strategy, NULL, &s, args, NULL, NULL, NULL), DIST_INVALID_ARGUMENT,
                 "fn is NULL");
    assert_fails(dist_run_values(NULL, look_at_arguments, &s, args, NULL, NULL, NULL), DIST_INVALID_ARGUMENT,
                 "strategy is NULL");
    dist_value_release(args);
    dist_value_release(kwargs);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

typedef struct wishes {
  dist_strategy *strategy;
  dist_value *shared;
  int odd_one; /* the replica that differs, and how */
  enum { NOTHING, A_LONGER_LIST, ANOTHER_KIND, ANOTHER_KEY } oddity;
} wishes;

static dist_value *make(dist_strategy *strategy, int64_t n) {
  dist_tensor tensor = {&n, DIST_I64, 0, NULL, NULL};
  dist_value *value = NULL;
  return dist_value_create_tensor(strategy, &tensor, &value) == DIST_OK ? value : NULL;
}

/* {"own": [10 + id, shared], "same": shared} */
static dist_status give_results(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs;
  wishes *w = user_data;
  const int32_t me = dist_replica_id(replica);
  const int odd = me == w->odd_one;
  if (odd && w->oddity == NOTHING) return DIST_OK;
  dist_value *numbers[] = {make(w->strategy, 10 + me), dist_value_retain(w->shared),
                           dist_value_retain(w->shared)};
  dist_value *list = NULL;
  dist_status status =
      dist_value_create_list(w->strategy, numbers, odd && w->oddity == A_LONGER_LIST ? 3 : 2, &list);
  if (status == DIST_OK && odd && w->oddity == ANOTHER_KIND) {
    *out_result = dist_value_retain(list);
  } else if (status == DIST_OK) {
    dist_value *items[] = {list, w->shared};
    const char *const keys[] = {"own", odd && w->oddity == ANOTHER_KEY ? "other" : "same"};
    status = dist_value_create_dict(w->strategy, keys, items, 2, out_result);
  }
  for (size_t i = 0; i < COUNT_OF(numbers); i++) dist_value_release(numbers[i]);
  dist_value_release(list);
  return status;
}

static void results_merge_leaf_by_leaf(void **state) {
  (void)state;
  wishes w = {.strategy = strategy_of(R, DIST_THREADS_CALLER), .odd_one = -1};
  w.shared = number(w.strategy, 5);
  dist_value *result = NULL;
  assert_ok(dist_run_values(w.strategy, give_results, &w, NULL, NULL, NULL, &result));
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_DICT);
  const dist_value *own = dist_value_item(result, 0);
  assert_int_equal(dist_value_kind_of(own), DIST_VALUE_LIST);
  const dist_value *leaf = dist_value_item(own, 0);
  assert_int_equal(dist_value_kind_of(leaf), DIST_VALUE_PER_REPLICA);
  for (size_t r = 0; r < R; r++) assert_int_equal(number_in(dist_value_item(leaf, r)), 10 + (int64_t)r);
  assert_ptr_equal(dist_value_item(own, 1), w.shared); /* the same object on all replicas */
  assert_ptr_equal(dist_value_item(result, 1), w.shared);
  dist_value_release(result);

  result = NULL;
  for (int who = 0; who < R; who++) {
    w.odd_one = who;
    w.oddity = NOTHING;
    assert_int_equal(dist_run_values(w.strategy, give_results, &w, NULL, NULL, NULL, &result),
                     DIST_INVALID_ARGUMENT);
    w.oddity = A_LONGER_LIST;
    assert_fails(dist_run_values(w.strategy, give_results, &w, NULL, NULL, NULL, &result),
                 DIST_INVALID_ARGUMENT, "own");
    w.oddity = ANOTHER_KIND;
    assert_fails(dist_run_values(w.strategy, give_results, &w, NULL, NULL, NULL, &result),
                 DIST_INVALID_ARGUMENT, "result");
    w.oddity = ANOTHER_KEY;
    assert_fails(dist_run_values(w.strategy, give_results, &w, NULL, NULL, NULL, &result),
                 DIST_INVALID_ARGUMENT, "same");
    assert_null(result);
  }
  dist_value_release(w.shared);
  assert_ok(dist_strategy_destroy(w.strategy));
}

static dist_status result_and_failure(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                      dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)user_data;
  *out_result = make(dist_replica_strategy(replica), 1);
  return dist_replica_id(replica) == 1 ? dist_fail(DIST_DATA_LOSS, "cut short") : DIST_OK;
}

static void results_of_a_failed_run_are_dropped(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_LIBRARY);
  dist_value *result = NULL;
  assert_fails(dist_run_values(strategy, result_and_failure, NULL, NULL, NULL, NULL, &result), DIST_DATA_LOSS,
               "cut short");
  assert_null(result);
  assert_ok(dist_strategy_destroy(strategy));
}

static void one_replica_keeps_its_result(void **state) {
  (void)state;
  wishes w = {.strategy = strategy_of(1, DIST_THREADS_CALLER), .odd_one = -1};
  w.shared = number(w.strategy, 5);
  dist_value *result = NULL;
  assert_ok(dist_run_values(w.strategy, give_results, &w, NULL, NULL, NULL, &result));
  assert_int_equal(number_in(dist_value_item(dist_value_item(result, 0), 0)), 10);
  dist_value_release(result);
  dist_value_release(w.shared);
  assert_ok(dist_strategy_destroy(w.strategy));
}

/* ---- A run's deadline ---- */

typedef struct late {
  atomic_int let_out;
  atomic_int peer_status;
  dist_status late_status;
} late;

/* Replica 1 stays in its own code, while replica 0 waits for it in a barrier. */
static dist_status one_stays_inside(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                    dist_value **out_result, void *user_data) {
  (void)kwargs;
  late *l = user_data;
  if (dist_replica_id(replica) == 1) {
    while (!atomic_load(&l->let_out)) sched_yield();
    /* The arguments still exist, although the caller that passed them has returned. */
    l->late_status =
        number_in(dist_value_item(args, 0)) == 7 ? dist_barrier(replica, NULL, NULL) : DIST_INTERNAL;
    *out_result = make(dist_replica_strategy(replica), 1);
    return l->late_status;
  }
  const dist_status status = dist_barrier(replica, NULL, NULL);
  atomic_store(&l->peer_status, status);
  return status;
}

static void a_run_past_its_deadline(void **state) {
  (void)state;
  static late l;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  dist_value *items[] = {number(strategy, 7)};
  dist_value *args = container(strategy, DIST_VALUE_LIST, NULL, items, 1);
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 20000000;
  dist_value *result = NULL;
  assert_fails(dist_run_values(strategy, one_stays_inside, &l, args, NULL, &options, &result),
               DIST_DEADLINE_EXCEEDED, "deadline");
  assert_null(result);
  dist_value_release(args);
  assert_fails(dist_run(strategy, healthy, NULL, NULL), DIST_FAILED_PRECONDITION,
               "have not returned from their functions");
  assert_has(dist_last_error(), "1");
  /* Replica 0 may be still on its way out of the barrier. */
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION,
               "dist_strategy_destroy(): a run reached its deadline, but these have not returned from their "
               "functions: replica");
  assert_has(dist_last_error(), "1");
  atomic_store(&l.let_out, 1);
  dist_status status;
  while ((status = dist_run(strategy, healthy, NULL, NULL)) == DIST_FAILED_PRECONDITION) sched_yield();
  assert_int_equal(status, DIST_OK);
  assert_int_equal(l.late_status, DIST_DEADLINE_EXCEEDED);
  assert_int_equal(atomic_load(&l.peer_status), DIST_DEADLINE_EXCEEDED);
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status nothing_at_all(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return DIST_OK;
}

static dist_status meet_for_ever(dist_replica *replica, void *user_data) {
  (void)user_data;
  dist_status status = DIST_OK;
  while (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
  return status;
}

static dist_status poll_for_ever(dist_replica *replica, void *user_data) {
  (void)user_data;
  float number = 1;
  const dist_tensor tensor = {&number, DIST_F32, 0, NULL, NULL};
  dist_status status = DIST_OK;
  while (status == DIST_OK) {
    dist_work *work = NULL;
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    dist_tensor out = tensor;
    status = dist_all_reduce(replica, DIST_REDUCE_MAX, &tensor, &out, 1, &options, &work);
    for (int32_t done = 0; status == DIST_OK && !done;) status = dist_work_test(work, &done);
    dist_work_destroy(work);
  }
  return status;
}

static dist_status run_nothing_for_ever(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                        dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)user_data, (void)kwargs;
  dist_status status = DIST_OK;
  while (status == DIST_OK) status = dist_run(strategy, nothing_at_all, NULL, NULL);
  return status;
}

static dist_status merge_for_ever(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, run_nothing_for_ever, user_data, NULL, NULL, NULL, NULL);
}

/* None of these collectives waits long enough to read the clock for its own deadline. */
static void a_runs_deadline_ends_collectives_in_a_loop(void **state) {
  (void)state;
  for (int32_t replicas = 1; replicas <= 3; replicas++) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    dist_run_options options = DIST_RUN_OPTIONS_INIT;
    options.timeout_ns = 5000000;
    const dist_replica_fn loops[] = {meet_for_ever, poll_for_ever, merge_for_ever};
    for (size_t i = 0; i < COUNT_OF(loops); i++) {
      assert_fails(dist_run(strategy, loops[i], NULL, &options), DIST_DEADLINE_EXCEEDED,
                   "the run's deadline of 5 ms");
      dist_status status; /* on a busy machine, a function may be about to return */
      while ((status = dist_run(strategy, healthy, NULL, NULL)) == DIST_FAILED_PRECONDITION) sched_yield();
      assert_int_equal(status, DIST_OK);
    }
    dist_status status; /* likewise for an inner run */
    while ((status = dist_strategy_destroy(strategy)) == DIST_FAILED_PRECONDITION) sched_yield();
    assert_int_equal(status, DIST_OK);
  }
}

typedef struct inside {
  stepping_clock clock;
  report error; /* of the inner run */
} inside;

static dist_status run_rounds(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  inside *in = user_data;
  atomic_store(&in->clock.step_ns, 1000000);
  const dist_status status = dist_run(strategy, meet_for_ever, NULL, NULL);
  read_report(&in->error);
  return status;
}

static dist_status merge_rounds(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, run_rounds, user_data, NULL, NULL, NULL, NULL);
}

static void a_run_inside_says_how_long_the_outer_one_had(void **state) {
  (void)state;
  static inside in;
  dist_strategy *strategy = strategy_with(by_clock(&in.clock, 1, DIST_THREADS_CALLER));
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 500000000;
  assert_int_equal(dist_run(strategy, merge_rounds, &in, &options), DIST_DEADLINE_EXCEEDED);
  assert_int_equal(in.error.code, DIST_DEADLINE_EXCEEDED);
  assert_has(in.error.message, "the run's deadline of 500 ms");
  assert_ok(dist_strategy_destroy(strategy));
}

/* Deadlines use the host's clock, regardless of the system's time. */
static void a_deadline_by_the_hosts_clock(void **state) {
  (void)state;
  static late l;
  static stepping_clock clock = {.step_ns = INT64_C(300000000000)};
  dist_strategy *strategy = strategy_with(by_clock(&clock, 2, DIST_THREADS_LIBRARY));
  dist_run_options run = DIST_RUN_OPTIONS_INIT;
  run.timeout_ns = INT64_C(3600000000000);
  assert_int_equal(dist_run_values(strategy, one_stays_inside, &l, NULL, NULL, &run, NULL),
                   DIST_DEADLINE_EXCEEDED);
  atomic_store(&l.let_out, 1);
  dist_status status;
  while ((status = dist_strategy_destroy(strategy)) == DIST_FAILED_PRECONDITION) sched_yield();
  assert_int_equal(status, DIST_OK);
}

static dist_status at_once(dist_replica *replica, dist_value *args, dist_value *kwargs,
                           dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result, (void)user_data;
  return dist_barrier(replica, NULL, NULL);
}

static void options_of_a_run(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = INT64_C(3600000000000);
  assert_ok(dist_run_values(strategy, at_once, NULL, NULL, NULL, &options, NULL));
  options.timeout_ns = INT64_MAX;
  assert_ok(dist_run_values(strategy, at_once, NULL, NULL, NULL, &options, NULL));
  options.timeout_ns = INT64_MIN;
  assert_fails(dist_run_values(strategy, at_once, NULL, NULL, NULL, &options, NULL), DIST_INVALID_ARGUMENT,
               "timeout_ns");
  options.timeout_ns = 0;
  options.reserved = 1;
  assert_fails(dist_run_values(strategy, at_once, NULL, NULL, NULL, &options, NULL), DIST_INVALID_ARGUMENT,
               "reserved");
  dist_run_options_init(&options, sizeof options);
  assert_int_equal(options.struct_size, sizeof options);
  assert_ok(dist_run_values(strategy, at_once, NULL, NULL, NULL, &options, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Named arguments of a merge function ---- */

enum { NAMED, NONE_OF_ONE, NO_DICTIONARY };

static dist_status add_named(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)user_data;
  if (dist_value_size(args) != 0 || kwargs == NULL || strcmp(dist_value_key(kwargs, 0), "x") != 0)
    return dist_fail(DIST_INTERNAL, "not the arguments");
  return dist_reduce(strategy, DIST_REDUCE_SUM, dist_value_item(kwargs, 0), NULL, 0, out_result);
}

static dist_status merge_named(dist_replica *replica, void *user_data) {
  const int what = *(const int *)user_data;
  const int wrong = what != NAMED && dist_replica_id(replica) == 1;
  dist_strategy *strategy = dist_replica_strategy(replica);
  int64_t number = 1 + dist_replica_id(replica);
  const dist_tensor tensor = {&number, DIST_I64, 0, NULL, NULL};
  dist_value *x = NULL, *named = NULL, *sum = NULL;
  static const char *const keys[] = {"x"};
  dist_status status = dist_value_create_tensor(strategy, &tensor, &x);
  if (status == DIST_OK) status = dist_value_create_dict(strategy, keys, &x, 1, &named);
  dist_value *kwargs = !wrong ? named : what == NO_DICTIONARY ? x : NULL;
  if (status == DIST_OK) status = dist_merge_call(replica, add_named, NULL, NULL, kwargs, NULL, &sum);
  if (status == DIST_OK && number_in(sum) != 6) status = dist_fail(DIST_INTERNAL, "a wrong sum");
  dist_value_release(sum);
  dist_value_release(named);
  dist_value_release(x);
  return status;
}

static void a_merge_function_with_named_arguments(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  int what = NAMED;
  assert_ok(dist_run(strategy, merge_named, &what, NULL));
  what = NO_DICTIONARY;
  assert_fails(dist_run(strategy, merge_named, &what, NULL), DIST_INVALID_ARGUMENT, "kwargs is a tensor");
  what = NONE_OF_ONE;
  assert_fails(dist_run(strategy, merge_named, &what, NULL), DIST_INVALID_ARGUMENT, "replica 1");
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replicas_find_their_components),
      cmocka_unit_test(a_value_that_is_no_list_is_the_only_argument),
      cmocka_unit_test(results_merge_leaf_by_leaf),
      cmocka_unit_test(results_of_a_failed_run_are_dropped),
      cmocka_unit_test(one_replica_keeps_its_result),
      cmocka_unit_test(a_run_past_its_deadline),
      cmocka_unit_test(a_runs_deadline_ends_collectives_in_a_loop),
      cmocka_unit_test(a_run_inside_says_how_long_the_outer_one_had),
      cmocka_unit_test(a_deadline_by_the_hosts_clock),
      cmocka_unit_test(options_of_a_run),
      cmocka_unit_test(a_merge_function_with_named_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
