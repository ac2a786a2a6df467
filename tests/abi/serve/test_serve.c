/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: the replica that runs them, their order, what runs at the same time, and how they end.
 */
#include "tests/abi/clock.h"
#include "tests/abi/serve/serve_support.h"

enum { MANY = 20 };

/* ---- Where a request runs ---- */

typedef struct seen {
  int32_t id, num_replicas;
  pthread_t thread;
  int64_t sum;
  dist_status reduce, barrier, group, merge, check;
  report reduce_error;
  float variable[3];
} seen;

static void add_up(int64_t begin, int64_t end, void *user_data) {
  for (int64_t i = begin; i < end; i++) atomic_fetch_add((atomic_llong *)user_data, i);
}

static dist_status merge_nothing(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                 dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)user_data, (void)kwargs;
  return DIST_OK;
}

static dist_status look_round(dist_replica *replica, void *user_data) {
  seen *self = user_data;
  self->id = dist_replica_id(replica);
  self->num_replicas = dist_replica_num_replicas(replica);
  self->thread = pthread_self();
  int64_t length = 1;
  float number = 1;
  dist_tensor tensor = vector_of(&number, DIST_F32, &length);
  self->reduce = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
  read_report(&self->reduce_error);
  self->barrier = dist_barrier(replica, NULL, NULL);
  self->merge = dist_merge_call(replica, merge_nothing, NULL, NULL, NULL, NULL, NULL);
  self->check = dist_replica_check(replica);
  atomic_llong sum = 0;
  const dist_status looped = dist_replica_parallel_for(replica, 0, 1000, 10, add_up, &sum);
  self->sum = atomic_load(&sum);
  return looped;
}

