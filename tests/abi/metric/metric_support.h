/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for tests of metrics: updates as data, and their distribution over replicas.
 */
#ifndef TESTS_ABI_METRIC_SUPPORT_H
#define TESTS_ABI_METRIC_SUPPORT_H

#include "tests/abi/common.h"

/* One update by `replica` with the tensors that are not NULL. */
typedef struct batch {
  int32_t replica;
  const dist_tensor *values, *labels, *weights;
} batch;

typedef struct job {
  dist_metric *metric;
  const batch *batches;
  size_t n;
} job;

static inline dist_status update_own(dist_replica *replica, void *user_data) {
  const job *j = user_data;
  for (size_t i = 0; i < j->n; i++) {
    const batch *b = &j->batches[i];
    if (b->replica != dist_replica_id(replica)) continue;
    const dist_status status = dist_metric_update(replica, j->metric, b->values, b->labels, b->weights);
    if (status != DIST_OK) return status;
  }
  return DIST_OK;
}

static inline dist_status update_by(dist_strategy *strategy, dist_metric *metric, const batch *batches,
                                    size_t n) {
  job j = {metric, batches, n};
  return dist_run(strategy, update_own, &j, NULL);
}

static inline dist_metric *metric_of(dist_strategy *strategy, int32_t kind) {
  dist_metric *metric = NULL;
  assert_ok(dist_metric_create(strategy, kind, NULL, &metric));
  assert_int_equal(dist_metric_kind_of(metric), kind);
  return metric;
}

static inline double result_of(dist_strategy *strategy, dist_metric *metric) {
  double result = -1;
  assert_ok(dist_metric_result(strategy, metric, &result));
  return result;
}

/* Returns the result of a new metric after these updates. */
static inline double result_by(dist_strategy *strategy, int32_t kind, const batch *batches, size_t n) {
  dist_metric *metric = metric_of(strategy, kind);
  assert_ok(update_by(strategy, metric, batches, n));
  const double result = result_of(strategy, metric);
  dist_metric_destroy(metric);
  return result;
}

static inline dist_tensor tensor_of(void *data, dist_dtype dtype, int32_t ndim, const int64_t *shape) {
  return (dist_tensor){data, dtype, ndim, shape, NULL};
}

static inline dist_strategy *strategy_of_kind(int32_t kind, int32_t num_replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = kind;
  options.num_replicas = num_replicas;
  return strategy_with(options);
}

static inline int make_strategy(void **state) {
  *state = strategy_of(4, DIST_THREADS_CALLER);
  return 0;
}

static inline int end_strategy(void **state) { return dist_strategy_destroy(*state); }

#endif
