/* SPDX-License-Identifier: Apache-2.0
 *
 * The metrics of items and steps: how many items there were, how they ended, how many a step had, and how
 * long they took.
 */
#include "tests/abi/batch/batch_support.h"
#include "tests/abi/clock.h"
#include "tests/abi/metrics_support.h"

#include <math.h>

static void expect_number(dist_strategy *strategy, const char *name, int batcher, double value) {
  char whole[128];
  snprintf(whole, sizeof whole, "%s{batcher=\"%d\"}", name, batcher);
  expect_sample(strategy, whole, value);
}

static void expect_labelled(dist_strategy *strategy, const char *name, const char *label, double value) {
  char whole[128];
  snprintf(whole, sizeof whole, "%s{batcher=\"0\",%s}", name, label);
  expect_sample(strategy, whole, value);
}

/* ---- Counts ---- */

/* Fails the items that have a user_data. */
static dist_status end_each(dist_replica *replica, dist_batch *batch, void *user_data) {
  held *h = user_data;
  if (h != NULL) (void)hold_here(replica, h);
  for (size_t i = 0; i < dist_batch_size(batch); i++)
    if (dist_batch_user_data(batch, i) != NULL) dist_batch_end(batch, i, DIST_DATA_LOSS);
  return DIST_OK;
}

