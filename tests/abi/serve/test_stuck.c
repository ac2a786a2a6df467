/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that do not return when they should. Their replicas get new threads, on which runs and requests
 * continue, while the function keeps what it uses until it returns. Also idle instances, which sleep.
 */
#include "tests/abi/alloc_support.h"
#include "tests/abi/clock.h"
#include "tests/abi/mesh_support.h"
#include "tests/abi/serve/serve_support.h"
#include "tests/abi/version/versions_support.h"

enum { DEADLINE_NS = 1000, STUCK_NS = 1000, LONG_NS = 100000 };

/* ---- States and log lines ---- */

typedef struct states {
  atomic_int made, warmed, ended, wrong;
} states;

typedef struct own_state {
  states *all;
  pthread_t thread;
} own_state;

static dist_status make_own(dist_replica *replica, void **out_state, void *user_data) {
  (void)replica;
  states *all = user_data;
  own_state *own = malloc(sizeof *own);
  if (own == NULL) return DIST_RESOURCE_EXHAUSTED;
  *own = (own_state){all, pthread_self()};
  atomic_fetch_add(&all->made, 1);
  *out_state = own;
  return DIST_OK;
}

static dist_status warm_own(dist_replica *replica, void *user_data) {
  states *all = user_data;
  const own_state *own = dist_instance_state(replica);
  if (own == NULL || !pthread_equal(own->thread, pthread_self())) atomic_fetch_add(&all->wrong, 1);
  atomic_fetch_add(&all->warmed, 1);
  return DIST_OK;
}

static void end_own(void *state, void *user_data) {
  states *all = user_data;
  own_state *own = state;
  if (!pthread_equal(own->thread, pthread_self())) atomic_fetch_add(&all->wrong, 1);
  free(own);
  atomic_fetch_add(&all->ended, 1);
}

static dist_instances_options with_states(states *all) {
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.create_state = make_own;
  options.destroy_state = end_own;
  options.warm_up = warm_own;
  options.user_data = all;
  options.stuck_ns = STUCK_NS;
  return options;
}

typedef struct page {
  char text[1 << 16];
  size_t size;
} page;

static void append(const char *text, size_t size_bytes, void *user_data) {
  page *p = user_data;
  if (p->size + size_bytes >= sizeof p->text) abort();
  memcpy(p->text + p->size, text, size_bytes);
  p->size += size_bytes;
  p->text[p->size] = '\0';
}

static void assert_says(dist_strategy *strategy, const char *words) {
  static page p;
  p.size = 0;
  assert_ok(dist_strategy_write_metrics(strategy, NULL, append, &p));
  assert_ok(dist_strategy_explain(strategy, append, &p));
  assert_has(p.text, words);
}

/* The strategy's log, which any thread may call. */
static atomic_int logged;
static void count_lines(int32_t level, const char *line, void *user_data) {
  (void)user_data;
  if (level == DIST_LOG_WARNING && strstr(line, "has not returned on replica") != NULL)
    atomic_fetch_add(&logged, 1);
}

/* ---- A function that waits at a gate ---- */

typedef struct stuck_at_gate {
  held at;
  int exits;           /* its thread ends instead of returning */
  atomic_int told, ok; /* what libdist's calls return afterwards */
  series *s;           /* the series of versions that it uses; NULL = none */
} stuck_at_gate;

static dist_status wait_at_gate(dist_replica *replica, void *user_data) {
  stuck_at_gate *self = user_data;
  int64_t number = 0;
  if (self->s != NULL) TRY(see(replica, self->s, &number));
  atomic_fetch_add(&self->ok, dist_replica_check(replica) == DIST_OK);
  (void)hold_here(replica, &self->at);
  int wrong = dist_replica_check(replica) != DIST_CANCELLED;
  wrong |= dist_replica_parallel_for(replica, 0, 1, 1, NULL, NULL) == DIST_OK;
  void *content = NULL;
  if (self->s != NULL)
    wrong |= dist_replica_version(replica, self->s->versions, &content, NULL) != DIST_CANCELLED;
  const own_state *own = dist_instance_state(replica);
  wrong |= own == NULL || !pthread_equal(own->thread, pthread_self());
  atomic_fetch_add(&self->told, !wrong);
  if (self->exits) pthread_exit(NULL);
  return DIST_OK;
}
#define AT_GATE \
  { HELD_INIT, 0, 0, 0, NULL }

