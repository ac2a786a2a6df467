/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.h: which calls wait for threads of a budget, what ends the wait, and that all threads are released.
 */
#include "tests/abi/budget/budget_support.h"

#include <sys/wait.h>
#include <unistd.h>

static void wrong_budgets_are_refused(void **state) {
  (void)state;
  dist_budget *budget = NULL;
  assert_fails(dist_budget_create(NULL, 1, NULL), DIST_INVALID_ARGUMENT, "out_budget is NULL");
  static const int32_t strange[] = {0, -1, INT32_MIN, 65537, INT32_MAX};
  for (size_t i = 0; i < COUNT_OF(strange); i++)
    assert_fails(dist_budget_create(NULL, strange[i], &budget), DIST_INVALID_ARGUMENT,
                 "but must be 1 to 65536");
  assert_null(budget);
  dist_budget_destroy(NULL);
}

/* ---- Number of threads in use at the same time ---- */

typedef struct crowd {
  atomic_int inside, most;
} crowd;

static dist_status be_inside(dist_replica *replica, void *user_data) {
  crowd *c = user_data;
  if (dist_replica_id(replica) == 0) {
    const int now = atomic_fetch_add(&c->inside, 1) + 1;
    for (int most = atomic_load(&c->most);
         now > most && !atomic_compare_exchange_weak(&c->most, &most, now);) {
    }
    sched_yield();
    atomic_fetch_sub(&c->inside, 1);
  }
  return DIST_OK;
}

typedef struct caller {
  dist_strategy *strategy;
  crowd *c;
  dist_status status;
} caller;

enum { CALLERS = 6, RUNS = 200 };

static void *call_often(void *argument) {
  caller *self = argument;
  self->status = DIST_OK;
  for (int i = 0; i < RUNS && self->status == DIST_OK; i++)
    self->status = dist_run(self->strategy, be_inside, self->c, NULL);
  return NULL;
}

static void no_more_than_the_budget_are_inside(void **state) {
  (void)state;
  for (int threads = 1; threads <= 2; threads++) {
    for (int32_t kind = DIST_THREADS_CALLER; kind <= DIST_THREADS_LIBRARY; kind++) {
      dist_budget *budget = budget_of(threads);
      /* A run of two replicas takes both threads, or the only one. */
      const int32_t replicas = threads == 1 ? 2 : 1;
      dist_strategy *strategies[3];
      for (int i = 0; i < 3; i++) strategies[i] = sharing(budget, replicas, kind);
      dist_budget_destroy(budget); /* the strategies keep it */
      crowd c = {0, 0};
      caller callers[CALLERS];
      pthread_t handles[CALLERS];
      for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){strategies[i % 3], &c, DIST_INTERNAL};
        assert_int_equal(pthread_create(&handles[i], NULL, call_often, &callers[i]), 0);
      }
      for (int i = 0; i < CALLERS; i++) pthread_join(handles[i], NULL);
      for (int i = 0; i < CALLERS; i++) assert_int_equal(callers[i].status, DIST_OK);
      assert_in_range(atomic_load(&c.most), 1, threads);
      assert_int_equal(state_of(strategies[0]).used, 0);
      for (int i = 0; i < 3; i++) assert_ok(dist_strategy_destroy(strategies[i]));
    }
  }
}

