/* SPDX-License-Identifier: Apache-2.0
 *
 * Values, through libdist.so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dist/dist.h>

#include "tests/abi/dlpack.h"

enum { R = 3 };

static int make_strategy(void **state) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = R;
  return (int)dist_strategy_create(&options, (dist_strategy **)state);
}

static int end_strategy(void **state) { return (int)dist_strategy_destroy((dist_strategy *)*state); }

static dist_value *scalar(dist_strategy *strategy, float number) {
  const dist_tensor tensor = {&number, DIST_F32, 0, NULL, NULL};
  dist_value *value = NULL;
  assert_int_equal(dist_value_create_tensor(strategy, &tensor, &value), DIST_OK);
  return value;
}

static float number_of(const dist_value *value) {
  dist_tensor tensor;
  assert_int_equal(dist_value_tensor(value, &tensor), DIST_OK);
  return *(float *)tensor.data;
}

static void assert_fails_with(dist_status is, dist_status code, const char *message) {
  assert_int_equal(is, code);
  assert_string_equal(dist_last_error(), message);
}

static void tensors_are_copied(void **state) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {3, 2};
  int64_t strides[2] = {1, 3}; /* the transpose of a [2, 3] */
  const dist_tensor given = {data, DIST_F32, 2, shape, strides};
  dist_value *value = NULL;
  assert_int_equal(dist_value_create_tensor(*state, &given, &value), DIST_OK);
  data[1] = shape[0] = 100;
  dist_tensor tensor;
  assert_int_equal(dist_value_tensor(value, &tensor), DIST_OK);
  const float dense[6] = {0, 3, 1, 4, 2, 5};
  assert_memory_equal(tensor.data, dense, sizeof dense);
  assert_int_equal(tensor.ndim, 2);
  assert_int_equal(tensor.shape[0], 3);
  assert_null(tensor.strides);
  assert_int_equal((uintptr_t)tensor.data % 64, 0);
  assert_int_equal(dist_value_kind_of(value), DIST_VALUE_TENSOR);
  assert_int_equal(dist_value_size(value), 0);
  assert_null(dist_value_item(value, 0));
  dist_value_release(value);
}

static void empty_tensors_and_bad_ones(void **state) {
  int64_t shape[2] = {0, 7};
  dist_tensor tensor = {NULL, DIST_I64, 2, shape, NULL};
  dist_value *value = NULL;
  assert_int_equal(dist_value_create_tensor(*state, &tensor, &value), DIST_OK);
  dist_value_release(value);
  value = NULL;
  shape[0] = 1;
  assert_int_equal(dist_value_create_tensor(*state, &tensor, &value), DIST_INVALID_ARGUMENT); /* no data */
  shape[0] = -1;
  assert_int_equal(dist_value_create_tensor(*state, &tensor, &value), DIST_INVALID_ARGUMENT);
  shape[0] = INT64_MAX / 4;
  assert_int_equal(dist_value_create_tensor(*state, &tensor, &value), DIST_INVALID_ARGUMENT);
  shape[0] = 0;
  tensor.dtype = 99;
  assert_int_equal(dist_value_create_tensor(*state, &tensor, &value), DIST_INVALID_ARGUMENT);
  assert_fails_with(dist_value_create_tensor(*state, NULL, &value), DIST_INVALID_ARGUMENT,
                    "dist_value_create_tensor(): tensor is NULL");
  assert_fails_with(dist_value_create_tensor(NULL, &tensor, &value), DIST_INVALID_ARGUMENT,
                    "dist_value_create_tensor(): strategy is NULL");
  assert_fails_with(dist_value_create_tensor(*state, &tensor, NULL), DIST_INVALID_ARGUMENT,
                    "dist_value_create_tensor(): out_value is NULL");
  assert_null(value);
}

