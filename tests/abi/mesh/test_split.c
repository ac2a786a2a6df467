/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors split over the logical devices of a replica: they can still be read as a whole, and every device's
 * shard is a view of it.
 */
#include "tests/abi/mesh_support.h"

typedef struct division {
  int64_t shape[4];
  int32_t ndim;
  int64_t parts[4];
} division;

/* Every element of the whole must be in the shard that dist_partition_shard() names, in its place, and in the
 * same memory. */
static dist_status check_shards(const dist_value *sharded, const dist_value *whole) {
  dist_partition partition = DIST_PARTITION_INIT;
  TRY(dist_value_partition(sharded, &partition));
  dist_tensor all, as_tensor;
  TRY(dist_value_tensor(whole, &all));
  TRY(dist_value_tensor(sharded, &as_tensor));
  EXPECT(as_tensor.data == all.data && as_tensor.ndim == all.ndim && as_tensor.dtype == all.dtype);
  EXPECT(dist_value_size(sharded) == (size_t)partition.num_logical_devices);
  for (int32_t d = 0; d < partition.num_logical_devices; d++) {
    int64_t begin[DIST_MAX_NDIM], size[DIST_MAX_NDIM], own_begin[DIST_MAX_NDIM], elements = 0;
    TRY(dist_partition_shard(&partition, d, NULL, begin, size, &elements));
    dist_tensor shard;
    TRY(dist_value_shard(sharded, d, own_begin, &shard));
    int64_t first = 0;
    for (int32_t i = 0; i < all.ndim; i++) {
      EXPECT(own_begin[i] == begin[i] && shard.shape[i] == size[i]);
      first = first * all.shape[i] + begin[i];
    }
    if (elements == 0) continue;
    EXPECT(shard.data == (int64_t *)all.data + first);
    for (int64_t k = 0; k < elements; k++) {
      int64_t rest = k, number = 0, step = 1;
      for (int32_t i = all.ndim - 1; i >= 0; i--) {
        number += (begin[i] + rest % size[i]) * step;
        rest /= size[i];
        step *= all.shape[i];
      }
      EXPECT(element(&shard, k) == number);
    }
  }
  return DIST_OK;
}

static dist_status split_and_look(dist_replica *replica, void *user_data) {
  const division *d = user_data;
  dist_strategy *strategy = dist_replica_strategy(replica);
  dist_value *whole = numbers(strategy, 0, d->shape, d->ndim), *sharded = NULL, *again = NULL;
  TRY(dist_split_to_logical_devices(replica, whole, d->parts, (size_t)d->ndim, NULL, &sharded));
  EXPECT(dist_value_kind_of(sharded) == DIST_VALUE_SHARDED);
  TRY(check_shards(sharded, whole));
  TRY(dist_split_to_logical_devices(replica, sharded, d->parts, (size_t)d->ndim, NULL, &again));
  TRY(check_shards(again, whole));
  dist_value_release(whole); /* shards keep the memory alive */
  dist_tensor tensor;
  TRY(dist_value_tensor(sharded, &tensor));
  dist_value_release(sharded);
  TRY(dist_value_shard(again, 0, NULL, &tensor));
  EXPECT(product_of(tensor.shape, tensor.ndim) == 0 || element(&tensor, 0) == 0);
  dist_value_release(again);
  return DIST_OK;
}

