/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of all functions that take a replica and can fail. Tests call each of them with a handle that must
 * be rejected.
 * @every replica function in this file but replica_attach: that one is for another thread
 */
#ifndef TESTS_ABI_REPLICA_CALLS_H
#define TESTS_ABI_REPLICA_CALLS_H

#include "common.h"

/* Arguments of the calls, which are all valid on the right thread. */
typedef struct call_things {
  dist_strategy *strategy;
  dist_variable *variable;
  dist_metric *metric;
  dist_value *value;
  dist_versions *versions;
  void *content;
} call_things;

static inline call_things things_of(dist_strategy *strategy) {
  call_things t = {.strategy = strategy};
  int64_t length = 4;
  float numbers[4] = {1, 2, 3, 4};
  const dist_tensor tensor = vector_of(numbers, DIST_F32, &length);
  assert_ok(dist_variable_create(strategy, &tensor, NULL, &t.variable));
  assert_ok(dist_metric_create(strategy, DIST_METRIC_MEAN, NULL, &t.metric));
  assert_ok(dist_value_create_tensor(strategy, &tensor, &t.value));
  assert_ok(dist_versions_create(NULL, &t.versions));
  assert_ok(dist_versions_publish(t.versions, strategy, NULL, NULL, NULL));
  return t;
}

static inline void end_things(call_things *t) {
  dist_versions_destroy(t->versions);
  dist_value_release(t->value);
  dist_metric_destroy(t->metric);
  dist_variable_destroy(t->variable);
}

static inline dist_status no_merge(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                   dist_value **out, void *user_data) {
  (void)strategy, (void)args, (void)out, (void)user_data, (void)kwargs;
  return DIST_OK;
}
static inline dist_status no_update(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                                    dist_value *kwargs, dist_value **out, void *user_data) {
  (void)strategy;
  (void)place, (void)args, (void)kwargs, (void)out, (void)user_data;
  return DIST_OK;
}
static inline dist_status no_values(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                    dist_value **out, void *user_data) {
  (void)replica, (void)args, (void)kwargs, (void)out, (void)user_data;
  return DIST_OK;
}
static inline void no_range(int64_t begin, int64_t end, void *user_data) {
  (void)begin, (void)end, (void)user_data;
}

/* Tensors of 4 floats and room for 16, on the stack of each call. */
#define CALL_ROOM                                       \
  float in_[4] = {1, 2, 3, 4}, out_[16] = {0};          \
  int64_t four = 4, one = 1;                            \
  dist_tensor in = vector_of(in_, DIST_F32, &four);     \
  dist_tensor out = vector_of(out_, DIST_F32, &four);   \
  dist_tensor single = vector_of(out_, DIST_F32, &one); \
  dist_value *result = NULL;                            \
  (void)in, (void)out, (void)single, (void)result, (void)t

#define CALL(name, expression)                                                   \
  static inline dist_status call_##name(dist_replica *replica, call_things *t) { \
    CALL_ROOM;                                                                   \
    const dist_status status = (expression);                                     \
    return status;                                                               \
  }

CALL(all_reduce, dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, NULL, NULL))
CALL(reduce_to_root, dist_reduce_to_root(replica, DIST_REDUCE_SUM, 0, &in, &out, 1, NULL, NULL))
CALL(reduce_scatter, dist_reduce_scatter(replica, DIST_REDUCE_SUM, &in, &out, 1, NULL, NULL))
CALL(all_gather, dist_all_gather(replica, &in, &out, 1, NULL, NULL))
CALL(gather_to_root, dist_gather_to_root(replica, 0, &in, &out, 1, NULL, NULL))
CALL(broadcast, dist_broadcast(replica, 0, &in, &out, 1, NULL, NULL))
CALL(scatter_from_root, dist_scatter_from_root(replica, 0, &in, &out, 1, NULL, NULL))
CALL(all_to_all, dist_all_to_all(replica, &in, &out, 1, NULL, NULL))
CALL(scan, dist_scan(replica, DIST_REDUCE_SUM, DIST_SCAN_INCLUSIVE, &in, &out, 1, NULL, NULL))
CALL(permute, dist_permute(replica, 0, 0, &in, &out, 1, NULL, NULL))
CALL(barrier, dist_barrier(replica, NULL, NULL))
CALL(all_reduce_value, dist_all_reduce_value(replica, DIST_REDUCE_SUM, t->value, NULL, &result))
CALL(all_gather_value, dist_all_gather_value(replica, t->value, NULL, &result))
CALL(merge_call, dist_merge_call(replica, no_merge, NULL, NULL, NULL, NULL, NULL))
CALL(parallel_for, dist_replica_parallel_for(replica, 0, 4, 1, no_range, NULL))
CALL(leave, dist_replica_leave(replica, DIST_OK))
CALL(detach, dist_replica_detach(replica))
CALL(check, dist_replica_check(replica))
CALL(read, dist_replica_read(replica, t->variable, &result))
CALL(assign, dist_replica_assign(replica, t->variable, DIST_ASSIGN, &in, NULL))
CALL(assign_value, dist_replica_assign_value(replica, t->variable, DIST_ASSIGN, t->value, NULL))
CALL(scatter, dist_replica_scatter(replica, t->variable, DIST_SCATTER_ADD, t->value, NULL))
CALL(update, dist_replica_update(replica, t->variable, no_update, NULL, NULL, NULL, NULL, &result))
CALL(version, dist_replica_version(replica, t->versions, &t->content, NULL))
CALL(metric_update, dist_metric_update(replica, t->metric, &in, NULL, NULL))
CALL(average_loss, dist_average_loss(replica, &in, NULL, 0, &single))
CALL(scale_loss, dist_scale_regularization_loss(replica, &single, &single))
CALL(assign_device, dist_assign_to_logical_device(replica, t->value, 0, &result))
CALL(replicate_devices, dist_replicate_to_logical_devices(replica, t->value, &result))
CALL(run_on_devices, dist_run_on_devices(replica, no_values, NULL, NULL, NULL, NULL, &result))

