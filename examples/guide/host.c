/* SPDX-License-Identifier: Apache-2.0
 *
 * Two strategies that use the program's allocator, threads and log, and share a limit on threads.
 *
 *     cc host.c $(pkg-config --cflags --libs dist) -pthread -o host && ./host
 */
#include <dist/dist.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int allocations;

static void *allocate(size_t size_bytes, size_t align_bytes, void *user_data) {
  (void)user_data;
  allocations++;
  return aligned_alloc(align_bytes, (size_bytes + align_bytes - 1) / align_bytes * align_bytes);
}

static void deallocate(void *memory, size_t size_bytes, size_t align_bytes, void *user_data) {
  (void)size_bytes, (void)align_bytes, (void)user_data;
  free(memory);
}

typedef struct job {
  dist_task_fn task;
  void *data;
} job;

static void *run_job(void *data) {
  const job mine = *(job *)data;
  free(data);
  mine.task(mine.data);
  return NULL;
}

/* Lets another thread help with a loop. A real program would put the task into the queue of its thread pool. */
static int32_t execute(dist_task_fn task, void *task_data, void *user_data) {
  (void)user_data;
  job *mine = malloc(sizeof *mine);
  pthread_t thread;
  if (mine == NULL) return 1; /* refused: the loop runs without this helper */
  *mine = (job){task, task_data};
  if (pthread_create(&thread, NULL, run_job, mine) != 0) {
    free(mine);
    return 1;
  }
  return pthread_detach(thread);
}

static void log_line(dist_log_level level, const char *message, void *user_data) {
  (void)level, (void)user_data;
  fprintf(stderr, "libdist: %s\n", message);
}

static atomic_int sum;

static void add(int64_t begin, int64_t end, void *user_data) {
  (void)user_data;
  for (int64_t i = begin; i < end; i++) sum += (int)i;
}

static dist_status step(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_parallel_for(replica, 0, 100, 10, add, NULL);
}

/* section options */
static dist_status create(dist_budget *budget, dist_strategy **out_strategy) {
  dist_executor executor = DIST_EXECUTOR_INIT;
  executor.num_threads = 1;
  executor.execute = execute;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  host.allocator = (dist_allocator){allocate, deallocate, NULL};
  host.executor = &executor;
  host.log = log_line;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  cpu.budget = budget;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.host = &host;
  options.cpu = &cpu;
  return dist_strategy_create(&options, out_strategy);
}
/* end of options */

int main(void) {
  dist_budget *budget = NULL;
  dist_strategy *first = NULL, *second = NULL;
  dist_status status = dist_budget_create(NULL, 2, &budget); /* for runs of both strategies together */
  if (!status) status = create(budget, &first);
  if (!status) status = create(budget, &second);
  if (!status) status = dist_run(first, step, NULL, NULL);
  if (!status) status = dist_run(second, step, NULL, NULL);
  if (!status) printf("sum of the loops: %d\nallocator: %s\n", sum, allocations > 0 ? "used" : "not used");
  if (status) fprintf(stderr, "host: %s\n", dist_last_error());
  dist_budget_destroy(budget);
  const int failed = dist_strategy_destroy(second) != DIST_OK || dist_strategy_destroy(first) != DIST_OK;
  return failed || status != DIST_OK;
}
