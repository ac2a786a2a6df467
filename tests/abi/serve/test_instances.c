/* SPDX-License-Identifier: Apache-2.0
 *
 * Instances: their state from opening to closing, host threads, and destroying a strategy with requests in
 * progress.
 */
#include "tests/abi/alloc_support.h"
#include "tests/abi/clock.h"
#include "tests/abi/serve/serve_support.h"

#include <sys/wait.h>
#include <unistd.h>

enum { MOST_INSTANCES = 4 };

/* ---- State ---- */

typedef struct model {
  pthread_t thread;
  int32_t id;
  int warm;
} model;

typedef struct models {
  atomic_int made, ended, wrong, warmed;
  int fail_create, fail_warm_up; /* for replica 1 */
  model of[MOST_INSTANCES];
} models;

static dist_status make_model(dist_replica *replica, void **out_state, void *user_data) {
  models *all = user_data;
  const int32_t id = dist_replica_id(replica);
  if (all->fail_create && id == 1) return dist_fail(DIST_NOT_FOUND, "no weights for replica 1");
  all->of[id] = (model){pthread_self(), id, 0};
  *out_state = &all->of[id];
  atomic_fetch_add(&all->made, 1);
  return DIST_OK;
}

static dist_status warm_model(dist_replica *replica, void *user_data) {
  models *all = user_data;
  model *own = dist_instance_state(replica);
  if (own == NULL || own->id != dist_replica_id(replica)) atomic_fetch_add(&all->wrong, 1);
  if (all->fail_warm_up && dist_replica_id(replica) == 1)
    return dist_fail(DIST_DATA_LOSS, "it does not warm up");
  own->warm = 1;
  atomic_fetch_add(&all->warmed, 1);
  return DIST_OK;
}

static void end_model(void *state, void *user_data) {
  models *all = user_data;
  model *own = state;
  if (!pthread_equal(own->thread, pthread_self())) atomic_fetch_add(&all->wrong, 1);
  atomic_fetch_add(&all->ended, 1);
}

static dist_instances_options with_models(models *all) {
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.create_state = make_model;
  options.destroy_state = end_model;
  options.warm_up = warm_model;
  options.user_data = all;
  return options;
}

static dist_status use_model(dist_replica *replica, void *user_data) {
  models *all = user_data;
  const model *own = dist_instance_state(replica);
  if (own == NULL || !own->warm || !pthread_equal(own->thread, pthread_self()))
    atomic_fetch_add(&all->wrong, 1);
  return DIST_OK;
}

static dist_status no_model(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_instance_state(replica) == NULL ? DIST_OK
                                              : dist_fail(DIST_INTERNAL, "a run has a request's state");
}

static void a_state_from_opening_to_closing(void **state) {
  (void)state;
  for (int32_t n = 1; n <= MOST_INSTANCES; n++) {
    dist_strategy *strategy = strategy_of(n, DIST_THREADS_LIBRARY);
    models all = {0};
    dist_instances_options options = with_models(&all);
    for (int round = 1; round <= 3; round++) {
      assert_ok(dist_instances_open(strategy, &options));
      assert_int_equal(atomic_load(&all.made), n * round);
      assert_int_equal(atomic_load(&all.warmed), n * round);
      dist_request *works[20];
      for (int i = 0; i < 20; i++) works[i] = submit(strategy, use_model, &all, NULL);
      for (int i = 0; i < 20; i++) assert_int_equal(end_of(works[i]), DIST_OK);
      assert_ok(dist_run(strategy, no_model, NULL, NULL));
      assert_healthy(DIST_THREADS_LIBRARY, strategy);
      if (round < 3) assert_ok(dist_instances_close(strategy, -1));
      if (round < 3) assert_int_equal(atomic_load(&all.ended), n * round);
      if (round < 3) assert_healthy(DIST_THREADS_LIBRARY, strategy);
    }
    /* Destroying the strategy closes the instances too. */
    assert_ok(dist_strategy_destroy(strategy));
    assert_int_equal(atomic_load(&all.ended), n * 3);
    assert_int_equal(atomic_load(&all.wrong), 0);
  }
}

