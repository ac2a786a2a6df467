/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions in the cross-replica context: the inputs that they accept, the destinations of their results,
 * and the inputs that they reject.
 */
#include "reduce_support.h"

static void what_is_equal_already(void **state) {
  const double six = 6;
  const int32_t axis = 0;
  const int64_t shape[1] = {2};
  const double ones[2] = {1, 1};
  dist_value *tensor = tensor_of(*state, DIST_F32, 1, shape, ones);
  dist_value *const items[R] = {tensor, tensor, tensor};
  dist_value *mirrored = NULL;
  dist_value *result = NULL;
  assert_int_equal(dist_value_create_mirrored(*state, items, R, &mirrored), DIST_OK);
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_MEAN, mirrored, NULL, 0, &result), DIST_OK);
  assert_ptr_equal(result, tensor);
  dist_value_release(result);
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_MEAN, tensor, NULL, 0, &result), DIST_OK);
  assert_ptr_equal(result, tensor);
  dist_value_release(result);
  result = NULL;
  assert_fails_with(dist_reduce(*state, DIST_REDUCE_SUM, mirrored, NULL, 0, &result), DIST_INVALID_ARGUMENT,
                    "SUM of value, which is a mirrored value and not per-replica: use MEAN, or give every "
                    "replica's own part");
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_SUM, tensor, NULL, 0, &result), DIST_INVALID_ARGUMENT);
  assert_null(result);
  /* With axes, every replica reduces it. */
  assert_reduced(*state, DIST_REDUCE_SUM, dist_value_retain(tensor), &axis, 1, DIST_F32, 1, &six);
  assert_reduced(*state, DIST_REDUCE_SUM, dist_value_retain(mirrored), &axis, 1, DIST_F32, 1, &six);
  dist_value_release(mirrored);
  dist_value_release(tensor);
}

static void nests_reduce_leaf_by_leaf(void **state) {
  const char *const keys[2] = {"b", "a"};
  dist_value *const leaves[2] = {scalars(*state, DIST_F32, 1, 2, 3), scalars(*state, DIST_I64, 10, 20, 30)};
  dist_value *list = NULL;
  dist_value *dict = NULL;
  dist_value *result = NULL;
  assert_int_equal(dist_value_create_list(*state, leaves, 2, &list), DIST_OK);
  dist_value *const items[2] = {list, leaves[0]};
  assert_int_equal(dist_value_create_dict(*state, keys, items, 2, &dict), DIST_OK);
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_SUM, dict, NULL, 0, &result), DIST_OK);
  const double six = 6;
  const double sixty = 60;
  assert_tensor(dist_value_get(result, "a"), DIST_F32, 1, &six);
  assert_tensor(dist_value_item(dist_value_get(result, "b"), 1), DIST_I64, 1, &sixty);
  dist_value_release(result);
  dist_value_release(dict);
  dist_value_release(list);

  /* A per-replica value of nests is equivalent to a nest of per-replica values. */
  dist_value *components[R];
  for (int r = 0; r < R; r++) {
    dist_value *const pair[2] = {dist_value_item(leaves[0], (size_t)r),
                                 dist_value_item(leaves[1], (size_t)r)};
    assert_int_equal(dist_value_create_list(*state, pair, 2, &components[r]), DIST_OK);
  }
  dist_value *spread = spread_of(*state, components);
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_SUM, spread, NULL, 0, &result), DIST_OK);
  assert_tensor(dist_value_item(result, 0), DIST_F32, 1, &six);
  assert_tensor(dist_value_item(result, 1), DIST_I64, 1, &sixty);
  dist_value_release(result);
  dist_value_release(spread);
  dist_value_release(leaves[0]);
  dist_value_release(leaves[1]);
}