static void a_split_tensor_is_whole_and_in_shards(void **state) {
  (void)state;
  static division divisions[] = {{{4, 4, 8, 3}, 4, {1, 2, 4, 1}},
                                 {{8, 2}, 2, {8, 1}},
                                 {{2, 2, 2}, 3, {2, 2, 2}},
                                 {{0, 8}, 2, {1, 8}},
                                 {{16}, 1, {8}},
                                 {{3, 4, 6}, 3, {1, 4, 2}}};
  dist_strategy *strategy = mesh_of(2, 8);
  assert_int_equal(dist_strategy_num_logical_devices(strategy), 8);
  for (size_t i = 0; i < COUNT_OF(divisions); i++)
    assert_ok(dist_run(strategy, split_and_look, &divisions[i], NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* The three errors that TensorFlow checks for, in its order. */
static dist_status split_wrongly(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int64_t shape[] = {4, 6};
  dist_strategy *strategy = dist_replica_strategy(replica);
  dist_value *whole = numbers(strategy, 0, shape, 2), *out = whole;
  const int64_t longer[] = {1, 4, 1}, indivisible[] = {3, 1}, few[] = {2, 1}, zero[] = {0, 4},
                negative[] = {-2, -2}, huge[] = {INT64_MAX, 2};
#define WRONG(parts, n, words)                                                                             \
  EXPECT_FAILS(dist_split_to_logical_devices(replica, whole, parts, n, NULL, &out), DIST_INVALID_ARGUMENT, \
               words)
  WRONG(longer, 3, "3 partition dimensions");
  WRONG(indivisible, 2, "dimension 0 of the tensor is 4, which is not divisible");
  WRONG(few, 2, "must be the number of logical devices, 4");
  WRONG(zero, 2, "not divisible");
  WRONG(negative, 2, "must be the number of logical devices");
  WRONG(huge, 2, "not divisible");
  WRONG(NULL, 2, "partition_dimensions is NULL");
  WRONG(NULL, 0, "0 partition dimensions");
  dist_split_options uneven = DIST_SPLIT_OPTIONS_INIT;
  uneven.uneven = 1;
  EXPECT_FAILS(dist_split_to_logical_devices(replica, whole, huge, 2, &uneven, &out), DIST_INVALID_ARGUMENT,
               "must be the number of logical devices");
  uneven.uneven = 2;
  EXPECT_FAILS(dist_split_to_logical_devices(replica, whole, few, 2, &uneven, &out), DIST_INVALID_ARGUMENT,
               "uneven is 2");
  EXPECT_FAILS(dist_split_to_logical_devices(replica, NULL, few, 2, NULL, &out), DIST_INVALID_ARGUMENT,
               "value is NULL");
  EXPECT_FAILS(dist_assign_to_logical_device(replica, whole, 4, &out), DIST_INVALID_ARGUMENT,
               "no logical device 4. A replica has 4");
  EXPECT_FAILS(dist_assign_to_logical_device(replica, whole, -1, &out), DIST_INVALID_ARGUMENT,
               "no logical device -1");
  dist_value *text = NULL;
  TRY(dist_value_create_text(strategy, "words", &text));
  EXPECT_FAILS(dist_replicate_to_logical_devices(replica, text, &out), DIST_INVALID_ARGUMENT, "is a text");
  dist_value_release(text);
  EXPECT(out == whole);
  dist_value_release(whole);
  return DIST_OK;
}

static void wrong_divisions_are_refused(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(1, 4);
  assert_ok(dist_run(strategy, split_wrongly, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status split_unevenly(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int64_t shape[] = {5, 3}, parts[] = {4, 1};
  dist_value *whole = numbers(dist_replica_strategy(replica), 0, shape, 2), *sharded = NULL;
  dist_split_options options = DIST_SPLIT_OPTIONS_INIT;
  options.uneven = 1;
  TRY(dist_split_to_logical_devices(replica, whole, parts, 2, &options, &sharded));
  dist_partition partition = DIST_PARTITION_INIT;
  TRY(dist_value_partition(sharded, &partition));
  EXPECT(partition.uneven == 1);
  TRY(check_shards(sharded, whole));
  for (int32_t d = 0; d < 4; d++) {
    dist_tensor shard;
    TRY(dist_value_shard(sharded, d, NULL, &shard));
    EXPECT(shard.shape[0] == (d == 0 ? 2 : 1));
  }
  dist_value_release(whole);
  dist_value_release(sharded);
  return DIST_OK;
}

static void uneven_is_an_option(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 4);
  assert_ok(dist_run(strategy, split_unevenly, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status assign_and_replicate(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int64_t shape[] = {2, 3};
  dist_strategy *strategy = dist_replica_strategy(replica);
  dist_value *whole = numbers(strategy, 0, shape, 2), *scalar = numbers(strategy, 9, NULL, 0);
  dist_value *assigned = NULL, *replicated = NULL;
  dist_partition partition = DIST_PARTITION_INIT;
  dist_tensor tensor;
  TRY(dist_assign_to_logical_device(replica, whole, 1, &assigned));
  TRY(dist_value_partition(assigned, &partition));
  EXPECT(partition.kind == DIST_PARTITION_ASSIGN && partition.logical_device == 1 && partition.ndim == 2);
  TRY(dist_value_shard(assigned, 1, NULL, &tensor));
  EXPECT(product_of(tensor.shape, 2) == 6 && element(&tensor, 5) == 5);
  EXPECT_FAILS(dist_value_shard(assigned, 0, NULL, &tensor), DIST_NOT_FOUND, "assigned to logical device 1");
  EXPECT_FAILS(dist_value_shard(assigned, 3, NULL, &tensor), DIST_INVALID_ARGUMENT, "no logical device 3");
  EXPECT_FAILS(dist_value_shard(whole, 0, NULL, &tensor), DIST_INVALID_ARGUMENT, "not a sharded tensor");
  EXPECT(dist_value_kind_of(dist_value_item(assigned, 0)) == DIST_VALUE_NONE);
  EXPECT(dist_value_item(assigned, 1) == whole && dist_value_item(assigned, 3) == NULL);
  TRY(dist_replicate_to_logical_devices(replica, scalar, &replicated));
  for (int32_t d = 0; d < 3; d++) {
    TRY(dist_value_shard(replicated, d, NULL, &tensor));
    EXPECT(tensor.ndim == 0 && element(&tensor, 0) == 9);
  }
  dist_value_release(whole), dist_value_release(scalar);
  dist_value_release(assigned), dist_value_release(replicated);
  return DIST_OK;
}

static void one_device_or_all_have_a_tensor(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 3);
  assert_ok(dist_run(strategy, assign_and_replicate, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status assign_in_spmd(dist_replica *replica, void *user_data) {
  (void)user_data;
  dist_value *scalar = numbers(dist_replica_strategy(replica), 1, NULL, 0), *out = NULL;
  EXPECT_FAILS(dist_assign_to_logical_device(replica, scalar, 0, &out), DIST_INVALID_ARGUMENT, "SPMD");
  TRY(dist_replicate_to_logical_devices(replica, scalar, &out));
  dist_value_release(out), dist_value_release(scalar);
  return DIST_OK;
}

static void one_program_for_all_assigns_to_none(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  mesh.use_spmd_partitioning = 1;
  dist_strategy *strategy = mesh_with(1, 2, options);
  assert_ok(dist_run(strategy, assign_in_spmd, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* A variable's copy is split without copying it. A nest is split leaf by leaf, ignoring the components of
 * other replicas. */
static dist_status split_nest(dist_replica *replica, void *user_data) {
  dist_value *nest = user_data, *sharded = NULL;
  const int64_t parts[] = {2};
  TRY(dist_split_to_logical_devices(replica, nest, parts, 1, NULL, &sharded));
  EXPECT(dist_value_kind_of(sharded) == DIST_VALUE_LIST && dist_value_size(sharded) == 3);
  const dist_value *of_variable = dist_value_item(sharded, 0), *own = dist_value_item(sharded, 1);
  EXPECT(dist_value_kind_of(of_variable) == DIST_VALUE_SHARDED);
  EXPECT(dist_value_kind_of(dist_value_item(sharded, 2)) == DIST_VALUE_NONE);
  dist_tensor copy, tensor;
  TRY(dist_variable_component(dist_value_variable(dist_value_item(nest, 0)), dist_replica_id(replica),
                              &copy));
  TRY(dist_value_shard(of_variable, 1, NULL, &tensor));
  EXPECT(tensor.data == (int64_t *)copy.data + 2);
  TRY(dist_value_shard(own, 0, NULL, &tensor));
  EXPECT(element(&tensor, 0) == 10 * dist_replica_id(replica));
  dist_value_release(sharded);
  return DIST_OK;
}

static void nests_and_variables_are_split(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 2);
  int64_t initial[] = {1, 2, 3, 4}, four = 4;
  const dist_tensor tensor = vector_of(initial, DIST_I64, &four);
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(strategy, &tensor, NULL, &variable));
  dist_value *items[3], *own[] = {numbers(strategy, 0, &four, 1), numbers(strategy, 10, &four, 1)};
  assert_ok(dist_value_create_variable(variable, &items[0]));
  assert_ok(dist_value_create_per_replica(strategy, own, 2, &items[1]));
  assert_ok(dist_value_create_none(strategy, &items[2]));
  dist_value_release(own[0]), dist_value_release(own[1]);
  dist_value *nest = list_of(strategy, items, 3);
  assert_ok(dist_run(strategy, split_nest, nest, NULL));
  dist_value_release(nest);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

/* A value that contains a sharded tensor can be reduced, read and returned like one with the whole tensor. */
static dist_status give_sharded(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)user_data;
  const int64_t shape[] = {4}, parts[] = {2};
  dist_value *whole = numbers(dist_replica_strategy(replica), dist_replica_id(replica), shape, 1),
             *sharded = NULL;
  TRY(dist_split_to_logical_devices(replica, whole, parts, 1, NULL, &sharded));
  dist_value_release(whole);
  const dist_status status = dist_all_reduce_value(replica, DIST_REDUCE_SUM, sharded, NULL, out_result);
  dist_tensor sum;
  if (status == DIST_OK) TRY(dist_value_tensor(*out_result, &sum));
  if (status == DIST_OK && element(&sum, 3) != 7) return dist_fail(DIST_INTERNAL, "a wrong sum");
  dist_value_release(*out_result);
  *out_result = sharded;
  return status;
}

static void a_sharded_tensor_counts_as_a_tensor(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 2);
  dist_value *result = NULL, *sum = NULL, *results = NULL;
  assert_ok(dist_run_values(strategy, give_sharded, NULL, NULL, NULL, NULL, &result));
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_PER_REPLICA);
  assert_int_equal(dist_value_kind_of(dist_value_item(result, 1)), DIST_VALUE_SHARDED);
  assert_ok(dist_strategy_local_results(strategy, result, &results));
  assert_int_equal(dist_value_size(results), 2);
  assert_ok(dist_reduce(strategy, DIST_REDUCE_SUM, result, NULL, 0, &sum));
  dist_tensor tensor;
  assert_ok(dist_value_tensor(sum, &tensor));
  for (int64_t i = 0; i < 4; i++) assert_int_equal(element(&tensor, i), 2 * i + 1);
  dist_value_release(result), dist_value_release(results), dist_value_release(sum);
  assert_ok(dist_strategy_destroy(strategy));
}

/* Deliberately keeps the handle after its run, as a program might do by mistake. */
static dist_status keep_handle(dist_replica *replica, void *user_data) {
  *(dist_replica **)user_data = replica;
  return DIST_OK;
}
static dist_status split_on_other_strategy(dist_replica *replica, void *user_data) {
  (void)user_data;
  dist_value *scalar = numbers(dist_replica_strategy(replica), 1, NULL, 0), *out = NULL;
  EXPECT_FAILS(dist_replicate_to_logical_devices(replica, scalar, &out), DIST_FAILED_PRECONDITION,
               "DIST_STRATEGY_MESH");
  dist_value_release(scalar);
  return DIST_OK;
}

static void only_inside_a_replica_of_logical_devices(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(1, 2);
  dist_replica *replica = NULL;
  assert_ok(dist_run(strategy, keep_handle, &replica, NULL));
  dist_value *scalar = numbers(strategy, 1, NULL, 0), *out = NULL;
  assert_fails(dist_replicate_to_logical_devices(replica, scalar, &out), DIST_FAILED_PRECONDITION,
               "is not running");
  assert_fails(dist_replicate_to_logical_devices(NULL, scalar, &out), DIST_INVALID_ARGUMENT,
               "replica is NULL");
  dist_value_release(scalar);
  assert_ok(dist_strategy_destroy(strategy));
  strategy = strategy_of(2, DIST_THREADS_CALLER);
  assert_int_equal(dist_strategy_num_logical_devices(strategy), 1);
  assert_ok(dist_run(strategy, split_on_other_strategy, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_split_tensor_is_whole_and_in_shards),
      cmocka_unit_test(wrong_divisions_are_refused),
      cmocka_unit_test(uneven_is_an_option),
      cmocka_unit_test(one_device_or_all_have_a_tensor),
      cmocka_unit_test(one_program_for_all_assigns_to_none),
      cmocka_unit_test(nests_and_variables_are_split),
      cmocka_unit_test(a_sharded_tensor_counts_as_a_tensor),
      cmocka_unit_test(only_inside_a_replica_of_logical_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
