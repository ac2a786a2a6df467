/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers that mpirun has started, whose link module is the one of that MPI. They have no TF_CONFIG and no
 * port.
 */
#include "../processes_support.h"
#include "tests/skip.h"

#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>

enum { REPLICAS = 2, LARGE = 300000 };

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

/* Returns the number that the launcher has assigned to this process. */
static int launched_as(void) {
  const char *text = getenv("OMPI_COMM_WORLD_RANK");
  if (text == NULL) text = getenv("PMI_RANK");
  return text == NULL ? 0 : (int)strtol(text, NULL, 10);
}

/* ---- The workers ---- */

typedef struct seen {
  uint64_t digest[256]; /* by replica id */
} seen;

static void see(uint64_t *digest, const void *data, size_t bytes) {
  const unsigned char *at = data;
  for (size_t i = 0; i < bytes; ++i) *digest = (*digest ^ at[i]) * 1099511628211U;
}

static dist_status collectives(dist_replica *replica, void *user_data) {
  const int32_t me = dist_replica_id(replica);
  uint64_t *digest = &((seen *)user_data)->digest[me];
  *digest = 14695981039346656037U;
  static _Thread_local float in[LARGE], out[LARGE];
  const int64_t sizes[] = {1, 3000, LARGE};
  for (int i = 0; i < LARGE; ++i) in[i] = 1.0F / (float)(3 + me + i);
  for (int k = 0; k < 3; ++k) {
    dist_tensor from = {in, DIST_F32, 1, &sizes[k], NULL};
    dist_tensor to = {out, DIST_F32, 1, &sizes[k], NULL};
    TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, &from, &to, 1, NULL, NULL));
    see(digest, out, (size_t)sizes[k] * sizeof(float));
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    dist_work *work = NULL;
    TRY(dist_all_reduce(replica, DIST_REDUCE_MEAN, &from, &to, 1, &options, &work));
    TRY(dist_work_wait(work, DIST_NO_TIMEOUT));
    dist_work_destroy(work);
    see(digest, out, (size_t)sizes[k] * sizeof(float));
  }
  float value = (float)me;
  dist_tensor scalar = {&value, DIST_F32, 0, NULL, NULL};
  for (int i = 0; i < 1000; ++i) {
    TRY(dist_all_reduce(replica, DIST_REDUCE_MEAN, &scalar, &scalar, 1, NULL, NULL));
    value += (float)me / (float)(1 + i);
  }
  see(digest, &value, sizeof value);
  return DIST_OK;
}

static dist_status create(int32_t kind, int32_t replicas, dist_strategy **out) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = kind;
  options.num_replicas = replicas;
  const char *const limit = getenv("TEST_TIMEOUT_MS");
  options.timeout_ns = (limit != NULL ? strtol(limit, NULL, 10) : GUARD_S * INT64_C(1000)) * 1000000;
  return dist_strategy_create(&options, out);
}

static void print(const char *text, size_t size, void *user_data) {
  (void)user_data;
  printf("%.*s\n", (int)size, text);
}

/* Runs two strategies, one after the other. */
static dist_status compute(int32_t kind, int32_t replicas, seen *all) {
  memset(all, 0, sizeof *all);
  for (int turn = 0; turn < 2; ++turn) {
    dist_strategy *strategy = NULL;
    TRY(create(kind, replicas, &strategy));
    TRY(dist_run(strategy, collectives, all, NULL));
    if (kind == DIST_STRATEGY_MULTI_WORKER_MIRRORED && turn == 0)
      TRY(dist_strategy_explain(strategy, print, NULL));
    TRY(dist_strategy_destroy(strategy));
  }
  return DIST_OK;
}

static int play_whole(void) {
  seen all;
  const dist_status status = compute(DIST_STRATEGY_MULTI_WORKER_MIRRORED, REPLICAS, &all);
  for (int r = 0; r < 256; ++r) {
    if (all.digest[r] != 0) printf("replica %d has %016llx\n", r, (unsigned long long)all.digest[r]);
  }
  return say_how_it_went(status);
}

static const char *fault = "";

static dist_status take_part(dist_replica *replica, void *user_data) {
  static float many[16 * 1024 * 1024];
  const int64_t shape[] = {16 * 1024 * 1024};
  dist_tensor large = {many, DIST_F32, 1, shape, NULL};
  (void)user_data;
  for (int i = 0; i < 3; ++i) TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, &large, &large, 1, NULL, NULL));
  if (dist_replica_id(replica) != 1)
    return dist_all_reduce(replica, DIST_REDUCE_SUM, &large, &large, 1, NULL, NULL);
  if (strcmp(fault, "killed") == 0) raise(SIGKILL);
  return dist_fail(DIST_DATA_LOSS, "no more rows");
}

