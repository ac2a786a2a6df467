/* SPDX-License-Identifier: Apache-2.0
 *
 * Two threads of the program are the replicas. libdist starts no threads.
 *
 *     cc embedding.c $(pkg-config --cflags --libs dist) -pthread -o embedding && ./embedding
 */
#include <dist/dist.h>
#include <pthread.h>
#include <stdio.h>

typedef struct member {
  dist_strategy *strategy;
  int32_t id;
  dist_status status;
} member;

static dist_status step(dist_replica *replica) {
  double number = dist_replica_id(replica) + 1;
  const dist_tensor tensor = {&number, DIST_F64, 0, NULL, NULL};
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
  if (!status) printf("replica %d: the sum is %g\n", dist_replica_id(replica), number);
  return status;
}

/* A thread of the program: it joins the run, does its part, and leaves with the run. */
static void *work(void *data) {
  member *self = data;
  dist_replica *replica = NULL;
  self->status = dist_replica_enter(self->strategy, self->id, &replica);
  if (!self->status)
    self->status = dist_replica_leave(replica, step(replica)); /* the status of the whole run */
  if (self->status) fprintf(stderr, "replica %d: %s\n", self->id, dist_last_error());
  return NULL;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.threads = DIST_THREADS_HOST;
  dist_strategy *strategy = NULL;
  if (dist_strategy_create(&options, &strategy)) {
    fprintf(stderr, "embedding: %s\n", dist_last_error());
    return 1;
  }
  pthread_t threads[2];
  member members[2] = {{strategy, 0, DIST_UNKNOWN}, {strategy, 1, DIST_UNKNOWN}};
  int started = 0;
  while (started < 2 && pthread_create(&threads[started], NULL, work, &members[started]) == 0) started++;
  if (started < 2) (void)!dist_strategy_cancel(strategy); /* the other thread must not wait */
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  const int failed = members[0].status || members[1].status;
  return dist_strategy_destroy(strategy) != DIST_OK || failed;
}
