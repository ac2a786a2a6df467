/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_reduce() of values other than per-replica tensors: indexed slices, variables, strings and nested
 * values.
 */
#include "reduce_support.h"

static dist_value *slices_of(dist_strategy *strategy, double a, double b) {
  const int64_t two[] = {2};
  const double numbers[] = {a, b};
  const double indices[] = {a, 0};
  const double size = 9;
  const int64_t one[] = {1};
  dist_value *const parts[] = {tensor_of(strategy, DIST_F32, 1, two, numbers),
                               tensor_of(strategy, DIST_I64, 1, two, indices),
                               tensor_of(strategy, DIST_I64, 1, one, &size)};
  dist_value *slices = NULL;
  assert_int_equal(dist_value_create_composite(strategy, DIST_VALUE_INDEXED_SLICES, parts, 3, &slices),
                   DIST_OK);
  for (int i = 0; i < 3; i++) dist_value_release(parts[i]);
  return slices;
}

static void slices_are_joined_in_the_order_of_replicas(void **state) {
  dist_value *const items[R] = {slices_of(*state, 1, 2), slices_of(*state, 3, 4), slices_of(*state, 5, 6)};
  dist_value *spread = spread_of(*state, items);
  static const double rows[2][2 * R] = {{1, 2, 3, 4, 5, 6}, {1 / 3., 2 / 3., 1, 4 / 3., 5 / 3., 2}};
  static const double indices[2 * R] = {1, 0, 3, 0, 5, 0};
  const double size = 9;
  for (int op = DIST_REDUCE_SUM; op <= DIST_REDUCE_MEAN; op++) {
    dist_value *result = NULL;
    assert_int_equal(dist_reduce(*state, op, spread, NULL, 0, &result), DIST_OK);
    assert_int_equal(dist_value_kind_of(result), DIST_VALUE_INDEXED_SLICES);
    assert_tensor(dist_value_item(result, 0), DIST_F32, 2 * R, rows[op - DIST_REDUCE_SUM]);
    assert_tensor(dist_value_item(result, 1), DIST_I64, 2 * R, indices);
    assert_tensor(dist_value_item(result, 2), DIST_I64, 1, &size);
    dist_value_release(result);
  }
  const int32_t axis = 0;
  dist_value *result = NULL;
  assert_fails_with(
      dist_reduce(*state, DIST_REDUCE_SUM, spread, &axis, 1, &result), DIST_UNIMPLEMENTED,
      "value: replica 0 has indexed slices, but only tensors, nests of tensors and (without axes) indexed "
      "slices can be reduced");
  assert_null(result);
  dist_value_release(spread);
}

static void a_mirrored_variable_is_its_own_mean(void **state) {
  const int64_t shape[] = {2};
  float numbers[] = {1, 2};
  const double sums[] = {R, 2 * R};
  const dist_tensor initial = {numbers, DIST_F32, 1, shape, NULL};
  dist_variable *variable = NULL;
  dist_value *value = NULL;
  dist_value *result = NULL;
  assert_int_equal(dist_variable_create(*state, &initial, NULL, &variable), DIST_OK);
  assert_int_equal(dist_value_create_variable(variable, &value), DIST_OK);
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_MEAN, value, NULL, 0, &result), DIST_OK);
  dist_tensor first;
  dist_tensor shown;
  assert_int_equal(dist_variable_component(variable, 0, &first), DIST_OK);
  assert_int_equal(dist_value_tensor(result, &shown), DIST_OK);
  assert_ptr_equal(shown.data, first.data); /* the first copy itself */
  dist_value_release(result);
  result = NULL;
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_SUM, value, NULL, 0, &result), DIST_INVALID_ARGUMENT);
  assert_null(result);
  dist_value_release(value);
  dist_variable_destroy(variable);

  /* Every copy of a sync-on-read variable is a contribution. */
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  options.aggregation = DIST_AGGREGATION_SUM;
  assert_int_equal(dist_variable_create(*state, &initial, &options, &variable), DIST_OK);
  assert_int_equal(dist_value_create_variable(variable, &value), DIST_OK);
  assert_reduced(*state, DIST_REDUCE_SUM, value, NULL, 0, DIST_F32, 2, sums);
  dist_variable_destroy(variable);
}