static void a_state_that_cannot_be_made(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_LIBRARY);
  models all = {.fail_create = 1};
  dist_instances_options options = with_models(&all);
  assert_fails(dist_instances_open(strategy, &options), DIST_NOT_FOUND, "no weights for replica 1");
  assert_int_equal(atomic_load(&all.made), atomic_load(&all.ended));
  all.fail_create = 0;
  all.fail_warm_up = 1;
  assert_fails(dist_instances_open(strategy, &options), DIST_DATA_LOSS, "does not warm up");
  assert_int_equal(atomic_load(&all.made), atomic_load(&all.ended));
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  all.fail_warm_up = 0;
  assert_ok(dist_instances_open(strategy, &options));
  assert_int_equal(end_of(submit(strategy, use_model, &all, NULL)), DIST_OK);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&all.made), atomic_load(&all.ended));
  assert_int_equal(atomic_load(&all.wrong), 0);
}

/* ---- Closing ---- */

typedef struct reopening {
  gate making, released;
  atomic_int held;
} reopening;

static dist_status make_held(dist_replica *replica, void **out_state, void *user_data) {
  (void)replica;
  reopening *r = user_data;
  *out_state = NULL;
  if (!atomic_load(&r->held)) return DIST_OK;
  gate_add(&r->making);
  gate_await(&r->released, 1);
  return DIST_OK;
}

static dist_status empty_step(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)replica, (void)batch, (void)user_data;
  return DIST_OK;
}

typedef struct opener {
  dist_strategy *strategy;
  dist_instances_options options;
  dist_status status;
} opener;

static void *open_main(void *argument) {
  opener *self = argument;
  self->status = dist_instances_open(self->strategy, &self->options);
  return NULL;
}

/* While instances are being reopened, items are rejected like while they are closed, and the host retries. */
static void what_comes_beside_a_reopening(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  reopening r = {GATE_INIT, GATE_INIT, 0};
  opener o = {.strategy = strategy, .options = DIST_INSTANCES_OPTIONS_INIT};
  o.options.create_state = make_held;
  o.options.user_data = &r;
  assert_ok(dist_instances_open(strategy, &o.options));
  dist_batcher *batcher = NULL;
  assert_ok(dist_batcher_create(strategy, empty_step, NULL, NULL, &batcher));
  assert_ok(dist_instances_close(strategy, -1));
  atomic_store(&r.held, 1);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, open_main, &o), 0);
  gate_await(&r.making, 1);
  dist_request *work = NULL;
  assert_fails(dist_batcher_submit(batcher, NULL, NULL, &work), DIST_UNAVAILABLE, "being opened");
  assert_null(work);
  gate_add(&r.released);
  pthread_join(thread, NULL);
  assert_ok(o.status);
  assert_ok(dist_batcher_submit(batcher, NULL, NULL, &work));
  assert_int_equal(end_of(work), DIST_OK);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

static void closing_loses_nothing(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  atomic_int count = 0;
  enum { N = 500 };
  dist_request *works[N];
  for (int i = 0; i < N; i++) works[i] = submit(strategy, count_here, &count, NULL);
  assert_ok(dist_instances_close(strategy, -1));
  assert_int_equal(atomic_load(&count), N);
  for (int i = 0; i < N; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  assert_ok(dist_instances_close(strategy, -1));
  assert_ok(dist_strategy_destroy(strategy));
}

static void closing_at_a_deadline(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  held h = HELD_INIT;
  dist_request *running = submit(strategy, until_told, &h, NULL);
  gate_await(&h.inside, 1);
  atomic_int count = 0;
  dist_request *queued = submit(strategy, count_here, &count, NULL);
  assert_fails(dist_instances_close(strategy, 0), DIST_DEADLINE_EXCEEDED, "2 requests did not complete");
  assert_fails(dist_request_wait(running, -1), DIST_CANCELLED, "dist_instances_close()");
  assert_fails(dist_request_wait(queued, -1), DIST_CANCELLED, "dist_instances_close()");
  dist_request_destroy(running);
  dist_request_destroy(queued);
  assert_int_equal(atomic_load(&count), 0);
  assert_ok(dist_instances_open(strategy, NULL));
  assert_int_equal(end_of(submit(strategy, count_here, &count, NULL)), DIST_OK);
  assert_ok(dist_strategy_destroy(strategy));
}

/* A stuck function does not prevent the strategy from being destroyed. */
static void a_shutdown_beside_a_stuck_function(void **state) {
  (void)state;
  const int before = count_threads();
  static held h; /* outlives the test's strategy */
  h = (held)HELD_INIT;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  dist_request *stuck = submit(strategy, hold_here, &h, NULL);
  gate_await(&h.inside, 1);
  atomic_int count = 0;
  for (int i = 0; i < 10; i++) assert_ok(dist_submit(strategy, count_here, &count, NULL, NULL));
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "requests");
  assert_fails(dist_strategy_shutdown(strategy, 1000 * 1000), DIST_DEADLINE_EXCEEDED,
               "the functions of replica ");
  assert_ok(dist_strategy_destroy(strategy));
  gate_add(&h.released);
  dist_request_destroy(stuck);
  await_threads(before);
}

