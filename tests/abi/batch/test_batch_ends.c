/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches: partial results, how items end, and a combination of everything.
 */
#include "tests/abi/batch/batch_support.h"
#include "tests/abi/clock.h"

#include <unistd.h>

/* ---- Partial results ---- */

typedef struct stream {
  int64_t next, length;
} stream;

static dist_status emit_numbers(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)replica, (void)user_data;
  for (size_t i = 0; i < dist_batch_size(batch); i++) {
    stream *s = dist_batch_user_data(batch, i);
    int64_t *number = malloc(sizeof *number);
    *number = s->next;
    if (dist_batch_emit(batch, i, number) != DIST_OK) {
      free(number);
      dist_batch_end(batch, i, DIST_INTERNAL);
    } else if (++s->next == s->length) {
      dist_batch_end(batch, i, DIST_OK);
    }
  }
  return DIST_OK;
}

static atomic_int freed;

static void free_number(void *what, void *user_data) {
  (void)user_data;
  atomic_fetch_add(&freed, 1);
  free(what);
}

static void partial_results_in_order(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = 4;
  options.continuous = 1;
  options.max_results = 3;
  options.free_result = free_number;
  dist_batcher *batcher = batcher_of(strategy, emit_numbers, NULL, &options);
  enum { N = 6 };
  stream streams[N];
  dist_request *works[N];
  for (int i = 0; i < N; i++) {
    streams[i] = (stream){0, 20 + i};
    works[i] = join(batcher, &streams[i], NULL);
  }
  /* As long as results are not taken, each item stops after three and does not delay runs. */
  for (int i = N - 1; i >= 0; i--) {
    for (int64_t k = 0; k < 20 + i; k++) {
      void *result = NULL;
      assert_ok(dist_request_take(works[i], -1, &result));
      assert_non_null(result);
      assert_int_equal(*(int64_t *)result, k);
      free(result);
    }
    void *none = &none;
    assert_ok(dist_request_take(works[i], -1, &none));
    assert_null(none);
    assert_int_equal(end_of(works[i]), DIST_OK);
    assert_healthy(DIST_THREADS_LIBRARY, strategy);
  }
  /* Results that are never taken are freed. */
  atomic_store(&freed, 0);
  stream left = {0, 100};
  dist_request *work = join(batcher, &left, NULL);
  void *first = NULL;
  assert_ok(dist_request_take(work, -1, &first));
  free(first);
  assert_ok(dist_request_cancel(work));
  assert_int_equal(end_of(work), DIST_CANCELLED);
  assert_ok(dist_batcher_destroy(batcher));
  assert_int_equal(atomic_load(&freed) + 1, left.next);
  assert_ok(dist_strategy_destroy(strategy));
}

static void partial_results_by_completions(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.continuous = 1;
  options.max_results = 2;
  options.free_result = free_number;
  dist_batcher *batcher = batcher_of(strategy, emit_numbers, NULL, &options);
  dist_completions *completions = NULL;
  assert_ok(dist_completions_create(NULL, &completions));
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  item.completions = completions;
  enum { N = 8 };
  stream streams[N];
  int64_t taken[N] = {0};
  int ended = 0;
  for (int i = 0; i < N; i++) {
    streams[i] = (stream){0, 30};
    assert_ok(dist_batcher_submit(batcher, &streams[i], &item, NULL));
  }
  while (ended < N) {
    dist_request *work = NULL;
    assert_ok(dist_completions_next(completions, -1, &work));
    const int64_t which = (stream *)dist_request_user_data(work) - streams;
    int32_t done = 0;
    assert_ok(dist_request_test(work, &done));
    for (void *result = NULL;;) {
      assert_ok(dist_request_take(work, 0, &result));
      if (result == NULL) break;
      assert_int_equal(*(int64_t *)result, taken[which]);
      taken[which]++;
      free(result);
    }
    /* Its end is another arrival if it came after this call. */
    if (done) ended++;
    dist_request_destroy(work);
  }
  for (int i = 0; i < N; i++) assert_int_equal(taken[i], 30);
  dist_request *none = NULL;
  assert_ok(dist_completions_next(completions, 0, &none));
  assert_null(none);
  assert_ok(dist_batcher_destroy(batcher));
  dist_completions_destroy(completions);
  assert_ok(dist_strategy_destroy(strategy));
}

