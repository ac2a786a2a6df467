/* SPDX-License-Identifier: Apache-2.0
 *
 * Each of four replicas has two elements of a vector, and gets the elements beside them from its neighbours.
 *
 *     cc halo.c $(pkg-config --cflags --libs dist) -o halo && ./halo
 */
#include <dist/dist.h>
#include <stdio.h>

/* section exchange */
static dist_status exchange(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t id = dist_replica_id(replica);
  int32_t tile[2] = {10 * id, 10 * id + 1}, around[4];
  const int64_t two = 2, four = 4, one = 1;
  const dist_tensor in = {tile, DIST_I32, 1, &two, NULL}, out = {around, DIST_I32, 1, &four, NULL};
  const dist_edge clamp = DIST_EDGE_CLAMP;
  dist_halo halo = DIST_HALO_INIT;
  halo.ndim = 1;
  halo.parts = &four; /* tiles in each dimension */
  halo.low = &one;    /* elements before the tile */
  halo.high = &one;   /* elements after it */
  halo.edges = &clamp;
  const dist_status status = dist_halo_exchange(replica, &in, &halo, &out, NULL);
  if (!status) printf("replica %d: %d [%d %d] %d\n", id, around[0], around[1], around[2], around[3]);
  return status;
}
/* end of exchange */

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 4;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_run(strategy, exchange, NULL, NULL);
  if (status) fprintf(stderr, "halo: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