static void sizes_of_tensors(void **state) {
  (void)state;
  /* @every dtype */
  static const size_t sizes[] = {
      [DIST_F16] = 2, [DIST_BF16] = 2, [DIST_F32] = 4,       [DIST_F64] = 8, [DIST_I8] = 1,
      [DIST_U8] = 1,  [DIST_I16] = 2,  [DIST_U16] = 2,       [DIST_I32] = 4, [DIST_U32] = 4,
      [DIST_I64] = 8, [DIST_U64] = 8,  [DIST_COMPLEX64] = 8, [DIST_BOOL] = 1};
  for (int32_t dtype = 0; dtype < (int32_t)(sizeof sizes / sizeof *sizes); dtype++)
    assert_int_equal(dist_dtype_size(dtype), sizes[dtype]);
  assert_int_equal(dist_dtype_size(-1), 0);
  assert_int_equal(dist_dtype_size(INT32_MAX), 0);
  const int64_t some[] = {3, 5}, none[] = {INT64_MAX, 2, 0}, wrong[] = {0, -1}, many[] = {INT64_MAX, 2};
  dist_tensor tensor = {NULL, DIST_F32, 0, NULL, NULL};
  assert_int_equal(dist_tensor_num_elements(&tensor), 1);
  tensor = (dist_tensor){NULL, DIST_F32, 2, some, NULL};
  assert_int_equal(dist_tensor_num_elements(&tensor), 15);
  tensor = (dist_tensor){NULL, DIST_F32, 3, none, NULL};
  assert_int_equal(dist_tensor_num_elements(&tensor), 0);
  tensor = (dist_tensor){NULL, DIST_F32, 2, wrong, NULL};
  assert_int_equal(dist_tensor_num_elements(&tensor), -1);
  tensor.shape = many;
  assert_int_equal(dist_tensor_num_elements(&tensor), -1);
  tensor.shape = NULL;
  assert_int_equal(dist_tensor_num_elements(&tensor), -1);
  tensor.ndim = -1;
  assert_int_equal(dist_tensor_num_elements(&tensor), -1);
  assert_int_equal(dist_tensor_num_elements(NULL), -1);
  assert_int_equal(DIST_VERSION, dist_version());
}

static void count_release(void *user_data) { ++*(int *)user_data; }