static void on_one_replica_alone(void **state) {
  (void)state;
  for (int32_t n = 1; n <= 4; n += 3) {
    dist_strategy *strategy = strategy_of(n, DIST_THREADS_LIBRARY);
    seen s = {0};
    assert_int_equal(end_of(submit(strategy, look_round, &s, NULL)), DIST_OK);
    assert_in_range(s.id, 0, n - 1);
    assert_int_equal(s.num_replicas, n);
    assert_false(pthread_equal(s.thread, pthread_self()));
    assert_int_equal(s.sum, 999 * 1000 / 2);
    assert_int_equal(s.check, DIST_OK);
    assert_int_equal(s.reduce, DIST_FAILED_PRECONDITION);
    assert_has(s.reduce_error.message, "dist_all_reduce");
    assert_has(s.reduce_error.message, "submitted to replica");
    assert_int_equal(s.barrier, DIST_FAILED_PRECONDITION);
    assert_int_equal(s.merge, DIST_FAILED_PRECONDITION);
    /* The next run has collectives again. */
    assert_healthy(DIST_THREADS_LIBRARY, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void side_by_side(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  for (int round = 0; round < MANY; round++) {
    pair p = {GATE_INIT};
    dist_request *first = submit(strategy, meet, &p, NULL);
    dist_request *second = submit(strategy, meet, &p, NULL);
    assert_int_equal(end_of(first), DIST_OK);
    assert_int_equal(end_of(second), DIST_OK);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- The order ---- */

typedef struct order {
  atomic_int next;
  int places[MANY];
} order;

typedef struct placed {
  order *all;
  int index;
} placed;

static dist_status take_place(dist_replica *replica, void *user_data) {
  (void)replica;
  placed *self = user_data;
  self->all->places[self->index] = atomic_fetch_add(&self->all->next, 1);
  return DIST_OK;
}

static void by_priority_then_by_arrival(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  held h = HELD_INIT;
  dist_request *holder = hold_only(strategy, &h);
  static const int32_t priorities[] = {0, 3, DIST_PRIORITY_MIN, 3, DIST_PRIORITY_MAX, 0};
  static const int expected[] = {3, 1, 5, 2, 0, 4};
  order all = {0};
  placed each[COUNT_OF(priorities)];
  dist_request *works[COUNT_OF(priorities)];
  for (size_t i = 0; i < COUNT_OF(priorities); i++) {
    dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
    options.priority = priorities[i];
    each[i] = (placed){&all, (int)i};
    works[i] = submit(strategy, take_place, &each[i], &options);
  }
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  for (size_t i = 0; i < COUNT_OF(priorities); i++) {
    assert_int_equal(end_of(works[i]), DIST_OK);
    assert_int_equal(all.places[i], expected[i]);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* A run waits for earlier requests, and later requests wait for the run. */
typedef struct gang {
  dist_strategy *strategy;
  atomic_int thread;
  atomic_int ran, ran_when_late_began;
  dist_status status;
} gang;

static dist_status count_gang(dist_replica *replica, void *user_data) {
  (void)replica;
  atomic_fetch_add(&((gang *)user_data)->ran, 1);
  return DIST_OK;
}

static void *gang_main(void *argument) {
  gang *self = argument;
  atomic_store(&self->thread, this_thread());
  self->status = dist_run(self->strategy, count_gang, self, NULL);
  return NULL;
}

static dist_status late_one(dist_replica *replica, void *user_data) {
  (void)replica;
  gang *self = user_data;
  atomic_store(&self->ran_when_late_began, atomic_load(&self->ran));
  return DIST_OK;
}

static void a_run_is_passed_by_nobody(void **state) {
  (void)state;
  for (int round = 0; round < MANY; round++) {
    dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
    held h = HELD_INIT;
    dist_request *holder = hold_only(strategy, &h);
    gang g = {.strategy = strategy, .ran_when_late_began = -1};
    pthread_t caller;
    assert_int_equal(pthread_create(&caller, NULL, gang_main, &g), 0);
    /* It sleeps only because it waits for the replicas. */
    while (!sleeps(atomic_load(&g.thread))) sched_yield();
    dist_request *late = submit(strategy, late_one, &g, NULL);
    int32_t done = 1;
    assert_ok(dist_request_test(late, &done));
    assert_false(done);
    assert_int_equal(atomic_load(&g.ran), 0);
    gate_add(&h.released);
    assert_int_equal(end_of(holder), DIST_OK);
    pthread_join(caller, NULL);
    assert_int_equal(g.status, DIST_OK);
    assert_int_equal(end_of(late), DIST_OK);
    assert_int_equal(atomic_load(&g.ran_when_late_began), 2);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void a_full_queue_refuses_at_once(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_instances_options instances = DIST_INSTANCES_OPTIONS_INIT;
  instances.max_queued = 3;
  assert_ok(dist_instances_open(strategy, &instances));
  held h = HELD_INIT;
  dist_request *holder = hold_only(strategy, &h);
  atomic_int count = 0;
  dist_request *works[3];
  for (int i = 0; i < 3; i++) works[i] = submit(strategy, count_here, &count, NULL);
  dist_request *none = NULL;
  assert_fails(dist_submit(strategy, count_here, &count, NULL, &none), DIST_RESOURCE_EXHAUSTED,
               "3 requests are queued, which is the limit");
  assert_null(none);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  for (int i = 0; i < 3; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  assert_int_equal(atomic_load(&count), 3);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- How requests end ---- */

static dist_status fail_here(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return dist_fail(DIST_NOT_FOUND, "no such sentence");
}

static void a_failure_is_of_one_alone(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  held h = HELD_INIT;
  dist_request *other = hold_only(strategy, &h);
  dist_request *bad = submit(strategy, fail_here, NULL, NULL);
  assert_fails(dist_request_wait(bad, -1), DIST_NOT_FOUND, "no such sentence");
  assert_fails(dist_request_wait(bad, -1), DIST_NOT_FOUND, "no such sentence");
  dist_request_destroy(bad);
  gate_add(&h.released);
  assert_int_equal(end_of(other), DIST_OK);
  atomic_int count = 0;
  for (int i = 0; i < MANY; i++)
    assert_int_equal(end_of(submit(strategy, count_here, &count, NULL)), DIST_OK);
  assert_int_equal(atomic_load(&count), MANY);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

static void deadlines(void **state) {
  (void)state;
  stepping_clock clock = {1000, 0};
  dist_strategy *strategy = strategy_with(by_clock(&clock, 1, DIST_THREADS_LIBRARY));
  held h = HELD_INIT;
  dist_request *holder = hold_only(strategy, &h);
  atomic_int count = 0;
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.timeout_ns = 5000;
  dist_request *queued = submit(strategy, count_here, &count, &options);
  int32_t done = 1;
  assert_ok(dist_request_test(queued, &done));
  assert_false(done);
  atomic_store(&clock.now_ns, 6001);
  assert_fails(dist_request_wait(queued, -1), DIST_DEADLINE_EXCEEDED, "before an instance was free");
  dist_request_destroy(queued);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  assert_int_equal(atomic_load(&count), 0);
  /* Cancelled while its function is running. */
  held running = HELD_INIT;
  dist_request *work = submit(strategy, until_told, &running, &options);
  gate_await(&running.inside, 1);
  atomic_store(&clock.now_ns, 20000);
  assert_fails(dist_request_wait(work, -1), DIST_DEADLINE_EXCEEDED, "the request's deadline of 5 us expired");
  dist_request_destroy(work);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

static void cancels(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_cancel *cancel = NULL;
  assert_ok(dist_cancel_create(NULL, &cancel));
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.cancel = cancel;
  held running = HELD_INIT;
  dist_request *works[3];
  works[0] = submit(strategy, until_told, &running, &options);
  gate_await(&running.inside, 1);
  atomic_int count = 0;
  works[1] = submit(strategy, count_here, &count, &options);
  works[2] = submit(strategy, count_here, &count, NULL);
  assert_ok(dist_cancel_signal(cancel, "the client hung up"));
  for (int i = 0; i < 2; i++) {
    assert_fails(dist_request_wait(works[i], -1), DIST_CANCELLED, "the client hung up");
    dist_request_destroy(works[i]);
  }
  assert_int_equal(end_of(works[2]), DIST_OK);
  assert_int_equal(atomic_load(&count), 1);
  /* Cancelled before it was submitted. */
  dist_request *none = NULL;
  assert_fails(dist_submit(strategy, count_here, &count, &options, &none), DIST_CANCELLED,
               "the client hung up");
  assert_null(none);
  dist_cancel_destroy(cancel);
  /* Cancelled by its handle, when queued and when running. */
  held again = HELD_INIT;
  works[0] = submit(strategy, until_told, &again, NULL);
  gate_await(&again.inside, 1);
  works[1] = submit(strategy, count_here, &count, NULL);
  assert_ok(dist_request_cancel(works[1]));
  assert_fails(dist_request_wait(works[1], -1), DIST_CANCELLED, "before it started");
  assert_ok(dist_request_cancel(works[0]));
  assert_fails(dist_request_wait(works[0], -1), DIST_CANCELLED, "dist_request_cancel()");
  dist_request_destroy(works[0]);
  dist_request_destroy(works[1]);
  assert_int_equal(atomic_load(&count), 1);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Rejected calls ---- */

typedef struct inside_calls {
  dist_strategy *strategy;
  dist_request *other;
  dist_status wait, run, close;
  report wait_error;
} inside_calls;

static dist_status call_inside(dist_replica *replica, void *user_data) {
  (void)replica;
  inside_calls *self = user_data;
  atomic_int count = 0;
  dist_request *work = NULL;
  const dist_status submitted = dist_submit(self->strategy, count_here, &count, NULL, &work);
  if (submitted != DIST_OK) return submitted;
  self->wait = dist_request_wait(work, -1);
  read_report(&self->wait_error);
  self->other = work;
  self->run = dist_run(self->strategy, healthy, NULL, NULL);
  self->close = dist_instances_close(self->strategy, -1);
  /* `count` must live until the request has used it. This is the only instance, so it cannot have started. */
  return dist_request_cancel(work);
}

static void what_an_instance_may_not_do(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  inside_calls calls = {.strategy = strategy};
  assert_int_equal(end_of(submit(strategy, call_inside, &calls, NULL)), DIST_OK);
  assert_int_equal(calls.wait, DIST_FAILED_PRECONDITION);
  assert_has(calls.wait_error.message, "dist_request_wait");
  assert_int_equal(calls.run, DIST_FAILED_PRECONDITION);
  assert_int_equal(calls.close, DIST_FAILED_PRECONDITION);
  assert_int_equal(end_of(calls.other), DIST_CANCELLED);
  assert_ok(dist_strategy_destroy(strategy));
}

static void what_is_refused(void **state) {
  (void)state;
  atomic_int count = 0;
  dist_request *work = NULL;
  assert_fails(dist_submit(NULL, count_here, &count, NULL, &work), DIST_INVALID_ARGUMENT, "strategy");
  dist_strategy *caller = strategy_of(2, DIST_THREADS_CALLER);
  assert_fails(dist_submit(caller, count_here, &count, NULL, &work), DIST_FAILED_PRECONDITION,
               "DIST_THREADS_LIBRARY");
  assert_fails(dist_instances_open(caller, NULL), DIST_FAILED_PRECONDITION, "DIST_THREADS_LIBRARY");
  assert_ok(dist_instances_close(caller, 0));
  assert_healthy(DIST_THREADS_CALLER, caller);
  assert_ok(dist_strategy_destroy(caller));

  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  assert_fails(dist_submit(strategy, NULL, NULL, NULL, &work), DIST_INVALID_ARGUMENT, "fn is NULL");
  assert_fails(dist_serve(strategy, 0), DIST_FAILED_PRECONDITION, "its own threads");
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.priority = DIST_PRIORITY_MAX + 1;
  assert_fails(dist_submit(strategy, count_here, &count, &options, &work), DIST_INVALID_ARGUMENT,
               "priority is 8");
  options.priority = INT32_MIN;
  assert_fails(dist_submit(strategy, count_here, &count, &options, &work), DIST_INVALID_ARGUMENT, "priority");
  options.priority = 0;
  options.timeout_ns = -2;
  assert_fails(dist_submit(strategy, count_here, &count, &options, &work), DIST_INVALID_ARGUMENT,
               "timeout_ns");
  dist_instances_options instances = DIST_INSTANCES_OPTIONS_INIT;
  instances.max_queued = -1;
  assert_fails(dist_instances_open(strategy, &instances), DIST_INVALID_ARGUMENT, "max_queued is -1");
  instances.max_queued = INT64_MAX;
  assert_fails(dist_instances_open(strategy, &instances), DIST_INVALID_ARGUMENT, "max_queued");
  instances.max_queued = 0;
  instances.helper_threads = 2;
  assert_fails(dist_instances_open(strategy, &instances), DIST_INVALID_ARGUMENT, "helper_threads");
  assert_null(work);
  assert_null(dist_request_user_data(NULL));
  assert_null(dist_instance_state(NULL));
  assert_ok(dist_instances_open(strategy, NULL));
  assert_fails(dist_instances_open(strategy, NULL), DIST_FAILED_PRECONDITION, "open");
  work = submit(strategy, count_here, &count, NULL);
  assert_ptr_equal(dist_request_user_data(work), &count);
  assert_ok(dist_request_wait(work, -1));
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "still has requests");
  dist_request_destroy(work);
  assert_ok(dist_instances_close(strategy, -1));
  assert_fails(dist_submit(strategy, count_here, &count, NULL, &work), DIST_UNAVAILABLE, "closed");
  assert_ok(dist_instances_open(strategy, NULL));
  assert_int_equal(end_of(submit(strategy, count_here, &count, NULL)), DIST_OK);
  assert_ok(dist_strategy_destroy(strategy));
}

static void any_of_several(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  held h = HELD_INIT;
  dist_request *works[3];
  works[0] = hold_only(strategy, &h);
  atomic_int count = 0;
  works[1] = submit(strategy, count_here, &count, NULL);
  size_t index = 99;
  assert_ok(dist_request_wait_any(works, 2, -1, &index));
  assert_int_equal(index, 1);
  works[2] = submit(strategy, fail_here, NULL, NULL);
  dist_request *others[] = {works[0], works[2]};
  assert_fails(dist_request_wait_any(others, 2, -1, &index), DIST_NOT_FOUND, "no such sentence");
  assert_int_equal(index, 1);
  gate_add(&h.released);
  for (int i = 0; i < 3; i++) (void)end_of(works[i]);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(on_one_replica_alone),
      cmocka_unit_test(side_by_side),
      cmocka_unit_test(by_priority_then_by_arrival),
      cmocka_unit_test(a_run_is_passed_by_nobody),
      cmocka_unit_test(a_full_queue_refuses_at_once),
      cmocka_unit_test(a_failure_is_of_one_alone),
      cmocka_unit_test(deadlines),
      cmocka_unit_test(cancels),
      cmocka_unit_test(what_an_instance_may_not_do),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(any_of_several),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
