/* SPDX-License-Identifier: Apache-2.0
 *
 * Three runs that end early (a late replica, a limit on the run, a cancel object), and one that succeeds after them.
 *
 *     cc deadlines.c $(pkg-config --cflags --libs dist) -o deadlines && ./deadlines
 */
#include <dist/dist.h>
#include <stdio.h>

enum { MILLISECOND = 1000000 };

/* A long computation. It stops when its run fails, is cancelled, or reaches its deadline. */
static dist_status compute(dist_replica *replica) {
  dist_status status = DIST_OK;
  while (status == DIST_OK) status = dist_replica_check(replica); /* ... and compute a little */
  return status;
}

/* Replica 1 does not arrive at the barrier in time. */
static dist_status late(dist_replica *replica, void *user_data) {
  (void)user_data;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.timeout_ns = 50 * MILLISECOND;
  return dist_replica_id(replica) == 1 ? compute(replica) : dist_barrier(replica, &options, NULL);
}

/* Replica 0 takes longer than the whole run may. */
static dist_status slow(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) == 0 ? compute(replica) : DIST_OK;
}

/* Replica 0 cancels the run. Any other thread could do so, too. */
static dist_status cancelled(dist_replica *replica, void *user_data) {
  if (dist_replica_id(replica) == 0) return dist_cancel_signal(user_data, "enough");
  return compute(replica);
}

static dist_status quick(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_barrier(replica, NULL, NULL);
}

static void report(const char *name, dist_status status) {
  dist_error_info info = DIST_ERROR_INFO_INIT;
  const int failed = status != DIST_OK && dist_last_error_info(&info) == DIST_OK;
  printf("%s: %s", name, dist_status_name(status));
  if (failed && info.replica >= 0) printf(", replica %d", info.replica);
  putchar('\n');
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_run_options limited = DIST_RUN_OPTIONS_INIT, cancellable = DIST_RUN_OPTIONS_INIT;
  limited.timeout_ns = 50 * MILLISECOND;
  dist_strategy *strategy = NULL;
  if (dist_strategy_create(&options, &strategy) || dist_cancel_create(NULL, &cancellable.cancel)) {
    fprintf(stderr, "deadlines: %s\n", dist_last_error());
    return 1;
  }
  report("late", dist_run(strategy, late, NULL, NULL));
  report("slow", dist_run(strategy, slow, NULL, &limited));
  report("cancelled", dist_run(strategy, cancelled, cancellable.cancel, &cancellable));
  report("quick", dist_run(strategy, quick, NULL, NULL));
  dist_cancel_destroy(cancellable.cancel);
  return dist_strategy_destroy(strategy) != DIST_OK;
}
