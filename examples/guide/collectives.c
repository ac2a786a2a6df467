/* SPDX-License-Identifier: Apache-2.0
 *
 * A collective among some replicas, one that runs while the replica computes, and one that is planned and repeated.
 *
 *     cc collectives.c $(pkg-config --cflags --libs dist) -o collectives && ./collectives
 */
#include <dist/dist.h>
#include <stdio.h>

/* Only the members of the group take part. */
static dist_status sum_of_group(dist_replica *replica, const dist_group *group) {
  double number = dist_replica_id(replica) + 1;
  const dist_tensor tensor = {&number, DIST_F64, 0, NULL, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = group;
  if (dist_group_rank(group, dist_replica_id(replica)) < 0) return DIST_OK; /* not a member */
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, NULL);
  if (!status && dist_replica_id(replica) == 0) printf("group: %g\n", number);
  return status;
}

/* The call returns immediately. The tensor must not be touched until the work has completed. */
static dist_status asynchronous(dist_replica *replica) {
  double number = dist_replica_id(replica) + 1;
  const dist_tensor tensor = {&number, DIST_F64, 0, NULL, NULL};
  dist_work *work = NULL;
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, &work);
  if (status) return status;
  /* ... compute something else here ... */
  status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  if (!status && dist_replica_id(replica) == 0) printf("asynchronous: %g\n", number);
  return status;
}

/* Planned once, then started in each step. A tensor can be reduced as soon as all replicas have declared it ready. */
static dist_status planned(dist_replica *replica) {
  double numbers[2];
  const dist_tensor tensors[] = {{&numbers[0], DIST_F64, 0, NULL, NULL},
                                 {&numbers[1], DIST_F64, 0, NULL, NULL}};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.planned = 1;
  options.bytes_per_pack = 8; /* a pack for each tensor; real gradients need packs of about 4 MiB */
  dist_work *plan = NULL;
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, tensors, tensors, 2, &options, &plan);
  for (int step = 1; step <= 2 && !status; step++) {
    for (int t = 1; t >= 0 && !status; t--) { /* the last tensor first, as in backpropagation */
      numbers[t] = step * (t + 1) * (dist_replica_id(replica) + 1);
      status = dist_work_ready(plan, (size_t)t);
    }
    if (!status) status = dist_work_wait(plan, DIST_NO_TIMEOUT);
    if (!status && dist_replica_id(replica) == 0) printf("step %d: %g %g\n", step, numbers[0], numbers[1]);
  }
  dist_work_destroy(plan);
  return status;
}

static dist_status step(dist_replica *replica, void *user_data) {
  dist_status status = sum_of_group(replica, user_data);
  if (!status) status = asynchronous(replica);
  if (!status) status = planned(replica);
  return status;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 4;
  const int32_t even[] = {0, 2};
  dist_strategy *strategy = NULL;
  dist_group *group = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_group_create(strategy, even, 2, &group);
  if (!status) status = dist_run(strategy, step, group, NULL);
  if (status) fprintf(stderr, "collectives: %s\n", dist_last_error());
  if (dist_group_destroy(group) != DIST_OK) status = DIST_INTERNAL;
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
