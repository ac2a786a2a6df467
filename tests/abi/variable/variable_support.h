/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for the tests of variable.h: strategies of every kind, f32 variables, and their contents.
 */
#ifndef TESTS_ABI_VARIABLE_SUPPORT_H
#define TESTS_ABI_VARIABLE_SUPPORT_H

#include "tests/abi/common.h"

static inline dist_strategy *strategy_of_kind(int32_t kind, int32_t num_replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = kind;
  options.num_replicas = num_replicas;
  return strategy_with(options);
}

static inline dist_tensor scalar_of(float *number) {
  const dist_tensor tensor = {number, DIST_F32, 0, NULL, NULL};
  return tensor;
}

static inline dist_value *number_of(dist_strategy *strategy, float number) {
  const dist_tensor tensor = scalar_of(&number);
  dist_value *value = NULL;
  assert_ok(dist_value_create_tensor(strategy, &tensor, &value));
  return value;
}

/* Component r is numbers[r]. */
static inline dist_value *spread_of(dist_strategy *strategy, const float *numbers) {
  dist_value *items[MOST];
  const int32_t n = dist_strategy_num_replicas(strategy);
  for (int32_t r = 0; r < n; r++) items[r] = number_of(strategy, numbers[r]);
  dist_value *spread = NULL;
  assert_ok(dist_value_create_per_replica(strategy, items, (size_t)n, &spread));
  for (int32_t r = 0; r < n; r++) dist_value_release(items[r]);
  return spread;
}

static inline dist_variable *variable_with(dist_strategy *strategy, const dist_tensor *initial,
                                           int32_t synchronization, int32_t aggregation) {
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.synchronization = synchronization;
  options.aggregation = aggregation;
  options.name = "v";
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(strategy, initial, &options, &variable));
  return variable;
}

static inline dist_variable *number_variable(dist_strategy *strategy, float number, int32_t synchronization,
                                             int32_t aggregation) {
  const dist_tensor initial = scalar_of(&number);
  return variable_with(strategy, &initial, synchronization, aggregation);
}

static inline float copy_of(const dist_variable *variable, int32_t replica) {
  dist_tensor copy;
  assert_ok(dist_variable_component(variable, replica, &copy));
  return *(const float *)copy.data;
}

static inline float number_in(const dist_value *value) {
  dist_tensor tensor;
  assert_ok(dist_value_tensor(value, &tensor));
  assert_int_equal(tensor.dtype, DIST_F32);
  assert_int_equal(tensor.ndim, 0);
  return *(const float *)tensor.data;
}

static inline float read_of(dist_strategy *strategy, dist_variable *variable) {
  dist_value *value = NULL;
  assert_ok(dist_variable_read(strategy, variable, &value));
  const float number = number_in(value);
  dist_value_release(value);
  return number;
}

/* Assigns the number of replica r as a new tensor. */
static inline dist_status assign_number(dist_replica *replica, dist_variable *variable, int32_t how,
                                        float number) {
  const dist_tensor tensor = scalar_of(&number);
  return dist_replica_assign(replica, variable, how, &tensor, NULL);
}

#endif
