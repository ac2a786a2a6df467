/* SPDX-License-Identifier: Apache-2.0
 *
 * A strategy that is created, used and destroyed, for programs and plugins that each have their own libdist.
 */
#ifndef TESTS_GUESTS_EXERCISE_H
#define TESTS_GUESTS_EXERCISE_H

#include <stdlib.h>
#include <string.h>

#include <dist/dist.h>

enum { EXERCISE_REPLICAS = 2, EXERCISE_MANY = 1 << 16 };

static void add_one(int64_t begin, int64_t end, void *user_data) {
  float *numbers = user_data;
  for (int64_t i = begin; i < end; i++) numbers[i] += 1;
}

/* A blocking collective, a loop on oneTBB threads, and an asynchronous collective, which also uses them. */
static dist_status exercise_replica(dist_replica *replica, void *user_data) {
  float *mine = (float *)user_data + (size_t)dist_replica_id(replica) * EXERCISE_MANY;
  const int64_t many = EXERCISE_MANY;
  const dist_tensor tensor = {mine, DIST_F32, 1, &many, NULL};
  dist_tensor out = tensor;
  for (int i = 0; i < EXERCISE_MANY; i++) mine[i] = 1;
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &out, 1, NULL, NULL);
  if (status == DIST_OK) status = dist_replica_parallel_for(replica, 0, many, 1000, add_one, mine);
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  if (status == DIST_OK)
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &out, 1, &options, &work);
  if (status == DIST_OK) status = dist_work_wait(work, -1);
  dist_work_destroy(work);
  if (status == DIST_OK && (mine[0] != 6 || mine[EXERCISE_MANY - 1] != 6)) status = DIST_INTERNAL;
  return status;
}

/* Returns NULL, or what went wrong. */
static const char *exercise(void) {
  float *numbers = malloc(sizeof(float) * EXERCISE_REPLICAS * EXERCISE_MANY);
  static _Thread_local char why[512];
  dist_strategy *strategy = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = EXERCISE_REPLICAS;
  options.threads = DIST_THREADS_LIBRARY;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, exercise_replica, numbers, NULL);
  if (status != DIST_OK) strncpy(why, dist_last_error(), sizeof why - 1);
  const dist_status destroyed = dist_strategy_destroy(strategy);
  free(numbers);
  if (destroyed != DIST_OK) return "the strategy could not be destroyed";
  return status == DIST_OK ? NULL : why;
}

#endif
