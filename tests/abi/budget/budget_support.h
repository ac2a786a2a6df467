/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategies that share a budget, and what dist_strategy_explain() prints about it.
 */
#ifndef TESTS_ABI_BUDGET_SUPPORT_H
#define TESTS_ABI_BUDGET_SUPPORT_H

#include "tests/abi/serve/serve_support.h"

static inline dist_budget *budget_of(int32_t threads) {
  dist_budget *budget = NULL;
  assert_ok(dist_budget_create(NULL, threads, &budget));
  return budget;
}

static inline dist_strategy *sharing(dist_budget *budget, int32_t replicas, int32_t threads) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.num_replicas = replicas;
  options.threads = threads;
  options.timeout_ns = -1;
  cpu.budget = budget;
  return strategy_with(options);
}

static inline dist_strategy *sharing_plain(dist_budget *budget) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.kind = DIST_STRATEGY_DEFAULT;
  options.timeout_ns = -1;
  cpu.budget = budget;
  return strategy_with(options);
}

static inline void collect(const char *text, size_t length, void *user_data) {
  char *all = user_data;
  const size_t used = strlen(all);
  if (used + length < 8192) memcpy(all + used, text, length), all[used + length] = '\0';
}

typedef struct budget_state {
  int threads, used, waiting, units;
} budget_state;

static inline budget_state state_of(dist_strategy *strategy) {
  char text[8192] = "";
  assert_ok(dist_strategy_explain(strategy, collect, text));
  const char *line = strstr(text, "\n  budget: ");
  assert_non_null(line);
  budget_state s;
  const int found = sscanf(
      line, "\n  budget: %d threads, %d in use, %d runs and requests queued; a run of this strategy takes %d",
      &s.threads, &s.used, &s.waiting, &s.units);
  assert_int_equal(found, 4);
  return s;
}

static inline void await_waiting(dist_strategy *strategy, int count) {
  while (state_of(strategy).waiting != count) sched_yield();
}

/* A run on a separate thread. */
typedef struct runner {
  dist_strategy *strategy;
  dist_replica_fn fn;
  void *user_data;
  dist_cancel *cancel;
  int64_t timeout_ns;
  dist_status status;
  report error;
  pthread_t thread;
  atomic_int number; /* of that thread, as the system numbers it */
} runner;

static inline void *runner_main(void *argument) {
  runner *self = argument;
  atomic_store(&self->number, this_thread());
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.cancel = self->cancel;
  options.timeout_ns = self->timeout_ns;
  self->status = dist_run(self->strategy, self->fn, self->user_data, &options);
  read_report(&self->error);
  return NULL;
}

static inline void run_apart(runner *self) {
  assert_int_equal(pthread_create(&self->thread, NULL, runner_main, self), 0);
}

static inline dist_status end_of_run(runner *self) {
  pthread_join(self->thread, NULL);
  return self->status;
}

static inline dist_status do_nothing(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return DIST_OK;
}

#endif
