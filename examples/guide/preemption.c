/* SPDX-License-Identifier: Apache-2.0
 *
 * Ten steps. SIGTERM announces that the machine will be taken away: the program saves a checkpoint, ends with status 75,
 * and continues there when it is started again. With an argument, it sends itself SIGTERM after so many steps.
 *
 *     cc preemption.c $(pkg-config --cflags --libs dist) -o preemption
 *     ./preemption 3; ./preemption
 */
#include <dist/dist.h>
#include <dist/experimental/preemption.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 10, TRY_AGAIN = 75 };

static dist_preemption_handler *handler;

static void on_sigterm(int number) {
  (void)number;
  dist_preemption_notify(handler); /* only sets a flag */
}

static dist_status add_one(dist_replica *replica, void *w) {
  double one = 1;
  const dist_tensor tensor = {&one, DIST_F64, 0, NULL, NULL};
  return dist_replica_assign(replica, w, DIST_ASSIGN_ADD, &tensor, NULL);
}

static dist_status train(dist_strategy *strategy, dist_variable *w, int notice) {
  dist_preemption_options options = DIST_PREEMPTION_OPTIONS_INIT;
  options.path = "preemption.safetensors";
  options.variables = &w;
  options.num_variables = 1;
  dist_status status =
      dist_preemption_handler_create(strategy, &options, &handler); /* loads the checkpoint */
  if (status) return status;
  printf("start after %d steps\n", (int)dist_preemption_total_run_calls(handler));
  signal(SIGTERM, on_sigterm);
  while (!status && dist_preemption_total_run_calls(handler) < STEPS) {
    status = dist_preemption_run(handler, add_one, w, NULL);
    if (!status && dist_preemption_total_run_calls(handler) == notice) raise(SIGTERM);
  }
  signal(SIGTERM, SIG_DFL);
  printf("%s after %d steps\n", status == DIST_CANCELLED ? "saved" : "end",
         (int)dist_preemption_total_run_calls(handler));
  dist_preemption_handler_destroy(handler);
  return status;
}

int main(int argc, char **argv) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  double zero = 0;
  const dist_tensor initial = {&zero, DIST_F64, 0, NULL, NULL};
  dist_variable_options named = DIST_VARIABLE_OPTIONS_INIT;
  named.name = "w";
  named.aggregation = DIST_AGGREGATION_MEAN;
  dist_strategy *strategy = NULL;
  dist_variable *w = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_variable_create(strategy, &initial, &named, &w);
  if (!status) status = train(strategy, w, argc > 1 ? atoi(argv[1]) : 0);
  if (status && status != DIST_CANCELLED) fprintf(stderr, "preemption: %s\n", dist_last_error());
  dist_variable_destroy(w);
  if (dist_strategy_destroy(strategy)) return 1;
  return status == DIST_CANCELLED ? TRY_AGAIN : status != DIST_OK;
}