static void *run_main(void *argument) {
  dist_strategy *strategy = argument;
  return dist_run(strategy, healthy, NULL, NULL) == DIST_OK ? argument : NULL;
}

static void await_count(atomic_int *count, int value) {
  while (atomic_load(count) < value) sched_yield();
}

/* How the request of a stuck function is asked to end. */
enum way { BY_DEADLINE, BY_WORK, BY_OBJECT, WAYS };

static dist_request *submit_stuck(dist_strategy *strategy, stuck_at_gate *g, enum way way,
                                  dist_cancel **out_cancel) {
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  if (way == BY_DEADLINE) options.timeout_ns = DEADLINE_NS;
  if (way == BY_OBJECT) assert_ok(dist_cancel_create(NULL, out_cancel));
  options.cancel = *out_cancel;
  dist_request *work = submit(strategy, wait_at_gate, g, &options);
  gate_await(&g->at.inside, 1);
  if (way == BY_WORK) assert_ok(dist_request_cancel(work));
  if (way == BY_OBJECT) assert_ok(dist_cancel_signal(*out_cancel, "no longer needed"));
  return work;
}

static void check_stuck(enum way way, int exits) {
  static stepping_clock clock;
  atomic_store(&clock.now_ns, 1000);
  atomic_store(&logged, 0);
  dist_strategy_options with = by_clock(&clock, 2, DIST_THREADS_LIBRARY);
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  if (with.host != NULL) host = *with.host;
  with.host = &host;
  host.log = count_lines;
  dist_strategy *strategy = strategy_with(with);
  states all = {0};
  dist_instances_options options = with_states(&all);
  assert_ok(dist_instances_open(strategy, &options));
  assert_says(strategy, "0 replaced (at most 4)");
  stuck_at_gate g = AT_GATE;
  g.exits = exits;
  g.s = series_with(NULL);
  (void)publish(g.s);
  dist_cancel *cancel = NULL;
  dist_request *work = submit_stuck(strategy, &g, way, &cancel);
  /* A run waits for the function's replica. */
  pthread_t runner;
  assert_int_equal(pthread_create(&runner, NULL, run_main, strategy), 0);
  int32_t done = 1;
  assert_ok(dist_request_test(work, &done));
  assert_int_equal(done, 0);
  /* The thread that watches the clock may first have to notice the cancellation. */
  while (!done) {
    atomic_fetch_add(&clock.now_ns, LONG_NS);
    sched_yield();
    if (dist_request_test(work, &done) != DIST_OK) break;
  }
  assert_fails(dist_request_wait(work, -1), way == BY_DEADLINE ? DIST_DEADLINE_EXCEEDED : DIST_CANCELLED,
               "which got a new thread");
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  assert_true(info.replica == 0 || info.replica == 1);
  dist_request_destroy(work);
  void *ran = NULL;
  pthread_join(runner, &ran);
  assert_non_null(ran);
  assert_int_equal(atomic_load(&all.made), 3);
  assert_int_equal(atomic_load(&all.warmed), 3);
  assert_int_equal(atomic_load(&all.ended), 0);
  assert_int_equal(atomic_load(&logged), 1);
  assert_says(strategy, "dist_instances_replaced_total 1");
  assert_says(strategy, "dist_instances_stuck 1");
  assert_says(strategy, way == BY_DEADLINE ? "{end=\"overdue\"} 1" : "{end=\"cancelled\"} 1");
  assert_says(strategy, "1 replaced (at most 4), of which 1 are still running");
  /* Two requests at the same time, so both replicas work. */
  held both = HELD_INIT;
  dist_request *works[2];
  for (int i = 0; i < 2; i++) works[i] = submit(strategy, hold_here, &both, NULL);
  gate_await(&both.inside, 2);
  gate_add(&both.released);
  for (int i = 0; i < 2; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  /* The version that it uses is kept until it returns. */
  (void)publish(g.s);
  assert_int_equal(atomic_load(&g.s->released), 0);
  gate_add(&g.at.released);
  await_count(&all.ended, 1);
  assert_ok(dist_versions_await(g.s->versions, 2, -1));
  assert_int_equal(atomic_load(&g.told), 1);
  assert_int_equal(atomic_load(&g.ok), 1);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  assert_ok(dist_instances_close(strategy, -1));
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&all.ended), 3);
  assert_int_equal(atomic_load(&all.wrong), 0);
  dist_cancel_destroy(cancel);
  end_series(g.s);
}

