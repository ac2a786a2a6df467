/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches: which items a step contains, when a step starts, and how items join and leave between steps.
 */
#include "tests/abi/batch/batch_support.h"
#include "tests/abi/clock.h"

/* Items that arrive while the only instance is busy form one step. */
static void what_waits_is_answered_together(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  static steps all;
  all = (steps)STEPS_INIT;
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = 4;
  dist_batcher *batcher = batcher_of(strategy, note_step, &all, &options);
  held h = HELD_INIT;
  dist_request *holder = hold_only(strategy, &h);
  int marks[10];
  dist_request *works[10];
  for (int i = 0; i < 10; i++) {
    dist_item_options item = DIST_ITEM_OPTIONS_INIT;
    item.priority = i == 9 ? 1 : 0;
    works[i] = join(batcher, &marks[i], &item);
  }
  assert_count(batcher, 10, 0);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  for (int i = 0; i < 10; i++) {
    assert_ptr_equal(dist_request_user_data(works[i]), &marks[i]);
    assert_int_equal(end_of(works[i]), DIST_OK);
  }
  /* The urgent one first, then the others in order of arrival, four per step. */
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
  dist_request *first = join(batcher, &marks[0], NULL);
  dist_request *second = join(batcher, &marks[1], NULL);
  /* The instance is idle, and time does not pass. */
  for (int i = 0; i < 1000; i++) sched_yield();
  assert_count(batcher, 2, 0);
  /* A full step starts at once. */
  dist_request *third = join(batcher, &marks[2], NULL);
  assert_int_equal(end_of(first), DIST_OK);
  assert_int_equal(end_of(second), DIST_OK);
  assert_int_equal(end_of(third), DIST_OK);
  assert_int_equal(all.count, 1);
  assert_int_equal(all.of[0].size, 3);
  /* The delay counts from the first item. */
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
  dist_request *holder = hold_only(strategy, &h);
  static const int64_t lengths[] = {0, 17, 16, 256, 64, 65, 1};
  static const int64_t buckets_of[] = {16, 64, 16, 256, 64, 256, 16};
  dist_request *works[COUNT_OF(lengths)];
  int64_t expected[COUNT_OF(lengths)];
  for (size_t i = 0; i < COUNT_OF(lengths); i++) {
    dist_item_options item = DIST_ITEM_OPTIONS_INIT;
    item.length = lengths[i];
    expected[i] = buckets_of[i];
    works[i] = join(batcher, &expected[i], &item);
  }
  dist_request *none = NULL;
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  item.length = 257;
  assert_fails(dist_batcher_submit(batcher, NULL, &item, &none), DIST_INVALID_ARGUMENT,
               "the largest bucket is 256");
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
    dist_request *works[N];
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

/* While a long item is in progress, short items, a run and a request are not delayed. */
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
  dist_request *forever = join(batcher, &endless, NULL);
  assert_int_equal(end_of(join(batcher, &brief, NULL)), DIST_OK);
  assert_int_equal(end_of(join(batcher, &next, NULL)), DIST_OK);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  atomic_int count = 0;
  assert_int_equal(end_of(submit(strategy, count_here, &count, NULL)), DIST_OK);
  assert_fails(dist_batcher_destroy(batcher), DIST_FAILED_PRECONDITION, "1 items have not completed");
  assert_ok(dist_request_cancel(forever));
  assert_fails(dist_request_wait(forever, -1), DIST_CANCELLED, "dist_request_cancel()");
  dist_request_destroy(forever);
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
  dist_request *holder = hold_only(strategy, &h);
  enum { N = 12 };
  sentence sentences[N];
  dist_request *works[N];
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
  dist_request *none = NULL;
  assert_fails(dist_batcher_submit(batcher, NULL, &item, &none), DIST_INVALID_ARGUMENT, "at most 100");
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
  dist_request *holder = hold_only(strategy, &h);
  dist_request *works[2] = {join(batcher, NULL, NULL), join(batcher, NULL, NULL)};
  dist_request *none = NULL;
  assert_fails(dist_batcher_submit(batcher, NULL, NULL, &none), DIST_RESOURCE_EXHAUSTED,
               "2 items are waiting");
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
  assert_fails(dist_request_take(holder, 0, &result), DIST_FAILED_PRECONDITION, "no partial results");
  assert_fails(dist_request_take(NULL, 0, &result), DIST_INVALID_ARGUMENT, "request");
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_waits_is_answered_together),
      cmocka_unit_test(a_step_waits_for_others),
      cmocka_unit_test(items_of_one_bucket),
      cmocka_unit_test(items_join_and_leave),
      cmocka_unit_test(a_long_item_holds_up_nobody),
      cmocka_unit_test(a_budget_of_bytes),
      cmocka_unit_test(what_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
