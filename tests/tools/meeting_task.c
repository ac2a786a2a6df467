/* SPDX-License-Identifier: Apache-2.0
 *
 * A task that meets the others with the variables that dist-launch sets, computes with them, and prints its
 * rank and the number of replicas.
 */
#include <dist/dist.h>
#include <dist/experimental/rendezvous.h>
#include <stdio.h>

static dist_status add(dist_replica* replica, void* user_data) {
  int32_t* sum = user_data;
  dist_tensor value = {sum, DIST_I32, 0, NULL, NULL};
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &value, &value, 1, NULL, NULL);
}

static dist_status meet(int32_t* rank, int32_t* sum) {
  dist_cluster_resolver* resolver = NULL;
  dist_status status = dist_cluster_resolver_create_rendezvous(NULL, NULL, &resolver);
  if (status != DIST_OK) return status;
  status = dist_cluster_resolver_task_id(resolver, rank);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  worker.cluster_resolver = resolver;
  dist_strategy* strategy = NULL;
  if (status == DIST_OK) status = dist_strategy_create(&options, &strategy);
  dist_cluster_resolver_destroy(resolver);
  if (status != DIST_OK) return status;
  status = dist_run(strategy, add, sum, NULL);
  const dist_status ended = dist_strategy_destroy(strategy);
  return status == DIST_OK ? ended : status;
}

int main(void) {
  int32_t rank = -1, sum = 1;
  if (meet(&rank, &sum) != DIST_OK) {
    fprintf(stderr, "meeting_task: %s\n", dist_last_error());
    return 1;
  }
  printf("rank %d of %d\n", (int)rank, (int)sum);
  return 0;
}
