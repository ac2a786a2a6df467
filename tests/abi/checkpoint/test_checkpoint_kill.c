/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving that is interrupted, because the process is killed or the disk is full. At every moment, the path
 * holds a complete file, either the old or the new one.
 */
#include "checkpoint_support.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { COUNT = 40000, ROUNDS = 40 };

/* Fills two tensors with the number of the save. */
static void fill(dist_variable **variables, int64_t number) {
  for (int v = 0; v < 2; v++) {
    for (int i = 0; i < COUNT; i++) ((int64_t *)copy_of(variables[v], 0))[i] = number;
  }
}

static void make(dist_strategy *strategy, dist_variable **out) {
  int64_t *zeros = calloc(COUNT, sizeof *zeros);
  assert_non_null(zeros);
  out[0] = vector_variable(strategy, "first", DIST_I64, zeros, COUNT);
  out[1] = vector_variable(strategy, "second", DIST_I64, zeros, COUNT);
  free(zeros);
}

/* Saves and reports each save until the process is killed. */
static void save_on_and_on(const char *path, int32_t sharded, int saved) {
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  dist_variable *variables[2];
  make(strategy, variables);
  for (int64_t number = 1;; number++) {
    fill(variables, number);
    dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
    options.sharded = sharded;
    if (dist_checkpoint_save(strategy, path, variables, 2, &options) != DIST_OK) _exit(1);
    if (write(saved, "+", 1) != 1) _exit(1);
  }
}

/* Returns the number of the save that made the file. */
static int64_t load_whole(const char *path) {
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  dist_variable *variables[2];
  make(strategy, variables);
  assert_ok(dist_checkpoint_load(strategy, path, variables, 2, NULL));
  const int64_t number = *(const int64_t *)copy_of(variables[0], 0);
  for (int v = 0; v < 2; v++) {
    for (int i = 0; i < COUNT; i++) assert_int_equal(((const int64_t *)copy_of(variables[v], 0))[i], number);
  }
  for (int v = 0; v < 2; v++) dist_variable_destroy(variables[v]);
  assert_ok(dist_strategy_destroy(strategy));
  return number;
}

static void kill_again_and_again(const char *name, int32_t sharded) {
  const file_path path = path_of(name);
  const char *given = getenv("DIST_TEST_SEED");
  const unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
  fprintf(stderr, "# seed %u\n", seed);
  srand(seed);
  int left = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int saved[2];
    assert_int_equal(pipe(saved), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) save_on_and_on(path.text, sharded, saved[1]);
    close(saved[1]);
    char sign;
    for (int saves = rand() % 3 + 1; saves > 0; saves--) assert_int_equal(read(saved[0], &sign, 1), 1);
    const struct timespec pause = {0, rand() % 3000000}; /* until some moment in the next save */
    nanosleep(&pause, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    close(saved[0]);
    assert_true(load_whole(path.text) >= 1);
    const int more = count_names(".dist-", 1);
    assert_true(more <= 1 + sharded);
    left += more > 0;
    /* The shard of this save, and possibly that of the previous or the next one. */
    assert_in_range(count_names("", 0), 1 + sharded, 1 + 2 * sharded);
  }
  fprintf(stderr, "# in %d of %d rounds a file was being written\n", left, ROUNDS);
  count_names("", 1);
}

static void a_killed_process_leaves_a_whole_file(void **state) {
  (void)state;
  kill_again_and_again("killed.safetensors", 0);
}

static void a_killed_process_leaves_a_whole_index(void **state) {
  (void)state;
  kill_again_and_again("killed.safetensors.index.json", 1);
}

/* Runs in a child whose files may not exceed a limit, which acts like a full disk with another error text.
 * The signal SIGXFSZ, which would end the process, is blocked in the child only. */
static int child_without_space(const char *path) {
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  dist_variable *variables[2];
  make(strategy, variables);
  fill(variables, 7);
  if (dist_checkpoint_save(strategy, path, variables, 2, NULL) != DIST_OK) return 1;
  fill(variables, 8);
  sigset_t before, after, waiting;
  signal(SIGXFSZ, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  const struct rlimit limit = {COUNT * sizeof(int64_t) + 50000,
                               RLIM_INFINITY}; /* ends in the second tensor */
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
  if (dist_checkpoint_save(strategy, path, variables, 2, NULL) != DIST_RESOURCE_EXHAUSTED) return 3;
  if (strstr(dist_last_error(), "tensor \"second\": cannot be written: File too large") == NULL) return 4;
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  sigpending(&waiting);
  if (sigismember(&after, SIGXFSZ) != sigismember(&before, SIGXFSZ)) return 5;
  if (sigismember(&after, SIGPIPE) != sigismember(&before, SIGPIPE)) return 6;
  if (sigismember(&waiting, SIGXFSZ) != 0) return 7;
  for (int v = 0; v < 2; v++) dist_variable_destroy(variables[v]);
  return dist_strategy_destroy(strategy) == DIST_OK ? 0 : 8;
}

static void a_full_disk_leaves_the_old_file(void **state) {
  (void)state;
  const file_path path = path_of("full.safetensors");
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(child_without_space(path.text));
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(load_whole(path.text), 7);
  assert_int_equal(count_names(".dist-", 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_killed_process_leaves_a_whole_file),
      cmocka_unit_test(a_killed_process_leaves_a_whole_index),
      cmocka_unit_test(a_full_disk_leaves_the_old_file),
  };
  return cmocka_run_group_tests(tests, NULL, leave_folder);
}
