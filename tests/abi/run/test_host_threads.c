/* SPDX-License-Identifier: Apache-2.0
 *
 * Host threads as replicas: entering, leaving, and errors in between.
 */
#include "tests/abi/clock.h"
#include "tests/abi/gate.h"

static void entering_and_leaving_alone(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_HOST);
  for (int i = 0; i < 10; i++) {
    dist_replica *replica = NULL;
    assert_ok(dist_replica_enter(strategy, 0, &replica));
    assert_int_equal(dist_replica_id(replica), 0);
    assert_ptr_equal(dist_replica_strategy(replica), strategy);
    assert_ok(dist_barrier(replica, NULL, NULL));
    assert_int_equal(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION);
    dist_replica *twice = NULL;
    assert_fails(dist_replica_enter(strategy, 0, &twice), DIST_FAILED_PRECONDITION, "already replica 0");
    assert_null(twice);
    assert_ok(dist_replica_leave(replica, DIST_OK));
    assert_fails(dist_barrier(replica, NULL, NULL), DIST_FAILED_PRECONDITION, "is not running");
    assert_int_equal(dist_replica_leave(replica, DIST_OK), DIST_FAILED_PRECONDITION);
  }
  dist_replica *replica = NULL;
  assert_ok(dist_replica_enter(strategy, 0, &replica));
  (void)dist_fail(DIST_NOT_FOUND, "no row 7");
  assert_fails(dist_replica_leave(replica, DIST_NOT_FOUND), DIST_NOT_FOUND, "no row 7");
  assert_fails(dist_replica_enter(strategy, 1, &replica), DIST_INVALID_ARGUMENT, "replica_id is 1");
  assert_fails(dist_replica_enter(strategy, -1, &replica), DIST_INVALID_ARGUMENT, "replica_id is -1");
  assert_fails(dist_replica_enter(strategy, 0, NULL), DIST_INVALID_ARGUMENT, "out_replica is NULL");
  assert_fails(dist_replica_enter(NULL, 0, &replica), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Any thread may be any replica in any run ---- */

enum { POOL = 4, ROUNDS = 100 };

typedef struct pool {
  dist_strategy *strategy;
  atomic_int next; /* next of POOL * ROUNDS pieces: run = piece / POOL, replica = piece % POOL */
  atomic_int failures;
} pool;

static void *take_pieces(void *argument) {
  pool *p = argument;
  for (int piece; (piece = atomic_fetch_add(&p->next, 1)) < POOL * ROUNDS;) {
    dist_replica *replica = NULL;
    dist_status status = dist_replica_enter(p->strategy, piece % POOL, &replica);
    if (status == DIST_OK) status = dist_replica_leave(replica, healthy(replica, NULL));
    atomic_fetch_add(&p->failures, status != DIST_OK);
  }
  return NULL;
}

static void threads_change_places(void **state) {
  (void)state;
  pool p = {.strategy = strategy_of(POOL, DIST_THREADS_HOST)};
  pthread_t threads[POOL];
  const int before = count_threads();
  for (int i = 0; i < POOL; i++) assert_int_equal(pthread_create(&threads[i], NULL, take_pieces, &p), 0);
  for (int i = 0; i < POOL; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&p.failures), 0);
  await_threads(before);
  assert_ok(dist_strategy_destroy(p.strategy));
}

/* ---- Threads that end or break rules ---- */

static dist_status second_one_goes(dist_replica *replica, void *user_data) {
  (void)user_data;
  if (dist_replica_id(replica) == 1) pthread_exit(NULL);
  return dist_barrier(replica, NULL, NULL);
}

static void a_thread_ends_inside(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_HOST);
  for (int i = 0; i < 10; i++) {
    report error;
    assert_int_equal(run_on(DIST_THREADS_HOST, strategy, second_one_goes, NULL, &error),
                     DIST_FAILED_PRECONDITION);
    assert_has(error.message, "replica 1's thread ended inside its run");
    assert_int_equal(error.replica, 1);
    assert_healthy(DIST_THREADS_HOST, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

typedef struct visit {
  dist_strategy *strategy;
  dist_replica *replica;
  dist_status status;
  report error;
} visit;

static void *enter_zero(void *argument) {
  visit *v = argument;
  v->status = dist_replica_enter(v->strategy, 0, &v->replica);
  read_report(&v->error);
  return NULL;
}

static void *leave_for_another(void *argument) {
  visit *v = argument;
  v->status = dist_replica_leave(v->replica, DIST_OK);
  read_report(&v->error);
  return NULL;
}

static void in_a_thread(void *(*main)(void *), visit *v) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, main, v), 0);
  pthread_join(thread, NULL);
}

