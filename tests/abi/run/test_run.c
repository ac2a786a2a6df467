/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs: the thread of each replica, the reported error, and operations that must fail in or after a run.
 */
#include "tests/abi/common.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct slots {
  pthread_t threads[MOST];
  dist_replica *replicas[MOST];
  sigset_t masks[MOST];
  dist_status statuses[MOST];
  report reports[MOST];
  dist_strategy *other;
  dist_status cancelled;
  atomic_int count;
} slots;

static dist_status note_thread(dist_replica *replica, void *user_data) {
  slots *s = user_data;
  const int32_t me = dist_replica_id(replica);
  s->threads[me] = pthread_self();
  s->replicas[me] = replica;
  pthread_sigmask(SIG_SETMASK, NULL, &s->masks[me]);
  atomic_fetch_add(&s->count, 1);
  return dist_replica_num_replicas(replica) == 4 && dist_replica_strategy(replica) == s->other
             ? DIST_OK
             : DIST_INTERNAL;
}

static void whose_threads(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    slots s = {.other = strategy_of(4, threads)}, again = {.other = s.other};
    assert_ok(dist_run(s.other, note_thread, &s, NULL));
    assert_ok(dist_run(s.other, note_thread, &again, NULL));
    assert_int_equal(atomic_load(&s.count), 4);
    assert_int_equal(pthread_equal(s.threads[0], pthread_self()) != 0, threads == DIST_THREADS_CALLER);
    for (int i = 0; i < 4; i++) {
      assert_true(pthread_equal(s.threads[i], again.threads[i]));
      for (int j = 0; j < i; j++) assert_false(pthread_equal(s.threads[i], s.threads[j]));
    }
    assert_ok(dist_strategy_destroy(s.other));
  }
}

static void signals_belong_to_the_host(void **state) {
  (void)state;
  static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF, SIGURG};
  static const int blocked[] = {SIGINT,  SIGTERM, SIGHUP,  SIGUSR1, SIGUSR2,
                                SIGCHLD, SIGPIPE, SIGALRM, SIGWINCH};
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  slots s = {.other = strategy_of(4, DIST_THREADS_LIBRARY)};
  assert_ok(dist_run(s.other, note_thread, &s, NULL));
  for (int i = 0; i < 4; i++) {
    for (size_t k = 0; k < COUNT_OF(open); k++) assert_false(sigismember(&s.masks[i], open[k]));
    for (size_t k = 0; k < COUNT_OF(blocked); k++) assert_true(sigismember(&s.masks[i], blocked[k]));
  }
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  for (int k = 1; k <= SIGRTMAX; k++) assert_int_equal(sigismember(&before, k), sigismember(&after, k));
  assert_ok(dist_strategy_destroy(s.other));
}

static dist_status first_of_two_fails(dist_replica *replica, void *user_data) {
  slots *s = user_data;
  const int32_t me = dist_replica_id(replica);
  if (me == 2) return dist_fail(DIST_NOT_FOUND, "two has no rows");
  if (me == 3) return dist_fail(DIST_DATA_LOSS, "three is cut short");
  const dist_status status = dist_barrier(replica, NULL, NULL);
  s->statuses[me] = status;
  read_report(&s->reports[me]);
  return status;
}