/* Two threads can hold two arrivals of one item. Only the last arrival reports the end, so each item is
 * finished once. */
static void only_the_last_arrival_reports_the_end(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.continuous = 1;
  options.max_results = 1; /* the item waits for each result to be taken */
  options.free_result = free_number;
  dist_batcher *batcher = batcher_of(strategy, emit_numbers, NULL, &options);
  dist_completions *completions = NULL;
  assert_ok(dist_completions_create(NULL, &completions));
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  item.completions = completions;
  enum { N = 5, MOST = 2 * N };
  for (int with_handle = 0; with_handle < 2; with_handle++) {
    stream numbers = {0, N};
    dist_request *own = NULL;
    assert_ok(dist_batcher_submit(batcher, &numbers, &item, with_handle ? &own : NULL));
    dist_request *arrivals[MOST];
    int count = 0, taken = 0;
    for (int32_t done = 0; !done;) {
      assert_in_range(count, 0, MOST - 1);
      assert_ok(dist_completions_next(completions, -1, &arrivals[count]));
      assert_ptr_equal(dist_request_user_data(arrivals[count]), &numbers);
      for (void *result = NULL;
           dist_request_take(arrivals[count], 0, &result) == DIST_OK && result != NULL;) {
        assert_int_equal(*(int64_t *)result, taken++);
        free(result);
      }
      assert_ok(dist_request_test(arrivals[count++], &done));
    }
    assert_int_equal(taken, N);
    assert_in_range(count, 2, MOST);
    for (int i = 0; i < count; i++) {
      int32_t done = -1;
      size_t which = 9;
      void *result = &done;
      assert_ok(dist_request_test(arrivals[i], &done));
      assert_int_equal(done, i == count - 1);
      assert_ok(dist_request_wait(arrivals[i], -1));
      assert_ok(dist_request_wait_any(&arrivals[i], (size_t)(count - i), -1, &which));
      assert_int_equal(which, 0);
      assert_ok(dist_request_take(arrivals[i], -1, &result));
      assert_null(result);
      assert_ok(dist_request_cancel(arrivals[i]));
    }
    if (with_handle) assert_int_equal(end_of(own), DIST_OK);
    for (int i = 0; i < count; i++) dist_request_destroy(arrivals[i]);
  }
  assert_ok(dist_batcher_destroy(batcher));
  dist_completions_destroy(completions);
  assert_ok(dist_strategy_destroy(strategy));
}

typedef struct drained {
  atomic_int left, ends[200], lost;
  dist_completions *completions;
} drained;

static void *drain(void *argument) {
  drained *all = argument;
  while (atomic_load(&all->left) > 0) {
    dist_request *work = NULL;
    int32_t done = 0;
    void *result = NULL;
    if (dist_completions_next(all->completions, 1000000, &work) != DIST_OK) atomic_fetch_add(&all->lost, 1);
    if (work == NULL) continue;
    while (dist_request_take(work, 0, &result) == DIST_OK && result != NULL) free(result);
    if (dist_request_test(work, &done) != DIST_OK || done) {
      stream *const numbers = dist_request_user_data(work);
      if (atomic_fetch_add(&all->ends[numbers->length - 1], 1) == 0) atomic_fetch_sub(&all->left, 1);
    }
    dist_request_destroy(work);
  }
  return NULL;
}

static void threads_that_drain_one_queue_see_each_end_once(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.continuous = 1;
  options.free_result = free_number;
  dist_batcher *batcher = batcher_of(strategy, emit_numbers, NULL, &options);
  static drained all;
  all = (drained){.left = COUNT_OF(all.ends)};
  assert_ok(dist_completions_create(NULL, &all.completions));
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  item.completions = all.completions;
  static stream streams[COUNT_OF(all.ends)];
  pthread_t threads[3];
  for (size_t i = 0; i < COUNT_OF(threads); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, drain, &all), 0);
  for (size_t i = 0; i < COUNT_OF(streams); i++) {
    streams[i] = (stream){0, (int64_t)i + 1};
    assert_ok(dist_batcher_submit(batcher, &streams[i], &item, NULL));
  }
  for (size_t i = 0; i < COUNT_OF(threads); i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(atomic_load(&all.lost), 0);
  for (size_t i = 0; i < COUNT_OF(streams); i++) assert_int_equal(atomic_load(&all.ends[i]), 1);
  dist_request *none = NULL;
  assert_ok(dist_completions_next(all.completions, 0, &none));
  assert_null(none);
  assert_ok(dist_batcher_destroy(batcher));
  dist_completions_destroy(all.completions);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- How items end ---- */

static dist_status fail_step(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)replica, (void)user_data;
  for (size_t i = 0; i < dist_batch_size(batch); i++) {
    if (dist_batch_user_data(batch, i) != NULL) dist_batch_end(batch, i, DIST_OK);
  }
  return dist_fail(DIST_DATA_LOSS, "the engine has failed");
}

