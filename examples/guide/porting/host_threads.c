/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas on threads of the program: each thread enters a strategy, and leaves it.
 *
 *     cc host_threads.c $(pkg-config --cflags --libs dist) -pthread -o host_threads && ./host_threads
 */
#include <dist/dist.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4 };

typedef struct job {
  dist_strategy *strategy;
  int id;
  dist_status status;
  double sum;
} job;

static void *work(void *argument) {
  job *mine = argument;
  dist_replica *replica = NULL;
  mine->sum = mine->id + 1;
  mine->status = dist_replica_enter(mine->strategy, mine->id, &replica);
  if (mine->status) return NULL;
  const dist_tensor tensor = {&mine->sum, DIST_F64, 0, NULL, NULL};
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
  mine->status = dist_replica_leave(replica, status);
  return NULL;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = THREADS;
  options.threads = DIST_THREADS_HOST; /* libdist starts no thread */
  dist_strategy *strategy = NULL;
  if (dist_strategy_create(&options, &strategy)) return 1;
  pthread_t threads[THREADS];
  job jobs[THREADS];
  int started = 0;
  for (; started < THREADS; started++) {
    jobs[started] = (job){strategy, started, DIST_OK, 0};
    if (pthread_create(&threads[started], NULL, work, &jobs[started]) != 0) break;
  }
  int failed = started < THREADS;
  if (failed)
    failed |=
        dist_strategy_shutdown(strategy, DIST_NO_TIMEOUT); /* the others do not wait for the missing one */
  for (int t = 0; t < started; t++) {
    pthread_join(threads[t], NULL);
    failed |= jobs[t].status != DIST_OK;
  }
  if (!failed) printf("the sum is %g\n", jobs[0].sum);
  return dist_strategy_destroy(strategy) || failed;
}
