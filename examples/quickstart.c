// SPDX-License-Identifier: Apache-2.0
//
// Four replicas sum their gradients; each one receives the result. With libdist installed, build it with
//     cc quickstart.c $(pkg-config --cflags --libs dist) -o quickstart
#include <dist/dist.h>
#include <stdio.h>

typedef struct {
  float data[3];
} gradient;

static dist_status step(dist_replica *replica, void *user_data) {
  const int32_t id = dist_replica_id(replica);
  gradient *mine = (gradient *)user_data + id;
  for (int i = 0; i < 3; i++) mine->data[i] = (float)(id * 10 + i);

  const int64_t shape[] = {3};
  dist_tensor tensor = {mine->data, DIST_F32, 1, shape, NULL};
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 4;
  dist_strategy *strategy = NULL;
  gradient gradients[4];
  if (dist_strategy_create(&options, &strategy) || dist_run(strategy, step, gradients, NULL)) {
    fprintf(stderr, "quickstart: %s\n", dist_last_error());
    return 1;
  }
  for (int r = 0; r < 4; r++) {
    const float *sum = gradients[r].data;
    printf("replica %d: %g %g %g\n", r, sum[0], sum[1], sum[2]);
  }
  return dist_strategy_destroy(strategy);
}