static void requests_count_one_each(void **state) {
  (void)state;
  dist_budget *budget = budget_of(2);
  dist_strategy *a = sharing(budget, 2, DIST_THREADS_LIBRARY), *b = sharing(budget, 2, DIST_THREADS_LIBRARY);
  dist_budget_destroy(budget);
  crowd c = {0, 0};
  dist_request *works[100];
  assert_ok(dist_instances_open(a, NULL));
  assert_ok(dist_instances_open(b, NULL));
  held h[3] = {HELD_INIT, HELD_INIT, HELD_INIT};
  works[0] = submit(a, hold_here, &h[0], NULL);
  works[1] = submit(b, hold_here, &h[1], NULL);
  gate_await(&h[0].inside, 1);
  gate_await(&h[1].inside, 1);
  assert_int_equal(state_of(a).used, 2);
  works[2] = submit(a, hold_here, &h[2], NULL); /* an instance is idle, but no thread is available */
  await_waiting(a, 1);
  assert_int_equal(atomic_load(&h[2].calls), 0);
  gate_add(&h[1].released);
  gate_await(&h[2].inside, 1);
  assert_int_equal(end_of(works[1]), DIST_OK);
  gate_add(&h[0].released);
  gate_add(&h[2].released);
  assert_int_equal(end_of(works[0]), DIST_OK);
  assert_int_equal(end_of(works[2]), DIST_OK);
  for (int i = 0; i < 100; i++) works[i] = submit(i % 2 == 0 ? a : b, be_inside, &c, NULL);
  for (int i = 0; i < 100; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  assert_in_range(atomic_load(&c.most), 0, 2);
  assert_int_equal(state_of(a).used, 0);
  assert_ok(dist_strategy_destroy(a));
  assert_ok(dist_strategy_destroy(b));
}

/* ---- Order of arrival ---- */

typedef struct order {
  atomic_int next;
  atomic_int of_run, of_request;
} order;

static order turns;

static dist_status run_comes(dist_replica *replica, void *user_data) {
  (void)user_data;
  if (dist_replica_id(replica) == 0) atomic_store(&turns.of_run, atomic_fetch_add(&turns.next, 1) + 1);
  return DIST_OK;
}

static dist_status request_comes(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  atomic_store(&turns.of_request, atomic_fetch_add(&turns.next, 1) + 1);
  return DIST_OK;
}

static void a_run_is_not_starved_by_requests(void **state) {
  (void)state;
  dist_budget *budget = budget_of(2);
  dist_strategy *requests = sharing(budget, 2, DIST_THREADS_LIBRARY),
                *runs = sharing(budget, 2, DIST_THREADS_LIBRARY);
  dist_budget_destroy(budget);
  const int two = state_of(runs).units == 2; /* false on one CPU */
  held h = HELD_INIT;
  dist_request *first = two ? hold_only(requests, &h) : NULL;
  if (two) {
    runner run = {.strategy = runs, .fn = run_comes};
    run_apart(&run);
    await_waiting(runs, 1);
    dist_request *later = submit(requests, request_comes, NULL, NULL); /* a thread is available */
    await_waiting(runs, 2);
    assert_int_equal(atomic_load(&turns.next), 0);
    gate_add(&h.released);
    assert_int_equal(end_of_run(&run), DIST_OK);
    assert_int_equal(end_of(later), DIST_OK);
    assert_int_equal(end_of(first), DIST_OK);
    assert_int_equal(atomic_load(&turns.of_run), 1);
    assert_int_equal(atomic_load(&turns.of_request), 2);
  }
  assert_ok(dist_strategy_destroy(requests));
  assert_ok(dist_strategy_destroy(runs));
}

/* ---- How a wait ends ---- */

typedef struct two_sides {
  dist_strategy *holding, *waiting;
  held h;
  runner holder;
} two_sides;

/* A run of `holding` uses the only thread. */
static void hold_all(two_sides *p, int32_t threads) {
  dist_budget *budget = budget_of(1);
  p->holding = sharing(budget, 1, DIST_THREADS_LIBRARY);
  p->waiting = sharing(budget, 2, threads);
  dist_budget_destroy(budget);
  p->h = (held)HELD_INIT;
  p->holder = (runner){.strategy = p->holding, .fn = hold_here, .user_data = &p->h};
  run_apart(&p->holder);
  gate_await(&p->h.inside, 1);
}

static void let_go(two_sides *p) {
  gate_add(&p->h.released);
  assert_int_equal(end_of_run(&p->holder), DIST_OK);
  assert_ok(dist_strategy_destroy(p->holding));
}

static void deadlines_end_waits(void **state) {
  (void)state;
  two_sides p;
  hold_all(&p, DIST_THREADS_LIBRARY);
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 1000000;
  assert_fails(dist_run(p.waiting, do_nothing, NULL, &options), DIST_DEADLINE_EXCEEDED,
               "of the budget's 1 threads were not available within");
  assert_has(dist_last_error(), "1 are in use");
  dist_submit_options submitted = DIST_SUBMIT_OPTIONS_INIT;
  submitted.timeout_ns = 1000000;
  dist_request *work = submit(p.waiting, do_nothing, NULL, &submitted);
  assert_int_equal(end_of(work), DIST_DEADLINE_EXCEEDED);
  let_go(&p);
  assert_healthy(DIST_THREADS_LIBRARY, p.waiting);
  assert_ok(dist_strategy_destroy(p.waiting));
}

static dist_status hold_step(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)batch;
  return hold_here(replica, user_data);
}

