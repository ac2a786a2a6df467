/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers that are processes, of which one fails or ends before it has met the others: they learn of it when
 * they start, and none waits for its deadline. TEST_LAUNCHES is how many jobs are launched (default 6).
 */
#include "../processes_support.h"

static dist_strategy *strategy;

static dist_status create(int64_t timeout_ns) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 2;
  options.timeout_ns = timeout_ns;
  return dist_strategy_create(&options, &strategy);
}

static dist_status sum(dist_replica *replica, void *user_data) {
  double value[2] = {1, 1};
  const int64_t shape[] = {2};
  const int odd = *(const int *)user_data && dist_replica_id(replica) % 2 == 1;
  const dist_tensor t = {value, DIST_F64, odd, shape, NULL};
  dist_tensor out = {value, DIST_F64, odd, shape, NULL};
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &out, 1, NULL, NULL);
}

/* ---- The workers ---- */

enum { PATIENCE_NS = 300000000 }; /* of workers that end before the others start */

static int end_with(dist_status status) {
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(strategy) == DIST_OK ? code : 2;
}

static int play(const char *part) {
  const int early = strncmp(part, "early ", 6) == 0;
  const char *const what = part + (early ? 6 : 0);
  int differs = early && strcmp(what, "run") == 0;
  const int hurries = early && !differs && strcmp(what, "reform") != 0;
  const int64_t timeout_ns = hurries ? PATIENCE_NS : (int64_t)GUARD_S * 1000000000;
  dist_status status = create(timeout_ns);
  if (status != DIST_OK) return end_with(status);
  if (strcmp(what, "run") == 0) return end_with(dist_run(strategy, sum, &differs, NULL));
  if (strcmp(what, "nothing") == 0)
    return early ? end_with(DIST_OK) : end_with(dist_run(strategy, sum, &differs, NULL));
  if (strcmp(what, "save") == 0) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/dist-early-%d", (int)getppid());
    status = dist_checkpoint_save(strategy, path, NULL, 0, NULL);
    unlink(path);
    return end_with(status);
  }
  if (strcmp(what, "shutdown") == 0) {
    if (!early) return end_with(dist_run(strategy, sum, &differs, NULL));
    printf("shuts down\n");
    fflush(stdout);
    return dist_strategy_shutdown(strategy, 0) == DIST_OK && dist_strategy_destroy(strategy) == DIST_OK ? 0
                                                                                                        : 2;
  }
  /* They form a generation after a failed run, and then continue. */
  dist_run_options first = DIST_RUN_OPTIONS_INIT;
  if (early) first.timeout_ns = PATIENCE_NS;
  status = dist_run(strategy, sum, &differs, &first);
  (void)say_how_it_went(status);
  dist_reform_options options = DIST_REFORM_OPTIONS_INIT;
  options.min_workers = 2;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  status = dist_strategy_reform(strategy, &options);
  if (status == DIST_OK) status = dist_run(strategy, sum, &differs, NULL);
  return end_with(status);
}

/* ---- The jobs ---- */

static void a_worker_0_that_starts_later_fails_at_once(void **state) {
  (void)state;
  const struct {
    const char *part;
    const char *said; /* printed by worker 1 before worker 0 starts */
    const char *words;
  } cases[] = {{"run", "INVALID_ARGUMENT", "ABORTED by worker 1"},
               {"nothing", "went well", "UNAVAILABLE by worker 1"},
               {"save", "DEADLINE_EXCEEDED", "reported by worker 1 only"},
               {"shutdown", "shuts down", "UNAVAILABLE by worker 1"}};
  for (size_t k = 0; k < COUNT_OF(cases); ++k) {
    job all = job_of(2);
    char early[32];
    snprintf(early, sizeof early, "early %s", cases[k].part);
    start_as(&all, 1, 1, early, NULL);
    assert_true(has_said(&all.processes[1], cases[k].said));
    start_as(&all, 0, 0, cases[k].part, NULL);
    assert_int_equal(end_of(&all.processes[0]), 1);
    const char *const text = all.processes[0].text;
    if (strstr(text, cases[k].words) == NULL || strstr(text, "within 100 s") != NULL) {
      fail_msg("%s: worker 0 says: %s", cases[k].part, text);
    }
    (void)end_of(&all.processes[1]);
  }
}

static void a_worker_1_that_starts_later_fails_at_once(void **state) {
  (void)state;
  job all = job_of(2);
  start_as(&all, 0, 0, "early nothing", NULL);
  assert_true(has_said(&all.processes[0], "went well"));
  start_as(&all, 1, 1, "run", NULL);
  assert_int_equal(end_of(&all.processes[1]), 1);
  if (strstr(all.processes[1].text, "UNAVAILABLE by worker 0") == NULL)
    fail_msg("worker 1 says: %s", all.processes[1].text);
  ends_well(&all.processes[0]);
}

static void a_worker_that_re_forms_before_the_first_connection_is_awaited_by_none(void **state) {
  (void)state;
  job all = job_of(2);
  start_as(&all, 1, 1, "early reform", NULL);
  assert_true(has_said(&all.processes[1], "DEADLINE_EXCEEDED"));
  start_as(&all, 0, 0, "reform", NULL);
  ends_well(&all.processes[0]);
  ends_well(&all.processes[1]);
  if (strstr(all.processes[0].text, "within 100 s") != NULL)
    fail_msg("worker 0 says: %s", all.processes[0].text);
}

/* Both start at the same time, and worker 1's replicas disagree at once. */
static void all_learn_of_a_disagreement_however_they_start(void **state) {
  (void)state;
  const char *const launches = getenv("TEST_LAUNCHES");
  const long n = launches == NULL ? 6 : strtol(launches, NULL, 10);
  for (long i = 0; i < n; ++i) {
    job all = job_of(2);
    const int first = (int)(i % 2);
    start_as(&all, first, first, first == 1 ? "early run" : "run", NULL);
    start_as(&all, 1 - first, 1 - first, first == 1 ? "run" : "early run", NULL);
    for (int w = 0; w < 2; ++w) {
      assert_int_equal(end_of(&all.processes[w]), 1);
      if (strstr(all.processes[w].text, w == 0 ? "ABORTED by worker 1" : "INVALID_ARGUMENT by worker 1") ==
          NULL)
        fail_msg("launch %ld: worker %d says: %s", i, w, all.processes[w].text);
    }
  }
}

int main(int argc, char **argv) {
  if (argc == 3) return play(argv[1]);
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_worker_0_that_starts_later_fails_at_once),
      cmocka_unit_test(a_worker_1_that_starts_later_fails_at_once),
      cmocka_unit_test(a_worker_that_re_forms_before_the_first_connection_is_awaited_by_none),
      cmocka_unit_test(all_learn_of_a_disagreement_however_they_start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
