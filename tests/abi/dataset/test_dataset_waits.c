/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs that wait for a source's next element (dataset.h): a source must not wait for a run itself, and a run
 * that waits for a source can still be ended.
 */
#include "tests/abi/clock.h"
#include "tests/abi/gate.h"
#include "tests/abi/mesh_support.h"

enum { REPLICAS = 2 };

typedef struct scene {
  dist_strategy *strategy;
  dist_variable *variable;
  dist_value *element;
  dist_iterator *iterator, *other;
  gate begun, let_out;
  int lets_out;      /* the merge function opens let_out */
  int64_t step_ns;   /* step of the clock, from the merge function on */
  dist_status first; /* result of the merge function's dist_iterator_next() */
  dist_status run;
  stepping_clock clock;
} scene;

static dist_status one(const scene *s, dist_value **out_element) {
  const int64_t number = 1;
  const dist_tensor tensor = {(void *)&number, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor(s->strategy, &tensor, out_element);
}

static dist_iterator *iterator_of(scene *s, dist_source_fn fn, int32_t prefetch) {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = REPLICAS;
  options.prefetch = prefetch;
  dist_dataset *dataset = NULL;
  assert_ok(dist_dataset_create_from_callback(s->strategy, fn, s, NULL, &options, &dataset));
  dist_iterator *iterator = NULL;
  assert_ok(dist_iterator_create(dataset, &iterator));
  dist_dataset_destroy(dataset);
  return iterator;
}

/* ---- Waits that a source must not make ---- */

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return DIST_OK;
}

static dist_status no_values(dist_replica *replica, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)replica, (void)args, (void)kwargs, (void)out_result, (void)user_data;
  return DIST_OK;
}

static dist_status easy(dist_strategy *strategy, int64_t index, dist_value **out_element, void *user_data) {
  (void)strategy;
  (void)index;
  return one(user_data, out_element);
}

static dist_status impatient(dist_strategy *strategy, int64_t index, dist_value **out_element,
                             void *user_data) {
  (void)strategy;
  (void)index;
  scene *s = user_data;
  gate_add(&s->begun);
  gate_await(&s->let_out, 1);
  dist_value *value = NULL;
  EXPECT_FAILS(dist_run(s->strategy, nothing, NULL, NULL), DIST_FAILED_PRECONDITION,
               "dist_run(): this thread is in a dataset's source, which");
  EXPECT_FAILS(dist_run_values(s->strategy, no_values, NULL, NULL, NULL, NULL, &value),
               DIST_FAILED_PRECONDITION, "dist_run_values(): this thread is in a dataset's source, which");
  EXPECT_FAILS(dist_variable_assign(s->strategy, s->variable, DIST_ASSIGN, s->element),
               DIST_FAILED_PRECONDITION, "dist_variable_assign(): this thread is in");
  EXPECT_FAILS(dist_variable_read(s->strategy, s->variable, &value), DIST_FAILED_PRECONDITION,
               "dist_variable_read(): this thread is in");
  EXPECT_FAILS(dist_iterator_next(s->other, &value), DIST_FAILED_PRECONDITION,
               "dist_iterator_next(): this thread is in");
  EXPECT_FAILS(dist_iterator_next(s->iterator, &value), DIST_FAILED_PRECONDITION,
               "dist_iterator_next(): this thread is in");
  /* Inside a replica function, if the source is called on that thread. */
  EXPECT_FAILS(dist_strategy_shutdown(s->strategy, -1), DIST_FAILED_PRECONDITION, "this thread is in");
  return one(s, out_element);
}

/* A merge function that takes the batch. */
static dist_status take_a_batch(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)kwargs;
  scene *s = user_data;
  if (s->lets_out) gate_add(&s->let_out);
  atomic_store(&s->clock.step_ns, s->step_ns);
  dist_value *batch = NULL;
  s->first = dist_iterator_next(s->iterator, &batch);
  dist_value_release(batch);
  return s->first;
}

static dist_status merge(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, take_a_batch, user_data, NULL, NULL, NULL, NULL);
}

static void set(scene *s, int lets_out) {
  *s = (scene){.lets_out = lets_out, .begun = GATE_INIT, .let_out = GATE_INIT};
  s->strategy = strategy_with(by_clock(&s->clock, REPLICAS, DIST_THREADS_CALLER));
}