static void a_run_after_steps_waits(void **state) {
  (void)state;
  dist_budget *budget = budget_of(1);
  dist_strategy *holding = sharing(budget, 1, DIST_THREADS_LIBRARY);
  dist_strategy *waiting = sharing(budget, 2, DIST_THREADS_LIBRARY);
  dist_budget_destroy(budget);
  held steps = HELD_INIT;
  dist_batcher_options one = DIST_BATCHER_OPTIONS_INIT;
  one.max_items = 1;
  dist_batcher *batcher = NULL;
  assert_ok(dist_batcher_create(waiting, hold_step, &steps, &one, &batcher));
  dist_request *works[4];
  for (int i = 0; i < 4; i++) assert_ok(dist_batcher_submit(batcher, NULL, NULL, &works[i]));
  gate_add(&steps.released); /* steps start while items wait and the other instance is empty */
  for (int i = 0; i < 4; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  assert_ok(dist_batcher_destroy(batcher));
  held h = HELD_INIT;
  runner holder = {.strategy = holding, .fn = hold_here, .user_data = &h};
  run_apart(&holder);
  gate_await(&h.inside, 1);
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 1000000;
  assert_fails(dist_run(waiting, do_nothing, NULL, &options), DIST_DEADLINE_EXCEEDED,
               "of the budget's 1 threads were not available within");
  gate_add(&h.released);
  assert_int_equal(end_of_run(&holder), DIST_OK);
  assert_ok(dist_strategy_destroy(holding));
  assert_ok(dist_strategy_destroy(waiting));
}

static void cancel_objects_end_waits(void **state) {
  (void)state;
  two_sides p;
  hold_all(&p, DIST_THREADS_CALLER);
  dist_cancel *cancel = NULL;
  assert_ok(dist_cancel_create(NULL, &cancel));
  runner run = {.strategy = p.waiting, .fn = do_nothing, .cancel = cancel};
  run_apart(&run);
  await_waiting(p.holding, 1);
  /* A second run is queued behind it. */
  runner behind = {.strategy = p.waiting, .fn = do_nothing};
  run_apart(&behind);
  assert_ok(dist_cancel_signal(cancel, "enough"));
  assert_int_equal(end_of_run(&run), DIST_CANCELLED);
  assert_has(run.error.message, "before it started: enough");
  dist_cancel_destroy(cancel);
  let_go(&p);
  assert_int_equal(end_of_run(&behind), DIST_OK);
  assert_ok(dist_strategy_destroy(p.waiting));
}

static void requests_are_cancelled_in_their_wait(void **state) {
  (void)state;
  two_sides p;
  hold_all(&p, DIST_THREADS_LIBRARY);
  dist_cancel *cancel = NULL;
  assert_ok(dist_cancel_create(NULL, &cancel));
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.cancel = cancel;
  dist_request *by_object = submit(p.waiting, do_nothing, NULL, &options),
               *by_work = submit(p.waiting, do_nothing, NULL, NULL);
  await_waiting(p.holding, 2);
  assert_ok(dist_request_cancel(by_work));
  assert_fails(dist_request_wait(by_work, -1), DIST_CANCELLED, "before it started: dist_request_cancel()");
  assert_ok(dist_cancel_signal(cancel, "enough"));
  assert_fails(dist_request_wait(by_object, -1), DIST_CANCELLED, "enough");
  dist_request_destroy(by_work);
  dist_request_destroy(by_object);
  dist_cancel_destroy(cancel);
  /* Requests that are cancelled when they begin to wait. */
  for (int i = 0; i < 300; i++) {
    dist_request *work = submit(p.waiting, do_nothing, NULL, NULL);
    for (int k = 0; k < i % 7; k++) sched_yield();
    assert_ok(dist_request_cancel(work));
    assert_int_equal(end_of(work), DIST_CANCELLED);
  }
  /* Requests that wait when the instances close. */
  dist_request *late = submit(p.waiting, do_nothing, NULL, NULL);
  assert_int_equal(dist_instances_close(p.waiting, 1000000), DIST_DEADLINE_EXCEEDED);
  assert_int_equal(end_of(late), DIST_CANCELLED);
  let_go(&p);
  assert_healthy(DIST_THREADS_LIBRARY, p.waiting);
  assert_ok(dist_strategy_destroy(p.waiting));
}

static void shutdown_ends_waits(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    two_sides p;
    hold_all(&p, i % 2 == 0 ? DIST_THREADS_CALLER : DIST_THREADS_LIBRARY);
    if (i % 2 != 0) assert_ok(dist_instances_open(p.waiting, NULL));
    runner runs[2];
    for (int k = 0; k < 2; k++) {
      runs[k] = (runner){.strategy = p.waiting, .fn = do_nothing};
      run_apart(&runs[k]);
      /* The first run waits for a thread and the second for the first. If the strategy has instances, the
       * first run waits for them. */
      while (atomic_load(&runs[k].number) == 0 || !sleeps(atomic_load(&runs[k].number))) sched_yield();
    }
    await_waiting(p.holding, 1);
    assert_fails(dist_strategy_destroy(p.waiting), DIST_FAILED_PRECONDITION, "a run is in progress");
    dist_request *work = i % 2 == 0 ? NULL : submit(p.waiting, do_nothing, NULL, NULL);
    assert_ok(dist_strategy_shutdown(p.waiting, -1));
    for (int k = 0; k < 2; k++) assert_int_equal(end_of_run(&runs[k]), DIST_CANCELLED);
    if (work != NULL) assert_int_equal(end_of(work), DIST_CANCELLED);
    assert_int_equal(state_of(p.holding).waiting, 0);
    assert_ok(dist_strategy_destroy(p.waiting));
    let_go(&p);
  }
}