static void one_thread_a_replica(void **state) {
  (void)state;
  visit v = {.strategy = strategy_of(1, DIST_THREADS_HOST)};
  dist_replica *mine = NULL;
  assert_ok(dist_replica_enter(v.strategy, 0, &mine));
  in_a_thread(enter_zero, &v);
  assert_int_equal(v.status, DIST_FAILED_PRECONDITION);
  assert_has(v.error.message, "has already entered");
  v.replica = mine;
  in_a_thread(leave_for_another, &v);
  assert_int_equal(v.status, DIST_FAILED_PRECONDITION);
  assert_has(v.error.message, "not inside a replica's function");
  assert_ok(dist_barrier(mine, NULL, NULL));
  assert_ok(dist_replica_leave(mine, DIST_OK));
  assert_ok(dist_strategy_destroy(v.strategy));
}

static void a_replica_never_comes(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.threads = DIST_THREADS_HOST;
  options.timeout_ns = 20000000;
  dist_strategy *strategy = strategy_with(options);
  dist_replica *replica = NULL;
  assert_ok(dist_replica_enter(strategy, 0, &replica));
  assert_fails(dist_barrier(replica, NULL, NULL), DIST_DEADLINE_EXCEEDED, "replica 1 did not arrive");
  assert_fails(dist_replica_leave(replica, DIST_DEADLINE_EXCEEDED), DIST_DEADLINE_EXCEEDED,
               "replica 1 has not come");
  /* No thread is inside, so the strategy can be destroyed, although its run never completes. */
  assert_ok(dist_strategy_destroy(strategy));
}

typedef struct round_of {
  dist_strategy *strategy;
  int32_t id;
  dist_status status;
  atomic_int came; /* its dist_replica_enter() has returned */
} round_of;

static void *enter_and_leave(void *argument) {
  round_of *r = argument;
  dist_replica *replica = NULL;
  r->status = dist_replica_enter(r->strategy, r->id, &replica);
  atomic_store(&r->came, 1);
  if (r->status == DIST_OK) r->status = dist_replica_leave(replica, healthy(replica, NULL));
  return NULL;
}

/* Runs a round of `n` replicas, each on a thread. The first one enters first, as in run_on(). */
static void round_by(dist_strategy *strategy, int32_t first, int32_t n, dist_status *out) {
  round_of rounds[MOST];
  pthread_t threads[MOST];
  for (int32_t i = 0; i < n; i++) {
    rounds[i] = (round_of){strategy, first + i, DIST_INTERNAL, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, enter_and_leave, &rounds[i]), 0);
    while (!atomic_load(&rounds[0].came)) sched_yield();
  }
  for (int32_t i = 0; i < n; i++) {
    pthread_join(threads[i], NULL);
    out[i] = rounds[i].status;
  }
}

/* Two of four replicas never enter. As soon as all four do, rounds succeed, even if the missing ones have not
 * entered in between. */