typedef struct opening {
  dist_strategy *strategy;
  held *held;
  atomic_int thread;
  dist_status status;
} opening;

static void *open_them(void *argument) {
  opening *o = argument;
  atomic_store(&o->thread, this_thread());
  o->status = dist_instances_open(o->strategy, NULL);
  return NULL;
}

static void *run_stuck(void *argument) {
  opening *o = argument;
  (void)!dist_run(o->strategy, hold_here, o->held, NULL);
  return NULL;
}

/* Shutdown does not wait for functions, even if others do: a caller that opens the instances, or an item. */
static void a_shutdown_that_does_not_wait(void **state) {
  (void)state;
  for (int with_item = 0; with_item < 2; with_item++) {
    const int before = count_threads();
    dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
    held h = HELD_INIT;
    opening o = {strategy, &h, 0, DIST_OK};
    pthread_t running, waiting;
    dist_batcher *batcher = NULL;
    dist_request *item = NULL;
    if (with_item) assert_ok(dist_instances_open(strategy, NULL));
    assert_int_equal(pthread_create(&running, NULL, run_stuck, &o), 0);
    gate_await(&h.inside, 2);
    if (with_item) {
      assert_ok(dist_batcher_create(strategy, empty_step, NULL, NULL, &batcher));
      assert_ok(dist_batcher_submit(batcher, NULL, NULL, &item));
    } else {
      assert_int_equal(pthread_create(&waiting, NULL, open_them, &o), 0);
      while (atomic_load(&o.thread) == 0 || !sleeps(atomic_load(&o.thread))) sched_yield();
    }
    assert_fails(dist_strategy_shutdown(strategy, 0), DIST_DEADLINE_EXCEEDED,
                 "the functions of replicas 0, 1");
    if (with_item) {
      assert_fails(dist_request_wait(item, DIST_NO_TIMEOUT), DIST_CANCELLED, "dist_strategy_shutdown()");
      dist_request_destroy(item);
      assert_ok(dist_batcher_destroy(batcher));
    } else {
      pthread_join(waiting, NULL);
      assert_int_equal(o.status, DIST_CANCELLED);
    }
    gate_add(&h.released);
    pthread_join(running, NULL);
    assert_ok(dist_strategy_destroy(strategy));
    await_threads(before);
  }
}

/* ---- Host threads ---- */

typedef struct server {
  dist_strategy *strategy;
  int32_t id;
  dist_status status;
} server;

static void *serve_main(void *argument) {
  server *self = argument;
  self->status = dist_serve(self->strategy, self->id);
  return NULL;
}

