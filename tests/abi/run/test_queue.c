/* SPDX-License-Identifier: Apache-2.0
 *
 * Several callers of one strategy are served in order of arrival.
 */
#include "tests/abi/common.h"
#include "tests/abi/gate.h"

/* ---- The order ---- */

enum { IN_LINE = 6 };

typedef struct line_up {
  dist_strategy *strategy;
  gate inside, released;
  atomic_int place; /* the next place in the order */
  atomic_int served[IN_LINE];
} line_up;

typedef struct one_of_them {
  line_up *line;
  int index;
  atomic_int thread; /* the system's number, set just before the call */
  dist_status status;
} one_of_them;

static dist_status note_place(dist_replica *replica, void *user_data) {
  one_of_them *self = user_data;
  if (dist_replica_id(replica) == 0)
    self->line->served[self->index] = atomic_fetch_add(&self->line->place, 1);
  return DIST_OK;
}

static void *line_up_main(void *argument) {
  one_of_them *self = argument;
  atomic_store(&self->thread, this_thread());
  self->status = dist_run(self->line->strategy, note_place, self, NULL);
  return NULL;
}

static dist_status hold(dist_replica *replica, void *user_data) {
  line_up *line = user_data;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  gate_add(&line->inside);
  gate_await(&line->released, 1);
  return DIST_OK;
}

static void *hold_main(void *argument) {
  line_up *line = argument;
  (void)!dist_run(line->strategy, hold, line, NULL);
  return NULL;
}

static void in_the_order_of_coming(void **state) {
  (void)state;
  line_up line = {
      .strategy = strategy_of(2, DIST_THREADS_LIBRARY), .inside = GATE_INIT, .released = GATE_INIT};
  pthread_t holder, host[IN_LINE];
  assert_int_equal(pthread_create(&holder, NULL, hold_main, &line), 0);
  gate_await(&line.inside, 1);
  one_of_them all[IN_LINE];
  for (int i = 0; i < IN_LINE; i++) {
    all[i] = (one_of_them){.line = &line, .index = i};
    assert_int_equal(pthread_create(&host[i], NULL, line_up_main, &all[i]), 0);
    while (!sleeps(atomic_load(&all[i].thread))) sched_yield();
  }
  gate_add(&line.released);
  pthread_join(holder, NULL);
  for (int i = 0; i < IN_LINE; i++) {
    pthread_join(host[i], NULL);
    assert_int_equal(all[i].status, DIST_OK);
    assert_int_equal(atomic_load(&line.served[i]), i);
  }
  assert_ok(dist_strategy_destroy(line.strategy));
}

/* ---- Fair shares ---- */

enum { CALLERS = 4, RUNS = 8000 };

typedef struct shares {
  dist_strategy *strategy;
  atomic_int thread[CALLERS]; /* the system's numbers */
  int of_caller[CALLERS];     /* written only by runs, which exclude each other */
  int runs;
  atomic_int over;
  atomic_int failures;
} shares;

typedef struct share_caller {
  shares *shares;
  int index;
} share_caller;

/* A run ends only when all other callers sleep in the queue. Otherwise, a caller that did not get a CPU
   before it was queued would be served less often even by a perfect queue. This is also the hardest case for
   the queue: the waiting callers must wake up, while the caller whose run has ended is awake and calls again
   at once. */
static dist_status count_share(dist_replica *replica, void *user_data) {
  (void)replica;
  share_caller *self = user_data;
  shares *s = self->shares;
  if (atomic_load(&s->over)) return DIST_OK;
  for (int i = 0; i < CALLERS; i++) {
    while (i != self->index && !(atomic_load(&s->thread[i]) != 0 && sleeps(atomic_load(&s->thread[i]))))
      sched_yield();
  }
  s->of_caller[self->index]++;
  if (++s->runs == RUNS) atomic_store(&s->over, 1);
  return DIST_OK;
}

static void *call_on(void *argument) {
  share_caller *self = argument;
  shares *s = self->shares;
  atomic_store(&s->thread[self->index], this_thread());
  while (!atomic_load(&s->over)) {
    if (dist_run(s->strategy, count_share, self, NULL) != DIST_OK) atomic_fetch_add(&s->failures, 1);
  }
  return NULL;
}

static void equal_shares(void **state) {
  (void)state;
  shares s = {.strategy = strategy_of(1, DIST_THREADS_CALLER)};
  pthread_t host[CALLERS];
  share_caller each[CALLERS];
  for (int i = 0; i < CALLERS; i++) {
    each[i] = (share_caller){&s, i};
    assert_int_equal(pthread_create(&host[i], NULL, call_on, &each[i]), 0);
  }
  for (int i = 0; i < CALLERS; i++) pthread_join(host[i], NULL);
  assert_int_equal(atomic_load(&s.failures), 0);
  assert_int_equal(s.runs, RUNS);
  for (int i = 0; i < CALLERS; i++) {
    if (s.of_caller[i] * 100L < RUNS * 24L) {
      fail_msg("caller %d got %d of %d runs", i, s.of_caller[i], RUNS);
    }
  }
  assert_ok(dist_strategy_destroy(s.strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_the_order_of_coming),
      cmocka_unit_test(equal_shares),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
