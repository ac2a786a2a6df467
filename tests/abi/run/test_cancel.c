/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancel objects: what a signal ends and what it does not. test_cancel_inside.c covers works, logical
 * devices, and runs inside merge functions.
 */
#include "tests/abi/alloc_support.h"
#include "tests/abi/gate.h"

static dist_cancel *new_cancel(void) {
  dist_cancel *cancel = NULL;
  assert_ok(dist_cancel_create(NULL, &cancel));
  return cancel;
}

static dist_run_options with(dist_cancel *cancel) {
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.cancel = cancel;
  return options;
}

static void the_object(void **state) {
  (void)state;
  static refusals a;
  a = (refusals){.refuse_at = -1};
  dist_allocator allocator = refusing(&a);
  dist_cancel *cancel = NULL;
  for (long k = 0; k < 2; k++) {
    atomic_store(&a.refuse_at, atomic_load(&a.requests) + k);
    assert_fails(dist_cancel_create(&allocator, &cancel), DIST_RESOURCE_EXHAUSTED, "out of memory");
    assert_null(cancel);
    assert_int_equal(atomic_load(&a.live_bytes), 0);
  }
  assert_ok(dist_cancel_create(&allocator, &cancel));
  assert_int_equal(dist_cancel_signalled(cancel), 0);
  assert_ok(dist_cancel_signal(cancel, NULL));
  assert_int_equal(dist_cancel_signalled(cancel), 1);
  assert_ok(dist_cancel_signal(cancel, "again"));
  dist_cancel_destroy(cancel);
  assert_int_equal(atomic_load(&a.live_bytes), 0);

  assert_fails(dist_cancel_create(NULL, NULL), DIST_INVALID_ARGUMENT, "out_cancel is NULL");
  allocator.free = NULL;
  assert_fails(dist_cancel_create(&allocator, &cancel), DIST_INVALID_ARGUMENT, "alloc and free");
  assert_fails(dist_cancel_signal(NULL, "why"), DIST_INVALID_ARGUMENT, "cancel is NULL");
  assert_int_equal(dist_cancel_signalled(NULL), 0);
  dist_cancel_destroy(NULL);
}

static dist_status count_call(dist_replica *replica, void *user_data) {
  (void)replica;
  atomic_fetch_add((atomic_int *)user_data, 1);
  return DIST_OK;
}

static dist_status count_values_call(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                     dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  return count_call(replica, user_data);
}

