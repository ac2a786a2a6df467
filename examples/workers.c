/* SPDX-License-Identifier: Apache-2.0
 *
 * Two workers with two replicas each in a single process, for tests. Each worker is a thread. A dist_network
 * connects them, and a cluster resolver gives each one its task. The collectives span all four replicas.
 *
 *     cc workers.c $(pkg-config --cflags --libs dist) -pthread -o workers
 *     ./workers
 */
#include <dist/dist.h>
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 2, REPLICAS = 2 }; /* per worker */

static const char kCluster[] = "{\"worker\": [\"localhost:1\", \"localhost:2\"]}"; /* no sockets are opened */

typedef struct worker {
  int32_t id;
  dist_network *network;
  dist_status status;
  double sum;
  char message[512];
} worker;

/* Replica r of all four contributes r + 1. */
static dist_status step(dist_replica *replica, void *user_data) {
  worker *self = user_data;
  double mine = dist_replica_id(replica) + 1;
  dist_tensor tensor = {&mine, DIST_F64, 0, NULL, NULL};
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
  if (status == DIST_OK && dist_replica_id(replica) % REPLICAS == 0) self->sum = mine;
  return status;
}

/* Gives this worker its task in the cluster. A worker process would read TF_CONFIG instead. */
static dist_status make_resolver(int32_t id, dist_cluster_resolver **out_resolver) {
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.task_type = "worker";
  options.has_task_id = 1;
  options.task_id = id;
  dist_cluster_spec *spec = NULL;
  dist_status status = dist_cluster_spec_from_json(kCluster, NULL, &spec);
  if (status == DIST_OK) status = dist_cluster_resolver_create_simple(spec, &options, out_resolver);
  dist_cluster_spec_destroy(spec);
  return status;
}

static dist_status train(worker *self) {
  dist_cluster_resolver *resolver = NULL;
  dist_strategy *strategy = NULL;
  dist_status status = make_resolver(self->id, &resolver);
  if (status == DIST_OK) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &worker;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = REPLICAS;
    worker.cluster_resolver = resolver;
    worker.network = self->network;
    status = dist_strategy_create(&options, &strategy);
  }
  if (status == DIST_OK) status = dist_run(strategy, step, self, NULL);
  if (status != DIST_OK) snprintf(self->message, sizeof self->message, "%s", dist_last_error());
  const dist_status ended = dist_strategy_destroy(strategy);
  dist_cluster_resolver_destroy(resolver);
  return status != DIST_OK ? status : ended;
}

static void *work(void *argument) {
  worker *self = argument;
  self->status = train(self);
  return NULL;
}

int main(void) {
  worker all[WORKERS] = {0};
  pthread_t threads[WORKERS];
  dist_network *network = NULL;
  int failed = 0;
  if (dist_network_create(WORKERS, NULL, &network) != DIST_OK) {
    fprintf(stderr, "%s\n", dist_last_error());
    return 1;
  }
  for (int w = 0; w < WORKERS; w++) {
    all[w].id = w;
    all[w].network = network;
    if (pthread_create(&threads[w], NULL, work, &all[w]) != 0) return 1;
  }
  for (int w = 0; w < WORKERS; w++) pthread_join(threads[w], NULL);
  for (int w = 0; w < WORKERS; w++) {
    if (all[w].status == DIST_OK) {
      printf("worker %d: the sum over %d replicas is %g\n", w, WORKERS * REPLICAS, all[w].sum);
    } else {
      fprintf(stderr, "worker %d: %s: %s\n", w, dist_status_name(all[w].status), all[w].message);
      failed = 1;
    }
  }
  dist_network_destroy(network);
  return failed;
}