/* {"x": [number, {key: 10 * number}]}. With n = 1, the list has no dictionary. */
static dist_value *nest_of(dist_strategy *strategy, double number, const char *key, size_t n) {
  const char *const outer = "x";
  const double more = 10 * number;
  dist_value *items[2] = {tensor_of(strategy, DIST_F32, 0, NULL, &number), NULL}, *list = NULL, *nest = NULL;
  dist_value *const leaf = tensor_of(strategy, DIST_F64, 0, NULL, &more);
  assert_int_equal(dist_value_create_dict(strategy, &key, &leaf, 1, &items[1]), DIST_OK);
  assert_int_equal(dist_value_create_list(strategy, items, n, &list), DIST_OK);
  assert_int_equal(dist_value_create_dict(strategy, &outer, &list, 1, &nest), DIST_OK);
  dist_value_release(leaf);
  dist_value_release(list);
  for (int i = 0; i < 2; i++) dist_value_release(items[i]);
  return nest;
}

static void nests_of_the_replicas_are_alike(void **state) {
  const double six = 6, sixty = 60;
  const int32_t axis = 0;
  const struct {
    const char *key;
    size_t n;
    int32_t num_axes;
    const char *error; /* NULL: none */
  } cases[] = {
      {"y", 2, 0, NULL},
      {"z", 2, 0,
       "value[\"x\"][1]: replica 0 has the key \"y\", but replica 2 does not. All must have the same keys."},
      {"y", 1, 0,
       "value[\"x\"]: replica 0 has a list of 2, but replica 2 has a list of 1. Only values of the same "
       "structure can be merged."},
      {"y", 2, 1,
       "value is a dictionary, but only a tensor has axes. Reduce the items one by one, or reduce without "
       "axes."},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dist_value *const components[R] = {nest_of(*state, 1, "y", 2), nest_of(*state, 2, "y", 2),
                                       nest_of(*state, 3, cases[i].key, cases[i].n)};
    dist_value *nests = spread_of(*state, components);
    dist_value *result = NULL;
    const dist_status status = dist_reduce(*state, DIST_REDUCE_SUM, nests, &axis, cases[i].num_axes, &result);
    if (cases[i].error != NULL) {
      assert_fails_with(status, DIST_INVALID_ARGUMENT, cases[i].error);
      assert_null(result);
    } else {
      assert_int_equal(status, DIST_OK);
      dist_value *const list = dist_value_get(result, "x");
      assert_tensor(dist_value_item(list, 0), DIST_F32, 1, &six);
      assert_tensor(dist_value_get(dist_value_item(list, 1), "y"), DIST_F64, 1, &sixty);
      dist_value_release(result);
    }
    dist_value_release(nests);
  }
}