static inline dist_status call_begun(dist_replica *replica, call_things *t) {
  CALL_ROOM;
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, &options, &work);
}
static inline dist_status call_reduce_apply(dist_replica *replica, call_things *t) {
  CALL_ROOM;
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = DIST_APPLY_SGD;
  apply.learning_rate = 1;
  return dist_reduce_apply(replica, DIST_REDUCE_SUM, &in, &out, 1, &apply, NULL, NULL);
}
static inline dist_status call_variable(dist_replica *replica, call_things *t) {
  CALL_ROOM;
  dist_variable *variable = NULL;
  return dist_replica_variable(replica, "made inside", &in, NULL, &variable);
}
static inline dist_status call_split(dist_replica *replica, call_things *t) {
  CALL_ROOM;
  return dist_split_to_logical_devices(replica, t->value, &one, 1, NULL, &result);
}
static inline dist_status call_coordinates(dist_replica *replica, call_things *t) {
  int32_t place[DIST_MAX_NDIM];
  (void)t;
  return dist_device_coordinates(replica, place);
}
static inline dist_status call_axis(dist_replica *replica, call_things *t) {
  int32_t index, size;
  (void)t;
  return dist_device_axis(replica, "y", &index, &size);
}
static inline dist_status call_axis_group(dist_replica *replica, call_things *t) {
  const dist_group *group = NULL;
  (void)t;
  return dist_device_axis_group(replica, "y", &group);
}
static inline dist_status call_halo(dist_replica *replica, call_things *t) {
  CALL_ROOM;
  const int64_t parts[] = {2}, none[] = {0};
  dist_halo halo = DIST_HALO_INIT;
  halo.ndim = 1;
  halo.parts = parts;
  halo.low = none;
  halo.high = none;
  return dist_halo_exchange(replica, &in, &halo, &out, NULL);
}
static inline dist_status call_reshard(dist_replica *replica, call_things *t) {
  CALL_ROOM;
  dist_partition whole = DIST_PARTITION_INIT;
  return dist_reshard(replica, &whole, &whole, &in, &out, NULL);
}

static const struct replica_call {
  const char *name;
  dist_status (*call)(dist_replica *replica, call_things *things);
  int of_devices; /* takes a logical device; a replica's handle is rejected too */
} replica_calls[] = {
#define ROW(name) \
  { #name, call_##name, 0 }
    ROW(all_reduce),
    ROW(reduce_to_root),
    ROW(reduce_scatter),
    ROW(all_gather),
    ROW(gather_to_root),
    ROW(broadcast),
    ROW(scatter_from_root),
    ROW(all_to_all),
    ROW(scan),
    ROW(permute),
    ROW(barrier),
    ROW(all_reduce_value),
    ROW(all_gather_value),
    ROW(merge_call),
    ROW(parallel_for),
    ROW(leave),
    ROW(detach),
    ROW(read),
    ROW(assign),
    ROW(assign_value),
    ROW(scatter),
    ROW(update),
    ROW(version),
    ROW(metric_update),
    ROW(average_loss),
    ROW(scale_loss),
    ROW(assign_device),
    ROW(replicate_devices),
    ROW(run_on_devices),
    ROW(begun),
    ROW(reduce_apply),
    ROW(variable),
    ROW(split),
#undef ROW
#define ROW(name) \
  { #name, call_##name, 1 }
    ROW(coordinates),
    ROW(axis),
    ROW(axis_group),
    ROW(halo),
    ROW(reshard),
#undef ROW
};

#endif
