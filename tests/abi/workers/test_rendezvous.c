/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers that are processes and know their rank, their number and one address. Most of them print the
 * cluster that they have found, make an all-reduce together, and end.
 */
#include <dist/experimental/rendezvous.h>
#include "../processes_support.h"

#include <netinet/in.h>

/* ---- The workers ---- */

static int64_t timeout_of_test(void) {
  const char *const limit = getenv("TEST_TIMEOUT_MS");
  return (limit != NULL ? strtol(limit, NULL, 10) : GUARD_S * INT64_C(1000)) * 1000000;
}

static dist_status meet(dist_cluster_resolver **out) {
  dist_rendezvous_options options = DIST_RENDEZVOUS_OPTIONS_INIT;
  options.timeout_ns = timeout_of_test();
  return dist_cluster_resolver_create_rendezvous(&options, NULL, out);
}

static dist_status create(dist_cluster_resolver *resolver, dist_strategy **out) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 2;
  options.timeout_ns = timeout_of_test();
  worker.cluster_resolver = resolver;
  return dist_strategy_create(&options, out);
}

static dist_status add(dist_replica *replica, void *user_data) {
  (void)user_data;
  int32_t one = 1;
  dist_tensor value = {&one, DIST_I32, 0, NULL, NULL};
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &value, &value, 1, NULL, NULL);
  if (status != DIST_OK) return status;
  return one == dist_replica_num_replicas(replica) ? DIST_OK : dist_fail(DIST_DATA_LOSS, "a wrong sum");
}

static dist_status show(const dist_cluster_resolver *resolver) {
  dist_cluster_spec *spec = NULL;
  const dist_status status = dist_cluster_resolver_spec(resolver, &spec);
  if (status != DIST_OK) return status;
  printf("%s\n", dist_cluster_spec_json(spec));
  dist_cluster_spec_destroy(spec);
  fflush(stdout);
  return DIST_OK;
}

/* Whether another process can listen on this worker's port. */
static int port_is_free(const dist_cluster_resolver *resolver) {
  char master[DIST_MAX_ADDRESS_BYTES];
  if (dist_cluster_resolver_master(resolver, NULL, DIST_TASK_UNSET, "", master, sizeof master) != DIST_OK)
    return 1;
  char host[32];
  snprintf(host, sizeof host, "%.*s", (int)(strchr(master, ':') - master), master);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(host)};
  at.sin_port = htons((uint16_t)strtol(strchr(master, ':') + 1, NULL, 10));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  const int is_free = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
                      bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
  close(fd);
  return is_free;
}

static dist_status compute(const char *part, dist_cluster_resolver *resolver) {
  dist_strategy *strategy = NULL;
  dist_status status = create(resolver, &strategy);
  if (status != DIST_OK) return status;
  status = dist_run(strategy, add, NULL, NULL);
  if (status == DIST_OK && strcmp(part, "reform") == 0) {
    dist_reform_options options = DIST_REFORM_OPTIONS_INIT;
    options.min_workers = 2;
    status = dist_strategy_reform(strategy, &options);
    if (status == DIST_OK) status = dist_run(strategy, add, NULL, NULL);
  }
  if (status == DIST_OK && strcmp(part, "second") == 0) {
    dist_strategy *second = NULL;
    const dist_status refused = create(resolver, &second);
    printf("second: %s: %s\n", dist_status_name(refused), dist_last_error());
  }
  const dist_status ended = dist_strategy_destroy(strategy);
  return ended == DIST_OK ? status : ended;
}

static void *signal_it(void *cancel) {
  return dist_cancel_signal(cancel, "enough") == DIST_OK ? cancel : NULL;
}