static void threads_of_the_host(void **state) {
  (void)state;
  const int before = count_threads();
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_HOST);
  models all = {0};
  dist_instances_options options = with_models(&all);
  assert_ok(dist_instances_open(strategy, &options));
  await_threads(before);
  assert_int_equal(atomic_load(&all.made), 0);
  pthread_t threads[2];
  server servers[2];
  for (int i = 0; i < 2; i++) {
    servers[i] = (server){strategy, i, DIST_OK};
    assert_int_equal(pthread_create(&threads[i], NULL, serve_main, &servers[i]), 0);
  }
  for (int i = 0; i < 200; i++) assert_int_equal(end_of(submit(strategy, use_model, &all, NULL)), DIST_OK);
  await_threads(before + 2);
  /* A second thread cannot serve as the same replica. */
  while (atomic_load(&all.warmed) < 2) sched_yield();
  assert_fails(dist_serve(strategy, 1), DIST_FAILED_PRECONDITION, "already serving as replica 1");
  assert_fails(dist_serve(strategy, 2), DIST_INVALID_ARGUMENT, "replica_id is 2");
  /* `done` would have to be called on a libdist thread. */
  dist_submit_options told = DIST_SUBMIT_OPTIONS_INIT;
  told.done = (dist_done_fn)(void (*)(void))abort;
  assert_fails(dist_submit(strategy, use_model, &all, &told, NULL), DIST_FAILED_PRECONDITION,
               "helper_threads");
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "serving as replica");
  assert_ok(dist_instances_close(strategy, -1));
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(servers[i].status, DIST_OK);
  }
  assert_int_equal(atomic_load(&all.ended), 2);
  assert_int_equal(atomic_load(&all.wrong), 0);
  /* After closing, the threads serve runs as before. */
  assert_healthy(DIST_THREADS_HOST, strategy);
  assert_fails(dist_serve(strategy, 0), DIST_UNAVAILABLE, "closed");
  assert_ok(dist_strategy_destroy(strategy));
}

/* Without a libdist thread, waiting callers check deadlines. */
static void a_deadline_without_helpers(void **state) {
  (void)state;
  stepping_clock clock = {1000, 0};
  dist_strategy *strategy = strategy_with(by_clock(&clock, 1, DIST_THREADS_HOST));
  pthread_t thread;
  server one = {strategy, 0, DIST_OK};
  assert_ok(dist_instances_open(strategy, NULL));
  assert_int_equal(pthread_create(&thread, NULL, serve_main, &one), 0);
  held h = HELD_INIT;
  dist_request *holder = hold_only(strategy, &h);
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.timeout_ns = 100;
  atomic_int count = 0;
  dist_request *late = submit(strategy, count_here, &count, &options);
  atomic_store(&clock.step_ns, 60);
  assert_fails(dist_request_wait(late, -1), DIST_DEADLINE_EXCEEDED, "before an instance was free");
  dist_request_destroy(late);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  assert_ok(dist_instances_close(strategy, -1));
  pthread_join(thread, NULL);
  assert_int_equal(atomic_load(&count), 0);
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_shutdown_beside_a_stuck_host_thread(void **state) {
  (void)state;
  static held h; /* outlives the test's strategy */
  h = (held)HELD_INIT;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_HOST);
  pthread_t thread;
  server one = {strategy, 0, DIST_OK};
  assert_ok(dist_instances_open(strategy, NULL));
  assert_int_equal(pthread_create(&thread, NULL, serve_main, &one), 0);
  dist_request *stuck = hold_only(strategy, &h);
  assert_fails(dist_strategy_shutdown(strategy, 1000 * 1000), DIST_DEADLINE_EXCEEDED,
               "the functions of replica 0");
  assert_ok(dist_strategy_destroy(strategy));
  gate_add(&h.released);
  pthread_join(thread, NULL);
  assert_int_equal(one.status, DIST_OK);
  assert_fails(dist_request_wait(stuck, -1), DIST_CANCELLED, "dist_strategy_shutdown()");
  dist_request_destroy(stuck);
}

/* ---- A forked child ---- */

