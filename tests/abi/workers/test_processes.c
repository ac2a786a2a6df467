/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker processes on this machine that communicate by gRPC. They compute the same as one process with all
 * replicas. Whatever happens to one of them, the others return and name it.
 */
#include "../processes_support.h"

enum { REPLICAS = 2, ELEMENTS = 3000 };

/* ---- Each worker's computation: one digest of everything that it has seen ---- */

typedef struct seen {
  uint64_t digest[256]; /* by replica id */
} seen;

static void see(uint64_t *digest, const void *data, size_t bytes) {
  const unsigned char *at = data;
  for (size_t i = 0; i < bytes; ++i) *digest = (*digest ^ at[i]) * 1099511628211U;
}

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

static dist_status collectives(dist_replica *replica, void *user_data) {
  const int32_t me = dist_replica_id(replica);
  const int32_t replicas = dist_replica_num_replicas(replica);
  uint64_t *digest = &((seen *)user_data)->digest[me];
  *digest = 14695981039346656037U;
  static _Thread_local float in[ELEMENTS], out[ELEMENTS], all[16 * ELEMENTS];
  for (int i = 0; i < ELEMENTS; ++i) in[i] = 1.0F / (float)(3 + me + i);
  int64_t shape[] = {ELEMENTS};
  int64_t whole[] = {(int64_t)replicas * ELEMENTS};
  dist_tensor from = {in, DIST_F32, 1, shape, NULL};
  dist_tensor to = {out, DIST_F32, 1, shape, NULL};
  dist_tensor joined = {all, DIST_F32, 1, whole, NULL};
  TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, &from, &to, 1, NULL, NULL));
  see(digest, out, sizeof out);
  TRY(dist_all_gather(replica, &from, &joined, 1, NULL, NULL));
  see(digest, all, (size_t)whole[0] * sizeof(float));
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_work *work = NULL;
  TRY(dist_all_reduce(replica, DIST_REDUCE_MEAN, &from, &to, 1, &options, &work));
  TRY(dist_work_wait(work, DIST_NO_TIMEOUT));
  dist_work_destroy(work);
  see(digest, out, sizeof out);
  options.planned = 1;
  TRY(dist_all_reduce(replica, DIST_REDUCE_MAX, &from, &to, 1, &options, &work));
  for (int round = 0; round < 3; ++round) {
    TRY(dist_work_start(work));
    TRY(dist_work_wait(work, DIST_NO_TIMEOUT));
    see(digest, out, sizeof out);
  }
  dist_work_destroy(work);
  return dist_barrier(replica, NULL, NULL);
}

/* Makes runs, a variable with the chief's initial value and a reduction in the cross-replica context, with
 * two strategies one after the other. */
static dist_status compute(int32_t kind, int32_t replicas, seen *all) {
  memset(all, 0, sizeof *all);
  for (int turn = 0; turn < 2; ++turn) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = kind;
    options.num_replicas = replicas;
    const char *const limit = getenv("TEST_TIMEOUT_S");
    options.timeout_ns = (limit != NULL ? strtol(limit, NULL, 10) : GUARD_S) * INT64_C(1000000000);
    dist_strategy *strategy = NULL;
    TRY(dist_strategy_create(&options, &strategy));
    for (int run = 0; run < 3; ++run) TRY(dist_run(strategy, collectives, all, NULL));
    float value = (float)getpid();
    dist_tensor initial = {&value, DIST_F32, 0, NULL, NULL};
    dist_variable_options of = DIST_VARIABLE_OPTIONS_INIT;
    dist_variable *variable = NULL;
    TRY(dist_variable_create(strategy, &initial, &of, &variable));
    dist_value *read = NULL;
    TRY(dist_variable_read(strategy, variable, &read));
    dist_tensor tensor;
    TRY(dist_value_tensor(read, &tensor));
    if (kind == DIST_STRATEGY_MULTI_WORKER_MIRRORED) printf("chief %.0f\n", (double)*(float *)tensor.data);
    dist_value_release(read);
    dist_variable_destroy(variable);
    TRY(dist_strategy_destroy(strategy));
  }
  return DIST_OK;
}

static int play_whole(void) {
  seen all;
  const dist_status status = compute(DIST_STRATEGY_MULTI_WORKER_MIRRORED, 0, &all);
  for (int r = 0; r < 256; ++r) {
    if (all.digest[r] != 0) printf("replica %d has %016llx\n", r, (unsigned long long)all.digest[r]);
  }
  return say_how_it_went(status);
}