static void errors_say_where(void **state) {
  const int64_t two[1] = {2};
  const int64_t wide[2] = {2, 3};
  const int64_t tall[2] = {3, 3};
  const double numbers[9] = {0};
  dist_value *result = NULL;
  dist_value *const shapes[R] = {tensor_of(*state, DIST_F32, 2, wide, numbers),
                                 tensor_of(*state, DIST_F32, 2, wide, numbers),
                                 tensor_of(*state, DIST_F32, 2, tall, numbers)};
  dist_value *uneven = spread_of(*state, shapes);
  assert_fails_with(dist_reduce(*state, DIST_REDUCE_SUM, uneven, NULL, 0, &result), DIST_INVALID_ARGUMENT,
                    "value: replica 0 has f32[2, 3], but replica 2 has f32[3, 3]. Without axes, all replicas "
                    "must have the same dtype and shape.");
  const int32_t axes[] = {1, 0, -2, 2, -3};
  assert_fails_with(dist_reduce(*state, DIST_REDUCE_SUM, uneven, &axes[0], 1, &result), DIST_INVALID_ARGUMENT,
                    "value: replica 0 has f32[2, 3], but replica 2 has f32[3, 3]. Sizes may differ only "
                    "along the axes that "
                    "are reduced.");
  assert_fails_with(dist_reduce(*state, DIST_REDUCE_SUM, uneven, &axes[1], 2, &result), DIST_INVALID_ARGUMENT,
                    "value: axis -2 is given twice");
  assert_fails_with(dist_reduce(*state, DIST_REDUCE_SUM, uneven, &axes[3], 1, &result), DIST_INVALID_ARGUMENT,
                    "value: axis 2 is out of range. With 2 dimensions, it must be -2 to 1.");
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_SUM, uneven, &axes[4], 1, &result), DIST_INVALID_ARGUMENT);
  assert_fails_with(dist_reduce(*state, DIST_REDUCE_SUM, uneven, NULL, 1, &result), DIST_INVALID_ARGUMENT,
                    "dist_reduce(): axes is NULL");
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_MAX, uneven, NULL, 0, &result), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_reduce(*state, 0, uneven, NULL, 0, &result), DIST_INVALID_ARGUMENT);

  dist_value *const dtypes[R] = {tensor_of(*state, DIST_F32, 1, two, numbers),
                                 tensor_of(*state, DIST_I32, 1, two, numbers),
                                 tensor_of(*state, DIST_F32, 1, two, numbers)};
  dist_value *mixed = spread_of(*state, dtypes);
  dist_value *list = NULL;
  dist_value *dict = NULL;
  const char *const key = "loss";
  dist_value *const pair[2] = {uneven, mixed};
  assert_int_equal(dist_value_create_list(*state, &pair[1], 1, &list), DIST_OK);
  assert_int_equal(dist_value_create_dict(*state, &key, &list, 1, &dict), DIST_OK);
  assert_fails_with(
      dist_reduce(*state, DIST_REDUCE_SUM, dict, NULL, 0, &result), DIST_INVALID_ARGUMENT,
      "value[\"loss\"][0]: replica 0 has f32[2], but replica 1 has i32[2]. Without axes, all replicas must "
      "have the same dtype and shape.");
  dist_value *scalar = scalars(*state, DIST_F32, 1, 2, 3);
  assert_fails_with(dist_reduce(*state, DIST_REDUCE_SUM, scalar, &axes[1], 1, &result), DIST_INVALID_ARGUMENT,
                    "value is a scalar, which has no axis 0 to reduce");
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_SUM, NULL, NULL, 0, &result), DIST_INVALID_ARGUMENT);
  assert_null(result);
  dist_value_release(scalar);
  dist_value_release(dict);
  dist_value_release(list);
  dist_value_release(mixed);
  dist_value_release(uneven);
}

static void assert_same_tensor(const dist_value *a, const dist_value *b) {
  dist_tensor one, other;
  assert_int_equal(dist_value_tensor(a, &one), DIST_OK);
  assert_int_equal(dist_value_tensor(b, &other), DIST_OK);
  assert_int_equal(one.ndim, other.ndim);
  assert_memory_equal(one.data, other.data, sizeof(float));
}

static void communication_options_are_checked(void **state) {
  dist_value *spread = scalars(*state, DIST_F32, 1, 2, 3), *result = NULL;
  const double six = 6;
  dist_communication_options options = DIST_COMMUNICATION_OPTIONS_INIT;
  options.bytes_per_pack = 1, options.timeout_ns = 1;
  assert_int_equal(dist_reduce_to(*state, DIST_REDUCE_SUM, spread, NULL, &options, &result), DIST_OK);
  assert_tensor(dist_value_item(result, 1), DIST_F32, 1, &six);
  dist_value_release(result);
  assert_int_equal(dist_batch_reduce_to(*state, DIST_REDUCE_SUM, &spread, NULL, 1, &options, &result),
                   DIST_OK);
  assert_tensor(dist_value_item(result, 2), DIST_F32, 1, &six);
  dist_value_release(result);
  result = NULL;
  options.bytes_per_pack = -1;
  assert_int_equal(dist_reduce_to(*state, DIST_REDUCE_SUM, spread, NULL, &options, &result),
                   DIST_INVALID_ARGUMENT);
  options.bytes_per_pack = 0, options.timeout_ns = -2;
  assert_int_equal(dist_batch_reduce_to(*state, DIST_REDUCE_SUM, &spread, NULL, 1, &options, &result),
                   DIST_INVALID_ARGUMENT);
  assert_null(result);
  dist_value_release(spread);
}

