/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradient descent with momentum and clipping, in the same pass as the all-reduce of the gradients.
 *
 *     cc optimizer.c $(pkg-config --cflags --libs dist) -o optimizer && ./optimizer
 */
#include <dist/dist.h>
#include <stdio.h>

typedef struct model {
  dist_variable *w, *velocity;
} model;

/* section step */
static dist_status step(dist_replica *replica, void *user_data) {
  const model *m = user_data;
  const int32_t id = dist_replica_id(replica);
  const int64_t two = 2;
  double numbers[] = {id + 1, 2}; /* the mean over two replicas is (1.5, 2) */
  const dist_tensor gradient = {numbers, DIST_F64, 1, &two, NULL};
  dist_tensor w, velocity; /* this replica's copies */
  dist_status status = dist_variable_component(m->w, id, &w);
  if (!status) status = dist_variable_component(m->velocity, id, &velocity);

  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.learning_rate = 0.5;
  apply.momentum = 0.9;
  apply.states = &velocity;
  apply.num_states = 1;
  apply.clip_norm = 1;
  double norm = 0; /* before clipping */
  if (!status) status = dist_reduce_apply(replica, DIST_REDUCE_MEAN, &gradient, &w, 1, &apply, NULL, &norm);
  if (!status && id == 0) {
    const double *numbers_of_w = w.data;
    printf("norm %g, w = (%g, %g)\n", norm, numbers_of_w[0], numbers_of_w[1]);
  }
  return status;
}
/* end of step */

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;
  model m = {NULL, NULL};
  double zeros[] = {0, 0};
  const int64_t two = 2;
  const dist_tensor initial = {zeros, DIST_F64, 1, &two, NULL};
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_variable_create(strategy, &initial, NULL, &m.w);
  if (!status) status = dist_variable_create(strategy, &initial, NULL, &m.velocity);
  for (int i = 0; i < 2 && !status; i++) status = dist_run(strategy, step, &m, NULL);
  if (status) fprintf(stderr, "optimizer: %s\n", dist_last_error());
  dist_variable_destroy(m.velocity);
  dist_variable_destroy(m.w);
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