static void how_many_and_how_they_end(void **state) {
  (void)state;
  static stepping_clock clock;
  atomic_store(&clock.now_ns, 1000);
  dist_strategy *strategy = strategy_with(by_clock(&clock, 1, DIST_THREADS_LIBRARY));
  expect_sample(strategy, "dist_items_waiting{batcher=\"0\"}", -1);
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = 8;
  options.max_waiting = 8;
  dist_batcher *batcher = batcher_of(strategy, end_each, NULL, &options);
  expect_number(strategy, "dist_items_accepted_total", 0, 0);
  held h = HELD_INIT;
  dist_request *holder = hold_only(strategy, &h);
  int mark;
  dist_item_options bounded = DIST_ITEM_OPTIONS_INIT;
  bounded.timeout_ns = 1000;
  dist_request *works[8];
  for (int i = 0; i < 8; i++) works[i] = join(batcher, i < 2 ? &mark : NULL, i == 7 ? &bounded : NULL);
  dist_request *none = NULL;
  assert_fails(dist_batcher_submit(batcher, NULL, NULL, &none), DIST_RESOURCE_EXHAUSTED,
               "8 items are waiting");
  expect_number(strategy, "dist_items_waiting", 0, 8);
  expect_number(strategy, "dist_items_active", 0, 0);
  expect_number(strategy, "dist_items_accepted_total", 0, 8);
  expect_labelled(strategy, "dist_items_refused_total", "reason=\"full\"", 1);
  expect_labelled(strategy, "dist_items_refused_total", "reason=\"other\"", 0);
  /* Two items are never in a step. */
  assert_ok(dist_request_cancel(works[6]));
  assert_int_equal(end_of(works[6]), DIST_CANCELLED);
  atomic_store(&clock.now_ns, 10000);
  assert_int_equal(end_of(works[7]), DIST_DEADLINE_EXCEEDED);
  expect_labelled(strategy, "dist_items_ended_total", "end=\"cancelled\"", 1);
  expect_labelled(strategy, "dist_items_ended_total", "end=\"overdue\"", 1);
  expect_number(strategy, "dist_item_wait_seconds_count", 0, 0);
  gate_add(&h.released);
  assert_int_equal(end_of(holder), DIST_OK);
  for (int i = 0; i < 6; i++) assert_int_equal(end_of(works[i]), i < 2 ? DIST_DATA_LOSS : DIST_OK);
  expect_labelled(strategy, "dist_items_ended_total", "end=\"completed\"", 4);
  expect_labelled(strategy, "dist_items_ended_total", "end=\"failed\"", 2);
  expect_number(strategy, "dist_item_queue_seconds_count", 0, 6);
  expect_number(strategy, "dist_item_wait_seconds_count", 0, 6);
  expect_number(strategy, "dist_batch_compute_seconds_count", 0, 1);
  dist_item_options wrong = DIST_ITEM_OPTIONS_INIT;
  dist_cancel *cancel = NULL;
  assert_ok(dist_cancel_create(NULL, &cancel));
  assert_ok(dist_cancel_signal(cancel, "before"));
  wrong.cancel = cancel;
  assert_fails(dist_batcher_submit(batcher, NULL, &wrong, &none), DIST_CANCELLED, "before");
  dist_cancel_destroy(cancel);
  expect_labelled(strategy, "dist_items_refused_total", "reason=\"cancelled\"", 1);
  assert_ok(dist_instances_close(strategy, -1));
  assert_fails(dist_batcher_submit(batcher, NULL, NULL, &none), DIST_UNAVAILABLE, "closed");
  expect_labelled(strategy, "dist_items_refused_total", "reason=\"closed\"", 1);
  /* Steps do not count as requests. */
  expect_sample(strategy, "dist_requests_accepted_total", 1);
  expect_sample(strategy, "dist_requests_ended_total{end=\"completed\"}", 1);
  assert_ok(dist_batcher_destroy(batcher));
  expect_number(strategy, "dist_items_accepted_total", 0, -1);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Sizes ---- */

static void how_many_a_step_has(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = 5;
  dist_batcher *batcher = batcher_of(strategy, end_each, NULL, &options);
  /* Steps of 5, 5 and 3 items, and one of 1. */
  static const int counts[] = {13, 1};
  for (size_t k = 0; k < COUNT_OF(counts); k++) {
    held h = HELD_INIT;
    dist_request *holder = hold_only(strategy, &h);
    dist_request *works[13];
    for (int i = 0; i < counts[k]; i++) works[i] = join(batcher, NULL, NULL);
    gate_add(&h.released);
    assert_int_equal(end_of(holder), DIST_OK);
    for (int i = 0; i < counts[k]; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  }
  expect_labelled(strategy, "dist_batch_items_bucket", "le=\"1\"", 1);
  expect_labelled(strategy, "dist_batch_items_bucket", "le=\"2\"", 1);
  expect_labelled(strategy, "dist_batch_items_bucket", "le=\"4\"", 2);
  expect_labelled(strategy, "dist_batch_items_bucket", "le=\"8\"", 4);
  expect_labelled(strategy, "dist_batch_items_bucket", "le=\"4096\"", 4);
  expect_labelled(strategy, "dist_batch_items_bucket", "le=\"+Inf\"", 4);
  expect_number(strategy, "dist_batch_items_sum", 0, 14);
  expect_number(strategy, "dist_batch_items_count", 0, 4);
  expect_number(strategy, "dist_batch_compute_seconds_count", 0, 4);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

/* An item that takes several steps joins once and ends once. */
static void one_that_stays(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  decoder d = {0};
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.continuous = 1;
  options.free_state = free_cache;
  dist_batcher *batcher = batcher_of(strategy, decode, &d, &options);
  sentence four = {.length = 4};
  assert_int_equal(end_of(join(batcher, &four, NULL)), DIST_OK);
  expect_number(strategy, "dist_item_queue_seconds_count", 0, 1);
  expect_number(strategy, "dist_item_wait_seconds_count", 0, 1);
  expect_number(strategy, "dist_batch_items_count", 0, 4);
  expect_number(strategy, "dist_batch_items_sum", 0, 4);
  expect_labelled(strategy, "dist_items_ended_total", "end=\"completed\"", 1);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Durations ---- */

/* One item is in a step and one is queued for more than 2048 us, so they are not in any lower bucket. */
static void no_time_is_shown_shorter(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = 1;
  held h = HELD_INIT;
  dist_batcher *batcher = batcher_of(strategy, end_each, &h, &options);
  dist_request *first = join(batcher, NULL, NULL);
  gate_await(&h.inside, 1);
  dist_request *second = join(batcher, NULL, NULL);
  for (const int64_t start = steady_ns(); steady_ns() - start < 3000000;) sched_yield();
  gate_add(&h.released);
  assert_int_equal(end_of(first), DIST_OK);
  assert_int_equal(end_of(second), DIST_OK);
  page p = metrics_of(strategy);
  assert_true(sample_of(&p, "dist_batch_compute_seconds_bucket{batcher=\"0\",le=\"0.002048\"}") <= 1);
  assert_true(sample_of(&p, "dist_item_queue_seconds_bucket{batcher=\"0\",le=\"0.002048\"}") <= 1);
  assert_true(sample_of(&p, "dist_item_wait_seconds_bucket{batcher=\"0\",le=\"0.002048\"}") == 0);
  const double computed = sample_of(&p, "dist_batch_compute_seconds_sum{batcher=\"0\"}");
  const double queued = sample_of(&p, "dist_item_queue_seconds_sum{batcher=\"0\"}");
  const double waited = sample_of(&p, "dist_item_wait_seconds_sum{batcher=\"0\"}");
  assert_true(computed >= 0.003 && queued >= 0.003 && waited >= 0.006);
  /* For a step of one item, the time in the step is the waiting time minus the queueing time. */
  assert_true(fabs(waited - queued - computed) < 1e-8);
  free(p.text);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Labels ---- */

/* Numbers of destroyed batchers are reused, so there are only as many labels as batchers at one time. */
static void each_batcher_has_its_own(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_batcher *batchers[3];
  for (int i = 0; i < 3; i++) batchers[i] = batcher_of(strategy, end_each, NULL, NULL);
  for (int i = 0; i < 3; i++)
    for (int k = 0; k <= i; k++) assert_int_equal(end_of(join(batchers[i], NULL, NULL)), DIST_OK);
  for (int i = 0; i < 3; i++) expect_number(strategy, "dist_items_accepted_total", i, i + 1);
  page p = metrics_of(strategy);
  assert_int_equal(count_texts(p.text, "# TYPE dist_items_accepted_total counter\n"), 1);
  free(p.text);
  assert_ok(dist_batcher_destroy(batchers[1]));
  expect_number(strategy, "dist_items_accepted_total", 1, -1);
  for (int i = 0; i < 5; i++) {
    batchers[1] = batcher_of(strategy, end_each, NULL, NULL);
    expect_number(strategy, "dist_items_accepted_total", 1, 0);
    expect_number(strategy, "dist_items_accepted_total", 2, 3);
    expect_number(strategy, "dist_items_accepted_total", 3, -1);
    assert_ok(dist_batcher_destroy(batchers[1]));
  }
  assert_ok(dist_batcher_destroy(batchers[0]));
  assert_ok(dist_batcher_destroy(batchers[2]));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(how_many_and_how_they_end),
      cmocka_unit_test(how_many_a_step_has),
      cmocka_unit_test(one_that_stays),
      cmocka_unit_test(no_time_is_shown_shorter),
      cmocka_unit_test(each_batcher_has_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