/* As in TensorFlow, they control how values are transferred. Nothing is transferred here, so the bits do not
 * depend on them. */
static void communication_options_change_no_bit(void **state) {
  enum { N = 3 };
  dist_value *spread[N], *plain[N], *given[N];
  for (int k = 0; k < N; k++) spread[k] = scalars(*state, DIST_F32, 1e8 + k, 0.1, -1e8);
  for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_MEAN; op++) {
    assert_int_equal(dist_batch_reduce_to(*state, op, spread, NULL, N, NULL, plain), DIST_OK);
    for (size_t bytes = 0; bytes < 5; bytes += 2) {
      dist_communication_options options = DIST_COMMUNICATION_OPTIONS_INIT;
      options.bytes_per_pack = bytes;
      assert_int_equal(dist_batch_reduce_to(*state, op, spread, NULL, N, &options, given), DIST_OK);
      for (int k = 0; k < N; k++) {
        dist_value *one = NULL;
        assert_int_equal(dist_reduce_to(*state, op, spread[k], NULL, &options, &one), DIST_OK);
        for (size_t r = 0; r < R; r++) {
          assert_same_tensor(dist_value_item(given[k], r), dist_value_item(plain[k], r));
          assert_same_tensor(dist_value_item(one, r), dist_value_item(plain[k], r));
        }
        dist_value_release(one), dist_value_release(given[k]);
      }
    }
    for (int k = 0; k < N; k++) dist_value_release(plain[k]);
  }
  for (int k = 0; k < N; k++) dist_value_release(spread[k]);
}

static void destinations_choose_the_replicas(void **state) {
  dist_value *spread = scalars(*state, DIST_F32, 1, 2, 3);
  const double six = 6;
  float zero = 0;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable *variable = NULL;
  assert_int_equal(dist_variable_create(*state, &initial, NULL, &variable), DIST_OK);
  const dist_destination everywhere[] = {{variable, NULL, NULL}, {NULL, spread, NULL}};
  dist_value *result = NULL;
  for (int d = -1; d < 2; d++) {
    assert_int_equal(
        dist_reduce_to(*state, DIST_REDUCE_SUM, spread, d < 0 ? NULL : &everywhere[d], NULL, &result),
        DIST_OK);
    assert_int_equal(dist_value_kind_of(result), DIST_VALUE_MIRRORED);
    assert_int_equal(dist_value_size(result), R);
    for (size_t r = 0; r < R; r++) assert_tensor(dist_value_item(result, r), DIST_F32, 1, &six);
    dist_value_release(result);
  }
  const dist_destination one = {NULL, NULL, "replica:2"};
  assert_int_equal(dist_reduce_to(*state, DIST_REDUCE_SUM, spread, &one, NULL, &result), DIST_OK);
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_TENSOR);
  assert_tensor(result, DIST_F32, 1, &six);
  dist_value_release(result);
  result = NULL;
  static const char *const devices[] = {"replica:3", "replica:-1", "replica:", "replica:1x"};
  for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
    const dist_destination nowhere = {NULL, NULL, devices[i]};
    assert_int_equal(dist_reduce_to(*state, DIST_REDUCE_SUM, spread, &nowhere, NULL, &result),
                     DIST_NOT_FOUND);
  }
  assert_string_equal(
      dist_last_error(),
      "device \"replica:1x\" does not exist. This strategy has \"replica:0\" to \"replica:2\".");
  const dist_destination two = {variable, spread, NULL};
  assert_fails_with(dist_reduce_to(*state, DIST_REDUCE_SUM, spread, &two, NULL, &result),
                    DIST_INVALID_ARGUMENT,
                    "a destination has 2 fields set. Set exactly one of variable, value and device.");
  const dist_destination silent = {NULL, NULL, NULL};
  assert_fails_with(dist_reduce_to(*state, DIST_REDUCE_SUM, spread, &silent, NULL, &result),
                    DIST_INVALID_ARGUMENT,
                    "a destination has no field set. Set one of variable, value and device, or pass NULL as "
                    "the destination "
                    "for all replicas.");
  assert_null(result);
  /* A tensor that all replicas share is its own mean, and has no sum. */
  const double two_number = 2;
  dist_value *tensor = tensor_of(*state, DIST_F32, 0, NULL, &two_number);
  assert_int_equal(dist_reduce_to(*state, DIST_REDUCE_SUM, tensor, &one, NULL, &result),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_reduce_to(*state, DIST_REDUCE_MEAN, tensor, NULL, NULL, &result), DIST_OK);
  assert_ptr_equal(result, tensor);
  dist_value_release(result);
  dist_value_release(tensor);
  dist_variable_destroy(variable);
  dist_value_release(spread);
}