static void texts_and_nothing_cannot_be_added(void **state) {
  dist_value *text = NULL;
  dist_value *none = NULL;
  dist_value *result = NULL;
  assert_int_equal(dist_value_create_text(*state, "a", &text), DIST_OK);
  assert_int_equal(dist_value_create_none(*state, &none), DIST_OK);
  dist_value *const leaves[] = {text, none};
  for (int i = 0; i < 2; i++) {
    dist_value *const items[R] = {leaves[i], leaves[i], leaves[i]};
    for (int r = 0; r < R; r++) dist_value_retain(leaves[i]);
    dist_value *spread = spread_of(*state, items);
    for (int op = DIST_REDUCE_SUM; op <= DIST_REDUCE_MEAN; op++) {
      assert_int_equal(dist_reduce(*state, op, spread, NULL, 0, &result), DIST_INVALID_ARGUMENT);
      assert_non_null(strstr(dist_last_error(), "value: replica 0 has "));
    }
    dist_value_release(spread);
    /* A value that all replicas share is its own mean, whatever its kind. */
    assert_int_equal(dist_reduce(*state, DIST_REDUCE_MEAN, leaves[i], NULL, 0, &result), DIST_OK);
    assert_ptr_equal(result, leaves[i]);
    dist_value_release(result);
    result = NULL;
    const int32_t axis = 0;
    assert_int_equal(dist_reduce(*state, DIST_REDUCE_MEAN, leaves[i], &axis, 1, &result),
                     DIST_INVALID_ARGUMENT);
    assert_null(result);
    dist_value_release(leaves[i]);
  }
}

static void a_nest_keeps_its_kind_and_has_no_axes(void **state) {
  dist_value *const items[] = {scalars(*state, DIST_F32, 1, 2, 3), scalars(*state, DIST_I32, 1, 2, 3)};
  dist_value *tuple = NULL;
  dist_value *result = NULL;
  assert_int_equal(dist_value_create_tuple(*state, items, 2, &tuple), DIST_OK);
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_MEAN, tuple, NULL, 0, &result), DIST_OK);
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_TUPLE);
  const double two = 2;
  assert_tensor(dist_value_item(result, 0), DIST_F32, 1, &two);
  assert_tensor(dist_value_item(result, 1), DIST_F64, 1, &two);
  dist_value_release(result);
  result = NULL;
  const int32_t axis = 0;
  assert_fails_with(
      dist_reduce(*state, DIST_REDUCE_SUM, tuple, &axis, 1, &result), DIST_INVALID_ARGUMENT,
      "value is a tuple, but only a tensor has axes. Reduce the items one by one, or reduce without axes.");
  assert_null(result);
  dist_value_release(tuple);
  for (int i = 0; i < 2; i++) dist_value_release(items[i]);
}

static void one_replica_gives_back_what_it_is_given(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_ONE_DEVICE;
  dist_strategy *alone = NULL;
  dist_value *text = NULL;
  dist_value *spread = NULL;
  dist_value *result = NULL;
  assert_int_equal(dist_strategy_create(&options, &alone), DIST_OK);
  assert_int_equal(dist_value_create_text(alone, "a", &text), DIST_OK);
  assert_int_equal(dist_value_create_per_replica(alone, &text, 1, &spread), DIST_OK);
  dist_value *const given[] = {text, spread};
  for (int i = 0; i < 2; i++) {
    for (int op = DIST_REDUCE_SUM; op <= DIST_REDUCE_MEAN; op++) {
      assert_int_equal(dist_reduce(alone, op, given[i], NULL, 0, &result), DIST_OK);
      assert_ptr_equal(result, text);
      dist_value_release(result);
    }
    dist_value_release(given[i]);
  }
  assert_int_equal(dist_strategy_destroy(alone), DIST_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slices_are_joined_in_the_order_of_replicas),
      cmocka_unit_test(a_mirrored_variable_is_its_own_mean),
      cmocka_unit_test(texts_and_nothing_cannot_be_added),
      cmocka_unit_test(a_nest_keeps_its_kind_and_has_no_axes),
      cmocka_unit_test(one_replica_gives_back_what_it_is_given),
  };
  return cmocka_run_group_tests_name("reduce_kinds", tests, make_strategy, end_strategy);
}