/* The object is signalled before the call, or by another thread at any time. */
static dist_status be_cancelled(const char *part) {
  dist_cancel *cancel = NULL;
  dist_status status = dist_cancel_create(NULL, &cancel);
  if (status != DIST_OK) return status;
  dist_rendezvous_options options = DIST_RENDEZVOUS_OPTIONS_INIT;
  options.timeout_ns = -1;
  options.cancel = cancel;
  pthread_t thread;
  const int early = strcmp(part, "cancel early") == 0;
  if (early) (void)signal_it(cancel);
  if (!early && pthread_create(&thread, NULL, signal_it, cancel) != 0) return DIST_INTERNAL;
  dist_cluster_resolver *resolver = NULL;
  status = dist_cluster_resolver_create_rendezvous(&options, NULL, &resolver);
  if (!early) pthread_join(thread, NULL);
  dist_cancel_destroy(cancel);
  return status;
}

static int play(const char *part) {
  if (strncmp(part, "cancel", 6) == 0) return say_how_it_went(be_cancelled(part));
  if (strcmp(part, "default") == 0) {
    unsetenv("TF_CONFIG");
    return say_how_it_went(compute(part, NULL));
  }
  dist_cluster_resolver *resolver = NULL;
  dist_status status = meet(&resolver);
  if (status != DIST_OK) return say_how_it_went(status);
  if (port_is_free(resolver)) return 3;
  status = show(resolver);
  if (status == DIST_OK) status = compute(part, resolver);
  const int code = say_how_it_went(status);
  dist_cluster_resolver_destroy(resolver);
  return code;
}

/* ---- The jobs ---- */

enum { MOST_SETTINGS = 12 };
typedef struct settings {
  char texts[MOST_SETTINGS][96];
  int n;
} settings;

__attribute__((format(printf, 2, 3))) static void set(settings *all, const char *format, ...) {
  assert_true(all->n < MOST_SETTINGS);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(all->texts[all->n], sizeof all->texts[0], format, arguments);
  va_end(arguments);
  ++all->n;
}

static settings place_of(const job *all, int rank, int size) {
  settings own = {.n = 0};
  set(&own, "DIST_RENDEZVOUS=%s", all->addresses[0]);
  set(&own, "DIST_RANK=%d", rank);
  set(&own, "DIST_SIZE=%d", size);
  return own;
}

/* Starts rank `rank` as process `place` of the job. */
static void start_rank(job *all, int place, const char *part, const settings *own) {
  const char *list[MOST_SETTINGS + 1] = {NULL};
  for (int i = 0; i < own->n; ++i) list[i] = own->texts[i];
  start_as(all, place, 0, part, list);
}

static void start_job(job *all, int size, const char *part) {
  for (int rank = size - 1; rank >= 0; --rank) {
    const settings own = place_of(all, rank, size);
    start_rank(all, rank, part, &own);
  }
}

/* Asserts that all workers succeed and have found the same cluster. */
static void all_meet(job *all, int size) {
  for (int w = 0; w < size; ++w) ends_well(&all->processes[w]);
  const char *const first = all->processes[0].text;
  assert_has(first, "{\"worker\":[\"127.");
  const size_t line = strcspn(first, "\n");
  for (int w = 1; w < size; ++w) assert_true(strncmp(first, all->processes[w].text, line + 1) == 0);
}

static void fails_with(process *p, const char *status, const char *words) {
  const int code = end_of(p);
  if (code != 1 || strstr(p->text, status) == NULL || strstr(p->text, words) == NULL)
    fail_msg("a worker ended with %d and not with %s '%s': %s", code, status, words, p->text);
}

/* Waits until worker 0 listens on the job's address. */
static void until_it_listens(const job *all) {
  int fd = -1;
  for (const time_t end = time(NULL) + GUARD_S; fd < 0 && time(NULL) < end; poll(NULL, 0, 1))
    fd = connect_to(all->addresses[0]);
  assert_true(fd >= 0);
  close(fd);
}

static void workers_meet_at_one_address(void **state) {
  (void)state;
  for (int size = 1; size <= 4; size += size) {
    job all = job_of(1);
    start_job(&all, size, "run");
    all_meet(&all, size);
  }
}