/* ---- All threads are released, however a run ends ---- */

static dist_status fail_here(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) == 1 ? dist_fail(DIST_UNKNOWN, "as asked") : DIST_OK;
}

static dist_status end_thread(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  pthread_exit(NULL);
}

static void whatever_ends_them_units_come_back(void **state) {
  (void)state;
  dist_budget *budget = budget_of(1);
  dist_strategy *mine = sharing(budget, 2, DIST_THREADS_CALLER),
                *library = sharing(budget, 2, DIST_THREADS_LIBRARY);
  dist_budget_destroy(budget);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(dist_run(mine, fail_here, NULL, NULL), DIST_UNKNOWN);
    assert_int_equal(dist_run(library, end_thread, NULL, NULL), DIST_FAILED_PRECONDITION);
    runner ends = {.strategy = mine, .fn = end_thread};
    run_apart(&ends);
    pthread_join(ends.thread, NULL);
    assert_healthy(DIST_THREADS_LIBRARY, library); /* it gets new threads */
    dist_request *work = submit(library, end_thread, NULL, NULL);
    assert_int_equal(end_of(work), DIST_FAILED_PRECONDITION);
    /* A run that returns at its deadline while its functions are running. */
    held h = HELD_INIT;
    runner late = {.strategy = mine, .fn = hold_here, .user_data = &h, .timeout_ns = 1000000};
    held *const held_too = &h;
    late.strategy = library;
    run_apart(&late);
    assert_int_equal(end_of_run(&late), DIST_DEADLINE_EXCEEDED);
    assert_int_equal(state_of(mine).used, 0);
    assert_healthy(DIST_THREADS_CALLER, mine);
    gate_add(&held_too->released);
    while (dist_run(library, do_nothing, NULL, NULL) != DIST_OK) sched_yield(); /* until both have left */
    assert_int_equal(state_of(mine).used, 0);
    assert_int_equal(state_of(mine).waiting, 0);
  }
  assert_ok(dist_strategy_destroy(mine));
  assert_ok(dist_strategy_destroy(library));
}

