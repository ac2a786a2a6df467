/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.h: calls from inside a callback take no threads from the budget, so nothing waits for itself. All
 * budgets here have one thread. If the rule is violated, the test hangs and runs into its time limit.
 */
#include "tests/abi/budget/budget_support.h"

typedef struct scene {
  dist_strategy *a, *b, *c;           /* share a budget */
  dist_strategy *other;               /* has no budget */
  dist_strategy *plain, *plain_other; /* share it; of kind DEFAULT, whose functions may start runs */
  atomic_int calls;
  gate inside, released;
} scene;

static scene set_up(int32_t threads) {
  dist_budget *budget = budget_of(1);
  scene s = {.a = sharing(budget, 2, threads),
             .b = sharing(budget, 2, threads),
             .c = sharing(budget, 2, DIST_THREADS_LIBRARY),
             .other = sharing(NULL, 2, threads),
             .plain = sharing_plain(budget),
             .plain_other = sharing_plain(NULL),
             .inside = GATE_INIT,
             .released = GATE_INIT};
  dist_budget_destroy(budget);
  return s;
}

static void tear_down(scene *s) {
  assert_int_equal(state_of(s->a).used, 0);
  assert_int_equal(state_of(s->a).waiting, 0);
  dist_strategy *all[] = {s->a, s->b, s->c, s->other, s->plain, s->plain_other};
  for (size_t i = 0; i < COUNT_OF(all); i++) assert_ok(dist_strategy_destroy(all[i]));
}

static dist_status count(dist_replica *replica, void *user_data) {
  (void)replica;
  atomic_fetch_add(&((scene *)user_data)->calls, 1);
  return DIST_OK;
}

/* ---- Merge functions ---- */

static dist_status merge_and_run(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                 dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  scene *s = user_data;
  return dist_run(strategy, count, s, NULL);
}

static dist_status merge(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, merge_and_run, user_data, NULL, NULL, NULL, NULL);
}

static void runs_inside_merge_functions(void **state) {
  (void)state;
  scene s = set_up(DIST_THREADS_LIBRARY);
  assert_ok(dist_run(s.a, merge, &s, NULL));
  assert_int_equal(atomic_load(&s.calls), 2);
  tear_down(&s);
}

/* ---- Requests ---- */

enum { SUBMIT, WAIT, CLOSE };

typedef struct plan {
  scene *s;
  int how;
  dist_request *earlier[4]; /* to c */
} plan;

static dist_status want_c(dist_replica *replica, void *user_data) {
  plan *p = user_data;
  scene *s = p->s;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  gate_add(&s->inside);
  gate_await(&s->released, 1);
  dist_request *work = NULL;
  dist_status status;
  switch (p->how) {
    case SUBMIT:
      status = dist_submit(s->c, count, s, NULL, &work);
      while (status == DIST_OK) { /* polls, so that libdist does not see a wait */
        int32_t done = 0;
        status = dist_request_test(work, &done);
        if (done) break;
        sched_yield();
      }
      dist_request_destroy(work);
      return status;
    case WAIT: return dist_request_wait(p->earlier[3], -1);
    default: return dist_instances_close(s->c, -1);
  }
}

/* Both instances of c have requests that wait for the budget's thread, which the caller that waits for c
 * holds. */
static void requests_before_those_that_are_wanted_pass(void **state) {
  (void)state;
  for (int how = SUBMIT; how <= CLOSE; how++) {
    scene s = set_up(DIST_THREADS_LIBRARY);
    plan p = {.s = &s, .how = how};
    assert_ok(dist_instances_open(s.c, NULL));
    runner holder = {.strategy = s.a, .fn = want_c, .user_data = &p};
    run_apart(&holder);
    gate_await(&s.inside, 1);
    for (size_t i = 0; i < COUNT_OF(p.earlier); i++) p.earlier[i] = submit(s.c, count, &s, NULL);
    await_waiting(s.a, 2);
    assert_int_equal(atomic_load(&s.calls), 0);
    gate_add(&s.released);
    assert_int_equal(end_of_run(&holder), DIST_OK);
    for (size_t i = 0; i < COUNT_OF(p.earlier); i++) assert_int_equal(end_of(p.earlier[i]), DIST_OK);
    tear_down(&s);
  }
}

/* ---- Runs ---- */

enum { RUN, READ };

typedef struct wish {
  scene *s;
  int how;
  dist_variable *variable; /* belongs to b */
} wish;

static dist_status want_b(dist_replica *replica, void *user_data) {
  wish *w = user_data;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  gate_add(&w->s->inside);
  gate_await(&w->s->released, 1);
  if (w->how == RUN) return dist_run(w->s->b, count, w->s, NULL);
  dist_value *value = NULL;
  const dist_status status = dist_variable_read(w->s->b, w->variable, &value);
  dist_value_release(value);
  return status;
}

/* A run of b has its replicas and waits for the budget's thread, which the caller that waits for b holds. */
static void a_run_before_what_is_wanted_passes(void **state) {
  (void)state;
  for (int how = RUN; how <= READ; how++) {
    for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
      scene s = set_up(threads);
      float zero = 0;
      const dist_tensor initial = {.data = &zero, .dtype = DIST_F32};
      wish w = {.s = &s, .how = how};
      assert_ok(dist_variable_create(s.b, &initial, NULL, &w.variable));
      runner holder = {.strategy = s.plain, .fn = want_b, .user_data = &w};
      run_apart(&holder);
      gate_await(&s.inside, 1);
      runner before = {.strategy = s.b, .fn = count, .user_data = &s};
      run_apart(&before);
      await_waiting(s.a, 1);
      gate_add(&s.released);
      if (end_of_run(&holder) != DIST_OK) fail_msg("%s", holder.error.message);
      assert_int_equal(end_of_run(&before), DIST_OK);
      assert_int_equal(atomic_load(&s.calls), how == RUN ? 4 : 2);
      dist_variable_destroy(w.variable);
      tear_down(&s);
    }
  }
}

