/* SPDX-License-Identifier: Apache-2.0
 *
 * Eight replicas, in one process and distributed over workers in several ways.
 */
#ifndef TESTS_ABI_LAYOUTS_SUPPORT_H
#define TESTS_ABI_LAYOUTS_SUPPORT_H

#include "recipe.h"
#include "workers_support.h"

enum { ALL = 8 };

/* The first layout is a single process. */
static const char *const layouts[] = {"8", "1+1+1+1+1+1+1+1", "2+2+2+2", "4+4", "3+5", "1+6+1", "5+2+1"};

static inline uint64_t seed_of_test(void) {
  static uint64_t seed = 0;
  if (seed != 0) return seed;
  const char *const given = getenv("DIST_TEST_SEED");
  seed = given == NULL ? 20250117 : strtoull(given, NULL, 0);
  fprintf(stderr, "# DIST_TEST_SEED=%llu\n", (unsigned long long)seed);
  return seed;
}

/* ---- One process, and every layout ---- */

static dist_strategy *one_process;
static workers divided[COUNT_OF(layouts)];

static inline int make_one(void **state) {
  (void)state;
  one_process = strategy_of(ALL, DIST_THREADS_CALLER);
  return 0;
}

static inline int end_one(void **state) {
  (void)state;
  assert_ok(dist_strategy_destroy(one_process));
  return 0;
}

static inline int make_all(void **state) {
  for (size_t l = 0; l < COUNT_OF(layouts); ++l)
    divided[l] = workers_of(layouts[l], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  return make_one(state);
}

static inline int end_all(void **state) {
  for (size_t l = 0; l < COUNT_OF(layouts); ++l) end_workers(&divided[l]);
  return end_one(state);
}

typedef struct replica_program {
  dist_replica_fn fn;
  void *user_data;
} replica_program;

static inline dist_status run_program(dist_strategy *strategy, int worker, void *user_data) {
  const replica_program *p = user_data;
  (void)worker;
  return dist_run(strategy, p->fn, p->user_data, NULL);
}

static inline void run_on_workers(const workers *all, dist_replica_fn fn, void *user_data) {
  replica_program p = {fn, user_data};
  all_workers(all, run_program, &p);
}

#endif
