/* SPDX-License-Identifier: Apache-2.0
 *
 * One of the processes of a job, which TF_CONFIG describes. Its replicas and those of all others, whatever language they
 * are written in, add up their numbers. With the word `reform` it does so once more, after the workers have re-formed
 * without those that have ended.
 *
 *     cc worker.c $(pkg-config --cflags --libs dist) -o worker
 *     dist-launch -n 2 --replicas 2 -- ./worker
 */
#define DIST_EXPERIMENTAL /* for dist_strategy_reform() */
#include <dist/dist.h>
#include <stdio.h>
#include <string.h>

static dist_status add_up(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int64_t shape[] = {1};
  double number = dist_replica_id(replica) + 1;
  dist_tensor tensor = {&number, DIST_F64, 1, shape, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "numbers";
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options);
  if (status != DIST_OK) return status;
  printf("replica %d of %d: %g\n", dist_replica_id(replica), dist_replica_num_replicas(replica), number);
  return DIST_OK;
}

int main(int argc, char **argv) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, add_up, NULL, NULL);
  if (status == DIST_OK && argc > 1 && strcmp(argv[1], "reform") == 0) {
    status = dist_strategy_reform(strategy, NULL);
    if (status == DIST_OK) status = dist_run(strategy, add_up, NULL, NULL);
  }
  if (status != DIST_OK) {
    fprintf(stderr, "worker: %s\n", dist_last_error());
    return 1;
  }
  return dist_strategy_destroy(strategy);
}
