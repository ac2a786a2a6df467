/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for tests of replicas with logical devices: mesh strategies, and values with consecutive numbers.
 */
#ifndef TESTS_ABI_MESH_SUPPORT_H
#define TESTS_ABI_MESH_SUPPORT_H

#include "common.h"

/* A topology with one task and a device at every position of the mesh. */
static inline dist_topology *full_topology(const int32_t shape[4]) {
  const int32_t n = shape[0] * shape[1] * shape[2] * shape[3];
  int32_t *coordinates = calloc((size_t)n * 4, sizeof *coordinates);
  assert_non_null(coordinates);
  for (int32_t i = 0; i < n; i++) {
    int32_t rest = i;
    for (int axis = 3; axis >= 0; axis--) {
      coordinates[i * 4 + axis] = rest % shape[axis];
      rest /= shape[axis];
    }
  }
  dist_topology *topology = NULL;
  assert_ok(dist_topology_create(shape, 4, coordinates, 1, n, NULL, &topology));
  free(coordinates);
  return topology;
}

/* `replicas` replicas, each a block of the mesh, in the order of the blocks. */
static inline dist_device_assignment *block_assignment(const int32_t mesh[4], const int32_t block[4],
                                                       int32_t replicas) {
  dist_topology *topology = full_topology(mesh);
  dist_device_assignment *assignment = NULL;
  assert_ok(
      dist_device_assignment_build(topology, block, NULL, 4, replicas, DIST_DEVICE_ORDER_MESH, &assignment));
  dist_topology_destroy(topology);
  return assignment;
}

/* Creates a strategy from `options` with a mesh of replicas x devices, the latter along one axis. */
static inline dist_strategy *mesh_with(int32_t replicas, int32_t devices, dist_strategy_options options) {
  dist_mesh_options options_mesh = DIST_MESH_OPTIONS_INIT;
  if (options.mesh != NULL) options_mesh = *options.mesh;
  options.mesh = &options_mesh;
  const int32_t mesh[] = {replicas, devices, 1, 1};
  const int32_t block[] = {1, devices, 1, 1};
  dist_device_assignment *assignment = block_assignment(mesh, block, replicas);
  options.kind = DIST_STRATEGY_MESH;
  options_mesh.device_assignment = assignment;
  dist_strategy *strategy = strategy_with(options);
  dist_device_assignment_destroy(assignment);
  return strategy;
}

static inline dist_strategy *mesh_of(int32_t replicas, int32_t devices) {
  const dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  return mesh_with(replicas, devices, options);
}

static inline int64_t product_of(const int64_t *shape, int32_t ndim) {
  int64_t product = 1;
  for (int32_t i = 0; i < ndim; i++) product *= shape[i];
  return product;
}

/* Returns a tensor of consecutive numbers beginning with `first`, or NULL if memory is exhausted. */
static inline dist_value *numbers(dist_strategy *strategy, int64_t first, const int64_t *shape,
                                  int32_t ndim) {
  const int64_t n = product_of(shape, ndim);
  int64_t *data = malloc(((size_t)n + 1) * sizeof *data);
  if (data == NULL) return NULL;
  for (int64_t i = 0; i < n; i++) data[i] = first + i;
  const dist_tensor tensor = {data, DIST_I64, ndim, shape, NULL};
  dist_value *value = NULL;
  if (dist_value_create_tensor(strategy, &tensor, &value) != DIST_OK) value = NULL;
  free(data);
  return value;
}

/* Returns the element of an I64 tensor with this row-major number. */
static inline int64_t element(const dist_tensor *tensor, int64_t number) {
  int64_t at = 0, step = 1;
  for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
    const int64_t stride = tensor->strides != NULL ? tensor->strides[i] : step;
    at += number % tensor->shape[i] * stride;
    step *= tensor->shape[i];
    number /= tensor->shape[i];
  }
  return ((const int64_t *)tensor->data)[at];
}

/* Returns a list of the values, and takes over their references. */
static inline dist_value *list_of(dist_strategy *strategy, dist_value **items, size_t n) {
  dist_value *list = NULL;
  if (dist_value_create_list(strategy, items, n, &list) != DIST_OK) list = NULL;
  for (size_t i = 0; i < n; i++) dist_value_release(items[i]);
  return list;
}

/* Asserts that the latest report names this logical device of replica 0, and what it passed. */
static inline void assert_blames(int32_t device, const char *expected, const char *received) {
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  assert_int_equal(info.code, DIST_INVALID_ARGUMENT);
  assert_int_equal(info.replica, 0);
  assert_int_equal(info.logical_device, device);
  assert_string_equal(info.expected, expected);
  assert_string_equal(info.received, received);
  assert_true(info.hint[0] != '\0');
}

/* Asserts must not be used inside a replica function. These macros return from it instead. */
#define TRY(call)                                 \
  do {                                            \
    const dist_status try_status = (call);        \
    if (try_status != DIST_OK) return try_status; \
  } while (0)
#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) return dist_fail(DIST_INTERNAL, "not so: " #condition); \
  } while (0)
#define EXPECT_FAILS(call, status, words)                                                         \
  do {                                                                                            \
    if ((call) != (status) || strstr(dist_last_error(), words) == NULL) return unexpected(#call); \
  } while (0)

static inline dist_status unexpected(const char *call) {
  char text[1024];
  snprintf(text, sizeof text, "%.200s: the last error is: %.700s", call, dist_last_error());
  return dist_fail(DIST_INTERNAL, text);
}

#endif
