/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_strategy_explain(): three lines of summary, followed by named groups of details.
 */
#include "tests/abi/mesh_support.h"

static char text[16384];
static char *lines[3];
static const char *rest;

static void collect(const char *piece, size_t size, void *user_data) {
  (void)user_data;
  const size_t used = strlen(text);
  assert_true(used + size < sizeof text);
  memcpy(text + used, piece, size);
  text[used + size] = '\0';
}

/* Calls dist_strategy_explain() and splits the text. */
static void explain(dist_strategy *strategy) {
  memset(text, 0, sizeof text);
  assert_ok(dist_strategy_explain(strategy, collect, NULL));
  char *at = text;
  for (int i = 0; i < 3; i++) {
    lines[i] = at;
    at = strchr(at, '\n');
    assert_non_null(at);
    *at++ = '\0';
  }
  rest = at;
  assert_int_equal(strncmp(lines[0], "libdist ", 8), 0);
  assert_int_equal(strncmp(lines[1], "machine: ", 9), 0);
  assert_int_equal(strncmp(lines[2], "warnings: ", 10), 0);
}

static void explain_and_destroy(dist_strategy *strategy) {
  explain(strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_strategy *explained(dist_strategy_options options) {
  dist_strategy *strategy = strategy_with(options);
  explain(strategy);
  return strategy;
}

static void three_lines_sum_it_up(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 1;
  dist_strategy *strategy = explained(options);
  assert_has(lines[0],
             ": mirrored strategy with 1 replica on 1 worker; threads: the thread that starts the run");
  assert_has(lines[1], " usable CPU");
  assert_has(lines[1], " NUMA domain");
  assert_has(lines[1], ", SIMD target ");
  assert_has(lines[1], " of memory held");
  assert_ok(dist_strategy_destroy(strategy));
}

static void details_are_in_groups(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  explain(strategy);
  static const char *const groups[] = {"\nReplicas\n",        "\nThreads\n",     "\nMachine\n",
                                       "\nSynchronization\n", "\nCollectives\n", "\nMemory and tracing\n"};
  const char *at = rest;
  for (size_t i = 0; i < COUNT_OF(groups); i++) {
    assert_has(at, groups[i]);
    at = strstr(at, groups[i]);
  }
  assert_null(strstr(rest, "\nServing\n"));
  /* A line is the name of a group, or "  subject: words". */
  for (at = rest; *at != '\0'; at = strchr(at, '\n') + 1) {
    if (*at == ' ') assert_true(at[2] != ' ' && strchr(at, ':') < strchr(at, '\n'));
  }
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  assert_ok(dist_instances_open(strategy, &options));
  explain(strategy);
  assert_has(rest, "\nServing\n  instances: 2, open\n  requests: 0 running, 0 queued (at most 1024)\n");
  assert_ok(dist_instances_close(strategy, -1));
  assert_ok(dist_strategy_destroy(strategy));
}

static void kinds_and_threads_are_named(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  explain_and_destroy(mesh_with(2, 2, options));
  assert_has(lines[0],
             "mesh strategy with 2 replicas of 2 logical devices each on 1 worker; threads: the thread that "
             "starts the run and 3 library threads");
  explain_and_destroy(strategy_of(2, DIST_THREADS_LIBRARY));
  assert_has(lines[0], "threads: 2 library threads");
  explain_and_destroy(strategy_of(3, DIST_THREADS_HOST));
  assert_has(lines[0], "threads: 3 host threads");
  options.kind = DIST_STRATEGY_CENTRAL_STORAGE;
  options.num_replicas = 2;
  explain_and_destroy(strategy_with(options));
  assert_has(lines[0], "central-storage strategy with 2 replicas");
}

static void more_replicas_than_cpus_is_a_warning(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options options_cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &options_cpu;
  int32_t cpu = 0;
  cpu_set_t mine;
  assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
  while (!CPU_ISSET(cpu, &mine)) cpu++;
  options.num_replicas = 2;
  options_cpu.cpus = &cpu;
  options_cpu.num_cpus = 1;
  explain_and_destroy(strategy_with(options));
  assert_has(lines[2], "2 replicas share ");
}

static void unreachable_workers_are_a_warning(void **state) {
  (void)state;
  setenv("TF_CONFIG",
         "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 1}}",
         1);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options options_worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &options_worker;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  options_worker.transport = DIST_TRANSPORT_NONE;
  explain_and_destroy(strategy_with(options));
  unsetenv("TF_CONFIG");
  assert_has(
      lines[0],
      "multi-worker mirrored strategy with 2 replicas on 2 workers (this is worker 1, with replica 1)");
  assert_has(lines[2],
             "warnings: the other workers cannot be reached: dist_worker_options.transport is "
             "DIST_TRANSPORT_NONE");
  /* Replicas have their global ids. */
  assert_has(rest, "\n  replica threads: replica 1 on the thread that starts the run\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(three_lines_sum_it_up),
      cmocka_unit_test(details_are_in_groups),
      cmocka_unit_test(kinds_and_threads_are_named),
      cmocka_unit_test(more_replicas_than_cpus_is_a_warning),
      cmocka_unit_test(unreachable_workers_are_a_warning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
