/* SPDX-License-Identifier: Apache-2.0
 *
 * One worker process of a job that TF_CONFIG describes. The replicas of all workers sum their numbers. The
 * other workers may be written in any language. With the argument `reform`, the workers that are still
 * running re-form without the others and sum again.
 *
 *     cc worker.c $(pkg-config --cflags --libs dist) -o worker
 *     dist-launch -n 2 --replicas 2 -- ./worker
 */
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
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, NULL);
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