static void a_stuck_function_is_replaced(void **state) {
  (void)state;
  const int before = count_threads();
  for (int way = 0; way < WAYS; way++)
    for (int exits = 0; exits < 2; exits++) check_stuck((enum way)way, exits);
  await_threads(before);
}

/* Without the option, and after its limit is reached, a stuck function is waited for. */
static void replacements_are_bounded(void **state) {
  (void)state;
  static stepping_clock clock;
  atomic_store(&clock.now_ns, 1000);
  dist_strategy *strategy = strategy_with(by_clock(&clock, 1, DIST_THREADS_LIBRARY));
  states all = {0};
  dist_instances_options options = with_states(&all);
  options.max_replaced = 2;
  assert_ok(dist_instances_open(strategy, &options));
  stuck_at_gate gates[3] = {AT_GATE, AT_GATE, AT_GATE};
  dist_cancel *none = NULL;
  for (int i = 0; i < 3; i++) {
    dist_request *work = submit_stuck(strategy, &gates[i], BY_DEADLINE, &none);
    atomic_fetch_add(&clock.now_ns, LONG_NS);
    if (i == 2) gate_add(&gates[i].at.released);
    const dist_status status = end_of(work);
    assert_int_equal(status == DIST_DEADLINE_EXCEEDED && i < 2, i < 2);
  }
  assert_says(strategy, "dist_instances_replaced_total 2");
  assert_says(strategy, "dist_instances_stuck 2");
  for (int i = 0; i < 2; i++) gate_add(&gates[i].at.released);
  await_count(&all.ended, 2);
  /* After reopening, the limit starts again. */
  assert_ok(dist_instances_close(strategy, -1));
  assert_ok(dist_instances_open(strategy, &options));
  stuck_at_gate again = AT_GATE;
  dist_request *work = submit_stuck(strategy, &again, BY_DEADLINE, &none);
  atomic_fetch_add(&clock.now_ns, LONG_NS);
  assert_int_equal(end_of(work), DIST_DEADLINE_EXCEEDED);
  gate_add(&again.at.released);
  await_count(&all.ended, 4);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&all.made), atomic_load(&all.ended));
}

/* The strategy is destroyed. What the function uses is kept until it returns, and then everything is
 * freed. */