static void a_source_waits_for_nobody(void **state) {
  (void)state;
  for (int32_t prefetch = -1; prefetch <= 1; prefetch += 2) {
    static scene s;
    set(&s, 1);
    const int64_t zero = 0;
    const dist_tensor initial = {(void *)&zero, DIST_I64, 0, NULL, NULL};
    assert_ok(dist_variable_create(s.strategy, &initial, NULL, &s.variable));
    assert_ok(one(&s, &s.element));
    s.other = iterator_of(&s, easy, -1);
    s.iterator = iterator_of(&s, impatient, prefetch);
    if (prefetch > 0) gate_await(&s.begun, 1); /* on an oneTBB thread */
    assert_ok(dist_run(s.strategy, merge, &s, NULL));
    dist_iterator_destroy(s.iterator);
    /* The thread's state is restored. */
    assert_ok(dist_variable_assign(s.strategy, s.variable, DIST_ASSIGN, s.element));
    dist_value_release(s.element);
    dist_iterator_destroy(s.other);
    dist_variable_destroy(s.variable);
    assert_ok(dist_strategy_destroy(s.strategy));
  }
}

/* ---- How a wait for a source ends ---- */

static dist_status stuck(dist_strategy *strategy, int64_t index, dist_value **out_element, void *user_data) {
  (void)strategy;
  (void)index;
  scene *s = user_data;
  gate_add(&s->begun);
  gate_await(&s->let_out, 1);
  return one(s, out_element);
}

static void *run_until_cancelled(void *argument) {
  scene *s = argument;
  s->run = dist_run(s->strategy, merge, s, NULL);
  return NULL;
}

static void a_run_ends_whose_source_is_stuck(void **state) {
  (void)state;
  static scene s;
  set(&s, 0);
  s.iterator = iterator_of(&s, stuck, 1);
  gate_await(&s.begun, 1);
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 20000000;
  s.step_ns = 1000000;
  assert_int_equal(dist_run(s.strategy, merge, &s, &options), DIST_DEADLINE_EXCEEDED);
  assert_true(s.first == DIST_DEADLINE_EXCEEDED || s.first == DIST_ABORTED);

  pthread_t host;
  s.step_ns = 0;
  atomic_store(&s.clock.step_ns, 0);
  assert_int_equal(pthread_create(&host, NULL, run_until_cancelled, &s), 0);
  do { /* cancels that come before the run have no effect */
    assert_ok(dist_strategy_cancel(s.strategy));
    sched_yield();
  } while (pthread_tryjoin_np(host, NULL) != 0);
  assert_int_equal(s.run, DIST_CANCELLED);
  /* When the source returns, its element is not lost. */
  gate_add(&s.let_out);
  dist_value *batch = NULL;
  assert_ok(dist_iterator_next(s.iterator, &batch));
  dist_value_release(batch);
  dist_iterator_destroy(s.iterator);
  assert_ok(dist_strategy_destroy(s.strategy));
}

/* ---- Queries that a source may make ---- */

static dist_status asks_who_has_it(dist_strategy *strategy, int64_t index, dist_value **out_element,
                                   void *user_data) {
  (void)strategy;
  (void)index;
  scene *s = user_data;
  s->first = dist_get_strategy() != NULL && !dist_has_strategy() ? DIST_OK : DIST_NOT_FOUND;
  return one(s, out_element);
}

static void *take_one(void *user_data) {
  scene *s = user_data;
  dist_value *batch = NULL;
  s->run = dist_iterator_next(s->iterator, &batch);
  dist_value_release(batch);
  return NULL;
}

/* On a thread that has no default strategy yet, the source's call creates one. */
static void a_source_has_a_default_strategy(void **state) {
  (void)state;
  static scene s;
  s = (scene){.strategy = strategy_of(REPLICAS, DIST_THREADS_CALLER), .first = DIST_UNKNOWN};
  s.iterator = iterator_of(&s, asks_who_has_it, -1);
  pthread_t host;
  assert_int_equal(pthread_create(&host, NULL, take_one, &s), 0);
  assert_int_equal(pthread_join(host, NULL), 0);
  assert_int_equal(s.run, DIST_OK);
  assert_int_equal(s.first, DIST_OK);
  dist_iterator_destroy(s.iterator);
  assert_ok(dist_strategy_destroy(s.strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_source_waits_for_nobody),
      cmocka_unit_test(a_run_ends_whose_source_is_stuck),
      cmocka_unit_test(a_source_has_a_default_strategy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