static void the_lowest_own_failure_wins(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(5, DIST_THREADS_CALLER);
  for (int i = 0; i < 20; i++) {
    static slots s;
    memset(&s, 0, sizeof s);
    assert_fails(dist_run(strategy, first_of_two_fails, &s, NULL), DIST_NOT_FOUND, "two has no rows");
    dist_error_info info = DIST_ERROR_INFO_INIT;
    assert_ok(dist_last_error_info(&info));
    assert_int_equal(info.replica, 2);
    static const int peers[] = {0, 1, 4};
    for (size_t k = 0; k < COUNT_OF(peers); k++) {
      const report *r = &s.reports[peers[k]];
      assert_int_equal(s.statuses[peers[k]], DIST_ABORTED);
      assert_true(r->replica == 2 || r->replica == 3); /* the first one that was known to have left */
      assert_has(r->message, r->replica == 2 ? "two has no rows" : "three is cut short");
      assert_string_equal(r->message, s.reports[0].message); /* one report for all */
    }
    assert_healthy(DIST_THREADS_CALLER, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status no_reason(dist_replica *replica, void *user_data) {
  (void)dist_fail(DIST_NOT_FOUND, "of something before, and mended");
  const int32_t *who = user_data;
  return dist_replica_id(replica) == who[0] ? who[1] : DIST_OK;
}

static void a_failure_without_a_reason(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_LIBRARY);
  for (int32_t id = 0; id < 3; id++) {
    int32_t who[] = {id, id == 2 ? 99 : DIST_PERMISSION_DENIED};
    static const char *const kTexts[] = {"replica 0's function returned PERMISSION_DENIED without a reason",
                                         "replica 1's", "replica 2's function returned status 99 without"};
    assert_fails(dist_run(strategy, no_reason, who, NULL), who[1], kTexts[id]);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status runs_inside(dist_replica *replica, void *user_data) {
  slots *s = user_data;
  const int32_t me = dist_replica_id(replica);
  s->statuses[me] = dist_run(me % 2 == 0 ? dist_replica_strategy(replica) : s->other, healthy, NULL, NULL);
  read_report(&s->reports[me]);
  return dist_barrier(replica, NULL, NULL);
}

static void runs_do_not_nest(void **state) {
  (void)state;
  static slots s;
  dist_strategy *strategy = strategy_of(4, DIST_THREADS_CALLER);
  s.other = strategy_of(2, DIST_THREADS_LIBRARY);
  assert_ok(dist_run(strategy, runs_inside, &s, NULL));
  for (int i = 0; i < 4; i++) {
    assert_int_equal(s.statuses[i], DIST_FAILED_PRECONDITION);
    assert_has(s.reports[i].message, i % 2 == 0 ? "do not nest" : "another strategy");
  }
  assert_ok(dist_strategy_destroy(s.other));
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_handle_ends_with_its_run(void **state) {
  (void)state;
  slots s = {.other = strategy_of(4, DIST_THREADS_CALLER)};
  assert_ok(dist_run(s.other, note_thread, &s, NULL));
  float number = 1;
  dist_tensor tensor = {&number, DIST_F32, 0, NULL, NULL};
  for (int i = 0; i < 4; i++) {
    assert_fails(dist_barrier(s.replicas[i], NULL, NULL), DIST_FAILED_PRECONDITION, "is not running");
    assert_fails(dist_all_reduce(s.replicas[i], DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL),
                 DIST_FAILED_PRECONDITION, "is not running");
    assert_int_equal(dist_replica_leave(s.replicas[i], DIST_OK), DIST_FAILED_PRECONDITION);
  }
  assert_healthy(DIST_THREADS_CALLER, s.other);
  assert_ok(dist_strategy_destroy(s.other));
}

static void null_arguments(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  assert_fails(dist_run(NULL, healthy, NULL, NULL), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_fails(dist_run(strategy, NULL, NULL, NULL), DIST_INVALID_ARGUMENT, "fn is NULL");
  assert_int_equal(dist_replica_id(NULL), -1);
  assert_int_equal(dist_replica_num_replicas(NULL), 0);
  assert_null(dist_replica_strategy(NULL));
  assert_fails(dist_barrier(NULL, NULL, NULL), DIST_INVALID_ARGUMENT, "replica is NULL");
  assert_fails(dist_replica_leave(NULL, DIST_OK), DIST_INVALID_ARGUMENT, "replica is NULL");
  dist_replica *replica;
  assert_fails(dist_replica_enter(strategy, 0, &replica), DIST_FAILED_PRECONDITION, "DIST_THREADS_HOST");
  assert_ok(dist_strategy_destroy(strategy));
  strategy = strategy_of(2, DIST_THREADS_HOST);
  assert_fails(dist_run(strategy, healthy, NULL, NULL), DIST_FAILED_PRECONDITION, "dist_replica_enter");
  assert_ok(dist_strategy_destroy(strategy));
}

typedef struct callers {
  dist_strategy *strategy;
  atomic_int inside; /* number of runs in progress */
  atomic_int overlaps;
  atomic_int failures;
} callers;

static dist_status alone(dist_replica *replica, void *user_data) {
  callers *c = user_data;
  dist_status status = dist_barrier(replica, NULL, NULL);
  if (status == DIST_OK && dist_replica_id(replica) == 0) {
    if (atomic_fetch_add(&c->inside, 1) != 0) atomic_fetch_add(&c->overlaps, 1);
    sched_yield();
    atomic_fetch_sub(&c->inside, 1);
  }
  return status != DIST_OK ? status : dist_barrier(replica, NULL, NULL);
}

static void *call_often(void *argument) {
  callers *c = argument;
  for (int i = 0; i < 200; i++)
    atomic_fetch_add(&c->failures, dist_run(c->strategy, alone, c, NULL) != DIST_OK);
  return NULL;
}

static void several_callers_are_served_in_turn(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    callers c = {.strategy = strategy_of(3, threads)};
    pthread_t host[4];
    for (size_t i = 0; i < COUNT_OF(host); i++)
      assert_int_equal(pthread_create(&host[i], NULL, call_often, &c), 0);
    for (size_t i = 0; i < COUNT_OF(host); i++) pthread_join(host[i], NULL);
    assert_int_equal(atomic_load(&c.overlaps), 0);
    assert_int_equal(atomic_load(&c.failures), 0);
    assert_ok(dist_strategy_destroy(c.strategy));
  }
}

/* ---- Threads that end inside their function ---- */

static dist_status one_goes(dist_replica *replica, void *user_data) {
  if (dist_replica_id(replica) == *(int32_t *)user_data) pthread_exit(NULL);
  return dist_barrier(replica, NULL, NULL);
}

static void a_library_thread_ends_inside(void **state) {
  (void)state;
  const int before = count_threads();
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_LIBRARY);
  for (int32_t who = 0; who < 3; who++) {
    assert_fails(dist_run(strategy, one_goes, &who, NULL), DIST_FAILED_PRECONDITION,
                 "thread ended inside its run");
    assert_healthy(DIST_THREADS_LIBRARY, strategy);
  }
  int32_t last = 1; /* the strategy can also be destroyed after a thread has ended */
  assert_int_equal(dist_run(strategy, one_goes, &last, NULL), DIST_FAILED_PRECONDITION);
  assert_ok(dist_strategy_destroy(strategy));
  await_threads(before);
}

typedef struct gone_caller {
  dist_strategy *strategy;
  atomic_int peers_out;
} gone_caller;

static dist_status caller_goes(dist_replica *replica, void *user_data) {
  gone_caller *g = user_data;
  if (dist_replica_id(replica) == 0) pthread_exit(NULL);
  const dist_status status = dist_barrier(replica, NULL, NULL);
  for (int i = 0; i < 1000; i++) sched_yield(); /* still inside when the caller's thread unwinds */
  atomic_fetch_add(&g->peers_out, 1);
  return status;
}

static void *run_and_go(void *argument) {
  gone_caller *g = argument;
  (void)!dist_run(g->strategy, caller_goes, g, NULL);
  return argument; /* not reached */
}

static void the_caller_ends_inside(void **state) {
  (void)state;
  gone_caller g = {.strategy = strategy_of(3, DIST_THREADS_CALLER)};
  for (int i = 1; i <= 5; i++) {
    pthread_t thread;
    void *returned = &g;
    assert_int_equal(pthread_create(&thread, NULL, run_and_go, &g), 0);
    pthread_join(thread, &returned);
    assert_null(returned);
    /* The caller's stack contains data that its peers use, so they must have returned before it is gone. */
    assert_int_equal(atomic_load(&g.peers_out), 2 * i);
    assert_healthy(DIST_THREADS_CALLER, g.strategy);
  }
  assert_ok(dist_strategy_destroy(g.strategy));
}

/* ---- Cancelling ---- */

static dist_status barriers_for_ever(dist_replica *replica, void *user_data) {
  slots *s = user_data;
  atomic_fetch_add(&s->count, 1);
  dist_status status;
  do {
    status = dist_barrier(replica, NULL, NULL);
  } while (status == DIST_OK);
  /* and again later in this run */
  s->statuses[dist_replica_id(replica)] = dist_barrier(replica, NULL, NULL);
  return status;
}

static void *cancel_from_outside(void *argument) {
  slots *s = argument;
  while (atomic_load(&s->count) == 0) sched_yield();
  s->cancelled = dist_strategy_cancel(s->other);
  return NULL;
}

static void cancel_from_another_thread(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(3, threads);
    for (int i = 0; i < 50; i++) {
      static slots s;
      memset(&s, 0, sizeof s);
      s.other = strategy;
      pthread_t thread;
      assert_int_equal(pthread_create(&thread, NULL, cancel_from_outside, &s), 0);
      report error;
      assert_int_equal(run_on(threads, strategy, barriers_for_ever, &s, &error), DIST_CANCELLED);
      assert_has(error.message, "dist_strategy_cancel()");
      for (int r = 0; r < 3; r++) assert_int_equal(s.statuses[r], DIST_CANCELLED);
      pthread_join(thread, NULL);
      assert_int_equal(s.cancelled, DIST_OK);
      assert_healthy(threads, strategy);
    }
    assert_ok(dist_strategy_cancel(strategy)); /* without a run, this has no effect */
    assert_healthy(threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static dist_status cancel_and_return(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) == 1 ? dist_strategy_cancel(dist_replica_strategy(replica)) : DIST_OK;
}

static void a_cancelled_run_is_cancelled_without_collectives(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(3, threads);
    for (int i = 0; i < 20; i++) {
      report error;
      assert_int_equal(run_on(threads, strategy, cancel_and_return, NULL, &error), DIST_CANCELLED);
      assert_healthy(threads, strategy);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- Deadlines ---- */

typedef struct jumping_clock {
  atomic_llong now_ns;
  atomic_int looks; /* number of times that the waiting replica reads the clock */
  atomic_int lines; /* number of lines in the log */
  char line[256];   /* the first line */
  atomic_int returned;
  dist_status status;
} jumping_clock;

static _Thread_local int waits_in_a_collective = 0;

static int64_t read_clock(void *user_data) {
  jumping_clock *c = user_data;
  if (waits_in_a_collective) atomic_fetch_add(&c->looks, 1);
  return atomic_load(&c->now_ns);
}

static void take_line(int32_t level, const char *message, void *user_data) {
  jumping_clock *c = user_data;
  if (level == DIST_LOG_WARNING && atomic_load(&c->lines) == 0)
    snprintf(c->line, sizeof c->line, "%s", message);
  atomic_fetch_add(&c->lines, 1);
}

static void jump(jumping_clock *c, int64_t seconds) {
  const int looks = atomic_load(&c->looks);
  while (atomic_load(&c->looks) < looks + 2) sched_yield();
  atomic_fetch_add(&c->now_ns, seconds * 1000000000);
}

static dist_status wait_while_the_clock_jumps(dist_replica *replica, void *user_data) {
  jumping_clock *c = user_data;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "grads";
  if (dist_replica_id(replica) == 0) {
    waits_in_a_collective = 1;
    c->status = dist_barrier(replica, &options, NULL);
    waits_in_a_collective = 0;
    atomic_store(&c->returned, 1);
    return c->status;
  }
  jump(c, 95); /* the process seems to have been stopped, for longer than several intervals of the log */
  jump(c, 500);
  if (atomic_load(&c->returned)) return dist_fail(DIST_INTERNAL, "it did not wait for 600 s");
  jump(c, 10);
  while (!atomic_load(&c->returned)) sched_yield();
  return dist_barrier(replica, &options, NULL);
}

static void a_clock_that_jumps(void **state) {
  (void)state;
  static jumping_clock c;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2;
  host.clock = read_clock;
  host.clock_user_data = &c;
  host.log = take_line;
  host.log_user_data = &c;
  dist_strategy *strategy = strategy_with(options);
  assert_fails(dist_run(strategy, wait_while_the_clock_jumps, &c, NULL), DIST_DEADLINE_EXCEEDED,
               "replica 1 did not arrive");
  assert_int_equal(c.status, DIST_DEADLINE_EXCEEDED);
  assert_in_range(atomic_load(&c.lines), 1, 3);
  assert_has(c.line, "replica 0 is still waiting for replica 1 in barrier #1, tag grads");
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- A deadline ---- */

typedef struct lingering {
  atomic_int let_out;
  atomic_int outside;
} lingering;

static dist_status the_last_lingers(dist_replica *replica, void *user_data) {
  lingering *l = user_data;
  if (dist_replica_id(replica) == 0) return dist_barrier(replica, NULL, NULL);
  while (!atomic_load(&l->let_out)) sched_yield();
  atomic_fetch_add(&l->outside, 1);
  return DIST_OK;
}

static void a_run_ends_at_its_deadline(void **state) {
  (void)state;
  static lingering l;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 20000000;
  assert_fails(dist_run(strategy, the_last_lingers, &l, &options), DIST_DEADLINE_EXCEEDED, "deadline");
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  assert_int_equal(info.inside, 1);
  assert_fails(dist_run(strategy, healthy, NULL, NULL), DIST_FAILED_PRECONDITION, "have not returned");
  atomic_store(&l.let_out, 1);
  dist_status status;
  while ((status = dist_run(strategy, healthy, NULL, NULL)) == DIST_FAILED_PRECONDITION) sched_yield();
  assert_int_equal(status, DIST_OK);
  assert_int_equal(atomic_load(&l.outside), 1);
  options.timeout_ns = INT64_MAX;
  assert_ok(dist_run(strategy, healthy, NULL, &options));
  options.timeout_ns = DIST_NO_TIMEOUT;
  assert_ok(dist_run(strategy, healthy, NULL, &options));
  options.timeout_ns = -2;
  assert_fails(dist_run(strategy, healthy, NULL, &options), DIST_INVALID_ARGUMENT,
               "dist_run_options.timeout_ns is -2");
  options.timeout_ns = 0, options.reserved = 1;
  assert_fails(dist_run(strategy, healthy, NULL, &options), DIST_INVALID_ARGUMENT, "reserved");
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Fork ---- */

static int child_of_fork(dist_strategy *inherited) {
  if (dist_run(inherited, healthy, NULL, NULL) != DIST_FAILED_PRECONDITION) return 1;
  if (strstr(dist_last_error(), "forked child") == NULL) return 2;
  if (dist_strategy_cancel(inherited) != DIST_FAILED_PRECONDITION) return 3;
  if (dist_strategy_destroy(inherited) != DIST_OK) return 4;
#if defined(__SANITIZE_THREAD__)
  return 0; /* ThreadSanitizer does not allow new threads after a fork of a process with several threads */
#else
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 3;
  dist_strategy *own = NULL;
  if (dist_strategy_create(&options, &own) != DIST_OK) return 5;
  if (dist_run(own, healthy, NULL, NULL) != DIST_OK) return 6;
  return dist_strategy_destroy(own) == DIST_OK ? 0 : 7;
#endif
}

static void a_forked_child_gets_an_error(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  assert_healthy(DIST_THREADS_CALLER, strategy);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(child_of_fork(strategy));
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_healthy(DIST_THREADS_CALLER, strategy); /* the parent's strategy still works */
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whose_threads),
      cmocka_unit_test(signals_belong_to_the_host),
      cmocka_unit_test(the_lowest_own_failure_wins),
      cmocka_unit_test(a_failure_without_a_reason),
      cmocka_unit_test(runs_do_not_nest),
      cmocka_unit_test(a_handle_ends_with_its_run),
      cmocka_unit_test(null_arguments),
      cmocka_unit_test(several_callers_are_served_in_turn),
      cmocka_unit_test(a_library_thread_ends_inside),
      cmocka_unit_test(the_caller_ends_inside),
      cmocka_unit_test(cancel_from_another_thread),
      cmocka_unit_test(a_cancelled_run_is_cancelled_without_collectives),
      cmocka_unit_test(a_clock_that_jumps),
      cmocka_unit_test(a_run_ends_at_its_deadline),
      cmocka_unit_test(a_forked_child_gets_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
