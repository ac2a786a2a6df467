/* SPDX-License-Identifier: Apache-2.0
 *
 * A downstream program that uses only the installed files: two replicas compute a sum.
 */
#include <dist/dist.h>
#include <stdio.h>

static dist_status sum_ids(dist_replica *replica, void *user_data) {
  int32_t *sums = user_data;
  int32_t id = dist_replica_id(replica);
  sums[id] = id + 1;
  dist_tensor t = {&sums[id], DIST_I32, 0, NULL, NULL};
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, NULL, NULL);
}

int main(void) {
  int32_t sums[2] = {0, 0};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *strategy;
  if (dist_strategy_create(&options, &strategy) != DIST_OK ||
      dist_run(strategy, sum_ids, sums, NULL) != DIST_OK) {
    fprintf(stderr, "%s\n", dist_last_error());
    return 1;
  }
  printf("libdist %d: %d %d\n", (int)dist_version(), (int)sums[0], (int)sums[1]);
  return dist_strategy_destroy(strategy) != DIST_OK || sums[0] != 3 || sums[1] != 3;
}