static void a_strategy_ends_before_it(void **state) {
  (void)state;
  static stepping_clock clock;
  static refusals memory;
  memory = (refusals){.refuse_at = -1};
  const int before = count_threads();
  for (int shut_down = 0; shut_down < 2; shut_down++) {
    atomic_store(&clock.now_ns, 1000);
    dist_strategy_options with = by_clock(&clock, 2, DIST_THREADS_LIBRARY);
    dist_host_options host = DIST_HOST_OPTIONS_INIT;
    if (with.host != NULL) host = *with.host;
    with.host = &host;
    host.allocator = refusing(&memory);
    dist_strategy *strategy = strategy_with(with);
    states all = {0};
    dist_instances_options options = with_states(&all);
    assert_ok(dist_instances_open(strategy, &options));
    stuck_at_gate g = AT_GATE;
    dist_cancel *none = NULL;
    dist_request *work = submit_stuck(strategy, &g, BY_DEADLINE, &none);
    atomic_fetch_add(&clock.now_ns, LONG_NS);
    assert_int_equal(end_of(work), DIST_DEADLINE_EXCEEDED);
    if (shut_down) assert_ok(dist_strategy_shutdown(strategy, -1));
    assert_ok(dist_strategy_destroy(strategy));
    await_threads(before + 1);
    /* The other thread may have been too late to create its state. */
    const int made = atomic_load(&all.made);
    assert_true(made == 2 || made == 3);
    assert_int_equal(atomic_load(&all.ended), made - 1);
    gate_add(&g.at.released);
    await_count(&all.ended, made);
    await_threads(before);
    while (atomic_load(&memory.live_bytes) != 0) sched_yield();
    assert_int_equal(atomic_load(&all.wrong), 0);
  }
}

static void where_it_is_not_offered(void **state) {
  (void)state;
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.stuck_ns = 1;
  dist_strategy *host = strategy_of(2, DIST_THREADS_HOST);
  assert_fails(dist_instances_open(host, &options), DIST_UNIMPLEMENTED, "DIST_THREADS_HOST");
  assert_ok(dist_strategy_destroy(host));
  dist_strategy_options with = DIST_STRATEGY_OPTIONS_INIT;
  with.threads = DIST_THREADS_LIBRARY;
  dist_strategy *mesh = mesh_with(1, 2, with);
  assert_fails(dist_instances_open(mesh, &options), DIST_UNIMPLEMENTED, "logical devices");
  options.stuck_ns = -1;
  assert_fails(dist_instances_open(mesh, &options), DIST_INVALID_ARGUMENT, "stuck_ns");
  options.stuck_ns = 0;
  options.max_replaced = -1;
  assert_fails(dist_instances_open(mesh, &options), DIST_INVALID_ARGUMENT, "max_replaced");
  assert_ok(dist_strategy_destroy(mesh));
}

/* ---- Idle instances ---- */

/* Whether all threads except the calling one sleep. */
static int others_sleep(void) {
  DIR *folder = opendir("/proc/self/task");
  if (folder == NULL) return 0;
  int all = 1;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    const int thread = atoi(entry->d_name);
    if (thread != 0 && thread != this_thread()) all = all && sleeps(thread);
  }
  closedir(folder);
  return all;
}

static void tell_nothing(dist_request *work, void *user_data) { (void)work, (void)user_data; }

/* If an instance does not stop looking for work, this never ends, and the test's time limit ends it. */
static void free_instances_sleep(void **state) {
  (void)state;
  static const int64_t kSpins[] = {0, -1, 2000000};
  for (size_t i = 0; i < COUNT_OF(kSpins); i++) {
    dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
    dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
    options.spin_ns = kSpins[i];
    options.stuck_ns = 1000000000;
    assert_ok(dist_instances_open(strategy, &options));
    for (int round = 0; round < 3; round++) {
      atomic_int count = 0;
      dist_submit_options with = DIST_SUBMIT_OPTIONS_INIT;
      with.timeout_ns = (int64_t)3600 * 1000000000; /* so that the helper threads exist, too */
      with.done = tell_nothing;
      for (int k = 0; k < 10; k++)
        assert_int_equal(end_of(submit(strategy, count_here, &count, &with)), DIST_OK);
      assert_healthy(DIST_THREADS_LIBRARY, strategy);
#if !defined(__SANITIZE_THREAD__) /* it has a thread of its own */
      while (!others_sleep()) sched_yield();
#endif
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stuck_function_is_replaced), cmocka_unit_test(replacements_are_bounded),
      cmocka_unit_test(a_strategy_ends_before_it),    cmocka_unit_test(where_it_is_not_offered),
      cmocka_unit_test(free_instances_sleep),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