static void signalled_before_the_run(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    dist_strategy *strategy = strategy_of(3, threads);
    dist_cancel *cancel = new_cancel();
    const dist_run_options options = with(cancel);
    atomic_int calls = 0;
    assert_ok(dist_run(strategy, count_call, &calls, &options));
    assert_ok(dist_cancel_signal(cancel, "the user pressed stop"));
    assert_ok(dist_cancel_signal(cancel, "another reason"));
    assert_fails(dist_run(strategy, count_call, &calls, &options), DIST_CANCELLED, "the user pressed stop");
    assert_fails(dist_run_values(strategy, count_values_call, &calls, NULL, NULL, &options, NULL),
                 DIST_CANCELLED, "before it started");
    assert_int_equal(atomic_load(&calls), 3);
    dist_cancel_destroy(cancel);
    assert_healthy(threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- A run in progress ---- */

typedef struct under_way {
  dist_strategy *strategy;
  dist_cancel *cancel; /* that of the run */
  const char *reason;
  int32_t signals; /* the replica that signals; -1 = another thread */
  int quiet;       /* the functions return OK regardless of the errors they got */
  gate inside;     /* replicas that are about to wait */
  report reports[MOST];
} under_way;

static dist_status wait_for_nothing(dist_replica *replica, void *user_data) {
  under_way *u = user_data;
  const int32_t me = dist_replica_id(replica);
  gate_add(&u->inside);
  if (u->signals == me) {
    const dist_status signalled = dist_cancel_signal(u->cancel, u->reason);
    return u->quiet || signalled != DIST_OK ? signalled : dist_barrier(replica, NULL, NULL);
  }
  if (dist_replica_num_replicas(replica) > 1 && me == dist_replica_num_replicas(replica) - 1 &&
      u->signals < 0) {
    /* does not call the barrier before the signal */
    while (!dist_cancel_signalled(u->cancel)) sched_yield();
  }
  const dist_status status = dist_barrier(replica, NULL, NULL);
  read_report(&u->reports[me]);
  return u->quiet ? DIST_OK : status;
}

static void *signal_from_outside(void *argument) {
  under_way *u = argument;
  gate_await(&u->inside, dist_strategy_num_replicas(u->strategy));
  (void)!dist_cancel_signal(u->cancel, u->reason);
  return NULL;
}

static void check_a_run_under_way(int32_t threads, int32_t replicas, int32_t signals, const char *reason,
                                  int quiet) {
  static under_way u;
  u = (under_way){.strategy = strategy_of(replicas, threads),
                  .cancel = new_cancel(),
                  .reason = reason,
                  .signals = signals,
                  .quiet = quiet,
                  .inside = GATE_INIT};
  const dist_run_options options = with(u.cancel);
  pthread_t other;
  if (signals < 0) assert_int_equal(pthread_create(&other, NULL, signal_from_outside, &u), 0);
  assert_fails(dist_run(u.strategy, wait_for_nothing, &u, &options), DIST_CANCELLED,
               reason != NULL ? reason : "dist_cancel_signal()");
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  assert_int_equal(info.replica, -1); /* no replica is at fault */
  if (signals < 0) pthread_join(other, NULL);
  for (int32_t i = 0; i < replicas && signals < 0; i++) {
    assert_int_equal(u.reports[i].code, DIST_CANCELLED);
    assert_has(u.reports[i].message, reason != NULL ? reason : "dist_cancel_signal()");
    assert_string_equal(u.reports[i].message, u.reports[0].message); /* one report for all */
  }
  dist_cancel_destroy(u.cancel);
  assert_healthy(threads, u.strategy);
  assert_ok(dist_strategy_destroy(u.strategy));
}

static void a_run_under_way(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    for (int32_t replicas = 1; replicas <= 4; replicas += 3) {
      for (int quiet = 0; quiet < 2; quiet++) {
        check_a_run_under_way(threads, replicas, 0, "from within", quiet);
        if (replicas > 1) check_a_run_under_way(threads, replicas, -1, "from outside", quiet);
        if (replicas > 1) check_a_run_under_way(threads, replicas, replicas - 1, NULL, quiet);
      }
    }
  }
}

/* ---- Queued runs ---- */

typedef struct caller {
  dist_strategy *strategy;
  dist_cancel *cancel;
  int64_t timeout_ns;
  dist_replica_fn fn;
  void *user_data;
  dist_status status;
  report error;
} caller;

static void *call_run(void *argument) {
  caller *c = argument;
  dist_run_options options = with(c->cancel);
  options.timeout_ns = c->timeout_ns;
  c->status = dist_run(c->strategy, c->fn, c->user_data, &options);
  read_report(&c->error);
  return NULL;
}

typedef struct stuck {
  gate inside, released;
} stuck;

static dist_status stay_inside(dist_replica *replica, void *user_data) {
  stuck *s = user_data;
  if (dist_replica_id(replica) == 0) {
    gate_add(&s->inside);
    gate_await(&s->released, 1);
  }
  return dist_barrier(replica, NULL, NULL);
}

/* Behind a replica that does not return, a caller that is cancelled or late returns at once. The order and
 * the runs of the other callers do not change. */
static void queued_behind_a_stuck_replica(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    stuck s = {GATE_INIT, GATE_INIT};
    dist_strategy *strategy = strategy_of(2, threads);
    caller first = {.strategy = strategy, .cancel = new_cancel(), .fn = stay_inside, .user_data = &s};
    pthread_t holder, host[3];
    assert_int_equal(pthread_create(&holder, NULL, call_run, &first), 0);
    gate_await(&s.inside, 1);
    atomic_int calls = 0;
    caller queued[3];
    for (int i = 0; i < 3; i++) {
      queued[i] = (caller){.strategy = strategy,
                           .cancel = i == 0 ? NULL : new_cancel(),
                           .fn = count_call,
                           .user_data = &calls};
    }
    queued[2].timeout_ns = 1;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&host[i], NULL, call_run, &queued[i]), 0);
    pthread_join(host[2], NULL);
    assert_int_equal(queued[2].status, DIST_DEADLINE_EXCEEDED);
    assert_has(queued[2].error.message, "an earlier run");
    assert_ok(dist_cancel_signal(queued[1].cancel, "no longer wanted"));
    pthread_join(host[1], NULL);
    assert_int_equal(queued[1].status, DIST_CANCELLED);
    assert_has(queued[1].error.message, "before it started: no longer wanted");
    assert_int_equal(atomic_load(&calls), 0);
    gate_add(&s.released);
    pthread_join(host[0], NULL);
    pthread_join(holder, NULL);
    assert_int_equal(first.status, DIST_OK);
    assert_int_equal(queued[0].status, DIST_OK);
    assert_int_equal(atomic_load(&calls), 2);
    dist_cancel_destroy(first.cancel);
    dist_cancel_destroy(queued[1].cancel);
    dist_cancel_destroy(queued[2].cancel);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* One run is in progress and another is cancelled, queued or just started. The first one must not be
 * affected. */
