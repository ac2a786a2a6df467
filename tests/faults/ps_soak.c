/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_faults_ps [CLOSURES] [SEED]: runs closures on two parameter servers and three workers, each a process,
 * while workers are killed, restarted, suspended and resumed at random times. At the end, every closure must
 * have counted exactly once on each parameter server. `./dev faults --ps` runs 10,000 closures; the test
 * suite runs a few.
 */
#include <dist/experimental/coordinator.h>
#include <dist/experimental/server.h>
#include "tests/abi/coordinator/server_processes.h"

enum { NUM_PS = 2, NUM_WORKERS = 3 };

static int closures = 300;
static unsigned long long seed = 20261123;

static unsigned long long next_number(void) {
  seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
  return seed >> 33;
}

/* Counts on both servers, after a variable delay. */
static dist_status count(dist_closure* closure, dist_value* arguments, dist_value** out_result,
                         void* user_data) {
  (void)arguments, (void)out_result, (void)user_data;
  const unsigned spin = (unsigned)dist_closure_id(closure) * 7919U % 20000U;
  for (volatile unsigned i = 0; i < spin; ++i) continue;
  return count_everywhere(closure, 2);
}

static void add_functions(dist_server* server) {
  if (dist_server_register(server, "count", count, NULL, NULL) != DIST_OK) exit(5);
}

static void every_closure_counts_once(void** state) {
  (void)state;
  printf("# %d closures, seed %llu\n", closures, seed);
  servers s = {0};
  start_servers(&s, NUM_PS, NUM_WORKERS);
  chief c = chief_of(&s);
  create_count(&c, "a");
  create_count(&c, "b");
  int stopped[NUM_WORKERS] = {0};
  int kills = 0, stops = 0;
  int64_t next_fault = 0;
  for (int scheduled = 0; scheduled < closures || stats_of(&c).mark < closures;) {
    /* Keep some closures queued, so that a worker that is hit usually runs one. */
    while (scheduled < closures && stats_of(&c).queued < 64) {
      schedule_closures(&c, "count", 1);
      ++scheduled;
    }
    if (stats_of(&c).mark < next_fault) {
      poll(NULL, 0, 1);
      /* All remaining closures may be on workers that are stopped. */
      if (scheduled == closures && stats_of(&c).queued + stats_of(&c).in_flight <= NUM_WORKERS)
        next_fault = 0;
      continue;
    }
    next_fault = stats_of(&c).mark + 1 + (int64_t)(next_number() % (unsigned)(closures / 100 + 8));
    const int w = (int)(next_number() % NUM_WORKERS);
    process* worker = worker_of(&s, w);
    if (stopped[w]) {
      kill(worker->pid, SIGCONT);
      stopped[w] = 0;
    } else if (next_number() % 3 == 0) {
      kill(worker->pid, SIGSTOP);
      stopped[w] = 1;
      ++stops;
    } else {
      kill_server(&s, NUM_PS + w);
      start_server_process(&s, NUM_PS + w);
      ++kills;
    }
  }
  for (int w = 0; w < NUM_WORKERS; ++w) kill(worker_of(&s, w)->pid, SIGCONT);
  assert_ok(dist_coordinator_join(c.coordinator, -1, NULL));
  const dist_coordinator_stats stats = stats_of(&c);
  printf("# %d kills, %d stops; closures came back %lld times; counted %lld and %lld of %d\n", kills, stops,
         (long long)stats.losses, (long long)count_of(&c, "a"), (long long)count_of(&c, "b"), closures);
  assert_int_equal(count_of(&c, "a"), closures);
  assert_int_equal(count_of(&c, "b"), closures);
  assert_int_equal(stats.completed, closures);
  assert_true(kills + stops > 0);
  await_workers(&c, NUM_WORKERS);
  end_chief(&c);
  end_servers(&s);
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "serve") == 0) return serve_until_the_end(add_functions);
  if (argc > 1) closures = (int)strtol(argv[1], NULL, 10);
  if (argc > 2) seed = strtoull(argv[2], NULL, 10);
  if (closures < 1 || closures > 1000000) {
    fprintf(stderr, "usage: %s [CLOSURES [SEED]]     CLOSURES: 1 to 1000000\n", argv[0]);
    return 2;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_closure_counts_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