static void they_compute_what_one_process_does(void **state) {
  (void)state;
  const char *const environment[] = {"DIST_REPLICAS=2", NULL};
  for (int workers = 2; workers <= 4; workers += 2) {
    seen expected;
    assert_ok(compute(DIST_STRATEGY_MIRRORED, workers * REPLICAS, &expected));
    job all = job_of(workers);
    start(&all, "whole", environment);
    char chief[32];
    snprintf(chief, sizeof chief, "chief %d\n", all.processes[0].pid);
    for (int w = 0; w < workers; ++w) {
      ends_well(&all.processes[w]);
      for (int r = w * REPLICAS; r < (w + 1) * REPLICAS; ++r) {
        char line[64];
        snprintf(line, sizeof line, "replica %d has %016llx\n", r, (unsigned long long)expected.digest[r]);
        if (strstr(all.processes[w].text, line) == NULL)
          fail_msg("%s has no %s", all.processes[w].text, line);
      }
      assert_non_null(strstr(all.processes[w].text, chief));
    }
  }
}

/* ---- One worker at fault ---- */

static const char *fault = "";
static int own_number;

static dist_status take_part(dist_replica *replica, void *user_data) {
  (void)user_data;
  float value = 1;
  double other = 1;
  dist_tensor t = {&value, DIST_F32, 0, NULL, NULL};
  for (int i = 0; i < 100; ++i) TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, NULL, NULL));
  if (own_number == 1 && dist_replica_id(replica) % REPLICAS == 0) {
    if (strcmp(fault, "killed") == 0) raise(SIGKILL);
    if (strcmp(fault, "stopped") == 0 || strcmp(fault, "paused") == 0) raise(SIGSTOP);
    if (strcmp(fault, "fails") == 0) return dist_fail(DIST_DATA_LOSS, "no more rows");
  }
  if (own_number == 1 && strcmp(fault, "dtype") == 0) t = (dist_tensor){&other, DIST_F64, 0, NULL, NULL};
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, NULL, NULL);
}

static int play_fault(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = (int64_t)(strcmp(fault, "absent") == 0 ? 1 : GUARD_S) * 1000000000;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, take_part, NULL, NULL);
  const int code = say_how_it_went(status);
  /* A worker that has received the report waits for no other. */
  if (dist_strategy_destroy(strategy) != DIST_OK) return 2;
  return code;
}

/* The remaining workers end with `words`, and with the same text if worker 0 is one of them. */
static void survivors_say(const job *all, const char *words) {
  for (int w = 0; w < all->n; ++w) {
    process *p = (process *)&all->processes[w];
    if (w == 1) continue;
    assert_int_equal(end_of(p), 1);
    if (strstr(p->text, words) == NULL) fail_msg("worker %d says: %s, and not: %s", w, p->text, words);
    assert_string_equal(p->text, all->processes[0].text);
  }
}

static const char *const two_replicas[] = {"DIST_REPLICAS=2", NULL};
/* For tests that wait for a lease. A loaded machine may stop any process that long, so these tests do not
 * require that a worker survives. */
static const char *const short_lease[] = {"DIST_REPLICAS=2", "DIST_LEASE_SECONDS=1", NULL};

static void a_killed_worker_is_named(void **state) {
  (void)state;
  job all = job_of(3);
  start(&all, "killed", two_replicas);
  survivors_say(&all, "UNAVAILABLE by worker 1: ");
  assert_int_equal(end_of(&all.processes[1]), 128 + SIGKILL);
}

static void a_stopped_worker_is_named_after_its_lease(void **state) {
  (void)state;
  job all = job_of(3);
  start(&all, "stopped", short_lease);
  survivors_say(&all, "UNAVAILABLE by worker 1: ");
  /* It continues after the others have declared it lost, and learns that. */
  process *stopped = &all.processes[1];
  kill(stopped->pid, SIGCONT);
  assert_int_equal(end_of(stopped), 1);
  if (strstr(stopped->text, "UNAVAILABLE by worker 1: ") == NULL)
    fail_msg("it blames another: %s", stopped->text);
}

static void a_pause_shorter_than_the_lease_changes_nothing(void **state) {
  (void)state;
  const char *const environment[] = {"DIST_REPLICAS=2", "DIST_LEASE_SECONDS=100", NULL};
  job all = job_of(2);
  start(&all, "paused", environment);
  int status;
  assert_int_equal(waitpid(all.processes[1].pid, &status, WUNTRACED), all.processes[1].pid);
  assert_true(WIFSTOPPED(status));
  kill(all.processes[1].pid, SIGCONT);
  ends_well(&all.processes[0]);
  ends_well(&all.processes[1]);
}

