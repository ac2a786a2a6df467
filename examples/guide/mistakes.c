/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes common mistakes, and prints the error of each. With the arguments `worker SECONDS`, it is a worker of a job, which
 * waits that long for the others.
 *
 *     cc mistakes.c $(pkg-config --cflags --libs dist) -o mistakes && ./mistakes
 */
#include <dist/dist.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report(const char *mistake, dist_status status) {
  fprintf(stderr, "%s: %s: %s\n", mistake, dist_status_name(status), dist_last_error());
}

static dist_status sum(dist_replica *replica, dist_dtype dtype, int64_t size) {
  double numbers[4] = {0};
  const dist_tensor tensor = {numbers, dtype, 1, &size, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "grads";
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, NULL);
}

/* ---- Mistakes of replicas: replica 1 makes them ---- */

static dist_status different_shapes(dist_replica *replica, void *unused) {
  (void)unused;
  return sum(replica, DIST_F32, dist_replica_id(replica) == 1 ? 4 : 3);
}

static dist_status different_calls(dist_replica *replica, void *unused) {
  (void)unused;
  return dist_replica_id(replica) == 1 ? dist_barrier(replica, NULL, NULL) : sum(replica, DIST_F32, 3);
}

static dist_status early_return(dist_replica *replica, void *unused) {
  (void)unused;
  return dist_replica_id(replica) == 1 ? DIST_OK : sum(replica, DIST_F32, 3);
}

static dist_status failure(dist_replica *replica, void *unused) {
  (void)unused;
  if (dist_replica_id(replica) == 1) return dist_fail(DIST_NOT_FOUND, "no row 7");
  const dist_status status = sum(replica, DIST_F32, 3);
  report("failure, on the other replica", status);
  return status;
}

static dist_status late(dist_replica *replica, void *unused) {
  (void)unused;
  while (dist_replica_id(replica) == 1 && dist_replica_check(replica) == DIST_OK) continue;
  return dist_replica_id(replica) == 1 ? DIST_OK : sum(replica, DIST_F32, 3);
}

static dist_status nested_run(dist_replica *replica, void *unused) {
  return dist_run(dist_replica_strategy(replica), early_return, unused, NULL);
}

static dist_status keep_handle(dist_replica *replica, void *kept) {
  if (dist_replica_id(replica) == 0) *(dist_replica **)kept = replica;
  return DIST_OK;
}

static dist_status request(dist_replica *replica, void *unused) {
  (void)replica, (void)unused;
  return DIST_OK;
}

/* ---- Mistakes of the program ---- */

static int use_strategy(dist_strategy *strategy) {
  report("different shapes", dist_run(strategy, different_shapes, NULL, NULL));
  report("different calls", dist_run(strategy, different_calls, NULL, NULL));
  report("early return", dist_run(strategy, early_return, NULL, NULL));
  report("failure", dist_run(strategy, failure, NULL, NULL));
  report("late", dist_run(strategy, late, NULL, NULL));
  report("nested run", dist_run(strategy, nested_run, NULL, NULL));
  dist_replica *kept = NULL;
  if (dist_run(strategy, keep_handle, (void *)&kept, NULL)) return 1;
  report("handle after the run", sum(kept, DIST_F32, 3));

  const int32_t both[] = {0, 1};
  dist_group *group = NULL;
  if (dist_group_create(strategy, both, 2, &group)) return 1;
  report("strategy in use", dist_strategy_destroy(strategy));
  if (dist_group_destroy(group)) return 1;
  report("request without a thread", dist_submit(strategy, request, NULL, NULL, NULL));
  return 0;
}

static int use_files(dist_strategy *strategy) {
  const char *path = "mistakes.safetensors";
  float number = 0;
  double wide = 0;
  const dist_tensor tensor = {&number, DIST_F32, 0, NULL, NULL}, other = {&wide, DIST_F64, 0, NULL, NULL};
  dist_variable_options named = DIST_VARIABLE_OPTIONS_INIT;
  named.name = "w";
  dist_variable *saved = NULL, *loaded = NULL;
  if (dist_variable_create(strategy, &tensor, &named, &saved) ||
      dist_variable_create(strategy, &other, &named, &loaded) ||
      dist_checkpoint_save(strategy, path, &saved, 1, NULL))
    return 1;
  report("another dtype", dist_checkpoint_load(strategy, path, &loaded, 1, NULL));
  FILE *file = fopen(path, "wb");
  if (file == NULL || fputs("no checkpoint", file) < 0 || fclose(file) != 0) return 1;
  report("another file", dist_checkpoint_load(strategy, path, &saved, 1, NULL));
  remove(path);
  report("no file", dist_checkpoint_load(strategy, path, &saved, 1, NULL));
  dist_variable_destroy(saved);
  dist_variable_destroy(loaded);
  return 0;
}

static int make_mistakes(void) {
  dist_strategy_options options;
  memset(&options, 0, sizeof options);
  dist_strategy *strategy = NULL;
  report("no initializer", dist_strategy_create(&options, &strategy));
  dist_strategy_options_init(&options, sizeof options);
  options.num_replicas = 2;
  options.timeout_ns = 100000000;
  if (dist_strategy_create(&options, &strategy)) return 1;
  const int failed = use_strategy(strategy) || use_files(strategy);
  return dist_strategy_destroy(strategy) || failed;
}

static dist_status add_up(dist_replica *replica, void *unused) {
  (void)unused;
  return sum(replica, DIST_F32, 3);
}

static int be_worker(int seconds) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = seconds * INT64_C(1000000000);
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_run(strategy, add_up, NULL, NULL);
  if (status) report("worker", status);
  return dist_strategy_destroy(strategy) || status;
}

int main(int argc, char **argv) {
  return argc > 2 && strcmp(argv[1], "worker") == 0 ? be_worker(atoi(argv[2])) : make_mistakes();
}