static void a_step_that_fails(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_batcher *batcher = batcher_of(strategy, fail_step, NULL, NULL);
  held h = HELD_INIT;
  dist_request *holder = hold_only(strategy, &h);
  int mark;
  dist_request *good = join(batcher, &mark, NULL), *bad = join(batcher, NULL, NULL);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  assert_int_equal(end_of(good), DIST_OK);
  assert_fails(dist_request_wait(bad, -1), DIST_DATA_LOSS, "the engine has failed");
  dist_request_destroy(bad);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status end_step_thread(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)replica, (void)batch, (void)user_data;
  pthread_exit(NULL);
}

static void a_thread_that_ends_in_a_step(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_batcher *batcher = batcher_of(strategy, end_step_thread, NULL, NULL);
  for (int i = 0; i < 3; i++) {
    dist_request *work = join(batcher, NULL, NULL);
    assert_fails(dist_request_wait(work, -1), DIST_FAILED_PRECONDITION, "thread ended inside");
    dist_request_destroy(work);
  }
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

static void deadlines_of_items(void **state) {
  (void)state;
  stepping_clock clock = {1000, 0};
  dist_strategy *strategy = strategy_with(by_clock(&clock, 1, DIST_THREADS_LIBRARY));
  decoder d = {0};
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.continuous = 1;
  options.free_state = free_cache;
  dist_batcher *batcher = batcher_of(strategy, decode, &d, &options);
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  item.timeout_ns = 500;
  sentence endless = {.length = INT32_MAX}, waiting = {.length = 1};
  /* Cancelled during its steps. */
  dist_request *work = join(batcher, &endless, &item);
  while (atomic_load(&d.steps) < 3) sched_yield();
  atomic_store(&clock.now_ns, 1500);
  assert_fails(dist_request_wait(work, -1), DIST_DEADLINE_EXCEEDED, "deadline");
  dist_request_destroy(work);
  assert_int_equal(atomic_load(&d.caches), 0);
  /* Cancelled before its first step. */
  held h = HELD_INIT;
  dist_request *holder = hold_only(strategy, &h);
  work = join(batcher, &waiting, &item);
  atomic_store(&clock.now_ns, 2000);
  assert_fails(dist_request_wait(work, -1), DIST_DEADLINE_EXCEEDED, "before its first step");
  dist_request_destroy(work);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

static void closing_ends_items(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  decoder d = {0};
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.continuous = 1;
  options.free_state = free_cache;
  dist_batcher *batcher = batcher_of(strategy, decode, &d, &options);
  enum { N = 20 };
  sentence sentences[N];
  dist_request *works[N];
  for (int i = 0; i < N; i++) {
    sentences[i] = (sentence){.length = 50};
    works[i] = join(batcher, &sentences[i], NULL);
  }
  assert_ok(dist_instances_close(strategy, -1));
  for (int i = 0; i < N; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  dist_request *none = NULL;
  assert_fails(dist_batcher_submit(batcher, NULL, NULL, &none), DIST_UNAVAILABLE, "dist_batcher_submit()");
  assert_ok(dist_instances_open(strategy, NULL));
  for (int i = 0; i < N; i++) {
    sentences[i] = (sentence){.length = i % 2 == 0 ? INT32_MAX : 1};
    works[i] = join(batcher, &sentences[i], NULL);
  }
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "have not completed");
  assert_fails(dist_instances_close(strategy, 1000 * 1000), DIST_DEADLINE_EXCEEDED, "did not complete");
  for (int i = 0; i < N; i += 2)
    assert_fails(dist_request_wait(works[i], -1), DIST_CANCELLED, "dist_instances_close()");
  for (int i = 0; i < N; i++) (void)end_of(works[i]);
  assert_int_equal(atomic_load(&d.caches), 0);
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "still has batchers");
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Everything at once ---- */

typedef struct storm {
  dist_batcher *batcher;
  dist_strategy *strategy;
  dist_completions *completions;
  atomic_int accepted, waited, told, arrived, bad;
  decoder d;
} storm;

typedef struct stormer {
  storm *s;
  unsigned random;
  int runs;
} stormer;

static unsigned draw(stormer *self, unsigned below) {
  self->random = self->random * 1103515245u + 12345u;
  return (self->random >> 16) % below;
}

static void *storm_main(void *argument) {
  stormer *self = argument;
  storm *s = self->s;
  for (int i = 0; i < 150; i++) {
    if (self->runs) {
      if (dist_run(s->strategy, healthy, NULL, NULL) != DIST_OK) atomic_fetch_add(&s->bad, 1);
      continue;
    }
    sentence own = {.length = 1 + (int)draw(self, 12)};
    dist_item_options item = DIST_ITEM_OPTIONS_INIT;
    item.priority = (int32_t)draw(self, 15) - 7;
    item.length = draw(self, 100);
    item.bytes = draw(self, 50);
    if (draw(self, 3) == 0) item.timeout_ns = 1 + (int64_t)draw(self, 200) * 1000;
    dist_cancel *cancel = NULL;
    if (draw(self, 3) == 0 && dist_cancel_create(NULL, &cancel) == DIST_OK) item.cancel = cancel;
    dist_request *work = NULL;
    const dist_status status = dist_batcher_submit(s->batcher, &own, &item, &work);
    if (status == DIST_OK) {
      atomic_fetch_add(&s->accepted, 1);
      if (cancel != NULL && draw(self, 2) == 0) (void)!dist_cancel_signal(cancel, "the storm");
      if (draw(self, 4) == 0) (void)!dist_request_cancel(work);
      const dist_status ended = dist_request_wait(work, -1);
      if (ended != DIST_OK && ended != DIST_CANCELLED && ended != DIST_DEADLINE_EXCEEDED)
        atomic_fetch_add(&s->bad, 1);
      if (ended == DIST_OK && own.done != own.length) atomic_fetch_add(&s->bad, 1);
      if (own.wrong != 0) atomic_fetch_add(&s->bad, 1);
      dist_request_destroy(work);
      atomic_fetch_add(&s->waited, 1);
    } else if (status != DIST_RESOURCE_EXHAUSTED) {
      atomic_fetch_add(&s->bad, 1);
    }
    dist_cancel_destroy(cancel);
  }
  return NULL;
}

static void everything_at_once(void **state) {
  (void)state;
  const unsigned seed = (unsigned)getpid();
  print_message("# seed %u\n", seed);
  static const int64_t buckets[] = {10, 40, 100};
  for (int32_t n = 1; n <= 3; n++) {
    storm s = {.strategy = strategy_of(n, DIST_THREADS_LIBRARY)};
    dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
    options.max_items = 3;
    options.max_bytes = 100;
    options.max_delay_ns = 20 * 1000;
    options.max_waiting = 16;
    options.buckets = buckets;
    options.num_buckets = COUNT_OF(buckets);
    options.continuous = 1;
    options.free_state = free_cache;
    s.batcher = batcher_of(s.strategy, decode, &s.d, &options);
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    stormer each[THREADS];
    for (int i = 0; i < THREADS; i++) {
      each[i] = (stormer){&s, seed + (unsigned)i, i == 0};
      assert_int_equal(pthread_create(&threads[i], NULL, storm_main, &each[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&s.bad), 0);
    assert_int_equal(atomic_load(&s.accepted), atomic_load(&s.waited));
    assert_int_equal(atomic_load(&s.d.caches), 0);
    assert_int_equal(atomic_load(&s.d.wrong), 0);
    assert_count(s.batcher, 0, 0);
    assert_ok(dist_batcher_destroy(s.batcher));
    assert_ok(dist_strategy_destroy(s.strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(partial_results_in_order),
      cmocka_unit_test(partial_results_by_completions),
      cmocka_unit_test(only_the_last_arrival_reports_the_end),
      cmocka_unit_test(threads_that_drain_one_queue_see_each_end_once),
      cmocka_unit_test(a_step_that_fails),
      cmocka_unit_test(a_thread_that_ends_in_a_step),
      cmocka_unit_test(deadlines_of_items),
      cmocka_unit_test(closing_ends_items),
      cmocka_unit_test(everything_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
