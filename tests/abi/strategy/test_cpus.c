/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPUs available to a process: they determine the default number of replicas. Also a mask that changes
 * later. `test_cpus one` runs the same tests on a single CPU; Meson starts it with taskset.
 */
#include "tests/abi/common.h"

static int on_one; /* asked to run on one CPU */

static int count_of_mask(void) {
  cpu_set_t mask;
  assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
  return CPU_COUNT(&mask);
}

static void by_default_no_more_replicas_than_cpus(void **state) {
  (void)state;
  const int cpus = count_of_mask();
  if (on_one) assert_int_equal(cpus, 1);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  for (options.threads = DIST_THREADS_CALLER; options.threads <= DIST_THREADS_HOST; options.threads++) {
    dist_strategy *strategy = strategy_with(options);
    assert_in_range(dist_strategy_num_replicas(strategy), 1, cpus);
    assert_healthy(options.threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

enum { LONG = 100000, TIMES = 20 };
typedef struct sums {
  float *data[4];
} sums;

static dist_status sum_short_and_long(dist_replica *replica, void *user_data) {
  float *data = ((sums *)user_data)->data[dist_replica_id(replica)];
  dist_status status = DIST_OK;
  for (int i = 0; i < TIMES && status == DIST_OK; i++) {
    const int64_t length = i % 2 == 0 ? 1 : LONG;
    for (int64_t e = 0; e < length; e++) data[e] = 1;
    dist_tensor tensor = vector_of(data, DIST_F32, &length);
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
    for (int64_t e = 0; e < length && status == DIST_OK; e++) {
      if (data[e] != 4) status = DIST_INTERNAL;
    }
  }
  return status;
}

static void sum_among_four(int32_t threads, dist_strategy *strategy) {
  sums s;
  for (int r = 0; r < 4; r++) s.data[r] = calloc(LONG, sizeof(float));
  report error;
  if (run_on(threads, strategy, sum_short_and_long, &s, &error) != DIST_OK) fail_msg("%s", error.message);
  for (int r = 0; r < 4; r++) free(s.data[r]);
}

static void more_replicas_than_cpus(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(4, threads);
    sum_among_four(threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* Moves every thread of this process, including libdist's and oneTBB's. */
static void move_all_threads(const cpu_set_t *mask) {
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
    const pid_t id = (pid_t)strtol(task->d_name, NULL, 10);
    if (id > 0) sched_setaffinity(id, sizeof *mask, mask); /* it may have ended */
  }
  closedir(tasks);
}

static void a_mask_that_changes_later(void **state) {
  (void)state;
  cpu_set_t all;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *before = strategy_of(4, threads);
    sum_among_four(threads, before);
    move_all_threads(&one);
    sum_among_four(threads, before); /* a strategy made with more CPUs keeps its replicas, and its sums */
    const int32_t kept = dist_strategy_num_replicas(before);
    dist_strategy *after = strategy_of(0, threads);
    const int32_t seen = dist_strategy_num_replicas(after); /* a new strategy uses the new mask */
    assert_healthy(threads, after);
    move_all_threads(&all);
    assert_int_equal(kept, 4);
    assert_int_equal(seen, 1);
    sum_among_four(threads, before);
    assert_ok(dist_strategy_destroy(after));
    assert_ok(dist_strategy_destroy(before));
  }
}

int main(int argc, char **argv) {
  on_one = argc > 1 && strcmp(argv[1], "one") == 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(by_default_no_more_replicas_than_cpus),
      cmocka_unit_test(more_replicas_than_cpus),
      cmocka_unit_test(a_mask_that_changes_later),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