static void a_forked_child(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  atomic_int count = 0;
  dist_completions *completions = NULL;
  assert_ok(dist_completions_create(NULL, &completions));
  dist_request *work = submit(strategy, count_here, &count, NULL);
  assert_ok(dist_request_wait(work, -1));
  const pid_t child = fork();
  if (child == 0) {
    int bad = 0;
    dist_request *none = NULL;
    bad |= dist_submit(strategy, count_here, &count, NULL, &none) != DIST_FAILED_PRECONDITION;
    bad |= dist_request_wait(work, -1) != DIST_FAILED_PRECONDITION;
    bad |= dist_instances_close(strategy, -1) != DIST_FAILED_PRECONDITION;
    bad |= dist_completions_next(completions, -1, &none) != DIST_FAILED_PRECONDITION;
    dist_request_destroy(work);
    dist_completions_destroy(completions);
    _exit(bad);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  dist_request_destroy(work);
  dist_completions_destroy(completions);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Lack of memory ---- */

static dist_status no_step(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)replica, (void)user_data;
  static int mark;
  dist_batch_set_state(batch, 0, &mark);
  const dist_status emitted = dist_batch_emit(batch, 0, &mark);
  dist_batch_end(batch, 0, emitted);
  return DIST_OK;
}

/* From opening to closing. Whatever request is rejected, everything that could start also ends. */
static dist_status a_life(dist_strategy *strategy, dist_completions *completions) {
  static models all;
  dist_instances_options options = with_models(&all);
  dist_status status = dist_instances_open(strategy, &options);
  dist_batcher *batcher = NULL;
  dist_batcher_options batching = DIST_BATCHER_OPTIONS_INIT;
  batching.continuous = 1;
  if (status == DIST_OK) status = dist_batcher_create(strategy, no_step, NULL, &batching, &batcher);
  dist_request *works[3] = {NULL, NULL, NULL};
  dist_submit_options with = DIST_SUBMIT_OPTIONS_INIT;
  with.timeout_ns = INT64_C(600) * 1000 * 1000 * 1000;
  if (status == DIST_OK) status = dist_submit(strategy, use_model, &all, &with, &works[0]);
  with.timeout_ns = 0;
  with.completions = completions;
  if (status == DIST_OK) status = dist_submit(strategy, use_model, &all, &with, NULL);
  if (status == DIST_OK) status = dist_batcher_submit(batcher, NULL, NULL, &works[1]);
  if (status == DIST_OK) status = dist_batcher_submit(batcher, NULL, NULL, &works[2]);
  for (int i = 0; i < 3; i++) {
    if (works[i] == NULL) continue;
    const dist_status ended = dist_request_wait(works[i], -1);
    if (status == DIST_OK) status = ended;
    dist_request_destroy(works[i]);
  }
  assert_ok(dist_instances_close(strategy, -1));
  for (dist_request *work = NULL;;) {
    assert_ok(dist_completions_next(completions, 0, &work));
    if (work == NULL) break;
    dist_request_destroy(work);
  }
  assert_ok(dist_batcher_destroy(batcher));
  return status;
}

static void whatever_memory_is_refused(void **state) {
  (void)state;
  static refusals a;
  a = (refusals){.refuse_at = -1};
  dist_completions *completions = NULL;
  assert_ok(dist_completions_create(NULL, &completions));
  long k = 0;
  for (int refused = 1; refused; k++) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_host_options host = DIST_HOST_OPTIONS_INIT;
    options.host = &host;
    options.num_replicas = 2;
    options.threads = DIST_THREADS_LIBRARY;
    host.allocator = refusing(&a);
    dist_strategy *strategy = strategy_with(options);
    const long before = atomic_load(&a.requests);
    atomic_store(&a.refuse_at, before + k);
    const dist_status status = a_life(strategy, completions);
    refused = atomic_load(&a.requests) > before + k;
    atomic_store(&a.refuse_at, -1);
    if (status != DIST_OK && !(refused && status == DIST_RESOURCE_EXHAUSTED))
      fail_msg("request %ld: %s: %s", k, dist_status_name(status), dist_last_error());
    assert_ok(a_life(strategy, completions));
    assert_healthy(DIST_THREADS_LIBRARY, strategy);
    assert_ok(dist_strategy_destroy(strategy));
    assert_int_equal(atomic_load(&a.live_bytes), 0);
  }
  assert_true(k > 5);
  dist_completions_destroy(completions);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_state_from_opening_to_closing),
      cmocka_unit_test(a_state_that_cannot_be_made),
      cmocka_unit_test(what_comes_beside_a_reopening),
      cmocka_unit_test(closing_loses_nothing),
      cmocka_unit_test(closing_at_a_deadline),
      cmocka_unit_test(a_shutdown_beside_a_stuck_function),
      cmocka_unit_test(a_shutdown_that_does_not_wait),
      cmocka_unit_test(threads_of_the_host),
      cmocka_unit_test(a_deadline_without_helpers),
      cmocka_unit_test(a_shutdown_beside_a_stuck_host_thread),
      cmocka_unit_test(a_forked_child),
      cmocka_unit_test(whatever_memory_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
