/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves a checkpoint after each step, keeps the last two, and continues from the latest with more replicas.
 *
 *     cc checkpoints.c $(pkg-config --cflags --libs dist) -o checkpoints && ./checkpoints [PREFIX]
 *
 * The names of the files begin with PREFIX, by default "step".
 */
#include <dist/dist.h>
#include <stdio.h>

enum { KEPT = 2, MOST_STEPS = 1000, PATH_BYTES = 1024 };

static const char *prefix = "step";

static const char *path_of(int step, char path[PATH_BYTES]) {
  snprintf(path, PATH_BYTES, "%s-%06d.safetensors", prefix, step);
  return path;
}

/* The latest step with a checkpoint; 0 = none. */
static int latest_step(void) {
  char path[PATH_BYTES];
  for (int step = MOST_STEPS; step > 0; step--) {
    FILE *file = fopen(path_of(step, path), "rb");
    if (file == NULL) continue;
    fclose(file);
    return step;
  }
  return 0;
}

/* All replicas together add 1. */
static dist_status add_one(dist_replica *replica, void *w) {
  double part = 1.0 / dist_replica_num_replicas(replica);
  const dist_tensor tensor = {&part, DIST_F64, 0, NULL, NULL};
  return dist_replica_assign(replica, w, DIST_ASSIGN_ADD, &tensor, NULL);
}

static dist_status train(dist_strategy *strategy, dist_variable *w, int last_step) {
  char path[PATH_BYTES];
  dist_status status = DIST_OK;
  int step = latest_step();
  if (step > 0) status = dist_checkpoint_load(strategy, path_of(step, path), &w, 1, NULL);
  dist_tensor copy;
  if (!status) status = dist_variable_component(w, 0, &copy);
  if (!status)
    printf("%d replicas start after step %d: w = %g\n", dist_strategy_num_replicas(strategy), step,
           *(double *)copy.data);
  while (!status && step < last_step) {
    status = dist_run(strategy, add_one, w, NULL);
    step++;
    if (!status) status = dist_checkpoint_save(strategy, path_of(step, path), &w, 1, NULL);
    if (!status && step > KEPT) remove(path_of(step - KEPT, path)); /* only after the new one is complete */
  }
  return status;
}

static dist_status train_on(int replicas, int last_step) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = replicas;
  double zero = 0;
  const dist_tensor initial = {&zero, DIST_F64, 0, NULL, NULL};
  dist_variable_options named = DIST_VARIABLE_OPTIONS_INIT;
  named.name = "w"; /* its name in the file */
  named.aggregation = DIST_AGGREGATION_SUM;
  dist_strategy *strategy = NULL;
  dist_variable *w = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_variable_create(strategy, &initial, &named, &w);
  if (!status) status = train(strategy, w, last_step);
  if (status) fprintf(stderr, "checkpoints: %s\n", dist_last_error());
  dist_variable_destroy(w);
  return dist_strategy_destroy(strategy) ? DIST_INTERNAL : status;
}

int main(int argc, char **argv) {
  if (argc > 1) prefix = argv[1];
  dist_status status = train_on(2, 5);
  if (!status) status = train_on(4, 7);
  for (int step = 1; step <= MOST_STEPS && !status; step++) {
    char path[PATH_BYTES];
    if (remove(path_of(step, path)) == 0) printf("step %d was left\n", step);
  }
  return status != DIST_OK;
}
