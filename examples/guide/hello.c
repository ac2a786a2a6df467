/* SPDX-License-Identifier: Apache-2.0
 *
 * Four replicas add up their numbers.
 *
 *     cc hello.c $(pkg-config --cflags --libs dist) -o hello && ./hello
 */
#include <dist/dist.h>
#include <stdio.h>

static dist_status add_up(dist_replica *replica, void *user_data) {
  (void)user_data;
  double number = dist_replica_id(replica) + 1;            /* 1, 2, 3 and 4 */
  dist_tensor tensor = {&number, DIST_F64, 0, NULL, NULL}; /* one number: no shape, no strides */
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
  if (status == DIST_OK) printf("replica %d: the sum is %g\n", dist_replica_id(replica), number);
  return status;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 4;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, add_up, NULL, NULL);
  if (status != DIST_OK) fprintf(stderr, "hello: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