/* Worker 0 is stopped in a collective for longer than its timeout. Meanwhile, worker 1 arrives. */
enum { PATIENCE_S = 3 };

static void say(const char *words) {
  fputs(words, stdout);
  fflush(stdout);
}

static dist_status meet_again(dist_replica *replica, void *user_data) {
  (void)user_data;
  TRY(dist_barrier(replica, NULL, NULL));
  char byte;
  say("met\n");
  if (own_number == 1 && read(STDIN_FILENO, &byte, 1) != 1) return DIST_INTERNAL;
  say("in\n");
  float value = 1;
  const dist_tensor t = {&value, DIST_F32, 0, NULL, NULL};
  dist_tensor out = {&value, DIST_F32, 0, NULL, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  if (own_number == 0) options.timeout_ns = PATIENCE_S * INT64_C(1000000000);
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &out, 1, &options, NULL);
}

static int play_again_after_a_stop(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, meet_again, NULL, NULL);
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(strategy) == DIST_OK ? code : 2;
}

static void a_worker_that_arrives_during_a_stop_is_not_blamed(void **state) {
  (void)state;
  const char *const environment[] = {"DIST_LEASE_SECONDS=100", NULL};
  job all = job_of(2);
  start(&all, "stop", environment);
  /* Otherwise, the stop could prevent worker 0's part of the barrier from reaching worker 1. */
  assert_true(has_said(&all.processes[1], "met\n"));
  assert_true(has_said(&all.processes[0], "in\n"));
  kill(all.processes[0].pid, SIGSTOP);
  int status;
  assert_int_equal(waitpid(all.processes[0].pid, &status, WUNTRACED), all.processes[0].pid);
  tell(&all.processes[1]);
  assert_true(has_said(&all.processes[1], "in\n"));
  /* The stop must be longer than the timeout. */
  poll(NULL, 0, PATIENCE_S * 1000 + 500);
  kill(all.processes[0].pid, SIGCONT);
  ends_well(&all.processes[0]);
  ends_well(&all.processes[1]);
}

static void a_worker_that_never_starts_is_missed(void **state) {
  (void)state;
  job all = job_of(3);
  start_as(&all, 0, 0, "absent", short_lease);
  start_as(&all, 2, 2, "absent", short_lease);
  survivors_say(&all, "DEADLINE_EXCEEDED by worker 1: ");
}

static void who_fails_or_disagrees_is_named_alike_everywhere(void **state) {
  (void)state;
  const struct {
    const char *part;
    const char *words;
  } cases[] = {{"fails", "ABORTED by worker 1: "}, {"dtype", "INVALID_ARGUMENT by worker 1: "}};
  for (size_t k = 0; k < COUNT_OF(cases); ++k) {
    job all = job_of(3);
    start(&all, cases[k].part, two_replicas);
    survivors_say(&all, cases[k].words);
    assert_int_equal(end_of(&all.processes[1]), 1);
  }
}

/* ---- Continuing with a restarted worker ---- */

static dist_status sum_once(dist_replica *replica, void *user_data) {
  const float one = 1;
  const dist_tensor in = {(void *)&one, DIST_F32, 0, NULL, NULL};
  dist_tensor out = {user_data, DIST_F32, 0, NULL, NULL};
  TRY(dist_barrier(replica, NULL, NULL));
  if (own_number == 1 && getenv("DIST_RESTART") == NULL) raise(SIGKILL);
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, NULL, NULL);
}

/* A worker that has lost a peer creates a new strategy, which waits for the restarted one. */
static int play_again(void) {
  dist_status status = DIST_UNAVAILABLE;
  for (int attempt = 0; attempt < 2 && status == DIST_UNAVAILABLE; ++attempt) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = 1;
    options.timeout_ns = (int64_t)GUARD_S * 1000000000;
    dist_strategy *strategy = NULL;
    float sum = 0;
    status = dist_strategy_create(&options, &strategy);
    if (status == DIST_OK) status = dist_run(strategy, sum_once, &sum, NULL);
    printf("attempt %d: sum %.0f, ", attempt, (double)sum);
    (void)say_how_it_went(status);
    if (dist_strategy_destroy(strategy) != DIST_OK) return 2;
  }
  return status == DIST_OK ? 0 : 1;
}

