/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests in the metrics and the trace: their number, how they ended, how long they took, and which ones
 * they were.
 */
#include "tests/abi/clock.h"
#include "tests/abi/metrics_support.h"
#include "tests/abi/serve/serve_support.h"

static double of_replica(const page *p, const char *name, int replica) {
  char whole[128];
  snprintf(whole, sizeof whole, "%s{replica=\"%d\"}", name, replica);
  const double value = sample_of(p, whole);
  if (value < 0) fail_msg("no %s", whole);
  return value;
}

/* Returns the count of its bucket "1 us * 2^power", or of all if power is -1. */
static double bucket(const page *p, const char *name, int replica, int power) {
  char whole[160], bound[32] = "+Inf";
  if (power >= 0) snprintf(bound, sizeof bound, "%.6f", (double)(1 << power) * 1e-6);
  snprintf(whole, sizeof whole, "%s_bucket{replica=\"%d\",le=\"%s\"}", name, replica, bound);
  const double value = sample_of(p, whole);
  if (value < 0) fail_msg("no %s", whole);
  return value;
}

/* ---- Counts ---- */

static dist_status fails(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return dist_fail(DIST_DATA_LOSS, "as it was told");
}

static void how_many_and_how_they_end(void **state) {
  (void)state;
  static stepping_clock clock;
  atomic_store(&clock.now_ns, 1000);
  dist_strategy *strategy = strategy_with(by_clock(&clock, 2, DIST_THREADS_LIBRARY));
  expect_sample(strategy, "dist_requests_queued", -1);
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.max_queued = 3;
  assert_ok(dist_instances_open(strategy, &options));
  expect_sample(strategy, "dist_requests_accepted_total", 0);
  atomic_int count = 0;
  for (int i = 0; i < 5; i++) assert_int_equal(end_of(submit(strategy, count_here, &count, NULL)), DIST_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(end_of(submit(strategy, fails, NULL, NULL)), DIST_DATA_LOSS);
  held h = HELD_INIT;
  dist_request *inside[2];
  for (int i = 0; i < 2; i++) inside[i] = submit(strategy, hold_here, &h, NULL);
  gate_await(&h.inside, 2);
  dist_submit_options bounded = DIST_SUBMIT_OPTIONS_INIT;
  bounded.timeout_ns = 1000;
  dist_request *late = submit(strategy, count_here, &count, &bounded);
  dist_request *cancelled = submit(strategy, count_here, &count, NULL);
  dist_request *queued = submit(strategy, count_here, &count, NULL);
  assert_fails(dist_submit(strategy, count_here, &count, NULL, NULL), DIST_RESOURCE_EXHAUSTED,
               "are queued, which is the limit");
  expect_sample(strategy, "dist_requests_queued", 3);
  expect_sample(strategy, "dist_requests_running", 2);
  expect_sample(strategy, "dist_requests_accepted_total", 12);
  expect_sample(strategy, "dist_requests_refused_total{reason=\"full\"}", 1);
  expect_sample(strategy, "dist_requests_refused_total{reason=\"closed\"}", 0);
  assert_ok(dist_request_cancel(cancelled));
  assert_int_equal(end_of(cancelled), DIST_CANCELLED);
  atomic_store(&clock.now_ns, 10000);
  assert_int_equal(end_of(late), DIST_DEADLINE_EXCEEDED);
  expect_sample(strategy, "dist_requests_queued", 1);
  expect_sample(strategy, "dist_requests_ended_total{end=\"cancelled\"}", 1);
  expect_sample(strategy, "dist_requests_ended_total{end=\"overdue\"}", 1);
  gate_add(&h.released);
  for (int i = 0; i < 2; i++) assert_int_equal(end_of(inside[i]), DIST_OK);
  assert_int_equal(end_of(queued), DIST_OK);
  assert_ok(dist_instances_close(strategy, -1));
  assert_fails(dist_submit(strategy, count_here, &count, NULL, NULL), DIST_UNAVAILABLE, "closed");

  page p = metrics_of(strategy);
  assert_true(sample_of(&p, "dist_requests_queued") == 0 && sample_of(&p, "dist_requests_running") == 0);
  assert_true(sample_of(&p, "dist_requests_refused_total{reason=\"closed\"}") == 1);
  assert_true(sample_of(&p, "dist_requests_ended_total{end=\"completed\"}") == 8);
  assert_true(sample_of(&p, "dist_requests_ended_total{end=\"failed\"}") == 2);
  /* Ten functions were called. */
  static const char *const kTimes[] = {"dist_request_queue_seconds", "dist_request_compute_seconds",
                                       "dist_request_wait_seconds"};
  double sums[3] = {0};
  for (int i = 0; i < 3; i++) {
    double all = 0;
    for (int replica = 0; replica < 2; replica++) {
      char name[64];
      snprintf(name, sizeof name, "%s_count", kTimes[i]);
      const double own = of_replica(&p, name, replica);
      assert_true(bucket(&p, kTimes[i], replica, -1) == own);
      double before = 0;
      for (int power = 0; power < 25; power++) {
        const double now = bucket(&p, kTimes[i], replica, power);
        assert_true(now >= before && now <= own);
        before = now;
      }
      all += own;
      snprintf(name, sizeof name, "%s_sum", kTimes[i]);
      sums[i] += of_replica(&p, name, replica);
    }
    assert_true(all == 10);
  }
  const double apart = sums[2] - sums[0] - sums[1];
  assert_true(sums[2] > 0 && apart < 1e-8 && apart > -1e-8);
  free(p.text);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Durations ---- */

/* One request is running and one is queued for more than 2048 us, so they are not in any lower bucket. */
static void no_time_is_shown_shorter(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  held h = HELD_INIT;
  dist_request *inside = hold_only(strategy, &h);
  atomic_int count = 0;
  dist_request *queued = submit(strategy, count_here, &count, NULL);
  for (const int64_t start = steady_ns(); steady_ns() - start < 3000000;) sched_yield();
  gate_add(&h.released);
  assert_int_equal(end_of(inside), DIST_OK);
  assert_int_equal(end_of(queued), DIST_OK);
  assert_ok(dist_instances_close(strategy, -1));
  page p = metrics_of(strategy);
  assert_true(bucket(&p, "dist_request_compute_seconds", 0, 11) <= 1);
  assert_true(bucket(&p, "dist_request_queue_seconds", 0, 11) <= 1);
  assert_true(bucket(&p, "dist_request_wait_seconds", 0, 11) == 0);
  assert_true(of_replica(&p, "dist_request_wait_seconds_sum", 0) >= 0.006);
  free(p.text);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Traces ---- */

static dist_status write_trace_here(dist_replica *replica, void *user_data) {
  return dist_strategy_write_trace(dist_replica_strategy(replica), append_page, user_data);
}

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return DIST_OK;
}

static void which_they_are(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_LIBRARY);
  dist_submit_options named = DIST_SUBMIT_OPTIONS_INIT;
  named.request_id = 424242;
  assert_int_equal(end_of(submit(strategy, fails, NULL, &named)), DIST_DATA_LOSS);
  atomic_int count = 0;
  assert_int_equal(end_of(submit(strategy, count_here, &count, NULL)), DIST_OK);
  assert_ok(dist_run(strategy, nothing, NULL, NULL));
  page p = {NULL, 0};
  named.request_id = -7;
  assert_int_equal(end_of(submit(strategy, write_trace_here, &p, &named)), DIST_OK);
  /* Three requests, of which the last is running, each with its queueing time, and one run. */
  assert_int_equal(count_texts(p.text, "\"name\":\"request\""), 3);
  assert_int_equal(count_texts(p.text, "\"name\":\"run\""), 1);
  assert_int_equal(count_texts(p.text, "\"request\":424242"), 3);
  assert_int_equal(count_texts(p.text, "\"request\":1}"), 2);
  assert_int_equal(count_texts(p.text, "\"request\":1,"), 1);
  assert_int_equal(count_texts(p.text, "\"request\":-7"), 3);
  assert_int_equal(count_texts(p.text, "\"name\":\"queued\""), 6);
  assert_int_equal(count_texts(p.text, "\"status\":\"DATA_LOSS\""), 1);
  free(p.text);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(how_many_and_how_they_end),
      cmocka_unit_test(no_time_is_shown_shorter),
      cmocka_unit_test(which_they_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