static void a_wrapped_tensor_is_released_once(void **state) {
  float data[4] = {1, 2, 3, 4};
  const int64_t shape[1] = {2};
  const int64_t strides[1] = {2};
  dist_tensor tensor = {data, DIST_F32, 1, shape, strides};
  int released = 0;
  dist_value *value = NULL;
  assert_int_equal(dist_value_wrap_tensor(*state, &tensor, count_release, &released, &value), DIST_OK);
  dist_tensor view;
  assert_int_equal(dist_value_tensor(value, &view), DIST_OK);
  assert_ptr_equal(view.data, data);
  assert_int_equal(view.strides[0], 2);
  dist_value *const items[1] = {value};
  dist_value *list = NULL;
  assert_int_equal(dist_value_create_list(*state, items, 1, &list), DIST_OK);
  dist_value_release(value);
  assert_int_equal(released, 0); /* the list keeps it */
  assert_ptr_equal(dist_value_retain(list), list);
  dist_value_release(list);
  assert_int_equal(released, 0);
  dist_value_release(list);
  assert_int_equal(released, 1);
  tensor.dtype = 0;
  assert_int_equal(dist_value_wrap_tensor(*state, &tensor, count_release, &released, &value),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(released, 1);
  tensor.dtype = DIST_F32;
  assert_int_equal(dist_value_wrap_tensor(*state, &tensor, NULL, NULL, &value), DIST_OK);
  dist_value_release(value);
}

static void distributed_values_have_a_component_for_each(void **state) {
  dist_value *items[R];
  for (int r = 0; r < R; r++) items[r] = scalar(*state, (float)r);
  dist_value *spread = NULL;
  dist_value *mirrored = NULL;
  dist_value *nested = NULL;
  assert_int_equal(dist_value_create_per_replica(*state, items, R, &spread), DIST_OK);
  assert_int_equal(dist_value_create_mirrored(*state, items, R, &mirrored), DIST_OK);
  assert_int_equal(dist_value_kind_of(spread), DIST_VALUE_PER_REPLICA);
  assert_int_equal(dist_value_kind_of(mirrored), DIST_VALUE_MIRRORED);
  assert_int_equal(dist_value_size(spread), R);
  for (size_t r = 0; r < R; r++) assert_ptr_equal(dist_value_item(spread, r), items[r]);
  assert_null(dist_value_item(spread, R));
  assert_fails_with(
      dist_value_create_per_replica(*state, items, R - 1, &nested), DIST_INVALID_ARGUMENT,
      "dist_value_create_per_replica(): 2 items for 3 replicas. Pass one item for each replica.");
  dist_value *list = NULL;
  assert_int_equal(dist_value_create_list(*state, &spread, 1, &list), DIST_OK);
  dist_value *const inside[R] = {items[0], list, items[2]};
  assert_int_equal(dist_value_create_mirrored(*state, inside, R, &nested), DIST_INVALID_ARGUMENT);
  assert_non_null(strstr(dist_last_error(), "items[1] of a mirrored value holds distributed values"));
  dist_value *const missing[R] = {items[0], NULL, items[2]};
  assert_fails_with(dist_value_create_per_replica(*state, missing, R, &nested), DIST_INVALID_ARGUMENT,
                    "items[1] of a per-replica value is NULL, but every item must be a value");
  assert_null(nested);
  dist_tensor tensor;
  assert_fails_with(dist_value_tensor(spread, &tensor), DIST_INVALID_ARGUMENT,
                    "dist_value_tensor(): value is a per-replica value of 3, not a tensor. Use "
                    "dist_value_item() to get its items.");
  dist_value_release(list);
  dist_value_release(spread);
  dist_value_release(mirrored);
  for (int r = 0; r < R; r++) dist_value_release(items[r]);
}

static void dictionaries_are_in_order_of_their_bytes(void **state) {
  const char *keys[5] = {"b", "a", "\xc3\xa9", "", "B"};
  const char *sorted[5] = {"", "B", "a", "b", "\xc3\xa9"};
  dist_value *items[5];
  for (int i = 0; i < 5; i++) items[i] = scalar(*state, (float)i);
  dist_value *dict = NULL;
  assert_int_equal(dist_value_create_dict(*state, keys, items, 5, &dict), DIST_OK);
  for (size_t i = 0; i < 5; i++) {
    assert_string_equal(dist_value_key(dict, i), sorted[i]);
    assert_ptr_equal(dist_value_get(dict, keys[i]), items[i]);
    assert_ptr_equal(dist_value_get(dict, dist_value_key(dict, i)), dist_value_item(dict, i));
  }
  assert_null(dist_value_key(dict, 5));
  assert_null(dist_value_get(dict, "c"));
  assert_null(dist_value_get(dict, NULL));
  assert_null(dist_value_key(items[0], 0));
  dist_value *wrong = NULL;
  keys[4] = "a";
  assert_fails_with(dist_value_create_dict(*state, keys, items, 5, &wrong), DIST_INVALID_ARGUMENT,
                    "a dictionary has the key \"a\" twice, but keys must be unique");
  keys[4] = NULL;
  assert_fails_with(dist_value_create_dict(*state, keys, items, 5, &wrong), DIST_INVALID_ARGUMENT,
                    "keys[4] of a dictionary is NULL, but a key must be text");
  assert_fails_with(dist_value_create_dict(*state, NULL, items, 5, &wrong), DIST_INVALID_ARGUMENT,
                    "dist_value_create_dict(): keys is NULL");
  assert_int_equal(dist_value_create_dict(*state, NULL, NULL, 0, &wrong), DIST_OK);
  assert_int_equal(dist_value_size(wrong), 0);
  dist_value_release(wrong);
  dist_value_release(dict);
  for (int i = 0; i < 5; i++) dist_value_release(items[i]);
}

static void nests_are_at_most_sixty_four_deep(void **state) {
  dist_value *nest = scalar(*state, 1);
  for (int depth = 1; depth <= 64; depth++) {
    dist_value *outer = NULL;
    assert_int_equal(dist_value_create_list(*state, &nest, 1, &outer), DIST_OK);
    dist_value_release(nest);
    nest = outer;
  }
  dist_value *deeper = NULL;
  assert_fails_with(
      dist_value_create_list(*state, &nest, 1, &deeper), DIST_INVALID_ARGUMENT,
      "a list is nested 65 levels deep, but lists, tuples and dictionaries can be nested at most 64 levels");
  assert_null(deeper);
  dist_value_release(nest);
}

static void null_is_nothing(void **state) {
  (void)state;
  assert_null(dist_value_retain(NULL));
  dist_value_release(NULL);
  assert_int_equal(dist_value_kind_of(NULL), 0);
  assert_int_equal(dist_value_size(NULL), 0);
  assert_null(dist_value_item(NULL, 0));
  assert_null(dist_value_key(NULL, 0));
  assert_null(dist_value_get(NULL, "a"));
  assert_null(dist_value_variable(NULL));
  dist_tensor tensor;
  assert_int_equal(dist_value_tensor(NULL, &tensor), DIST_INVALID_ARGUMENT);
}

static void values_outlive_their_strategy(void **state) {
  (void)state;
  dist_strategy *strategy = NULL;
  assert_int_equal(dist_strategy_create(NULL, &strategy), DIST_OK);
  dist_value *value = scalar(strategy, 4);
  assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
  assert_true(number_of(value) == 4);
  dist_value_release(value);
}

static void delete_foreign(DLManagedTensor *self) { ++*(int *)self->manager_ctx; }

static void dlpack_shares_memory_both_ways(void **state) {
  double data[7] = {0, 1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {3, 2};
  int64_t strides[2] = {1, 3};
  int deleted = 0;
  DLManagedTensor foreign = {
      {data, {1, 0}, 2, {2, 64, 1}, shape, strides, sizeof(double)}, &deleted, delete_foreign};
  dist_value *value = NULL;
  assert_int_equal(dist_value_from_dlpack(*state, &foreign, &value), DIST_OK);
  dist_tensor view;
  assert_int_equal(dist_value_tensor(value, &view), DIST_OK);
  assert_int_equal(view.dtype, DIST_F64);
  assert_ptr_equal(view.data, data + 1);

  DLManagedTensor *out = NULL;
  assert_int_equal(dist_value_to_dlpack(value, &out), DIST_OK);
  dist_value_release(value);
  assert_int_equal(deleted, 0);
  assert_ptr_equal((char *)out->tensor.data + out->tensor.byte_offset, data + 1);
  assert_int_equal(out->tensor.device.type, 1);
  assert_int_equal(out->tensor.dtype.code, 2);
  assert_int_equal(out->tensor.dtype.bits, 64);
  assert_int_equal(out->tensor.shape[0], 3);
  assert_int_equal(out->tensor.strides[0], 1);
  assert_int_equal(out->tensor.strides[1], 3);
  out->deleter(out);
  assert_int_equal(deleted, 1);

  /* Strides are always returned, even if the value has none. */
  const dist_tensor dense = {data, DIST_F64, 2, shape, NULL};
  assert_int_equal(dist_value_create_tensor(*state, &dense, &value), DIST_OK);
  assert_int_equal(dist_value_to_dlpack(value, &out), DIST_OK);
  assert_int_equal(out->tensor.strides[0], 2);
  assert_int_equal(out->tensor.strides[1], 1);
  dist_value_release(value);
  out->deleter(out);

  foreign.tensor.device.type = 2;
  assert_int_equal(dist_value_from_dlpack(*state, &foreign, &value), DIST_UNIMPLEMENTED);
  foreign.tensor.device.type = 1;
  foreign.tensor.ndim = DIST_MAX_NDIM + 1;
  assert_int_equal(dist_value_from_dlpack(*state, &foreign, &value), DIST_INVALID_ARGUMENT);
  assert_int_equal(deleted, 1); /* the caller still owns it */
}

static void every_dtype_crosses_dlpack(void **state) {
  typedef struct type {
    dist_dtype dtype;
    uint8_t code, bits;
  } type;
  /* @every dtype */
  static const type types[] = {
      {DIST_F16, 2, 16}, {DIST_BF16, 4, 16}, {DIST_F32, 2, 32},       {DIST_F64, 2, 64}, {DIST_I8, 0, 8},
      {DIST_U8, 1, 8},   {DIST_I16, 0, 16},  {DIST_U16, 1, 16},       {DIST_I32, 0, 32}, {DIST_U32, 1, 32},
      {DIST_I64, 0, 64}, {DIST_U64, 1, 64},  {DIST_COMPLEX64, 5, 64}, {DIST_BOOL, 6, 8}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    uint64_t number = 1;
    const dist_tensor tensor = {&number, types[i].dtype, 0, NULL, NULL};
    dist_value *value = NULL;
    dist_value *back = NULL;
    DLManagedTensor *managed = NULL;
    assert_int_equal(dist_value_create_tensor(*state, &tensor, &value), DIST_OK);
    assert_int_equal(dist_value_to_dlpack(value, &managed), DIST_OK);
    assert_int_equal(managed->tensor.dtype.code, types[i].code);
    assert_int_equal(managed->tensor.dtype.bits, types[i].bits);
    assert_int_equal(dist_value_from_dlpack(*state, managed, &back), DIST_OK);
    dist_tensor view;
    assert_int_equal(dist_value_tensor(back, &view), DIST_OK);
    assert_int_equal(view.dtype, types[i].dtype);
    dist_value_release(value);
    dist_value_release(back);
  }
}

/* A run's arguments and result: components in, merged values out. */
static dist_status swap(dist_replica *replica, dist_value *args, dist_value *kwargs, dist_value **out_result,
                        void *user_data) {
  (void)user_data;
  dist_value *const items[2] = {dist_value_get(kwargs, "common"), dist_value_item(args, 0)};
  return dist_value_create_list(dist_replica_strategy(replica), items, 2, out_result);
}

static dist_status differ(dist_replica *replica, dist_value *args, dist_value *kwargs,
                          dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)user_data;
  const int64_t shape[1] = {4};
  float data[4] = {0};
  const dist_tensor tensor = {data, DIST_F32, 1, shape, NULL};
  dist_strategy *strategy = dist_replica_strategy(replica);
  dist_value *items[2] = {NULL, NULL};
  dist_value *leaf = NULL;
  dist_value *list = NULL;
  dist_status status = dist_value_create_tensor(strategy, &tensor, &leaf);
  if (status == DIST_OK && dist_replica_id(replica) == 0) {
    dist_value *const pair[2] = {leaf, leaf};
    status = dist_value_create_list(strategy, pair, 2, &items[1]);
  } else {
    items[1] = dist_value_retain(leaf);
  }
  items[0] = leaf;
  if (status == DIST_OK) status = dist_value_create_list(strategy, items, 2, &list);
  const char *const key = "loss";
  if (status == DIST_OK) status = dist_value_create_dict(strategy, &key, &list, 1, out_result);
  dist_value_release(list);
  dist_value_release(items[1]);
  dist_value_release(leaf);
  return status;
}

static void runs_take_apart_and_merge(void **state) {
  dist_value *items[R];
  for (int r = 0; r < R; r++) items[r] = scalar(*state, (float)r);
  dist_value *spread = NULL;
  dist_value *args = NULL;
  dist_value *kwargs = NULL;
  dist_value *result = NULL;
  assert_int_equal(dist_value_create_per_replica(*state, items, R, &spread), DIST_OK);
  assert_int_equal(dist_value_create_list(*state, &spread, 1, &args), DIST_OK);
  const char *const key = "common";
  assert_int_equal(dist_value_create_dict(*state, &key, &items[0], 1, &kwargs), DIST_OK);
  assert_int_equal(dist_run_values(*state, swap, NULL, args, kwargs, NULL, &result), DIST_OK);
  assert_int_equal(dist_value_size(result), 2);
  assert_ptr_equal(dist_value_item(result, 0), items[0]); /* the same object on all replicas */
  dist_value *merged = dist_value_item(result, 1);
  assert_int_equal(dist_value_kind_of(merged), DIST_VALUE_PER_REPLICA);
  for (size_t r = 0; r < R; r++) assert_ptr_equal(dist_value_item(merged, r), items[r]);
  dist_value_release(result);
  assert_fails_with(
      dist_run_values(*state, differ, NULL, NULL, NULL, NULL, &result), DIST_INVALID_ARGUMENT,
      "result[\"loss\"][1]: replica 0 has a list of 2, but replica 1 has a tensor f32[4]. Only values of "
      "the same structure can be merged.");
  dist_value_release(kwargs);
  dist_value_release(args);
  dist_value_release(spread);
  for (int r = 0; r < R; r++) dist_value_release(items[r]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_are_copied),
      cmocka_unit_test(empty_tensors_and_bad_ones),
      cmocka_unit_test(sizes_of_tensors),
      cmocka_unit_test(a_wrapped_tensor_is_released_once),
      cmocka_unit_test(distributed_values_have_a_component_for_each),
      cmocka_unit_test(dictionaries_are_in_order_of_their_bytes),
      cmocka_unit_test(nests_are_at_most_sixty_four_deep),
      cmocka_unit_test(null_is_nothing),
      cmocka_unit_test(values_outlive_their_strategy),
      cmocka_unit_test(dlpack_shares_memory_both_ways),
      cmocka_unit_test(every_dtype_crosses_dlpack),
      cmocka_unit_test(runs_take_apart_and_merge),
  };
  return cmocka_run_group_tests_name("value", tests, make_strategy, end_strategy);
}
