/* SPDX-License-Identifier: Apache-2.0
 *
 * A full disk when a job of processes saves: all workers fail with the message of worker 0, which writes.
 * Only the previous checkpoint remains in its folder, and the job continues.
 */
/* unshare() */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "../processes_support.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { ELEMENTS = 100000, WORKERS = 3 };

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

static dist_status add_one(dist_replica *replica, void *variable) {
  static _Thread_local float ones[ELEMENTS];
  for (int i = 0; i < ELEMENTS; ++i) ones[i] = 1;
  int64_t shape[] = {ELEMENTS};
  const dist_tensor tensor = {ones, DIST_F32, 1, shape, NULL};
  return dist_replica_assign(replica, variable, DIST_ASSIGN_ADD, &tensor, NULL);
}

static dist_status values_are(dist_strategy *strategy, dist_variable *variable, float expected) {
  dist_value *value = NULL;
  dist_tensor tensor;
  TRY(dist_variable_read(strategy, variable, &value));
  dist_status status = dist_value_tensor(value, &tensor);
  for (int i = 0; status == DIST_OK && i < ELEMENTS; ++i) {
    if (((const float *)tensor.data)[i] != expected) status = dist_fail(DIST_DATA_LOSS, "a wrong value");
  }
  dist_value_release(value);
  return status;
}

static int entries(const char *folder) {
  int n = 0;
  DIR *all = opendir(folder);
  if (all == NULL) return -1;
  while (readdir(all) != NULL) ++n;
  closedir(all);
  return n - 2;
}

/* Mounts a separate disk that is too small for the checkpoint. */
static int make_small_disk(const char *folder) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 0;
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 0;
  return mount("small", folder, "tmpfs", 0, "size=64k") == 0;
}

static dist_status train(const char *folder, const char *good_path, const char *bad_path, int worker) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  dist_strategy *strategy = NULL;
  TRY(dist_strategy_create(&options, &strategy));
  static float zeros[ELEMENTS];
  int64_t shape[] = {ELEMENTS};
  const dist_tensor initial = {zeros, DIST_F32, 1, shape, NULL};
  dist_variable_options of = DIST_VARIABLE_OPTIONS_INIT;
  of.aggregation = DIST_AGGREGATION_SUM;
  of.name = "weights";
  dist_variable *variable = NULL;
  TRY(dist_variable_create(strategy, &initial, &of, &variable));
  TRY(dist_run(strategy, add_one, variable, NULL));
  const int before = entries(folder);
  const dist_status saved = dist_checkpoint_save(strategy, bad_path, &variable, 1, NULL);
  (void)say_how_it_went(saved);
  if (worker == 0) printf("left %d\n", entries(folder) - before);
  TRY(dist_run(strategy, add_one, variable, NULL));
  TRY(values_are(strategy, variable, 2 * WORKERS));
  /* To a folder with enough space. */
  const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &none) != 0) return dist_fail(DIST_INTERNAL, "setrlimit");
  TRY(dist_checkpoint_save(strategy, good_path, &variable, 1, NULL));
  TRY(dist_run(strategy, add_one, variable, NULL));
  TRY(dist_checkpoint_load(strategy, good_path, &variable, 1, NULL));
  TRY(values_are(strategy, variable, 2 * WORKERS));
  dist_variable_destroy(variable);
  return dist_strategy_destroy(strategy);
}

static int play(const char *kind, int worker) {
  char folder[] = "/tmp/dist-disk-XXXXXX";
  char bad_path[64];
  const char *const good_path = getenv("GOOD_PATH");
  if (good_path == NULL || mkdtemp(folder) == NULL) return 2;
  snprintf(bad_path, sizeof bad_path, "%s/bad", folder);
  const int limits = strcmp(kind, "limit") == 0;
  const struct rlimit small = {65536, RLIM_INFINITY};
  const int ready = limits ? setrlimit(RLIMIT_FSIZE, &small) == 0 : worker != 0 || make_small_disk(folder);
  if (!ready) {
    printf("no small disk\n");
    rmdir(folder);
    return 0;
  }
  const dist_status status = train(folder, good_path, bad_path, worker);
  if (status != DIST_OK) printf("it does not go on: %s\n", dist_last_error());
  if (!limits && worker == 0) umount(folder);
  rmdir(folder);
  if (status == DIST_OK) printf("went on\n");
  return status == DIST_OK ? 0 : 1;
}

/* All workers report the message of worker 0, which knows the path and the cause. */
static void play_on(const char *kind, const char *words) {
  char good_path[] = "/tmp/dist-good-XXXXXX";
  const int file = mkstemp(good_path);
  assert_true(file >= 0);
  close(file);
  char setting[64];
  snprintf(setting, sizeof setting, "GOOD_PATH=%s", good_path);
  const char *const environment[] = {setting, NULL};
  job all = job_of(WORKERS);
  /* Worker 0 first prints whether it can mount such a disk. */
  start_as(&all, 0, 0, kind, environment);
  start_as(&all, 1, 1, kind, environment);
  start_as(&all, 2, 2, kind, environment);
  const int code = end_of(&all.processes[0]);
  if (strstr(all.processes[0].text, "no small disk") != NULL) {
    for (int w = 1; w < WORKERS; ++w) kill(all.processes[w].pid, SIGKILL), (void)end_of(&all.processes[w]);
    remove(good_path);
    skip_because("this process may not mount a file system");
  }
  if (code != 0) fail_msg("worker 0 ended with %d: %s", code, all.processes[0].text);
  for (int w = 1; w < WORKERS; ++w) ends_well(&all.processes[w]);
  remove(good_path);
  char why[256] = "";
  const char *const found = strstr(all.processes[0].text, "dist-disk-");
  if (found == NULL) fail_msg("worker 0 says: %s", all.processes[0].text);
  snprintf(why, sizeof why, "%.*s", (int)strcspn(found, "\n"), found);
  if (strstr(why, words) == NULL) fail_msg("%s lacks: %s", why, words);
  assert_non_null(strstr(all.processes[0].text, "RESOURCE_EXHAUSTED"));
  assert_non_null(strstr(all.processes[0].text, "left 0\n"));
  for (int w = 1; w < WORKERS; ++w) {
    if (strstr(all.processes[w].text, why) == NULL)
      fail_msg("worker %d says: %s, and lacks: %s", w, all.processes[w].text, why);
  }
  for (int w = 0; w < WORKERS; ++w) assert_non_null(strstr(all.processes[w].text, "went on"));
}

static void a_full_disk_is_told_to_all(void **state) {
  (void)state;
  play_on("disk", "No space left");
}

static void a_file_that_may_not_grow_is_told_to_all(void **state) {
  (void)state;
  play_on("limit", "too large");
}

int main(int argc, char **argv) {
  if (argc == 3) return play(argv[1], (int)strtol(argv[2], NULL, 10));
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_full_disk_is_told_to_all),
      cmocka_unit_test(a_file_that_may_not_grow_is_told_to_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