static void two_jobs_meet_at_the_same_time(void **state) {
  (void)state;
  job jobs[2] = {job_of(1), job_of(1)};
  /* The addresses may only differ while both are known. */
  while (strcmp(jobs[0].addresses[0], jobs[1].addresses[0]) == 0) jobs[1] = job_of(1);
  for (int k = 0; k < 2; ++k) start_job(&jobs[k], 2, "run");
  for (int k = 0; k < 2; ++k) all_meet(&jobs[k], 2);
}

static void workers_re_form_on_the_same_ports(void **state) {
  (void)state;
  job all = job_of(1);
  start_job(&all, 2, "reform");
  all_meet(&all, 2);
}

static void one_strategy_at_a_time_uses_the_port(void **state) {
  (void)state;
  job all = job_of(1);
  start_job(&all, 2, "second");
  all_meet(&all, 2);
  for (int w = 0; w < 2; ++w) {
    assert_has(all.processes[w].text, "second: FAILED_PRECONDITION");
    assert_has(all.processes[w].text, "another strategy uses the port of this worker, 127.");
  }
}

static void a_strategy_without_a_resolver_reads_the_environment(void **state) {
  (void)state;
  job all = job_of(1);
  start_job(&all, 2, "default");
  for (int w = 0; w < 2; ++w) ends_well(&all.processes[w]);
}

/* Listens on the job's port minus 1. Returns the socket, or -1 if that port is in use. */
static int listen_before(const job *all) {
  const char *const colon = strchr(all->addresses[0], ':');
  char host[32];
  snprintf(host, sizeof host, "%.*s", (int)(colon - all->addresses[0]), all->addresses[0]);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(host)};
  at.sin_port = htons((uint16_t)(strtol(colon + 1, NULL, 10) - 1));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 8) == 0) return fd;
  close(fd);
  return -1;
}