static void batches_keep_their_order(void **state) {
  enum { N = 100 };
  dist_value *values[N];
  dist_value *results[N] = {NULL};
  dist_destination destinations[N];
  memset(destinations, 0, sizeof destinations);
  for (int k = 0; k < N; k++) {
    values[k] = scalars(*state, numeric[k % NUMERIC], k % 7, 1, 2);
    if (k % 2 == 0) {
      destinations[k].device = "replica:1";
    } else {
      destinations[k].value = values[k];
    }
  }
  assert_int_equal(dist_batch_reduce_to(*state, DIST_REDUCE_SUM, values, destinations, N, NULL, results),
                   DIST_OK);
  for (int k = 0; k < N; k++) {
    const double sum = k % 7 + 3;
    const dist_value *tensor = k % 2 == 0 ? results[k] : dist_value_item(results[k], 2);
    if (numeric[k % NUMERIC] != DIST_COMPLEX64 || sum != 0)
      assert_tensor(tensor, numeric[k % NUMERIC], 1, &sum);
    dist_value_release(results[k]);
    results[k] = NULL;
  }
  assert_int_equal(dist_batch_reduce_to(*state, DIST_REDUCE_SUM, NULL, NULL, 0, NULL, NULL), DIST_OK);
  /* If one value is invalid, nothing is written. */
  dist_value *good = values[40];
  values[40] = scalars(*state, DIST_BOOL, 1, 1, 1);
  assert_int_equal(dist_batch_reduce_to(*state, DIST_REDUCE_SUM, values, NULL, N, NULL, results),
                   DIST_INVALID_ARGUMENT);
  assert_non_null(strstr(dist_last_error(), "values[40]: SUM of bool"));
  for (int k = 0; k < N; k++) assert_null(results[k]);
  dist_value_release(values[40]);
  values[40] = NULL;
  assert_fails_with(dist_batch_reduce_to(*state, DIST_REDUCE_SUM, values, NULL, N, NULL, results),
                    DIST_INVALID_ARGUMENT, "dist_batch_reduce_to(): values[40] is NULL");
  values[40] = good;
  for (int k = 0; k < N; k++) dist_value_release(values[k]);
}

static void local_results_are_the_components(void **state) {
  dist_value *spread = scalars(*state, DIST_F32, 1, 2, 3);
  dist_value *list = NULL;
  assert_int_equal(dist_strategy_local_results(*state, spread, &list), DIST_OK);
  assert_int_equal(dist_value_kind_of(list), DIST_VALUE_TUPLE);
  assert_int_equal(dist_value_size(list), R);
  for (size_t r = 0; r < R; r++) assert_ptr_equal(dist_value_item(list, r), dist_value_item(spread, r));
  /* A single value that is not distributed is returned as it is. */
  dist_value *again = NULL;
  assert_int_equal(dist_strategy_local_results(*state, dist_value_item(list, 1), &again), DIST_OK);
  assert_int_equal(dist_value_size(again), 1);
  assert_ptr_equal(dist_value_item(again, 0), dist_value_item(list, 1));
  dist_value_release(again);
  /* For a nest: the component of each replica. */
  dist_value *items[] = {spread, dist_value_item(list, 2)}, *nest = NULL;
  assert_int_equal(dist_value_create_list(*state, items, 2, &nest), DIST_OK);
  assert_int_equal(dist_strategy_local_results(*state, nest, &again), DIST_OK);
  assert_int_equal(dist_value_size(again), R);
  for (size_t r = 0; r < R; r++) {
    const dist_value *mine = dist_value_item(again, r);
    assert_int_equal(dist_value_kind_of(mine), DIST_VALUE_LIST);
    assert_ptr_equal(dist_value_item(mine, 0), dist_value_item(spread, r));
    assert_ptr_equal(dist_value_item(mine, 1), items[1]);
  }
  dist_value_release(again);
  dist_value_release(nest);
  dist_value_release(list);
  dist_value_release(spread);
}