/* A cycle without the rule: plain_other's function waits for b, b's run waits for the thread of plain's run,
 * and that run waits for plain_other. */
static dist_status want_other(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  gate_add(&s->inside);
  gate_await(&s->released, 1);
  return dist_run(s->plain_other, count, s, NULL);
}

static void strategies_without_a_budget_have_insiders_too(void **state) {
  (void)state;
  scene s = set_up(DIST_THREADS_LIBRARY);
  wish w = {.s = &s, .how = RUN};
  runner a = {.strategy = s.plain, .fn = want_other, .user_data = &s};
  run_apart(&a);
  gate_await(&s.inside, 1);
  runner b = {.strategy = s.b, .fn = count, .user_data = &s};
  run_apart(&b);
  await_waiting(s.a, 1);
  runner other = {.strategy = s.plain_other, .fn = want_b, .user_data = &w};
  run_apart(&other);
  gate_await(&s.inside, 2);
  gate_add(&s.released);
  if (end_of_run(&a) != DIST_OK) fail_msg("%s", a.error.message);
  assert_int_equal(end_of_run(&b), DIST_OK);
  assert_int_equal(end_of_run(&other), DIST_OK);
  tear_down(&s);
}

/* A run waits for instances whose requests need a thread. When it has them, it needs a thread itself. */
static void requests_before_a_run_of_their_own_strategy_end(void **state) {
  (void)state;
  scene s = set_up(DIST_THREADS_LIBRARY);
  held h = HELD_INIT;
  dist_request *first = hold_only(s.a, &h);
  dist_request *second = submit(s.a, count, &s, NULL); /* on the other instance */
  await_waiting(s.b, 1);
  runner run = {.strategy = s.a, .fn = count, .user_data = &s};
  run_apart(&run);
  dist_request *third = submit(s.a, count, &s, NULL);
  gate_add(&h.released);
  assert_int_equal(end_of(first), DIST_OK);
  assert_int_equal(end_of(second), DIST_OK);
  assert_int_equal(end_of_run(&run), DIST_OK);
  assert_int_equal(end_of(third), DIST_OK);
  tear_down(&s);
}

/* Creating an instance's state takes no thread, because the caller that opens the instances may hold the only
 * one. */
static dist_status make_state(dist_replica *replica, void **out_state, void *user_data) {
  *out_state = user_data;
  return count(replica, user_data);
}

static void end_state(void *state, void *user_data) { (void)state, (void)user_data; }

static dist_status open_b(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.create_state = make_state;
  options.destroy_state = end_state;
  options.user_data = s;
  const dist_status status = dist_instances_open(s->b, &options);
  return status == DIST_OK ? dist_instances_close(s->b, -1) : status;
}

static void states_are_made_inside(void **state) {
  (void)state;
  scene s = set_up(DIST_THREADS_LIBRARY);
  assert_ok(dist_run(s.a, open_b, &s, NULL));
  assert_int_equal(atomic_load(&s.calls), 2);
  tear_down(&s);
}

/* ---- Everything at once ---- */

enum { CALLERS = 4, ROUNDS = 60 };

typedef struct storm {
  scene *s;
  int seed;
  dist_status status;
  report error;
} storm;

static dist_status any_inside(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  atomic_fetch_add(&s->calls, 1);
  dist_request *work = NULL;
  dist_status status = dist_submit(s->c, do_nothing, NULL, NULL, &work);
  if (status == DIST_OK) status = dist_request_wait(work, -1);
  dist_request_destroy(work);
  return status;
}

static void *storm_main(void *argument) {
  storm *self = argument;
  scene *s = self->s;
  dist_strategy *const all[] = {s->a, s->other, s->c, s->b};
  unsigned random = (unsigned)self->seed;
  self->status = DIST_OK;
  for (int i = 0; i < ROUNDS && self->status == DIST_OK; i++) {
    random = random * 1664525u + 1013904223u;
    const unsigned which = random >> 29;
    if (which < 2) {
      self->status = dist_run(s->a, any_inside, s, NULL);
    } else if (which < 6) {
      self->status = dist_run(all[which % 4], do_nothing, NULL, NULL);
    } else {
      dist_request *work = NULL;
      self->status = dist_submit(s->c, do_nothing, NULL, NULL, &work);
      if (self->status == DIST_OK) self->status = dist_request_wait(work, -1);
      dist_request_destroy(work);
    }
  }
  read_report(&self->error);
  return NULL;
}

static void storms_end(void **state) {
  (void)state;
  for (int round = 0; round < 6; round++) {
    scene s = set_up(round % 2 == 0 ? DIST_THREADS_CALLER : DIST_THREADS_LIBRARY);
    assert_ok(dist_instances_open(s.c, NULL));
    storm storms[CALLERS];
    pthread_t handles[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
      storms[i] = (storm){.s = &s, .seed = 100 * round + i};
      assert_int_equal(pthread_create(&handles[i], NULL, storm_main, &storms[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(handles[i], NULL);
    for (int i = 0; i < CALLERS; i++) {
      if (storms[i].status != DIST_OK) fail_msg("%s", storms[i].error.message);
    }
    tear_down(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_inside_merge_functions),
      cmocka_unit_test(requests_before_those_that_are_wanted_pass),
      cmocka_unit_test(requests_before_a_run_of_their_own_strategy_end),
      cmocka_unit_test(a_run_before_what_is_wanted_passes),
      cmocka_unit_test(strategies_without_a_budget_have_insiders_too),
      cmocka_unit_test(states_are_made_inside),
      cmocka_unit_test(storms_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
