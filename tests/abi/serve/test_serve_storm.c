/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests, runs, cancel objects and deadlines, all at the same time: each accepted request ends exactly
 * once.
 */
#include "tests/abi/serve/serve_support.h"

#include <unistd.h>

/* ---- Everything at once ---- */

enum { SUBMITTERS = 3, RUNNERS = 2, EACH = 400 };

typedef struct storm {
  dist_strategy *strategy;
  dist_completions *completions;
  atomic_int inside, gangs, bad; /* functions of requests and of runs that are running */
  atomic_int accepted, began, told, arrived, waited, runs;
  unsigned seed;
} storm;

static dist_status in_the_storm(dist_replica *replica, void *user_data) {
  storm *s = user_data;
  atomic_fetch_add(&s->inside, 1);
  atomic_fetch_add(&s->began, 1);
  if (atomic_load(&s->gangs) != 0) atomic_fetch_add(&s->bad, 1);
  const dist_status status = dist_replica_check(replica);
  atomic_fetch_sub(&s->inside, 1);
  return status;
}

static dist_status gang_in_the_storm(dist_replica *replica, void *user_data) {
  storm *s = user_data;
  atomic_fetch_add(&s->gangs, 1);
  dist_status status = dist_barrier(replica, NULL, NULL);
  if (atomic_load(&s->inside) != 0) atomic_fetch_add(&s->bad, 1);
  if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
  atomic_fetch_sub(&s->gangs, 1);
  return status;
}

static void told_in_the_storm(dist_request *work, void *user_data) {
  storm *s = user_data;
  if (dist_request_user_data(work) != s) atomic_fetch_add(&s->bad, 1);
  (void)!dist_request_wait(work, DIST_NO_TIMEOUT);
  atomic_fetch_add(&s->told, 1);
}

typedef struct stormer {
  storm *s;
  unsigned random;
} stormer;

static unsigned draw(stormer *self, unsigned below) {
  self->random = self->random * 1103515245u + 12345u;
  return (self->random >> 16) % below;
}

static void *submit_main(void *argument) {
  stormer *self = argument;
  storm *s = self->s;
  for (int i = 0; i < EACH; i++) {
    dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
    options.priority = (int32_t)draw(self, 15) - 7;
    if (draw(self, 3) == 0) options.timeout_ns = 1 + (int64_t)draw(self, 100) * 1000;
    dist_cancel *cancel = NULL;
    if (draw(self, 3) == 0 && dist_cancel_create(NULL, &cancel) == DIST_OK) options.cancel = cancel;
    const unsigned way = draw(self, 3);
    dist_request *work = NULL;
    if (way == 0) options.completions = s->completions;
    if (way == 1) options.done = told_in_the_storm;
    const dist_status status = dist_submit(s->strategy, in_the_storm, s, &options, way == 2 ? &work : NULL);
    if (status == DIST_OK) {
      atomic_fetch_add(&s->accepted, 1);
      if (cancel != NULL && draw(self, 2) == 0) (void)!dist_cancel_signal(cancel, "the storm");
      if (way == 2) {
        if (draw(self, 4) == 0) (void)!dist_request_cancel(work);
        (void)!dist_request_wait(work, -1);
        int32_t done = 0;
        (void)!dist_request_test(work, &done);
        if (!done && dist_request_wait(work, -1) == DIST_OK) atomic_fetch_add(&s->bad, 1);
        atomic_fetch_add(&s->waited, 1);
        dist_request_destroy(work);
      }
    } else if (status != DIST_RESOURCE_EXHAUSTED) {
      atomic_fetch_add(&s->bad, 1);
    }
    dist_cancel_destroy(cancel);
  }
  return NULL;
}

static void *run_main(void *argument) {
  stormer *self = argument;
  storm *s = self->s;
  for (int i = 0; i < EACH / 4; i++) {
    const dist_status status = dist_run(s->strategy, gang_in_the_storm, s, NULL);
    if (status != DIST_OK) atomic_fetch_add(&s->bad, 1);
    atomic_fetch_add(&s->runs, 1);
  }
  return NULL;
}

static void everything_at_once(void **state) {
  (void)state;
  const unsigned seed = (unsigned)getpid();
  print_message("# seed %u\n", seed);
  for (int32_t n = 1; n <= 3; n++) {
    storm s = {.strategy = strategy_of(n, DIST_THREADS_LIBRARY)};
    assert_ok(dist_completions_create(NULL, &s.completions));
    dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
    options.max_queued = 64;
    assert_ok(dist_instances_open(s.strategy, &options));
    pthread_t threads[SUBMITTERS + RUNNERS];
    stormer each[SUBMITTERS + RUNNERS];
    for (int i = 0; i < SUBMITTERS + RUNNERS; i++) {
      each[i] = (stormer){&s, seed + (unsigned)i};
      assert_int_equal(pthread_create(&threads[i], NULL, i < SUBMITTERS ? submit_main : run_main, &each[i]),
                       0);
    }
    for (int i = 0; i < SUBMITTERS + RUNNERS; i++) pthread_join(threads[i], NULL);
    assert_ok(dist_instances_close(s.strategy, -1));
    for (dist_request *work = NULL;;) {
      assert_ok(dist_completions_next(s.completions, 0, &work));
      if (work == NULL) break;
      atomic_fetch_add(&s.arrived, 1);
      dist_request_destroy(work);
    }
    assert_ok(dist_strategy_destroy(s.strategy));
    dist_completions_destroy(s.completions);
    assert_int_equal(atomic_load(&s.bad), 0);
    assert_int_equal(atomic_load(&s.accepted),
                     atomic_load(&s.arrived) + atomic_load(&s.told) + atomic_load(&s.waited));
    assert_true(atomic_load(&s.began) <= atomic_load(&s.accepted));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(everything_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