static void the_next_round_recovers(void **state) {
  (void)state;
  static stepping_clock clock;
  dist_strategy *strategy = strategy_with(by_clock(&clock, 4, DIST_THREADS_HOST));
  dist_status status[4];
  for (int i = 0; i < 3; i++) {
    atomic_store(&clock.step_ns, 3600000000000); /* longer than any wait */
    for (int k = 0; k < 2; k++) {
      round_by(strategy, 0, 2, status);
      assert_int_equal(status[0], DIST_DEADLINE_EXCEEDED);
      assert_int_equal(status[1], DIST_DEADLINE_EXCEEDED);
    }
    atomic_store(&clock.step_ns, 0);
    for (int k = 0; k < 2; k++) {
      round_by(strategy, 0, 4, status);
      for (int r = 0; r < 4; r++) assert_int_equal(status[r], DIST_OK);
    }
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static void cancel_ends_a_round_that_nobody_will_complete(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(4, DIST_THREADS_HOST);
  for (int i = 0; i < 3; i++) {
    round_of other = {strategy, 0, DIST_INTERNAL, 0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, enter_and_leave, &other), 0);
    dist_replica *replica = NULL;
    assert_ok(dist_replica_enter(strategy, 1, &replica));
    assert_ok(dist_strategy_cancel(strategy));
    assert_fails(dist_replica_leave(replica, DIST_OK), DIST_CANCELLED, "dist_strategy_cancel()");
    pthread_join(thread, NULL);
    assert_int_equal(other.status, DIST_CANCELLED);
    assert_healthy(DIST_THREADS_HOST, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* A late replica enters the round that was given up, and gets its report. */
static void who_comes_late_is_told(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_HOST);
  dist_replica *replica = NULL;
  for (int i = 0; i < 3; i++) {
    assert_ok(dist_replica_enter(strategy, 0, &replica));
    assert_ok(dist_strategy_cancel(strategy));
    assert_fails(dist_replica_leave(replica, DIST_OK), DIST_CANCELLED, "dist_strategy_cancel()");
    assert_ok(dist_replica_enter(strategy, 1, &replica));
    assert_int_equal(dist_barrier(replica, NULL, NULL), DIST_CANCELLED);
    assert_fails(dist_replica_leave(replica, DIST_OK), DIST_CANCELLED, "dist_strategy_cancel()");
    assert_healthy(DIST_THREADS_HOST, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

typedef struct comer {
  dist_strategy *strategy;
  atomic_int thread;
  dist_status status;
} comer;

static void *come_back(void *argument) {
  comer *c = argument;
  dist_replica *replica = NULL;
  atomic_store(&c->thread, this_thread());
  c->status = dist_replica_enter(c->strategy, 0, &replica);
  if (c->status == DIST_OK) {
    (void)!dist_strategy_cancel(c->strategy);
    (void)!dist_replica_leave(replica, DIST_OK);
  }
  return NULL;
}

/* Three of four replicas have entered the cancelled round, one of them late. A replica that returns waits
 * only for the one inside, because the fourth may never enter. */
static void who_is_back_waits_for_those_inside_alone(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(4, DIST_THREADS_HOST);
  for (int i = 0; i < 3; i++) {
    dist_replica *replica = NULL;
    assert_ok(dist_replica_enter(strategy, 0, &replica));
    assert_ok(dist_strategy_cancel(strategy));
    assert_fails(dist_replica_leave(replica, DIST_OK), DIST_CANCELLED, "dist_strategy_cancel()");
    assert_ok(dist_replica_enter(strategy, 1, &replica));
    comer back = {.strategy = strategy, .status = DIST_INTERNAL};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, come_back, &back), 0);
    while (atomic_load(&back.thread) == 0 || !sleeps(atomic_load(&back.thread))) sched_yield();
    assert_fails(dist_replica_leave(replica, DIST_OK), DIST_CANCELLED, "dist_strategy_cancel()");
    pthread_join(thread, NULL);
    assert_int_equal(back.status, DIST_OK);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

typedef struct waiter {
  dist_strategy *strategy;
  atomic_int about_to_leave;
  dist_status status;
} waiter;

static void *leave_early(void *argument) {
  waiter *w = argument;
  dist_replica *replica = NULL;
  w->status = dist_replica_enter(w->strategy, 0, &replica);
  if (w->status != DIST_OK) return NULL;
  atomic_store(&w->about_to_leave, 1);
  w->status = dist_replica_leave(replica, DIST_OK);
  return NULL;
}

/* A replica that leaves waits inside the library for the others. Meanwhile, the strategy must not be
 * destroyed. */
static void destroy_beside_one_that_leaves(void **state) {
  (void)state;
  waiter w = {.strategy = strategy_of(2, DIST_THREADS_HOST), .status = DIST_INTERNAL};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, leave_early, &w), 0);
  while (!atomic_load(&w.about_to_leave)) sched_yield();
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(dist_strategy_destroy(w.strategy), DIST_FAILED_PRECONDITION);
    sched_yield();
  }
  dist_replica *replica = NULL;
  assert_ok(dist_replica_enter(w.strategy, 1, &replica));
  assert_ok(dist_replica_leave(replica, DIST_OK));
  /* This succeeds as soon as the thread has left the library, even before it has ended. */
  dist_status status;
  while ((status = dist_strategy_destroy(w.strategy)) == DIST_FAILED_PRECONDITION) sched_yield();
  assert_int_equal(status, DIST_OK);
  pthread_join(thread, NULL);
  assert_int_equal(w.status, DIST_OK);
}

static void halve(int64_t begin, int64_t end, void *user_data) {
  double *numbers = user_data;
  for (int64_t i = begin; i < end; i++) {
    for (int k = 0; k < 1000; k++) numbers[i] = numbers[i] * 0.5 + 1;
  }
}

/* With host threads, libdist starts no thread, not even for loops. */
static void loops_start_no_thread(void **state) {
  (void)state;
  static double numbers[10000];
  const int before = count_threads();
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_HOST);
  dist_replica *replica = NULL;
  assert_ok(dist_replica_enter(strategy, 0, &replica));
  assert_ok(dist_replica_parallel_for(replica, 0, COUNT_OF(numbers), 1, halve, numbers));
  await_threads(before);
  assert_ok(dist_replica_leave(replica, DIST_OK));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entering_and_leaving_alone),
      cmocka_unit_test(threads_change_places),
      cmocka_unit_test(a_thread_ends_inside),
      cmocka_unit_test(one_thread_a_replica),
      cmocka_unit_test(a_replica_never_comes),
      cmocka_unit_test(destroy_beside_one_that_leaves),
      cmocka_unit_test(the_next_round_recovers),
      cmocka_unit_test(who_comes_late_is_told),
      cmocka_unit_test(who_is_back_waits_for_those_inside_alone),
      cmocka_unit_test(cancel_ends_a_round_that_nobody_will_complete),
      cmocka_unit_test(loops_start_no_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
