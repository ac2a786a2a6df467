/* SPDX-License-Identifier: Apache-2.0
 *
 * The mean and the standard deviation of some numbers. With libdist.
 *
 *     cc deviation.c $(pkg-config --cflags --libs dist) -lm -o deviation && ./deviation
 */
#include <dist/dist.h>
#include <math.h>
#include <stdio.h>

enum { N = 1000 };

static dist_status add_up(dist_replica *replica, double *number) {
  const dist_tensor tensor = {number, DIST_F64, 0, NULL, NULL};
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
}

static dist_status work(dist_replica *replica, void *user_data) {
  const double *numbers = user_data;
  const int me = dist_replica_id(replica), replicas = dist_replica_num_replicas(replica);
  const int begin = N * me / replicas, end = N * (me + 1) / replicas;
  double sum = 0, squares = 0;
  for (int i = begin; i < end; i++) sum += numbers[i];
  dist_status status = add_up(replica, &sum);
  if (status) return status;
  for (int i = begin; i < end; i++) squares += (numbers[i] - sum / N) * (numbers[i] - sum / N);
  status = add_up(replica, &squares);
  if (!status && me == 0) printf("mean %.4f, deviation %.4f\n", sum / N, sqrt(squares / N));
  return status;
}

int main(void) {
  double numbers[N];
  for (int i = 0; i < N; i++) numbers[i] = i % 10;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 4;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_run(strategy, work, numbers, NULL);
  if (status) fprintf(stderr, "deviation: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) || status;
}
