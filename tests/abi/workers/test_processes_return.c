/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers that return to a job that has or has not re-formed: worker 0 after a restart, a worker with a
 * different number of replicas, and one that was suspended. Each worker executes a script of single letters
 * and prints the results.
 */
#include "../processes_support.h"

/* ---- A worker ---- */

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_barrier(replica, NULL, NULL);
}

static void say(const char *what, dist_status status) {
  printf("%s: %s %s\n", what, dist_status_name(status), status == DIST_OK ? "" : dist_last_error());
  fflush(stdout);
}

static int play(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  dist_strategy *strategy = NULL;
  say("create", dist_strategy_create(&options, &strategy));
  for (char order; strategy != NULL && read(STDIN_FILENO, &order, 1) == 1 && order != 'q';) {
    int32_t due = 0;
    dist_status status;
    switch (order) {
      case 'r': say("run", dist_run(strategy, nothing, NULL, NULL)); break;
      case 'f': say("reform", dist_strategy_reform(strategy, NULL)); break;
      default:
        status = dist_strategy_reform_due(strategy, &due);
        if (status != DIST_OK) due = -1;
        printf("due: %d\n", due);
        fflush(stdout);
    }
  }
  say("end", dist_strategy_destroy(strategy));
  return 0;
}

/* ---- The processes ---- */

static const char *const one_replica[] = {"DIST_REPLICAS=1", "DIST_LEASE_SECONDS=1", NULL};

static void order(process *p, char what) {
  p->used = 0;
  memset(p->text, 0, sizeof p->text);
  assert_int_equal(write(p->in, &what, 1), 1);
}

static void says(process *p, const char *words) {
  if (!has_said(p, words) || !has_said(p, "\n")) fail_msg("no '%s' in '%s'", words, p->text);
}

static void all_say(job *all, int from, char what, const char *words) {
  for (int w = from; w < all->n; ++w) order(&all->processes[w], what);
  for (int w = from; w < all->n; ++w) says(&all->processes[w], words);
}

static void begin(job *all, int n) {
  *all = job_of(n);
  start(all, "play", one_replica);
  for (int w = 0; w < n; ++w) says(&all->processes[w], "create: OK");
  all_say(all, 0, 'r', "run: OK");
}

static void end(job *all) {
  for (int w = 0; w < all->n; ++w) {
    order(&all->processes[w], 'q');
    assert_int_equal(end_of(&all->processes[w]), 0);
  }
}

static void kill_and_start(job *all, int w, const char *const *environment) {
  kill(all->processes[w].pid, SIGKILL);
  assert_int_equal(end_of(&all->processes[w]), 128 + SIGKILL);
  if (environment == NULL) return;
  start_as(all, w, w, "play", environment);
  says(&all->processes[w], "create: OK");
}

/* The others detect that the last worker is lost, and continue without it. */
static void go_on_without_the_last(job *all) {
  all->n -= 1;
  for (int w = 0; w < all->n; ++w) order(&all->processes[w], 'r');
  for (int w = 0; w < all->n; ++w) says(&all->processes[w], "is lost");
  all_say(all, 0, 'f', "reform: OK");
  all_say(all, 0, 'r', "run: OK");
}

/* Waits until the workers should re-form. Workers that make runs learn this at the end of one. */
static void await_due(job *all, int from, int runs) {
  for (int tries = 0; tries < GUARD_S * 100; ++tries) {
    if (runs) all_say(all, from, 'r', "run: OK");
    order(&all->processes[from], 'd');
    says(&all->processes[from], "due: ");
    if (strstr(all->processes[from].text, "due: 1") != NULL) return;
    poll(NULL, 0, 10);
  }
  fail_msg("not due: %s", all->processes[from].text);
}

static void worker_0_that_was_started_again_has_ended_the_job(void **state) {
  (void)state;
  job all;
  begin(&all, 3);
  kill_and_start(&all, 0, one_replica);
  for (int w = 1; w < 3; ++w) order(&all.processes[w], 'r');
  for (int w = 1; w < 3; ++w) says(&all.processes[w], "run: ");
  all_say(&all, 1, 'f', "worker 0 was restarted, so the job of worker");
  /* Restarts the whole job, like dist-launch. */
  for (int w = 1; w < 3; ++w) {
    order(&all.processes[w], 'q');
    assert_int_equal(end_of(&all.processes[w]), 0);
    start_as(&all, w, w, "play", one_replica);
  }
  all_say(&all, 0, 'r', "run: OK");
  end(&all);
}

static void a_worker_with_other_replicas_is_refused_and_the_job_goes_on(void **state) {
  (void)state;
  static const char *const three_replicas[] = {"DIST_REPLICAS=3", "DIST_LEASE_SECONDS=1", NULL};
  job all;
  begin(&all, 3);
  kill_and_start(&all, 2, NULL);
  go_on_without_the_last(&all);
  all.n = 3;
  start_as(&all, 2, 2, "play", three_replicas);
  all.n = 2;
  process *other = &all.processes[2];
  order(other, 'r');
  says(other, "the job has continued without worker 2. Call dist_strategy_reform() to rejoin it.");
  order(other, 'f');
  says(other, "reform: UNAVAILABLE");
  says(other, "worker 2 has 3 replicas, but worker 0 expects 1.");
  /* No worker waits for it. */
  all_say(&all, 0, 'd', "due: 0");
  all_say(&all, 0, 'r', "run: OK");
  order(other, 'q');
  assert_int_equal(end_of(other), 0);
  end(&all);
}

static void who_stood_still_while_it_waited_is_let_in(void **state) {
  (void)state;
  job all;
  begin(&all, 3);
  kill_and_start(&all, 2, NULL);
  go_on_without_the_last(&all);
  all.n = 3;
  start_as(&all, 2, 2, "play", one_replica);
  process *late = &all.processes[2];
  order(late, 'r');
  says(late, "continued without worker 2");
  order(late, 'f');
  all.n = 2;
  await_due(&all, 0, 1);
  kill(late->pid, SIGSTOP);
  poll(NULL, 0, 2500); /* two and a half leases pass */
  kill(late->pid, SIGCONT);
  await_due(&all, 0, 1);
  all_say(&all, 0, 'f', "reform: OK");
  says(late, "reform: OK");
  all.n = 3;
  all_say(&all, 0, 'r', "run: OK");
  end(&all);
}

static void it_is_due_where_worker_0_is_lost(void **state) {
  (void)state;
  job all;
  begin(&all, 2);
  kill_and_start(&all, 0, NULL);
  await_due(&all, 1, 0);
  order(&all.processes[1], 'f');
  says(&all.processes[1], "reform: UNAVAILABLE");
  says(&all.processes[1], "worker 0, which forms the group of workers, is lost");
  order(&all.processes[1], 'q');
  assert_int_equal(end_of(&all.processes[1]), 0);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "play") == 0) return play();
  (void)argc;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(worker_0_that_was_started_again_has_ended_the_job),
      cmocka_unit_test(a_worker_with_other_replicas_is_refused_and_the_job_goes_on),
      cmocka_unit_test(who_stood_still_while_it_waited_is_let_in),
      cmocka_unit_test(it_is_due_where_worker_0_is_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