static void every_launcher_provides_rank_and_size(void **state) {
  (void)state;
  static const struct {
    const char *rank, *size, *job;
  } launchers[] = {{"RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID=7"},
                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE=prterun@1"},
                   {"PMI_RANK", "PMI_SIZE", "PMI_FD=9"},
                   {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID=12"}};
  for (size_t k = 0; k < COUNT_OF(launchers); ++k) {
    job all = job_of(1);
    int store = -1;
    /* PyTorch's store listens on MASTER_PORT, as with torchrun. */
    while (k == 0 && (store = listen_before(&all)) < 0) all = job_of(1);
    for (int rank = 0; rank < 2; ++rank) {
      settings own = {.n = 0};
      if (k == 0) {
        const char *const colon = strchr(all.addresses[0], ':');
        set(&own, "MASTER_ADDR=%.*s", (int)(colon - all.addresses[0]), all.addresses[0]);
        set(&own, "MASTER_PORT=%ld", strtol(colon + 1, NULL, 10) - 1);
        set(&own, "TORCHELASTIC_USE_AGENT_STORE=True");
      } else {
        set(&own, "DIST_RENDEZVOUS=%s", all.addresses[0]);
      }
      set(&own, "%s=%d", launchers[k].rank, rank);
      set(&own, "%s=2", launchers[k].size);
      set(&own, "%s", launchers[k].job);
      /* torchrun is often started by srun, once per machine. */
      if (k == 0) set(&own, "SLURM_PROCID=0");
      start_rank(&all, rank, "run", &own);
    }
    all_meet(&all, 2);
    if (store >= 0) close(store);
  }
}

/* A rejected process gets the reason, and another process can take its place. */
static void a_rejected_process_does_not_end_the_rendezvous(void **state) {
  (void)state;
  static const struct {
    int rank, size;
    const char *job, *status;
    const char *words[3];
  } cases[] = {
      {1,
       3,
       "mine",
       "FAILED_PRECONDITION",
       {"worker 1 at 127.", "has a job of 3 workers, but worker 0", "has one of 2 workers"}},
      {1, 2, "other", "FAILED_PRECONDITION", {"worker 1 at 127.", "another job (other)", "worker 0 (mine)"}},
      /* Only one of them can listen on the address. */
      {0, 2, "mine", "UNAVAILABLE", {"the rendezvous address is \"127.", "cannot listen", "in use"}},
  };
  for (size_t k = 0; k < COUNT_OF(cases); ++k) {
    job all = job_of(1);
    settings own = place_of(&all, 0, 2);
    set(&own, "DIST_JOB_NAME=mine");
    start_rank(&all, 0, "run", &own);
    until_it_listens(&all);
    settings wrong = place_of(&all, cases[k].rank, cases[k].size);
    set(&wrong, "DIST_JOB_NAME=%s", cases[k].job);
    start_rank(&all, 2, "run", &wrong);
    fails_with(&all.processes[2], cases[k].status, cases[k].words[0]);
    for (size_t i = 1; i < 3; ++i) assert_has(all.processes[2].text, cases[k].words[i]);
    settings right = place_of(&all, 1, 2);
    set(&right, "DIST_JOB_NAME=mine");
    start_rank(&all, 1, "run", &right);
    all_meet(&all, 2);
  }
}

/* Of three workers, two have the same rank. The second one to arrive is rejected. */
static void a_rank_is_registered_once(void **state) {
  (void)state;
  job all = job_of(1);
  const settings zero = place_of(&all, 0, 3);
  const settings one = place_of(&all, 1, 3);
  const settings two = place_of(&all, 2, 3);
  start_rank(&all, 0, "run", &zero);
  start_rank(&all, 1, "run", &one);
  start_rank(&all, 3, "run", &one);
  process *const twins[] = {&all.processes[1], &all.processes[3]};
  process *rejected = NULL;
  for (const time_t end = time(NULL) + GUARD_S; rejected == NULL && time(NULL) < end;) {
    struct pollfd ready[] = {{twins[0]->out, POLLIN, 0}, {twins[1]->out, POLLIN, 0}};
    (void)poll(ready, 2, 1000);
    for (int k = 0; k < 2; ++k) {
      if (ready[k].revents != 0) rejected = twins[k];
    }
  }
  assert_non_null(rejected);
  fails_with(rejected, "FAILED_PRECONDITION", "rank 1 is used twice: 127.");
  start_rank(&all, 2, "run", &two);
  ends_well(&all.processes[0]);
  ends_well(&all.processes[2]);
  ends_well(rejected == twins[0] ? twins[1] : twins[0]);
}

static void a_stranger_with_another_secret_is_ignored(void **state) {
  (void)state;
  job all = job_of(1);
  settings stranger = place_of(&all, 1, 2);
  set(&stranger, "DIST_JOB_SECRET=guessed");
  set(&stranger, "TEST_TIMEOUT_MS=2000");
  settings zero = place_of(&all, 0, 2);
  set(&zero, "DIST_JOB_SECRET=open sesame");
  start_rank(&all, 0, "run", &zero);
  until_it_listens(&all);
  start_rank(&all, 2, "run", &stranger);
  fails_with(&all.processes[2], "DEADLINE_EXCEEDED", "DIST_JOB_SECRET differs");
  settings one = place_of(&all, 1, 2);
  set(&one, "DIST_JOB_SECRET=open sesame");
  start_rank(&all, 1, "run", &one);
  all_meet(&all, 2);
}

static void the_ranks_that_are_missing_at_the_deadline_are_listed(void **state) {
  (void)state;
  job all = job_of(1);
  settings zero = place_of(&all, 0, 2);
  set(&zero, "TEST_TIMEOUT_MS=200");
  start_rank(&all, 0, "run", &zero);
  fails_with(&all.processes[0], "DEADLINE_EXCEEDED", "rank 1 of 2 has not registered at 127.");
  assert_has(all.processes[0].text, "the workers have not met within 200 ms");
  /* Worker 0 is missing. */
  settings one = place_of(&all, 1, 2);
  set(&one, "TEST_TIMEOUT_MS=200");
  start_rank(&all, 1, "run", &one);
  fails_with(&all.processes[1], "DEADLINE_EXCEEDED", "the workers have not met within 200 ms");
  assert_has(all.processes[1].text, all.addresses[0]);
}

/* Worker 0 waits longer than worker 1. Worker 1 fails at its own deadline, and another process can take its
 * place. */
static void a_worker_that_gives_up_can_be_started_again(void **state) {
  (void)state;
  job all = job_of(1);
  const settings zero = place_of(&all, 0, 3);
  start_rank(&all, 0, "run", &zero);
  until_it_listens(&all);
  settings impatient = place_of(&all, 1, 3);
  set(&impatient, "TEST_TIMEOUT_MS=3000");
  start_rank(&all, 3, "run", &impatient);
  assert_int_equal(end_of(&all.processes[3]), 1);
  const char *const text = all.processes[3].text;
  /* The second message appears if the machine is so busy that it did not reach worker 0. */
  if (strstr(text, "rank 2 of 3 has not registered at 127.") == NULL &&
      strstr(text, "DEADLINE_EXCEEDED") == NULL)
    fail_msg("worker 1 says: %s", text);
  for (int rank = 1; rank < 3; ++rank) {
    const settings own = place_of(&all, rank, 3);
    start_rank(&all, rank, "run", &own);
  }
  all_meet(&all, 3);
}

static void a_worker_that_is_killed_can_be_started_again(void **state) {
  (void)state;
  job all = job_of(1);
  const settings zero = place_of(&all, 0, 3);
  const settings one = place_of(&all, 1, 3);
  const settings two = place_of(&all, 2, 3);
  start_rank(&all, 0, "run", &zero);
  start_rank(&all, 3, "run", &one);
  until_it_listens(&all);
  kill(all.processes[3].pid, SIGKILL);
  assert_int_equal(end_of(&all.processes[3]), 128 + SIGKILL);
  start_rank(&all, 2, "run", &two);
  /* Worker 0 may learn that the first process has ended shortly after the second one arrives. */
  for (;;) {
    start_rank(&all, 1, "run", &one);
    if (end_of(&all.processes[1]) == 0) break;
    assert_has(all.processes[1].text, "rank 1 is used twice");
  }
  ends_well(&all.processes[0]);
  ends_well(&all.processes[2]);
}

static void a_signal_ends_the_wait(void **state) {
  (void)state;
  for (int k = 0; k < 4; ++k) {
    job all = job_of(1);
    const settings own = place_of(&all, k % 2, 2);
    start_rank(&all, 0, k < 2 ? "cancel early" : "cancel", &own);
    fails_with(&all.processes[0], "CANCELLED", "enough");
  }
}

static void addresses_off_loopback_need_protection(void **state) {
  (void)state;
  job all = job_of(1);
  for (int rank = 0; rank < 2; ++rank) {
    snprintf(all.addresses[0], sizeof all.addresses[0], "192.0.2.1:29500");
    const settings own = place_of(&all, rank, 2);
    start_rank(&all, rank, "run", &own);
    fails_with(&all.processes[rank], "FAILED_PRECONDITION", "192.0.2.1:29500");
    assert_has(all.processes[rank].text, "DIST_TLS_CA");
  }
}

int main(int argc, char **argv) {
  if (argc == 3) return play(argv[1]);
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(workers_meet_at_one_address),
      cmocka_unit_test(two_jobs_meet_at_the_same_time),
      cmocka_unit_test(workers_re_form_on_the_same_ports),
      cmocka_unit_test(one_strategy_at_a_time_uses_the_port),
      cmocka_unit_test(a_strategy_without_a_resolver_reads_the_environment),
      cmocka_unit_test(every_launcher_provides_rank_and_size),
      cmocka_unit_test(a_rejected_process_does_not_end_the_rendezvous),
      cmocka_unit_test(a_rank_is_registered_once),
      cmocka_unit_test(a_stranger_with_another_secret_is_ignored),
      cmocka_unit_test(the_ranks_that_are_missing_at_the_deadline_are_listed),
      cmocka_unit_test(a_worker_that_gives_up_can_be_started_again),
      cmocka_unit_test(a_worker_that_is_killed_can_be_started_again),
      cmocka_unit_test(a_signal_ends_the_wait),
      cmocka_unit_test(addresses_off_loopback_need_protection),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