static dist_status add(dist_replica *replica, void *user_data) {
  float value = 1;
  dist_tensor scalar = {&value, DIST_F32, 0, NULL, NULL};
  TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, &scalar, &scalar, 1, NULL, NULL));
  *(float *)user_data = value;
  return DIST_OK;
}

/* Worker 1 fails. If it dies, the others continue without it. */
static int play_fault(void) {
  dist_strategy *strategy = NULL;
  dist_status status = create(DIST_STRATEGY_MULTI_WORKER_MIRRORED, 1, &strategy);
  if (status != DIST_OK) return say_how_it_went(status);
  status = dist_run(strategy, take_part, NULL, NULL);
  const int code = say_how_it_went(status);
  if (strcmp(fault, "killed") != 0) return code;
  float value = 0;
  status = dist_strategy_reform(strategy, NULL);
  if (status == DIST_OK) status = dist_run(strategy, add, &value, NULL);
  if (status == DIST_OK) status = dist_strategy_destroy(strategy);
  printf("value %g\n", (double)value);
  return say_how_it_went(status);
}

/* ---- A host that uses MPI itself ---- */

static atomic_int host_ends;

/* Messages that match anything, and collectives, on MPI_COMM_WORLD. */
static void *use_mpi(void *argument) {
  int *const wrong = argument;
  int rank;
  int size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0, all_end = 0; all_end == 0; ++i) {
    int given[2] = {rank, atomic_load(&host_ends)};
    int sum[2] = {0, 0};
    int got = -1;
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(given, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    *wrong += got != i || sum[0] != size * (size - 1) / 2;
    all_end = sum[1] == size;
  }
  return NULL;
}