/* ---- Host threads ---- */

static void host_threads_take_units_too(void **state) {
  (void)state;
  two_sides p;
  hold_all(&p, DIST_THREADS_HOST);
  host_thread threads[2];
  pthread_t handles[2];
  for (int i = 0; i < 2; i++) {
    threads[i] = (host_thread){.strategy = p.waiting, .id = i, .fn = healthy};
    assert_int_equal(pthread_create(&handles[i], NULL, host_thread_main, &threads[i]), 0);
  }
  await_waiting(p.holding, 1);
  assert_false(atomic_load(&threads[0].came) || atomic_load(&threads[1].came));
  let_go(&p);
  for (int i = 0; i < 2; i++) {
    pthread_join(handles[i], NULL);
    assert_int_equal(threads[i].status, DIST_OK);
  }
  assert_healthy(DIST_THREADS_HOST, p.waiting);
  assert_int_equal(state_of(p.waiting).used, 0);
  assert_ok(dist_strategy_destroy(p.waiting));
}

static void host_threads_that_wait_are_shut_down(void **state) {
  (void)state;
  two_sides p;
  hold_all(&p, DIST_THREADS_HOST);
  host_thread thread = {.strategy = p.waiting, .id = 0, .fn = healthy};
  pthread_t handle;
  assert_int_equal(pthread_create(&handle, NULL, host_thread_main, &thread), 0);
  await_waiting(p.holding, 1);
  assert_ok(dist_strategy_shutdown(p.waiting, -1));
  pthread_join(handle, NULL);
  assert_int_equal(thread.status, DIST_CANCELLED);
  assert_ok(dist_strategy_destroy(p.waiting));
  assert_int_equal(state_of(p.holding).waiting, 0);
  let_go(&p);
}

static void a_childs_budget_is_its_own(void **state) {
  (void)state;
  dist_budget *budget = budget_of(1);
  const pid_t child = fork();
  if (child == 0) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
    options.cpu = &cpu;
    cpu.budget = budget;
    dist_strategy *strategy = NULL;
    const int refused = dist_strategy_create(&options, &strategy) == DIST_FAILED_PRECONDITION;
    dist_budget_destroy(budget);
    dist_budget *own = NULL;
    const int made = dist_budget_create(NULL, 1, &own) == DIST_OK;
    cpu.budget = own;
    const int works = dist_strategy_create(&options, &strategy) == DIST_OK &&
                      dist_run(strategy, do_nothing, NULL, NULL) == DIST_OK;
    _exit(refused && made && works ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  dist_budget_destroy(budget);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_budgets_are_refused),   cmocka_unit_test(no_more_than_the_budget_are_inside),
      cmocka_unit_test(requests_count_one_each),     cmocka_unit_test(a_run_is_not_starved_by_requests),
      cmocka_unit_test(deadlines_end_waits),         cmocka_unit_test(a_run_after_steps_waits),
      cmocka_unit_test(cancel_objects_end_waits),    cmocka_unit_test(requests_are_cancelled_in_their_wait),
      cmocka_unit_test(shutdown_ends_waits),         cmocka_unit_test(whatever_ends_them_units_come_back),
      cmocka_unit_test(host_threads_take_units_too), cmocka_unit_test(host_threads_that_wait_are_shut_down),
      cmocka_unit_test(a_childs_budget_is_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
