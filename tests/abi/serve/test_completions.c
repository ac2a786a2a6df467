/* SPDX-License-Identifier: Apache-2.0
 *
 * Hosts that do not wait for requests: a completion queue or a callback reports each completed request.
 */
#include "tests/abi/serve/serve_support.h"

#include <poll.h>

#include "tests/abi/alloc_support.h"

static dist_completions *completions_of(void) {
  dist_completions *completions = NULL;
  assert_ok(dist_completions_create(NULL, &completions));
  return completions;
}

static dist_request *next_of(dist_completions *completions, int64_t timeout_ns) {
  dist_request *work = (dist_request *)1;
  assert_ok(dist_completions_next(completions, timeout_ns, &work));
  return work;
}

static int readable(int32_t descriptor) {
  struct pollfd each = {.fd = descriptor, .events = POLLIN};
  const int n = poll(&each, 1, 0);
  assert_in_range(n, 0, 1);
  return n;
}

static void in_the_order_of_their_ends(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_completions *completions = completions_of();
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.completions = completions;
  enum { N = 100 };
  atomic_int counts[N] = {0};
  assert_null(next_of(completions, 0));
  for (int i = 0; i < N; i++) assert_ok(dist_submit(strategy, count_here, &counts[i], &options, NULL));
  for (int i = 0; i < N; i++) {
    dist_request *work = next_of(completions, -1);
    assert_ptr_equal(dist_request_user_data(work), &counts[i]);
    assert_int_equal(atomic_load(&counts[i]), 1);
    assert_ok(dist_request_wait(work, DIST_NO_TIMEOUT));
    dist_request_destroy(work);
  }
  assert_null(next_of(completions, 0));
  assert_null(next_of(completions, 1000));
  /* A separate handle for each, and its result. */
  dist_request *own = NULL;
  assert_ok(dist_submit(strategy, count_here, &counts[0], &options, &own));
  dist_request *arrived = next_of(completions, -1);
  assert_ptr_equal(arrived, own);
  dist_request_destroy(own);
  assert_ok(dist_request_wait(arrived, DIST_NO_TIMEOUT));
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "still has requests");
  dist_request_destroy(arrived);
  dist_completions_destroy(completions);
  assert_ok(dist_strategy_destroy(strategy));
}

/* A thread with a default strategy is not inside a replica function. */
static void by_a_thread_with_a_default_strategy(void **state) {
  (void)state;
  dist_completions *completions = completions_of();
  assert_non_null(dist_get_strategy());
  assert_null(next_of(completions, 1000));
  dist_completions_destroy(completions);
}

static void a_descriptor_for_poll(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  dist_completions *completions = completions_of();
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.completions = completions;
  atomic_int count = 0;
  /* The descriptor is created before or after a request has completed. */
  for (int late = 0; late <= 1; late++) {
    int32_t descriptor = -1;
    if (!late) assert_ok(dist_completions_descriptor(completions, &descriptor));
    if (!late) assert_int_equal(readable(descriptor), 0);
    for (int i = 0; i < 3; i++) assert_ok(dist_submit(strategy, count_here, &count, &options, NULL));
    if (late) assert_ok(dist_completions_descriptor(completions, &descriptor));
    struct pollfd each = {.fd = descriptor, .events = POLLIN};
    for (int i = 0; i < 3; i++) {
      assert_int_equal(poll(&each, 1, -1), 1);
      dist_request *work = next_of(completions, 0);
      assert_non_null(work);
      dist_request_destroy(work);
    }
    assert_int_equal(readable(descriptor), 0);
    if (!late) {
      dist_completions_destroy(completions);
      completions = completions_of();
      options.completions = completions;
    }
  }
  dist_completions_destroy(completions);
  assert_int_equal(atomic_load(&count), 6);
  assert_ok(dist_strategy_destroy(strategy));
}

/* Requests complete even if their completion queue is destroyed first. */
static void completions_that_go_first(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_completions *completions = completions_of();
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.completions = completions;
  held h = HELD_INIT;
  dist_request *holder = hold_only(strategy, &h);
  atomic_int count = 0;
  for (int i = 0; i < 5; i++) assert_ok(dist_submit(strategy, count_here, &count, &options, NULL));
  dist_completions_destroy(completions);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  assert_ok(dist_instances_close(strategy, -1));
  assert_int_equal(atomic_load(&count), 5);
  assert_ok(dist_strategy_destroy(strategy));
  dist_completions_destroy(NULL);
}

/* ---- Callbacks ---- */

enum { CHAIN = 50 };

typedef struct chain {
  dist_strategy *strategy;
  dist_submit_options options;
  atomic_int count;
  int told, failures;
  pthread_t thread;
  gate over;
} chain;

static dist_status link_of(dist_replica *replica, void *user_data) {
  (void)replica;
  atomic_fetch_add(&((chain *)user_data)->count, 1);
  return DIST_OK;
}

/* The callback submits the next request. */
static void go_on(dist_request *work, void *user_data) {
  chain *self = user_data;
  if (dist_request_wait(work, DIST_NO_TIMEOUT) != DIST_OK || dist_request_user_data(work) != self)
    self->failures++;
  self->thread = pthread_self();
  if (dist_strategy_destroy(self->strategy) != DIST_FAILED_PRECONDITION) self->failures++;
  if (dist_instances_close(self->strategy, 0) != DIST_FAILED_PRECONDITION) self->failures++;
  if (++self->told == CHAIN) {
    gate_add(&self->over);
  } else if (dist_submit(self->strategy, link_of, self, &self->options, NULL) != DIST_OK) {
    self->failures++;
    gate_add(&self->over);
  }
}