static void a_worker_that_starts_again_joins_the_next_strategy(void **state) {
  (void)state;
  const char *const again[] = {"DIST_RESTART=1", NULL};
  job all = job_of(3);
  start(&all, "again", NULL);
  assert_int_equal(end_of(&all.processes[1]), 128 + SIGKILL);
  /* Before or after the others have declared the first process lost. */
  start_as(&all, 1, 1, "again", again);
  for (int w = 0; w < 3; ++w) {
    ends_well(&all.processes[w]);
    const char *const words = w == 1 ? "attempt 0: sum 3, " : "attempt 1: sum 3, ";
    if (strstr(all.processes[w].text, words) == NULL)
      fail_msg("worker %d says: %s", w, all.processes[w].text);
  }
}

/* ---- Intruders ---- */

static void a_second_start_is_refused_and_changes_nothing(void **state) {
  (void)state;
  job all = job_of(2);
  start_as(&all, 1, 1, "whole", two_replicas);
  /* It listens as soon as it accepts a connection. */
  for (int i = 0, found = 0; !found && i < GUARD_S * 100; ++i) {
    const int fd = connect_to(all.addresses[1]);
    found = fd >= 0;
    found ? close(fd) : poll(NULL, 0, 10);
  }
  start_as(&all, 2, 1, "whole", two_replicas);
  assert_int_equal(end_of(&all.processes[2]), 1);
  assert_non_null(strstr(all.processes[2].text, "UNAVAILABLE"));
  assert_non_null(strstr(all.processes[2].text, "in use"));
  start_as(&all, 0, 0, "whole", two_replicas);
  ends_well(&all.processes[0]);
  ends_well(&all.processes[1]);
}

static void who_does_not_know_the_secret_is_no_worker(void **state) {
  (void)state;
  const char *const knows[] = {"DIST_REPLICAS=2", "DIST_JOB_SECRET=open sesame", NULL};
  const char *const guesses[] = {"DIST_REPLICAS=2", "DIST_JOB_SECRET=open barley", "TEST_TIMEOUT_S=2", NULL};
  job all = job_of(2);
  start_as(&all, 0, 0, "whole", knows);
  start_as(&all, 1, 1, "whole", guesses);
  process *intruder = &all.processes[1];
  assert_int_equal(end_of(intruder), 1);
  /* It tried until its deadline, because another worker 0 might have come. */
  assert_non_null(strstr(intruder->text, "DEADLINE_EXCEEDED by worker 0: "));
  assert_non_null(strstr(intruder->text, "secret"));
  assert_null(strstr(intruder->text, "barley"));
  start_as(&all, 1, 1, "whole", knows);
  ends_well(&all.processes[0]);
  ends_well(&all.processes[1]);
  /* A worker that waits for another one reports the processes that pretended to be it. */
  all = job_of(2);
  const char *const waits[] = {"DIST_JOB_SECRET=open sesame", "DIST_LEASE_SECONDS=1", NULL};
  const char *const tries[] = {"DIST_JOB_SECRET=open barley", "DIST_LEASE_SECONDS=1", NULL};
  start_as(&all, 0, 0, "absent", waits);
  start_as(&all, 1, 1, "absent", tries);
  assert_int_equal(end_of(&all.processes[1]), 1);
  assert_int_equal(end_of(&all.processes[0]), 1);
  if (strstr(all.processes[0].text, "did not prove") == NULL) fail_msg("%s", all.processes[0].text);
}

int main(int argc, char **argv) {
  if (argc == 3) {
    fault = argv[1];
    own_number = (int)strtol(argv[2], NULL, 10);
    if (strcmp(fault, "whole") == 0) return play_whole();
    if (strcmp(fault, "stop") == 0) return play_again_after_a_stop();
    return strcmp(fault, "again") == 0 ? play_again() : play_fault();
  }
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(they_compute_what_one_process_does),
      cmocka_unit_test(a_killed_worker_is_named),
      cmocka_unit_test(a_stopped_worker_is_named_after_its_lease),
      cmocka_unit_test(a_pause_shorter_than_the_lease_changes_nothing),
      cmocka_unit_test(a_worker_that_arrives_during_a_stop_is_not_blamed),
      cmocka_unit_test(a_worker_that_never_starts_is_missed),
      cmocka_unit_test(who_fails_or_disagrees_is_named_alike_everywhere),
      cmocka_unit_test(a_worker_that_starts_again_joins_the_next_strategy),
      cmocka_unit_test(a_second_start_is_refused_and_changes_nothing),
      cmocka_unit_test(who_does_not_know_the_secret_is_no_worker),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