/* The communicator of the module is created while a receive of the host accepts any message. */
static int play_host(void) {
  int level = 0;
  int wrong = 0;
  int got = -1;
  int rank = 0;
  pthread_t thread;
  MPI_Request request;
  dist_strategy *strategy = NULL;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  dist_status status = create(DIST_STRATEGY_MULTI_WORKER_MIRRORED, 1, &strategy);
  if (status == DIST_OK) status = dist_strategy_destroy(strategy);
  if (status != DIST_OK) return say_how_it_went(status);
  MPI_Send(&rank, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  pthread_create(&thread, NULL, use_mpi, &wrong);
  const int code = play_whole();
  atomic_store(&host_ends, 1);
  pthread_join(thread, NULL);
  MPI_Finalize();
  if (got != 1 - rank) ++wrong;
  printf("%d wrong\n", wrong);
  return wrong > 0 ? 6 : code;
}

/* MPI is finalized after the strategy has ended, or before. */
static int play_finalize(int before) {
  int level = 0;
  float value = 0;
  dist_strategy *strategy = NULL;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
  dist_status status = create(DIST_STRATEGY_MULTI_WORKER_MIRRORED, 1, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, add, &value, NULL);
  if (status == DIST_OK && !before) status = dist_strategy_destroy(strategy);
  if (status != DIST_OK) return say_how_it_went(status);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (before && dist_run(strategy, add, &value, NULL) == DIST_OK) return 3;
  if (before && dist_strategy_destroy(strategy) != DIST_OK) return 4;
  return say_how_it_went(create(DIST_STRATEGY_MULTI_WORKER_MIRRORED, 1, &strategy)) == 1 ? 0 : 5;
}

static int play_level(void) {
  int level = 0;
  dist_strategy *strategy = NULL;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
  const int code = say_how_it_went(create(DIST_STRATEGY_MULTI_WORKER_MIRRORED, 1, &strategy));
  MPI_Finalize();
  return code;
}

/* Only worker 0 creates a strategy. The other process waits until worker 0 has written the result. */
static int play_alone(void) {
  const char *const file = getenv("TEST_FILE");
  dist_strategy *strategy = NULL;
  if (launched_as() == 0) {
    say_how_it_went(create(DIST_STRATEGY_MULTI_WORKER_MIRRORED, 1, &strategy));
    close(creat(file, 0600));
    return 0;
  }
  while (access(file, F_OK) != 0) poll(NULL, 0, 10);
  return 0;
}

/* After a successful strategy, worker 1 fails. The other one would never end by itself. */
static int play_exit(void) {
  dist_strategy *strategy = NULL;
  float value = 0;
  dist_status status = create(DIST_STRATEGY_MULTI_WORKER_MIRRORED, 1, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, add, &value, NULL);
  if (status == DIST_OK) status = dist_strategy_destroy(strategy);
  if (say_how_it_went(status) != 0) return 5;
  if (launched_as() == 0) {
    for (;;) pause();
  }
  return 7;
}

/* Worker 1 returns from main() without destroying its strategy. The other one makes one more call. */
static int play_return(void) {
  dist_strategy *strategy = NULL;
  float value = 0;
  dist_status status = create(DIST_STRATEGY_MULTI_WORKER_MIRRORED, 1, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, add, &value, NULL);
  if (say_how_it_went(status) != 0) return 5;
  if (launched_as() != 0) return 0;
  say_how_it_went(dist_run(strategy, add, &value, NULL));
  return say_how_it_went(dist_strategy_destroy(strategy));
}

static int play(const char *part) {
  if (getenv("TF_CONFIG") != NULL || getenv("DIST_RENDEZVOUS") != NULL) return 9;
  fault = part;
  if (strcmp(part, "whole") == 0) return play_whole();
  if (strcmp(part, "host") == 0) return play_host();
  if (strcmp(part, "after") == 0) return play_finalize(0);
  if (strcmp(part, "before") == 0) return play_finalize(1);
  if (strcmp(part, "level") == 0) return play_level();
  if (strcmp(part, "alone") == 0) return play_alone();
  if (strcmp(part, "exits") == 0) return play_exit();
  if (strcmp(part, "returns") == 0) return play_return();
  if (strcmp(part, "nothing") == 0) return printf("no strategy\n") < 0;
  return play_fault();
}

/* ---- The tests ---- */

/* Starts `n` processes, or one without a launcher if n is 0. `option` is passed to the launcher, and may be
 * NULL. */
static process launch_with(const char *option, int n, const char *part, const char *const *environment) {
  process p = {0};
  int out[2];
  int in[2];
  assert_int_equal(pipe(out), 0);
  assert_int_equal(pipe(in), 0);
  fflush(NULL);
  p.pid = fork();
  assert_true(p.pid >= 0);
  if (p.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setenv("DIST_TRANSPORT", MODULE, 1);
    /* Needed in containers, and harmless elsewhere. */
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    for (; environment != NULL && *environment != NULL; ++environment) putenv((char *)*environment);
    dup2(out[1], STDOUT_FILENO);
    dup2(out[1], STDERR_FILENO);
    dup2(in[0], STDIN_FILENO);
    for (int fd = 3; fd < 256; ++fd) close(fd);
    char number[16];
    char self[4096] = "";
    snprintf(number, sizeof number, "%d", n);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) _exit(127);
    const char *arguments[16] = {LAUNCHER};
    size_t at = 0;
    while (arguments[at] != NULL) ++at;
    if (option != NULL) arguments[at++] = option;
    arguments[at++] = "-n";
    arguments[at++] = number;
    arguments[at++] = self;
    arguments[at++] = part;
    if (n > 0) execvp(arguments[0], (char *const *)arguments);
    if (n == 0) execl(self, self, part, (char *)NULL);
    _exit(127);
  }
  close(out[1]);
  close(in[0]);
  p.out = out[0];
  p.in = in[1];
  return p;
}

static process launch(int n, const char *part, const char *const *environment) {
  return launch_with(NULL, n, part, environment);
}

static void said(const process *p, const char *words) {
  if (strstr(p->text, words) == NULL) fail_msg("\"%s\" is not in: %s", words, p->text);
}

static void said_often(const process *p, const char *words, int times) {
  int n = 0;
  for (const char *at = p->text; (at = strstr(at, words)) != NULL; ++at) ++n;
  if (n != times) fail_msg("\"%s\" is %d times, not %d times, in: %s", words, n, times, p->text);
}

static void computes_like_one_process(const char *part, int workers) {
  seen expected;
  assert_ok(compute(DIST_STRATEGY_MIRRORED, workers * REPLICAS, &expected));
  process job = launch(workers, part, NULL);
  ends_well(&job);
  said_often(&job, "went well", workers);
  said_often(&job, "with data over " LIBRARY, workers);
  for (int r = 0; r < workers * REPLICAS; ++r) {
    char line[64];
    snprintf(line, sizeof line, "replica %d has %016llx\n", r, (unsigned long long)expected.digest[r]);
    said(&job, line);
  }
}

static void they_compute_what_one_process_does(void **state) {
  (void)state;
  for (int workers = 2; workers <= 3; ++workers) computes_like_one_process("whole", workers);
}

static void the_host_uses_mpi_meanwhile(void **state) {
  (void)state;
  computes_like_one_process("host", 2);
}

