/* SPDX-License-Identifier: Apache-2.0
 *
 * Heat spreads along a rod that is divided among the replicas. With libdist.
 *
 *     cc heat.c $(pkg-config --cflags --libs dist) -lm -o heat
 *     DIST_REPLICAS=4 ./heat                            # four threads
 *     dist-launch -n 2 --replicas 2 -- ./heat           # two processes with two threads each
 */
#include <dist/dist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 8, STEPS = 200 };

static dist_tensor number(double *data) { return (dist_tensor){data, DIST_F64, 0, NULL, NULL}; }

/* One step: exchange the outermost cells, compute, find the largest change. */
static dist_status step(dist_replica *replica, double *rod, double *change) {
  const int rank = dist_replica_id(replica), size = dist_replica_num_replicas(replica);
  const int left = rank - 1, right = rank + 1 < size ? rank + 1 : -1; /* -1: no neighbour */
  const dist_tensor first = number(&rod[1]), last = number(&rod[CELLS]);
  const dist_tensor before = number(&rod[0]), after = number(&rod[CELLS + 1]);
  dist_status status = dist_permute(replica, right, left, &last, &before, 1, NULL, NULL);
  if (!status) status = dist_permute(replica, left, right, &first, &after, 1, NULL, NULL);
  if (status) return status;
  if (rank == 0) rod[0] = 1; /* the left end of the rod is hot */

  double next[CELLS + 2], largest = 0;
  for (int i = 1; i <= CELLS; i++) {
    next[i] = (rod[i - 1] + rod[i + 1]) / 2;
    largest = fmax(largest, fabs(next[i] - rod[i]));
  }
  for (int i = 1; i <= CELLS; i++) rod[i] = next[i];
  const dist_tensor mine = number(&largest), result = number(change);
  return dist_all_reduce(replica, DIST_REDUCE_MAX, &mine, &result, 1, NULL, NULL);
}

static dist_status heat(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int rank = dist_replica_id(replica), size = dist_replica_num_replicas(replica);
  double rod[CELLS + 2] = {0}, change = 0;
  dist_status status = DIST_OK;
  for (int i = 0; i < STEPS && !status; i++) status = step(replica, rod, &change);
  if (status) return status;

  double sum = 0, *sums = calloc((size_t)size, sizeof *sums);
  if (sums == NULL) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the sums");
  for (int i = 1; i <= CELLS; i++) sum += rod[i];
  const int64_t one = 1, all = size;
  const dist_tensor mine = {&sum, DIST_F64, 1, &one, NULL}, gathered = {sums, DIST_F64, 1, &all, NULL};
  status = dist_gather_to_root(replica, 0, &mine, &gathered, 1, NULL, NULL);
  if (!status && rank == 0) {
    printf("largest change %.6f\n", change);
    for (int r = 0; r < size; r++) printf("part %d: %.4f\n", r, sums[r]);
  }
  free(sums);
  return status;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED; /* one process, or several that a launcher starts */
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_run(strategy, heat, NULL, NULL);
  if (status) fprintf(stderr, "heat: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) || status;
}
