/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches: who is in a step, when it begins, what items keep, emit and come to.
 */
#include "tests/abi/clock.h"
#include "tests/abi/serve/serve_support.h"

#include <unistd.h>

static dist_batcher *batcher_of(dist_strategy *strategy, dist_batch_fn step, void *user_data,
                                const dist_batcher_options *options) {
  dist_batcher *batcher = NULL;
  assert_ok(dist_batcher_create(strategy, step, user_data, options, &batcher));
  assert_non_null(batcher);
  return batcher;
}

static dist_work *join(dist_batcher *batcher, void *user_data, const dist_item_options *options) {
  dist_work *work = NULL;
  assert_ok(dist_batcher_submit(batcher, user_data, options, &work));
  assert_non_null(work);
  return work;
}

static void assert_count(dist_batcher *batcher, int64_t waiting, int64_t active) {
  int64_t now_waiting = -1, now_active = -1;
  dist_batcher_count(batcher, &now_waiting, &now_active);
  assert_int_equal(now_waiting, waiting);
  assert_int_equal(now_active, active);
}

/* ---- Who is in a step ---- */

enum { MOST_STEPS = 64, MOST_ITEMS = 64 };

typedef struct step_record {
  int32_t replica;
  int64_t bucket;
  size_t size;
  void *items[MOST_ITEMS];
} step_record;

typedef struct steps {
  pthread_mutex_t mutex;
  int count;
  step_record of[MOST_STEPS];
} steps;
#define STEPS_INIT                  \
  {                                 \
    PTHREAD_MUTEX_INITIALIZER, 0, { \
      {                             \
        0, 0, 0, { NULL }           \
      }                             \
    }                               \
  }

static dist_status note_step(dist_replica *replica, dist_batch *batch, void *user_data) {
  steps *all = user_data;
  pthread_mutex_lock(&all->mutex);
  step_record *one = &all->of[all->count++ % MOST_STEPS];
  one->replica = dist_replica_id(replica);
  one->bucket = dist_batch_bucket(batch);
  one->size = dist_batch_size(batch);
  for (size_t i = 0; i < one->size && i < MOST_ITEMS; i++) one->items[i] = dist_batch_user_data(batch, i);
  pthread_mutex_unlock(&all->mutex);
  return DIST_OK;
}