static void a_worker_that_fails_is_named(void **state) {
  (void)state;
  process job = launch(2, "fails", NULL);
  assert_int_not_equal(end_of(&job), 0);
  said(&job, "DATA_LOSS by worker 1: ");
  said(&job, "ABORTED by worker 1: ");
  said(&job, "no more rows");
}

static void a_killed_worker_ends_the_job_or_is_named(void **state) {
  (void)state;
  process job = launch(3, "killed", NULL);
  assert_int_not_equal(end_of(&job), 0);
  assert_true(WIFEXITED(job.status));
  if (RECOVERY == NULL) skip_because("this launcher always ends the job");
  const char *const environment[] = {"DIST_LEASE_SECONDS=5", NULL};
  job = launch_with(RECOVERY, 3, "killed", environment);
  (void)end_of(&job);
  assert_true(WIFEXITED(job.status));
  said_often(&job, "UNAVAILABLE by worker 1: ", 2);
  said_often(&job, "value 2\nwent well", 2);
}

static void a_process_that_fails_ends_the_job(void **state) {
  (void)state;
  const char *const environment[] = {"DIST_LEASE_SECONDS=1", NULL};
  process job = launch(2, "exits", environment);
  assert_int_not_equal(end_of(&job), 0);
  assert_true(WIFEXITED(job.status)); /* it was not killed by this test */
}

static void a_process_that_returns_is_lost(void **state) {
  (void)state;
  process job = launch(2, "returns", NULL);
  (void)end_of(&job);
  assert_true(WIFEXITED(job.status));
  said(&job, "UNAVAILABLE by worker 1: ");
}

static void a_host_with_too_few_threads_is_refused(void **state) {
  (void)state;
  process job = launch(2, "level", NULL);
  assert_int_not_equal(end_of(&job), 0);
  said(&job, "the host has initialized MPI with MPI_THREAD_FUNNELED");
  said(&job, "MPI_THREAD_MULTIPLE");
}

static void the_host_finalizes_mpi(void **state) {
  (void)state;
  process job = launch(2, "after", NULL);
  ends_well(&job);
  said_often(&job, "MPI has already been finalized in this process", 2);
}

static void mpi_may_end_before_the_strategy(void **state) {
  (void)state;
  if (strcmp(MODULE, "mpich") == 0) skip_because("MPICH can abort if another thread uses it meanwhile");
  process job = launch(2, "before", NULL);
  ends_well(&job);
  said_often(&job, "MPI has already been finalized in this process", 2);
}

static void the_launcher_of_another_mpi_is_named(void **state) {
  (void)state;
  const char *const environment[] = {OTHER_SIZE "=4", NULL};
  process job = launch(0, "whole", environment);
  assert_int_not_equal(end_of(&job), 0);
  said(&job, OTHER_SIZE " is 4, but the MPI job of this process (" LIBRARY ") has only one rank");
}

static void a_process_without_a_launcher_is_a_job_of_one(void **state) {
  (void)state;
  process job = launch(0, "whole", NULL);
  ends_well(&job);
  said(&job, "went well");
}

static void processes_may_create_no_strategy(void **state) {
  (void)state;
  process job = launch(3, "nothing", NULL);
  ends_well(&job);
  said_often(&job, "no strategy", 3);
  /* All or none of them: MPI starts only when all processes take part. */
  char file[] = "/tmp/dist-mpi-XXXXXX";
  const int fd = mkstemp(file);
  assert_true(fd >= 0);
  close(fd);
  unlink(file);
  char variable[64];
  snprintf(variable, sizeof variable, "TEST_FILE=%s", file);
  const char *const environment[] = {"TEST_TIMEOUT_MS=300", variable, NULL};
  job = launch(2, "alone", environment);
  (void)end_of(&job);
  unlink(file);
  said(&job, "DEADLINE_EXCEEDED");
  said(&job, "some processes of the job have not initialized the link module");
}

int main(int argc, char **argv) {
  if (argc == 2) return play(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(they_compute_what_one_process_does),
      cmocka_unit_test(the_host_uses_mpi_meanwhile),
      cmocka_unit_test(a_worker_that_fails_is_named),
      cmocka_unit_test(a_killed_worker_ends_the_job_or_is_named),
      cmocka_unit_test(a_process_that_fails_ends_the_job),
      cmocka_unit_test(a_process_that_returns_is_lost),
      cmocka_unit_test(a_host_with_too_few_threads_is_refused),
      cmocka_unit_test(the_host_finalizes_mpi),
      cmocka_unit_test(mpi_may_end_before_the_strategy),
      cmocka_unit_test(the_launcher_of_another_mpi_is_named),
      cmocka_unit_test(a_process_without_a_launcher_is_a_job_of_one),
      cmocka_unit_test(processes_may_create_no_strategy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