static void told_by_a_function(void **state) {
  (void)state;
  chain c = {.strategy = strategy_of(2, DIST_THREADS_LIBRARY),
             .options = DIST_SUBMIT_OPTIONS_INIT,
             .over = GATE_INIT};
  c.options.done = go_on;
  assert_ok(dist_submit(c.strategy, link_of, &c, &c.options, NULL));
  gate_await(&c.over, 1);
  assert_int_equal(c.failures, 0);
  assert_int_equal(c.told, CHAIN);
  assert_int_equal(atomic_load(&c.count), CHAIN);
  assert_false(pthread_equal(c.thread, pthread_self()));
  dist_completions *completions = completions_of();
  c.options.completions = completions;
  assert_fails(dist_submit(c.strategy, link_of, &c, &c.options, NULL), DIST_INVALID_ARGUMENT,
               "completions and done");
  dist_completions_destroy(completions);
  assert_ok(dist_instances_close(c.strategy, -1));
  assert_ok(dist_strategy_destroy(c.strategy));
}

/* A blocked callback delays other callbacks, but no instance. */
static void block_told(dist_request *work, void *user_data) {
  (void)work;
  held *self = user_data;
  gate_add(&self->inside);
  gate_await(&self->released, 1);
}

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return DIST_OK;
}

static void a_told_function_that_blocks(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  held h = HELD_INIT;
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.done = block_told;
  assert_ok(dist_submit(strategy, nothing, &h, &options, NULL));
  gate_await(&h.inside, 1);
  atomic_int count = 0;
  for (int i = 0; i < 20; i++) assert_int_equal(end_of(submit(strategy, count_here, &count, NULL)), DIST_OK);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  gate_add(&h.released);
  assert_ok(dist_instances_close(strategy, -1));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Many ---- */

static void ten_thousand_in_flight(void **state) {
  (void)state;
  enum { IN_FLIGHT = 10000 };
  static refusals memory;
  memory = (refusals){.refuse_at = -1};
  dist_strategy_options wanted = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  wanted.host = &host;
  wanted.num_replicas = 2;
  wanted.threads = DIST_THREADS_LIBRARY;
  host.allocator = refusing(&memory);
  dist_strategy *strategy = strategy_with(wanted);
  dist_instances_options instances = DIST_INSTANCES_OPTIONS_INIT;
  instances.max_queued = IN_FLIGHT;
  assert_ok(dist_instances_open(strategy, &instances));
  dist_completions *completions = completions_of();
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.completions = completions;
  options.timeout_ns = INT64_C(600) * 1000 * 1000 * 1000;
  atomic_int count = 0;
  held h[2] = {HELD_INIT, HELD_INIT};
  long warm = 0;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2; i++) h[i] = (held)HELD_INIT;
    dist_request *holders[2];
    for (int i = 0; i < 2; i++) holders[i] = submit(strategy, hold_here, &h[i], NULL);
    for (int i = 0; i < 2; i++) gate_await(&h[i].inside, 1);
    for (int i = 0; i < IN_FLIGHT; i++) assert_ok(dist_submit(strategy, count_here, &count, &options, NULL));
    for (int i = 0; i < 2; i++) gate_add(&h[i].released);
    for (int i = 0; i < IN_FLIGHT; i++) {
      dist_request *work = next_of(completions, -1);
      assert_ok(dist_request_wait(work, DIST_NO_TIMEOUT));
      dist_request_destroy(work);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(end_of(holders[i]), DIST_OK);
    /* After this many have been in flight once, no more memory is requested. */
    const long asked = atomic_load(&memory.requests);
    if (round > 0) assert_int_equal(asked, warm);
    warm = asked;
  }
  assert_int_equal(atomic_load(&count), 3 * IN_FLIGHT);
  dist_completions_destroy(completions);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&memory.live_bytes), 0);
}

static void what_is_refused(void **state) {
  (void)state;
  dist_completions *completions = completions_of();
  dist_request *work = NULL;
  int32_t descriptor = -1;
  assert_fails(dist_completions_create(NULL, NULL), DIST_INVALID_ARGUMENT, "out_completions");
  assert_fails(dist_completions_next(NULL, 0, &work), DIST_INVALID_ARGUMENT, "completions");
  assert_fails(dist_completions_next(completions, 0, NULL), DIST_INVALID_ARGUMENT, "out_request");
  assert_fails(dist_completions_descriptor(NULL, &descriptor), DIST_INVALID_ARGUMENT, "completions");
  assert_fails(dist_completions_descriptor(completions, NULL), DIST_INVALID_ARGUMENT, "out_descriptor");
  dist_completions_destroy(completions);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_the_order_of_their_ends),          cmocka_unit_test(a_descriptor_for_poll),
      cmocka_unit_test(completions_that_go_first),           cmocka_unit_test(told_by_a_function),
      cmocka_unit_test(a_told_function_that_blocks),         cmocka_unit_test(ten_thousand_in_flight),
      cmocka_unit_test(by_a_thread_with_a_default_strategy), cmocka_unit_test(what_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