static void never_another_callers_run(void **state) {
  (void)state;
  enum { ROUNDS = 300 };
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  for (int i = 0; i < ROUNDS; i++) {
    caller kept = {.strategy = strategy, .cancel = new_cancel(), .fn = healthy};
    caller ended = {.strategy = strategy, .cancel = new_cancel(), .fn = healthy};
    pthread_t host[2];
    assert_int_equal(pthread_create(&host[0], NULL, call_run, &kept), 0);
    assert_int_equal(pthread_create(&host[1], NULL, call_run, &ended), 0);
    if (i % 2 == 0) sched_yield();
    assert_ok(dist_cancel_signal(ended.cancel, "this one"));
    pthread_join(host[0], NULL);
    pthread_join(host[1], NULL);
    if (kept.status != DIST_OK) fail_msg("round %d: %s", i, kept.error.message);
    if (ended.status != DIST_OK) {
      assert_int_equal(ended.status, DIST_CANCELLED);
      assert_has(ended.error.message, "this one");
    }
    dist_cancel_destroy(kept.cancel);
    dist_cancel_destroy(ended.cancel);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Signals from several threads while runs begin and end ---- */

enum { CALLERS = 3, SIGNALLERS = 3, RUNS = 400 };

typedef struct storm {
  dist_strategy *strategy;
  pthread_mutex_t mutex;
  dist_cancel *latest[CALLERS]; /* for the current run of each caller; NULL = none */
  atomic_int at_work;
  atomic_int wrong;
} storm;

typedef struct storm_caller {
  storm *storm;
  int index;
} storm_caller;

static void *run_often(void *argument) {
  storm_caller *self = argument;
  storm *s = self->storm;
  for (int i = 0; i < RUNS; i++) {
    const int asked = self->index != 0; /* caller 0 has no cancel object: none of its runs ends early */
    dist_cancel *cancel = NULL;
    if (asked && dist_cancel_create(NULL, &cancel) != DIST_OK) atomic_fetch_add(&s->wrong, 1);
    pthread_mutex_lock(&s->mutex);
    s->latest[self->index] = cancel;
    pthread_mutex_unlock(&s->mutex);
    const dist_run_options options = with(cancel);
    const dist_status status = dist_run(s->strategy, healthy, NULL, &options);
    pthread_mutex_lock(&s->mutex);
    s->latest[self->index] = NULL;
    pthread_mutex_unlock(&s->mutex);
    const int signalled = dist_cancel_signalled(cancel);
    if (status != DIST_OK && !(status == DIST_CANCELLED && signalled)) atomic_fetch_add(&s->wrong, 1);
    dist_cancel_destroy(cancel);
  }
  atomic_fetch_sub(&s->at_work, 1);
  return NULL;
}

static void *signal_often(void *argument) {
  storm *s = argument;
  for (unsigned i = 0; atomic_load(&s->at_work) > 0; i++) {
    pthread_mutex_lock(&s->mutex);
    dist_cancel *cancel = s->latest[1 + i % (CALLERS - 1)];
    if (cancel != NULL && dist_cancel_signal(cancel, "storm") != DIST_OK) atomic_fetch_add(&s->wrong, 1);
    pthread_mutex_unlock(&s->mutex);
    sched_yield();
  }
  return NULL;
}

static void a_storm_of_signals(void **state) {
  (void)state;
  storm s = {.strategy = strategy_of(3, DIST_THREADS_CALLER),
             .mutex = PTHREAD_MUTEX_INITIALIZER,
             .at_work = CALLERS};
  pthread_t callers[CALLERS], signallers[SIGNALLERS];
  storm_caller each[CALLERS];
  for (int i = 0; i < CALLERS; i++) {
    each[i] = (storm_caller){&s, i};
    assert_int_equal(pthread_create(&callers[i], NULL, run_often, &each[i]), 0);
  }
  for (int i = 0; i < SIGNALLERS; i++)
    assert_int_equal(pthread_create(&signallers[i], NULL, signal_often, &s), 0);
  for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], NULL);
  for (int i = 0; i < SIGNALLERS; i++) pthread_join(signallers[i], NULL);
  assert_int_equal(atomic_load(&s.wrong), 0);
  assert_healthy(DIST_THREADS_CALLER, s.strategy);
  assert_ok(dist_strategy_destroy(s.strategy));
}

/* The host destroys the object while the run that uses it waits. */
static dist_status let_go(dist_replica *replica, void *user_data) {
  under_way *u = user_data;
  if (dist_replica_id(replica) == 0) dist_cancel_destroy(u->cancel);
  return dist_barrier(replica, NULL, NULL);
}

static void destroyed_during_the_run(void **state) {
  (void)state;
  static under_way u;
  u = (under_way){.strategy = strategy_of(2, DIST_THREADS_LIBRARY), .cancel = new_cancel()};
  const dist_run_options options = with(u.cancel);
  assert_ok(dist_run(u.strategy, let_go, &u, &options));
  assert_ok(dist_strategy_destroy(u.strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_object),
      cmocka_unit_test(signalled_before_the_run),
      cmocka_unit_test(a_run_under_way),
      cmocka_unit_test(queued_behind_a_stuck_replica),
      cmocka_unit_test(never_another_callers_run),
      cmocka_unit_test(a_storm_of_signals),
      cmocka_unit_test(destroyed_during_the_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