static dist_status reduce_inside(dist_replica *replica, void *user_data) {
  dist_value *result = NULL;
  return dist_reduce(dist_replica_strategy(replica), DIST_REDUCE_SUM, user_data, NULL, 0, &result);
}

static dist_status reduce_merged(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                 dist_value **out_result, void *user_data) {
  (void)user_data, (void)kwargs;
  return dist_reduce_to(strategy, DIST_REDUCE_SUM, dist_value_item(args, 0), NULL, NULL, out_result);
}

static dist_status reduce_in_merge_call(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                        dist_value **out_result, void *user_data) {
  (void)kwargs, (void)user_data;
  return dist_merge_call(replica, reduce_merged, NULL, args, NULL, NULL, out_result);
}

static void the_context_is_checked(void **state) {
  dist_value *spread = scalars(*state, DIST_F32, 1, 2, 3);
  dist_value *args = NULL;
  dist_value *result = NULL;
  assert_int_equal(dist_run(*state, reduce_inside, spread, NULL), DIST_FAILED_PRECONDITION);
  assert_non_null(strstr(dist_last_error(), "dist_merge_call()"));
  assert_int_equal(dist_value_create_list(*state, &spread, 1, &args), DIST_OK);
  assert_int_equal(dist_run_values(*state, reduce_in_merge_call, NULL, args, NULL, NULL, &result), DIST_OK);
  const double six = 6;
  assert_tensor(result, DIST_F32, 1, &six); /* all share one sum */
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(spread);
}

static void one_replica_reduces_to_itself(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 1;
  dist_strategy *alone = NULL;
  assert_int_equal(dist_strategy_create(&options, &alone), DIST_OK);
  const double two = 2;
  dist_value *tensor = tensor_of(alone, DIST_I32, 0, NULL, &two);
  dist_value *result = NULL;
  for (int op = DIST_REDUCE_SUM; op <= DIST_REDUCE_MEAN; op++) {
    assert_int_equal(dist_reduce(alone, op, tensor, NULL, 0, &result), DIST_OK);
    assert_ptr_equal(result, tensor);
    dist_value_release(result);
    assert_int_equal(dist_reduce_to(alone, op, tensor, NULL, NULL, &result), DIST_OK);
    assert_int_equal(dist_value_kind_of(result), DIST_VALUE_TENSOR);
    dist_value_release(result);
  }
  dist_value_release(tensor);
  assert_int_equal(dist_strategy_destroy(alone), DIST_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_equal_already),
      cmocka_unit_test(nests_reduce_leaf_by_leaf),
      cmocka_unit_test(nests_of_the_replicas_are_alike),
      cmocka_unit_test(errors_say_where),
      cmocka_unit_test(communication_options_are_checked),
      cmocka_unit_test(communication_options_change_no_bit),
      cmocka_unit_test(destinations_choose_the_replicas),
      cmocka_unit_test(batches_keep_their_order),
      cmocka_unit_test(local_results_are_the_components),
      cmocka_unit_test(the_context_is_checked),
      cmocka_unit_test(one_replica_reduces_to_itself),
  };
  return cmocka_run_group_tests_name("reduce_values", tests, make_strategy, end_strategy);
}