/* What came while the only instance was busy is one step. */
static void what_waits_is_answered_together(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  static steps all;
  all = (steps)STEPS_INIT;
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = 4;
  dist_batcher *batcher = batcher_of(strategy, note_step, &all, &options);
  held h = HELD_INIT;
  dist_work *holder = hold_only(strategy, &h);
  int marks[10];
  dist_work *works[10];
  for (int i = 0; i < 10; i++) {
    dist_item_options item = DIST_ITEM_OPTIONS_INIT;
    item.priority = i == 9 ? 1 : 0;
    works[i] = join(batcher, &marks[i], &item);
  }
  assert_count(batcher, 10, 0);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  for (int i = 0; i < 10; i++) {
    assert_ptr_equal(dist_work_user_data(works[i]), &marks[i]);
    assert_int_equal(end_of(works[i]), DIST_OK);
  }
  /* The urgent one first, then as they came, four at a time. */
  static const int expected[] = {9, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  int seen = 0;
  for (int s = 0; s < all.count; s++) {
    assert_int_equal(all.of[s].size, s < 2 ? 4 : 2);
    assert_int_equal(all.of[s].bucket, 0);
    for (size_t i = 0; i < all.of[s].size; i++)
      assert_ptr_equal(all.of[s].items[i], &marks[expected[seen++]]);
  }
  assert_int_equal(all.count, 3);
  assert_count(batcher, 0, 0);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_step_waits_for_others(void **state) {
  (void)state;
  stepping_clock clock = {1000, 0};
  dist_strategy *strategy = strategy_with(by_clock(&clock, 1, DIST_THREADS_LIBRARY));
  static steps all;
  all = (steps)STEPS_INIT;
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = 3;
  options.max_delay_ns = 500;
  dist_batcher *batcher = batcher_of(strategy, note_step, &all, &options);
  int marks[5];
  dist_work *first = join(batcher, &marks[0], NULL);
  dist_work *second = join(batcher, &marks[1], NULL);
  /* The instance is free, and time stands still. */
  for (int i = 0; i < 1000; i++) sched_yield();
  assert_count(batcher, 2, 0);
  /* A full step waits for nobody. */
  dist_work *third = join(batcher, &marks[2], NULL);
  assert_int_equal(end_of(first), DIST_OK);
  assert_int_equal(end_of(second), DIST_OK);
  assert_int_equal(end_of(third), DIST_OK);
  assert_int_equal(all.count, 1);
  assert_int_equal(all.of[0].size, 3);
  /* And the time of the first one counts. */
  first = join(batcher, &marks[3], NULL);
  atomic_store(&clock.now_ns, 1400);
  second = join(batcher, &marks[4], NULL);
  for (int i = 0; i < 1000; i++) sched_yield();
  assert_count(batcher, 2, 0);
  atomic_store(&clock.now_ns, 1500);
  assert_int_equal(end_of(first), DIST_OK);
  assert_int_equal(end_of(second), DIST_OK);
  assert_int_equal(all.count, 2);
  assert_int_equal(all.of[1].size, 2);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

static void items_of_one_bucket(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  static steps all;
  all = (steps)STEPS_INIT;
  static const int64_t buckets[] = {16, 64, 256};
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.buckets = buckets;
  options.num_buckets = COUNT_OF(buckets);
  dist_batcher *batcher = batcher_of(strategy, note_step, &all, &options);
  held h = HELD_INIT;
  dist_work *holder = hold_only(strategy, &h);
  static const int64_t lengths[] = {0, 17, 16, 256, 64, 65, 1};
  static const int64_t buckets_of[] = {16, 64, 16, 256, 64, 256, 16};
  dist_work *works[COUNT_OF(lengths)];
  int64_t expected[COUNT_OF(lengths)];
  for (size_t i = 0; i < COUNT_OF(lengths); i++) {
    dist_item_options item = DIST_ITEM_OPTIONS_INIT;
    item.length = lengths[i];
    expected[i] = buckets_of[i];
    works[i] = join(batcher, &expected[i], &item);
  }
  dist_work *none = NULL;
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  item.length = 257;
  assert_fails(dist_batcher_submit(batcher, NULL, &item, &none), DIST_INVALID_ARGUMENT,
               "the last bucket is 256");
  assert_null(none);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  for (size_t i = 0; i < COUNT_OF(lengths); i++) assert_int_equal(end_of(works[i]), DIST_OK);
  assert_int_equal(all.count, 3);
  size_t sum = 0;
  for (int s = 0; s < 3; s++) {
    sum += all.of[s].size;
    for (size_t i = 0; i < all.of[s].size; i++)
      assert_int_equal(*(const int64_t *)all.of[s].items[i], all.of[s].bucket);
  }
  assert_int_equal(sum, COUNT_OF(lengths));
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Continuous ---- */

typedef struct sentence {
  int length; /* steps that it takes */
  int32_t instance;
  int done, wrong;
} sentence;

typedef struct decoder {
  atomic_int caches, wrong, steps, largest, under_way[16];
} decoder;

typedef struct cache {
  sentence *of;
  int32_t instance;
} cache;

static void free_cache(void *what, void *user_data) {
  atomic_fetch_sub(&((decoder *)user_data)->caches, 1);
  free(what);
}

static dist_status decode(dist_replica *replica, dist_batch *batch, void *user_data) {
  decoder *self = user_data;
  const int32_t id = dist_replica_id(replica);
  if (atomic_fetch_add(&self->under_way[id], 1) != 0) atomic_fetch_add(&self->wrong, 1);
  const int size = (int)dist_batch_size(batch);
  atomic_fetch_add(&self->steps, 1);
  int largest = atomic_load(&self->largest);
  while (largest < size && !atomic_compare_exchange_weak(&self->largest, &largest, size)) {
  }
  for (int i = 0; i < size; i++) {
    sentence *s = dist_batch_user_data(batch, (size_t)i);
    cache *c = dist_batch_state(batch, (size_t)i);
    if (c == NULL) {
      c = malloc(sizeof *c);
      *c = (cache){s, id};
      atomic_fetch_add(&self->caches, 1);
      dist_batch_set_state(batch, (size_t)i, c);
    }
    if (c->of != s || c->instance != id) s->wrong++;
    if (dist_batch_check(batch, (size_t)i) != DIST_OK) continue;
    if (++s->done >= s->length) dist_batch_end(batch, (size_t)i, s->length < 0 ? DIST_NOT_FOUND : DIST_OK);
  }
  atomic_fetch_sub(&self->under_way[id], 1);
  return DIST_OK;
}

static void items_join_and_leave(void **state) {
  (void)state;
  for (int32_t n = 1; n <= 3; n++) {
    dist_strategy *strategy = strategy_of(n, DIST_THREADS_LIBRARY);
    decoder d = {0};
    dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
    options.max_items = 4;
    options.continuous = 1;
    options.free_state = free_cache;
    dist_batcher *batcher = batcher_of(strategy, decode, &d, &options);
    enum { N = 60 };
    sentence sentences[N];
    dist_work *works[N];
    for (int i = 0; i < N; i++) {
      sentences[i] = (sentence){.length = 1 + (i * 7) % 23};
      works[i] = join(batcher, &sentences[i], NULL);
      if (i % 10 == 0) assert_healthy(DIST_THREADS_LIBRARY, strategy);
    }
    for (int i = 0; i < N; i++) {
      assert_int_equal(end_of(works[i]), DIST_OK);
      assert_int_equal(sentences[i].done, sentences[i].length);
      assert_int_equal(sentences[i].wrong, 0);
    }
    assert_int_equal(atomic_load(&d.caches), 0);
    assert_int_equal(atomic_load(&d.wrong), 0);
    assert_in_range(atomic_load(&d.largest), 1, 4);
    assert_ok(dist_batcher_destroy(batcher));
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* A step of a long sentence is no obstacle for a short one, for a run, nor for a request. */
static void a_long_item_holds_up_nobody(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  decoder d = {0};
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = 2;
  options.continuous = 1;
  options.free_state = free_cache;
  dist_batcher *batcher = batcher_of(strategy, decode, &d, &options);
  sentence endless = {.length = INT32_MAX}, brief = {.length = 3}, next = {.length = 2};
  dist_work *forever = join(batcher, &endless, NULL);
  assert_int_equal(end_of(join(batcher, &brief, NULL)), DIST_OK);
  assert_int_equal(end_of(join(batcher, &next, NULL)), DIST_OK);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  atomic_int count = 0;
  assert_int_equal(end_of(submit(strategy, count_here, &count, NULL)), DIST_OK);
  assert_fails(dist_batcher_destroy(batcher), DIST_FAILED_PRECONDITION, "1 items have not ended");
  assert_ok(dist_work_cancel(forever));
  assert_fails(dist_work_wait(forever, -1), DIST_CANCELLED, "dist_work_cancel()");
  dist_work_destroy(forever);
  assert_int_equal(atomic_load(&d.caches), 0);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_budget_of_bytes(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  decoder d = {0};
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = 8;
  options.max_bytes = 100;
  options.continuous = 1;
  options.free_state = free_cache;
  dist_batcher *batcher = batcher_of(strategy, decode, &d, &options);
  held h = HELD_INIT;
  dist_work *holder = hold_only(strategy, &h);
  enum { N = 12 };
  sentence sentences[N];
  dist_work *works[N];
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  for (int i = 0; i < N; i++) {
    sentences[i] = (sentence){.length = 5};
    item.bytes = 40;
    works[i] = join(batcher, &sentences[i], &item);
  }
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  for (int i = 0; i < N; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  assert_int_equal(atomic_load(&d.largest), 2);
  item.bytes = 101;
  dist_work *none = NULL;
  assert_fails(dist_batcher_submit(batcher, NULL, &item, &none), DIST_INVALID_ARGUMENT, "100 at most");
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

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
  dist_work *works[N];
  for (int i = 0; i < N; i++) {
    streams[i] = (stream){0, 20 + i};
    works[i] = join(batcher, &streams[i], NULL);
  }
  /* Nobody takes, and so each stands still after three, and holds up no run. */
  for (int i = N - 1; i >= 0; i--) {
    for (int64_t k = 0; k < 20 + i; k++) {
      void *result = NULL;
      assert_ok(dist_work_take(works[i], -1, &result));
      assert_non_null(result);
      assert_int_equal(*(int64_t *)result, k);
      free(result);
    }
    void *none = &none;
    assert_ok(dist_work_take(works[i], -1, &none));
    assert_null(none);
    assert_int_equal(end_of(works[i]), DIST_OK);
    assert_healthy(DIST_THREADS_LIBRARY, strategy);
  }
  /* What nobody takes is given back. */
  atomic_store(&freed, 0);
  stream left = {0, 100};
  dist_work *work = join(batcher, &left, NULL);
  void *first = NULL;
  assert_ok(dist_work_take(work, -1, &first));
  free(first);
  assert_ok(dist_work_cancel(work));
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
    dist_work *work = NULL;
    assert_ok(dist_completions_next(completions, -1, &work));
    const int64_t which = (stream *)dist_work_user_data(work) - streams;
    int32_t done = 0;
    assert_ok(dist_work_test(work, &done));
    for (void *result = NULL;;) {
      assert_ok(dist_work_take(work, 0, &result));
      if (result == NULL) break;
      assert_int_equal(*(int64_t *)result, taken[which]);
      taken[which]++;
      free(result);
    }
    /* It arrives once more with its end, if that was after the look. */
    if (done) ended++;
    dist_work_destroy(work);
  }
  for (int i = 0; i < N; i++) assert_int_equal(taken[i], 30);
  dist_work *none = NULL;
  assert_ok(dist_completions_next(completions, 0, &none));
  assert_null(none);
  assert_ok(dist_batcher_destroy(batcher));
  dist_completions_destroy(completions);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Ends ---- */

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
  dist_work *holder = hold_only(strategy, &h);
  int mark;
  dist_work *good = join(batcher, &mark, NULL), *bad = join(batcher, NULL, NULL);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  assert_int_equal(end_of(good), DIST_OK);
  assert_fails(dist_work_wait(bad, -1), DIST_DATA_LOSS, "the engine has failed");
  dist_work_destroy(bad);
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
    dist_work *work = join(batcher, NULL, NULL);
    assert_fails(dist_work_wait(work, -1), DIST_FAILED_PRECONDITION, "thread ended inside");
    dist_work_destroy(work);
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
  /* In one step after another. */
  dist_work *work = join(batcher, &endless, &item);
  while (atomic_load(&d.steps) < 3) sched_yield();
  atomic_store(&clock.now_ns, 1500);
  assert_fails(dist_work_wait(work, -1), DIST_DEADLINE_EXCEEDED, "deadline");
  dist_work_destroy(work);
  assert_int_equal(atomic_load(&d.caches), 0);
  /* And before any. */
  held h = HELD_INIT;
  dist_work *holder = hold_only(strategy, &h);
  work = join(batcher, &waiting, &item);
  atomic_store(&clock.now_ns, 2000);
  assert_fails(dist_work_wait(work, -1), DIST_DEADLINE_EXCEEDED, "before a step had it");
  dist_work_destroy(work);
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
  dist_work *works[N];
  for (int i = 0; i < N; i++) {
    sentences[i] = (sentence){.length = 50};
    works[i] = join(batcher, &sentences[i], NULL);
  }
  assert_ok(dist_instances_close(strategy, -1));
  for (int i = 0; i < N; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  dist_work *none = NULL;
  assert_fails(dist_batcher_submit(batcher, NULL, NULL, &none), DIST_UNAVAILABLE, "dist_batcher_submit()");
  assert_ok(dist_instances_open(strategy, NULL));
  for (int i = 0; i < N; i++) {
    sentences[i] = (sentence){.length = i % 2 == 0 ? INT32_MAX : 1};
    works[i] = join(batcher, &sentences[i], NULL);
  }
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "have not ended");
  assert_fails(dist_instances_close(strategy, 1000 * 1000), DIST_DEADLINE_EXCEEDED, "had not ended");
  for (int i = 0; i < N; i += 2)
    assert_fails(dist_work_wait(works[i], -1), DIST_CANCELLED, "dist_instances_close()");
  for (int i = 0; i < N; i++) (void)end_of(works[i]);
  assert_int_equal(atomic_load(&d.caches), 0);
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "batchers are left");
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

static void what_is_refused(void **state) {
  (void)state;
  dist_batcher *batcher = NULL;
  static steps all;
  all = (steps)STEPS_INIT;
  dist_strategy *caller = strategy_of(1, DIST_THREADS_CALLER);
  assert_fails(dist_batcher_create(caller, note_step, &all, NULL, &batcher), DIST_FAILED_PRECONDITION,
               "dist_batcher_create");
  assert_ok(dist_strategy_destroy(caller));
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  assert_fails(dist_batcher_create(NULL, note_step, &all, NULL, &batcher), DIST_INVALID_ARGUMENT, "strategy");
  assert_fails(dist_batcher_create(strategy, NULL, &all, NULL, &batcher), DIST_INVALID_ARGUMENT,
               "step is NULL");
  assert_fails(dist_batcher_create(strategy, note_step, &all, NULL, NULL), DIST_INVALID_ARGUMENT,
               "out_batcher");
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
#define REFUSED(field, value, words)                                                                      \
  options = (dist_batcher_options)DIST_BATCHER_OPTIONS_INIT;                                              \
  options.field = value;                                                                                  \
  assert_fails(dist_batcher_create(strategy, note_step, &all, &options, &batcher), DIST_INVALID_ARGUMENT, \
               words)
  REFUSED(max_items, -1, "max_items is -1");
  REFUSED(max_items, 4097, "max_items is 4097");
  REFUSED(max_delay_ns, -1, "max_delay_ns");
  REFUSED(max_waiting, INT64_MAX, "max_waiting");
  REFUSED(max_bytes, -5, "max_bytes");
  REFUSED(continuous, 2, "continuous");
  REFUSED(max_results, -1, "max_results");
  REFUSED(num_buckets, 1, "buckets is NULL");
  static const int64_t bad[] = {4, 4};
  options = (dist_batcher_options)DIST_BATCHER_OPTIONS_INIT;
  options.buckets = bad;
  options.num_buckets = 2;
  assert_fails(dist_batcher_create(strategy, note_step, &all, &options, &batcher), DIST_INVALID_ARGUMENT,
               "buckets[1] is 4");
  options.num_buckets = SIZE_MAX;
  assert_fails(dist_batcher_create(strategy, note_step, &all, &options, &batcher), DIST_INVALID_ARGUMENT,
               "num_buckets");
  assert_null(batcher);
  options = (dist_batcher_options)DIST_BATCHER_OPTIONS_INIT;
  options.max_waiting = 2;
  batcher = batcher_of(strategy, note_step, &all, &options);
  held h = HELD_INIT;
  dist_work *holder = hold_only(strategy, &h);
  dist_work *works[2] = {join(batcher, NULL, NULL), join(batcher, NULL, NULL)};
  dist_work *none = NULL;
  assert_fails(dist_batcher_submit(batcher, NULL, NULL, &none), DIST_RESOURCE_EXHAUSTED, "2 items wait");
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  item.priority = 8;
  assert_fails(dist_batcher_submit(batcher, NULL, &item, &none), DIST_INVALID_ARGUMENT,
               "dist_item_options.priority");
  item.priority = 0;
  item.length = -1;
  assert_fails(dist_batcher_submit(batcher, NULL, &item, &none), DIST_INVALID_ARGUMENT, "length is -1");
  item.length = 0;
  item.bytes = -1;
  assert_fails(dist_batcher_submit(batcher, NULL, &item, &none), DIST_INVALID_ARGUMENT, "bytes is -1");
  assert_null(none);
  void *result = NULL;
  assert_fails(dist_work_take(holder, 0, &result), DIST_FAILED_PRECONDITION, "no partial results");
  assert_fails(dist_work_take(NULL, 0, &result), DIST_INVALID_ARGUMENT, "work");
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  assert_int_equal(dist_batch_size(NULL), 0);
  assert_null(dist_batch_user_data(NULL, 0));
  dist_batch_set_state(NULL, 0, NULL);
  dist_batch_end(NULL, 0, DIST_OK);
  assert_int_equal(dist_batch_emit(NULL, 0, &result), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_batch_check(NULL, 0), DIST_INVALID_ARGUMENT);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_batcher_destroy(NULL));
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

static void told_in_the_storm(dist_work *work, void *user_data) {
  sentence *own = user_data;
  (void)!dist_work_wait(work, 0);
  own->done = -1;
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
    dist_work *work = NULL;
    const dist_status status = dist_batcher_submit(s->batcher, &own, &item, &work);
    if (status == DIST_OK) {
      atomic_fetch_add(&s->accepted, 1);
      if (cancel != NULL && draw(self, 2) == 0) (void)!dist_cancel_signal(cancel, "the storm");
      if (draw(self, 4) == 0) (void)!dist_work_cancel(work);
      const dist_status ended = dist_work_wait(work, -1);
      if (ended != DIST_OK && ended != DIST_CANCELLED && ended != DIST_DEADLINE_EXCEEDED)
        atomic_fetch_add(&s->bad, 1);
      if (ended == DIST_OK && own.done != own.length) atomic_fetch_add(&s->bad, 1);
      if (own.wrong != 0) atomic_fetch_add(&s->bad, 1);
      dist_work_destroy(work);
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
  (void)told_in_the_storm;
  const unsigned seed = (unsigned)getpid();
  print_message("seed %u\n", seed);
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
      cmocka_unit_test(what_waits_is_answered_together),
      cmocka_unit_test(a_step_waits_for_others),
      cmocka_unit_test(items_of_one_bucket),
      cmocka_unit_test(items_join_and_leave),
      cmocka_unit_test(a_long_item_holds_up_nobody),
      cmocka_unit_test(a_budget_of_bytes),
      cmocka_unit_test(partial_results_in_order),
      cmocka_unit_test(partial_results_by_completions),
      cmocka_unit_test(a_step_that_fails),
      cmocka_unit_test(a_thread_that_ends_in_a_step),
      cmocka_unit_test(deadlines_of_items),
      cmocka_unit_test(closing_ends_items),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(everything_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
