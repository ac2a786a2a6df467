/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests whose functions end their thread, and several threads that open the instances at the same time.
 */
#include "tests/abi/serve/serve_support.h"

enum { MANY = 20 };

static dist_status end_thread(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  pthread_exit(NULL);
}

static void a_thread_that_ends_inside(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  for (int i = 0; i < 5; i++) {
    dist_request *work = submit(strategy, end_thread, NULL, NULL);
    assert_fails(dist_request_wait(work, -1), DIST_FAILED_PRECONDITION, "thread ended inside");
    dist_request_destroy(work);
    atomic_int count = 0;
    pair p = {GATE_INIT};
    /* Both instances work. */
    dist_request *first = submit(strategy, meet, &p, NULL);
    dist_request *second = submit(strategy, meet, &p, NULL);
    assert_int_equal(end_of(first), DIST_OK);
    assert_int_equal(end_of(second), DIST_OK);
    assert_int_equal(atomic_load(&count), 0);
  }
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status end_thread_of_one(dist_replica *replica, void *user_data) {
  (void)user_data;
  if (dist_replica_id(replica) == 1) pthread_exit(NULL);
  return DIST_OK;
}

/* The thread of a run: requests need it before the next run does. */
static void a_thread_that_ends_in_a_run(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  assert_ok(dist_instances_open(strategy, NULL));
  for (int i = 0; i < 5; i++) {
    assert_fails(dist_run(strategy, end_thread_of_one, NULL, NULL), DIST_FAILED_PRECONDITION,
                 "thread ended inside");
    pair p = {GATE_INIT};
    dist_request *first = submit(strategy, meet, &p, NULL);
    dist_request *second = submit(strategy, meet, &p, NULL);
    assert_int_equal(end_of(first), DIST_OK);
    assert_int_equal(end_of(second), DIST_OK);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* A caller that arrives while another thread opens the instances waits for it. */
typedef struct opener {
  dist_strategy *strategy;
  gate *begin;
  atomic_int *count;
  dist_status status;
} opener;

static void *open_main(void *argument) {
  opener *self = argument;
  gate_await(self->begin, 1);
  dist_request *work = NULL;
  self->status = dist_submit(self->strategy, count_here, self->count, NULL, &work);
  if (self->status == DIST_OK) self->status = dist_request_wait(work, -1);
  dist_request_destroy(work);
  return NULL;
}

static void several_open_at_once(void **state) {
  (void)state;
  enum { OPENERS = 6 };
  for (int round = 0; round < MANY; round++) {
    dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
    gate begin = GATE_INIT;
    atomic_int count = 0;
    pthread_t threads[OPENERS];
    opener each[OPENERS];
    for (int i = 0; i < OPENERS; i++) {
      each[i] = (opener){strategy, &begin, &count, DIST_OK};
      assert_int_equal(pthread_create(&threads[i], NULL, open_main, &each[i]), 0);
    }
    gate_add(&begin);
    for (int i = 0; i < OPENERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < OPENERS; i++) assert_int_equal(each[i].status, DIST_OK);
    assert_int_equal(atomic_load(&count), OPENERS);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_that_ends_inside),
      cmocka_unit_test(a_thread_that_ends_in_a_run),
      cmocka_unit_test(several_open_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
