// SPDX-License-Identifier: Apache-2.0
//
// The replicas first run both implementations on the same numbers and compare the results. The timed rounds
// then use zeros, because repeated sums of sums would overflow.
#include "contrast.h"

#include <stdlib.h>
#include <string.h>

#include "std_barrier.h"

enum { CONTRAST_WAYS = 2, CONTRAST_WARM_UP = 10 };

typedef struct {
  trainer *t;
  std_barrier_group *group;
  int64_t counts[MODEL_TENSORS];
  float *expected; /* replica 0's sums, computed by libdist */
  int32_t equal_bits;
  int64_t *took_ns; /* indexed [way][round][replica] */
} contrast;

static void fill(const contrast *c, float *const *gradients, int32_t id) {
  for (int i = 0; i < MODEL_TENSORS; i++)
    for (int64_t k = 0; k < c->counts[i]; k++) gradients[i][k] = 1.0f / (float)(k % 1000 + 1 + id);
}

static dist_status all_reduce_by_dist(dist_replica *replica, const contrast *c, float *const *gradients) {
  dist_tensor tensors[MODEL_TENSORS];
  for (int i = 0; i < MODEL_TENSORS; i++) tensors[i] = model_tensor(&c->t->parameters, i, gradients[i]);
  return dist_all_reduce(replica, DIST_REDUCE_SUM, tensors, tensors, MODEL_TENSORS, NULL, NULL);
}

static dist_status compare_bits(dist_replica *replica, contrast *c, float *const *gradients) {
  const int32_t id = dist_replica_id(replica);
  fill(c, gradients, id);
  dist_status status = all_reduce_by_dist(replica, c, gradients);
  if (status) return status;
  float *expected = c->expected;
  for (int i = 0; i < MODEL_TENSORS && id == 0; expected += c->counts[i++])
    memcpy(expected, gradients[i], (size_t)c->counts[i] * sizeof *expected);
  fill(c, gradients, id);
  std_barrier_all_reduce(c->group, id, gradients, c->counts, MODEL_TENSORS);
  if (id != 0) return DIST_OK;
  c->equal_bits = 1;
  expected = c->expected;
  for (int i = 0; i < MODEL_TENSORS; expected += c->counts[i++])
    if (memcmp(expected, gradients[i], (size_t)c->counts[i] * sizeof *expected) != 0) c->equal_bits = 0;
  return DIST_OK;
}

static dist_status measure_round(dist_replica *replica, contrast *c, float *const *gradients, int32_t round) {
  const int32_t id = dist_replica_id(replica), num_replicas = c->t->num_replicas;
  for (int32_t way = 0; way < CONTRAST_WAYS; way++) {
    dist_status status = dist_barrier(replica, NULL, NULL);
    if (status) return status;
    const int64_t start = trainer_now_ns();
    if (way == 0) {
      if ((status = all_reduce_by_dist(replica, c, gradients))) return status;
    } else {
      std_barrier_all_reduce(c->group, id, gradients, c->counts, MODEL_TENSORS);
    }
    const int64_t took = trainer_now_ns() - start;
    if (round >= 0) c->took_ns[(way * CONTRAST_ROUNDS + round) * num_replicas + id] = took;
  }
  return DIST_OK;
}

static dist_status measure_replica(dist_replica *replica, void *user_data) {
  contrast *c = user_data;
  float *const *gradients = c->t->replicas[dist_replica_id(replica)].gradients[0].of;
  dist_status status = compare_bits(replica, c, gradients);
  for (int i = 0; i < MODEL_TENSORS; i++)
    memset(gradients[i], 0, (size_t)c->counts[i] * sizeof *gradients[i]);
  for (int32_t round = -CONTRAST_WARM_UP; round < CONTRAST_ROUNDS && !status; round++)
    status = measure_round(replica, c, gradients, round);
  return status;
}

static int compare_times(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

// Takes the slowest replica's time in each round and returns the median over the rounds.
static double median_ns(const contrast *c, int32_t way) {
  int64_t slowest[CONTRAST_ROUNDS] = {0};
  for (int32_t round = 0; round < CONTRAST_ROUNDS; round++)
    for (int32_t r = 0; r < c->t->num_replicas; r++) {
      const int64_t took = c->took_ns[(way * CONTRAST_ROUNDS + round) * c->t->num_replicas + r];
      if (took > slowest[round]) slowest[round] = took;
    }
  qsort(slowest, CONTRAST_ROUNDS, sizeof *slowest, compare_times);
  const int64_t median = slowest[CONTRAST_ROUNDS / 2];
  return (double)median;
}

dist_status contrast_measure(trainer *t, contrast_result *out) {
  contrast c = {.t = t};
  for (int i = 0; i < MODEL_TENSORS; i++) c.counts[i] = model_count(&t->parameters, i);
  c.group = std_barrier_create(t->num_replicas);
  c.expected = calloc((size_t)model_num_parameters(&t->parameters), sizeof *c.expected);
  c.took_ns = calloc((size_t)t->num_replicas, CONTRAST_WAYS * CONTRAST_ROUNDS * sizeof *c.took_ns);
  dist_status status = c.group && c.expected && c.took_ns
                           ? dist_run(t->strategy, measure_replica, &c, NULL)
                           : dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the contrast");
  if (!status) *out = (contrast_result){median_ns(&c, 0), median_ns(&c, 1), c.equal_bits};
  std_barrier_destroy(c.group);
  free(c.expected);
  free(c.took_ns);
  return status;
}
