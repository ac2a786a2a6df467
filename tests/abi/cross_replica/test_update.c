/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates with keyword arguments and results, from the cross-replica context and from inside replicas; the
 * contexts in which they run; gathers and broadcasts from the cross-replica context.
 */
#include <dist/tf.h>
#include "reduce_support.h"

#include <math.h>
#include <stdio.h>

static dist_variable *variable_of(dist_strategy *strategy, float number) {
  const dist_tensor initial = {&number, DIST_F32, 0, NULL, NULL};
  dist_variable *variable = NULL;
  assert_int_equal(dist_variable_create(strategy, &initial, NULL, &variable), DIST_OK);
  return variable;
}

static float copy_of(const dist_variable *variable, int32_t replica) {
  dist_tensor copy;
  assert_int_equal(dist_variable_component(variable, replica, &copy), DIST_OK);
  return *(const float *)copy.data;
}

static float number_of(const dist_value *value) {
  dist_tensor tensor;
  return dist_value_tensor(value, &tensor) == DIST_OK ? *(const float *)tensor.data : NAN;
}

typedef struct seen {
  dist_strategy *strategy;
  int calls;
  int32_t replicas[R];
  char devices[R][64];
  int cross, no_replica;
  dist_status fail_with;
} seen;

/* Computes copy += args[0] * kwargs["scale"]. The result is kwargs["scale"], or the number of the call if
 * there is none. */
static dist_status scale_and_add(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                                 dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy;
  seen *self = user_data;
  const int call = self->calls++;
  if (self->fail_with != DIST_OK && call == 1) return self->fail_with;
  self->replicas[call] = place->replica;
  const char *slash = strrchr(place->device, '/');
  snprintf(self->devices[call], sizeof self->devices[call], "%s", slash != NULL ? slash + 1 : "");
  self->cross += dist_in_cross_replica_context();
  self->no_replica += dist_get_replica() == NULL;
  dist_value *scale = dist_value_get(kwargs, "scale");
  const float factor = scale != NULL ? number_of(scale) : 1;
  if (place->copy != NULL) *(float *)place->copy->data += number_of(dist_value_item(args, 0)) * factor;
  if (scale != NULL) {
    *out_result = dist_value_retain(scale);
    return DIST_OK;
  }
  const float number = (float)call;
  const dist_tensor tensor = {(void *)&number, DIST_F32, 0, NULL, NULL};
  return dist_value_create_tensor(self->strategy, &tensor, out_result);
}

static void each_copy_has_its_own_arguments(void **state) {
  dist_variable *variable = variable_of(*state, 1);
  seen self = {.strategy = *state};
  dist_value *spread = scalars(*state, DIST_F32, 10, 20, 30);
  dist_value *args = NULL, *result = NULL;
  assert_int_equal(dist_value_create_tuple(*state, &spread, 1, &args), DIST_OK);
  assert_int_equal(dist_update(*state, variable, scale_and_add, &self, args, NULL, NULL, &result), DIST_OK);
  assert_int_equal(self.calls, R);
  assert_int_equal(self.cross, R);
  assert_int_equal(self.no_replica, R);
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_MIRRORED);
  for (int32_t r = 0; r < R; r++) {
    assert_int_equal(self.replicas[r], r);
    assert_true(copy_of(variable, r) == 1 + 10 * (float)(r + 1));
    assert_true(number_of(dist_value_item(result, (size_t)r)) == (float)r);
  }
  assert_string_equal(self.devices[2], "device:CPU:2");
  assert_int_equal(dist_in_cross_replica_context(), 0); /* unchanged */
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(spread);
  dist_variable_destroy(variable);
}

/* Ungrouped, each leaf is a tuple. It has one item if all calls returned the same object. */
static void results_without_a_group(void **state) {
  dist_variable *variable = variable_of(*state, 0);
  const double two = 2, three = 3;
  dist_value *number = tensor_of(*state, DIST_F32, 0, NULL, &two);
  dist_value *scale = tensor_of(*state, DIST_F32, 0, NULL, &three);
  static const char *const keys[] = {"scale"};
  dist_value *args = NULL, *kwargs = NULL, *result = NULL;
  assert_int_equal(dist_value_create_list(*state, &number, 1, &args), DIST_OK);
  assert_int_equal(dist_value_create_dict(*state, keys, &scale, 1, &kwargs), DIST_OK);
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  options.ungrouped = 1;
  seen self = {.strategy = *state};
  assert_int_equal(dist_update(*state, variable, scale_and_add, &self, args, kwargs, &options, &result),
                   DIST_OK);
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_TUPLE);
  assert_int_equal(dist_value_size(result), 1);
  assert_ptr_equal(dist_value_item(result, 0), scale);
  assert_true(copy_of(variable, 1) == 6);
  dist_value_release(result);
  self.calls = 0;
  assert_int_equal(dist_update(*state, variable, scale_and_add, &self, args, NULL, &options, &result),
                   DIST_OK);
  assert_int_equal(dist_value_size(result), R);
  dist_value_release(result);
  /* Results may be dropped. A value that is not a variable has no copies. */
  self.calls = 0;
  assert_int_equal(dist_update(*state, variable, scale_and_add, &self, args, NULL, NULL, NULL), DIST_OK);
  self.calls = 0;
  assert_int_equal(dist_update_non_slot(*state, scale_and_add, &self, args, kwargs, NULL, &result), DIST_OK);
  assert_int_equal(self.calls, R);
  assert_ptr_equal(result, scale);
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(kwargs);
  dist_value_release(number);
  dist_value_release(scale);
  dist_variable_destroy(variable);
}

static dist_status give_one(dist_replica *replica, dist_value *args, dist_value *kwargs,
                            dist_value **out_result, void *user_data) {
  (void)replica, (void)args, (void)kwargs;
  *out_result = dist_value_retain(user_data);
  return DIST_OK;
}

static dist_status run_and_reduce(dist_strategy *owner, const dist_update_place *place, dist_value *args,
                                  dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)owner;
  (void)place, (void)kwargs;
  dist_strategy *strategy = user_data;
  dist_value *ran = NULL;
  const dist_status status =
      dist_run_values(strategy, give_one, dist_value_item(args, 0), NULL, NULL, NULL, &ran);
  if (status != DIST_OK) return status;
  const dist_status reduced = dist_reduce(strategy, DIST_REDUCE_MEAN, ran, NULL, 0, out_result);
  dist_value_release(ran);
  return reduced;
}

static void an_update_may_run_and_reduce(void **state) {
  dist_variable *variable = variable_of(*state, 0);
  const double two = 2;
  dist_value *number = tensor_of(*state, DIST_F32, 0, NULL, &two);
  dist_value *args = NULL, *result = NULL;
  assert_int_equal(dist_value_create_list(*state, &number, 1, &args), DIST_OK);
  assert_int_equal(dist_update(*state, variable, run_and_reduce, *state, args, NULL, NULL, &result), DIST_OK);
  assert_ptr_equal(result, number);
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(number);
  dist_variable_destroy(variable);
}

typedef struct inside {
  seen self;
  dist_variable *variable;
} inside;

static dist_status update_inside(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                 dist_value **out_result, void *user_data) {
  inside *test = user_data;
  return dist_replica_update(replica, test->variable, scale_and_add, &test->self, args, kwargs, NULL,
                             out_result);
}

static dist_status update_from_inside(dist_replica *replica, void *user_data) {
  inside *test = user_data;
  return dist_update(dist_replica_strategy(replica), test->variable, scale_and_add, &test->self, NULL, NULL,
                     NULL, NULL);
}

static void replicas_update_together(void **state) {
  inside test = {.self = {.strategy = *state}, .variable = variable_of(*state, 0)};
  dist_value *spread = scalars(*state, DIST_F32, 1, 2, 3);
  dist_value *args = NULL, *result = NULL;
  assert_int_equal(dist_value_create_list(*state, &spread, 1, &args), DIST_OK);
  assert_int_equal(dist_run_values(*state, update_inside, &test, args, NULL, NULL, &result), DIST_OK);
  assert_int_equal(test.self.calls, R);
  for (int32_t r = 0; r < R; r++) {
    assert_true(copy_of(test.variable, r) == (float)(r + 1));
    assert_true(number_of(dist_value_item(result, (size_t)r)) == (float)r);
  }
  dist_value_release(result);
  assert_int_equal(dist_run(*state, update_from_inside, &test, NULL), DIST_FAILED_PRECONDITION);
  dist_value_release(args);
  dist_value_release(spread);
  dist_variable_destroy(test.variable);
}

static void central_storage_updates_its_one_copy(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_CENTRAL_STORAGE;
  options.num_replicas = R;
  options.parameter_device = "CPU:7";
  dist_strategy *strategy = NULL;
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_OK);
  dist_variable *variable = variable_of(strategy, 0);
  seen self = {.strategy = strategy};
  dist_value *spread = scalars(strategy, DIST_F32, 5, 6, 7);
  dist_value *args = NULL, *result = NULL;
  assert_int_equal(dist_value_create_list(strategy, &spread, 1, &args), DIST_OK);
  assert_int_equal(dist_update(strategy, variable, scale_and_add, &self, args, NULL, NULL, &result), DIST_OK);
  assert_int_equal(self.calls, 1);
  assert_int_equal(self.replicas[0], -1);
  assert_string_equal(self.devices[0], "device:CPU:7");
  assert_true(copy_of(variable, 2) == 5);
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_TENSOR);
  dist_value_release(result);
  /* The variable is in one place. A value that is not distributed is a single contribution in a batch. */
  const dist_destination at_variable = {variable, NULL, NULL};
  const double sum = 18;
  assert_int_equal(dist_reduce_to(strategy, DIST_REDUCE_SUM, spread, &at_variable, NULL, &result), DIST_OK);
  assert_tensor(result, DIST_F32, 1, &sum);
  char device[64];
  assert_int_equal(dist_destination_device(strategy, &at_variable, device, sizeof device), DIST_OK);
  assert_string_equal(device, "/job:localhost/replica:0/task:0/device:CPU:7");
  dist_value *batch = NULL;
  assert_int_equal(dist_batch_reduce_to(strategy, DIST_REDUCE_SUM, &result, &at_variable, 1, NULL, &batch),
                   DIST_OK);
  assert_ptr_equal(batch, result);
  dist_value_release(batch);
  assert_int_equal(dist_reduce_to(strategy, DIST_REDUCE_SUM, result, &at_variable, NULL, &batch),
                   DIST_INVALID_ARGUMENT);
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(spread);
  dist_variable_destroy(variable);
  assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
}

static void bad_updates(void **state) {
  dist_variable *variable = variable_of(*state, 0);
  dist_variable *foreign = variable_of(dist_get_strategy(), 0);
  seen self = {.strategy = *state, .fail_with = DIST_DATA_LOSS};
  const double two = 2;
  dist_value *tensor = tensor_of(*state, DIST_F32, 0, NULL, &two);
  dist_value *args = NULL, *result = NULL;
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  assert_int_equal(dist_value_create_list(*state, &tensor, 1, &args), DIST_OK);
  assert_int_equal(dist_update(*state, NULL, scale_and_add, &self, args, NULL, NULL, &result),
                   DIST_INVALID_ARGUMENT);
  assert_fails_with(dist_update(*state, variable, NULL, &self, args, NULL, NULL, &result),
                    DIST_INVALID_ARGUMENT, "dist_update(): fn is NULL");
  assert_int_equal(dist_update(*state, variable, scale_and_add, &self, tensor, NULL, NULL, &result),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_update(*state, variable, scale_and_add, &self, args, args, NULL, &result),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_update(*state, foreign, scale_and_add, &self, args, NULL, NULL, &result),
                   DIST_INVALID_ARGUMENT);
  options.ungrouped = 2;
  assert_int_equal(dist_update(*state, variable, scale_and_add, &self, args, NULL, &options, &result),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(self.calls, 0);
  assert_fails_with(
      dist_update(*state, variable, scale_and_add, &self, args, NULL, NULL, &result), DIST_DATA_LOSS,
      "the host's update function returned DATA_LOSS without a reason. Use dist_fail() to report one");
  assert_int_equal(self.calls, 2); /* the first failure ends the update */
  assert_null(result);
  dist_value_release(args);
  dist_value_release(tensor);
  dist_variable_destroy(foreign);
  dist_variable_destroy(variable);
}

static void copies_know_their_variable(void **state) {
  dist_variable *variable = variable_of(*state, 4);
  dist_value *handle = NULL, *copies = NULL;
  assert_int_equal(dist_value_create_variable(variable, &handle), DIST_OK);
  assert_int_equal(dist_strategy_local_results(*state, handle, &copies), DIST_OK);
  assert_int_equal(dist_value_size(copies), R);
  assert_ptr_equal(dist_value_container(dist_value_item(copies, 1)), variable);
  assert_ptr_equal(dist_value_container(handle), variable);
  assert_null(dist_value_container(copies));
  assert_null(dist_value_container(NULL));
  dist_value_release(copies);
  dist_value_release(handle);
  dist_variable_destroy(variable);
}

static void gathers_join_along_an_axis(void **state) {
  static const int64_t shapes[R][2] = {{2, 1}, {2, 2}, {2, 0}};
  static const double numbers[R][4] = {{1, 4}, {2, 3, 5, 6}, {0}};
  static const double joined[] = {1, 2, 3, 4, 5, 6};
  dist_value *items[R];
  for (int r = 0; r < R; r++) items[r] = tensor_of(*state, DIST_BF16, 2, shapes[r], numbers[r]);
  dist_value *spread = spread_of(*state, items);
  dist_value *result = NULL;
  for (int32_t axis = -1; axis <= 1; axis += 2) {
    assert_int_equal(dist_gather(*state, spread, axis, &result), DIST_OK);
    assert_tensor(result, DIST_BF16, 6, joined);
    dist_value_release(result);
  }
  result = NULL;
  assert_fails_with(
      dist_gather(*state, spread, 0, &result), DIST_INVALID_ARGUMENT,
      "value: replica 0 has bf16[2, 1], but replica 1 has bf16[2, 2]. Sizes may differ along axis 0 only.");
  assert_int_equal(dist_gather(*state, spread, 2, &result), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_gather(*state, spread, -3, &result), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_gather(*state, NULL, 0, &result), DIST_INVALID_ARGUMENT);
  dist_value *scalar = scalars(*state, DIST_F32, 1, 2, 3);
  assert_fails_with(dist_gather(*state, scalar, 0, &result), DIST_INVALID_ARGUMENT,
                    "value: axis is 0, but the tensors have 0 dimensions: scalars cannot be joined");
  assert_null(result);
  /* Gathered leaf by leaf. A value that all replicas share stays as it is. */
  dist_value *const pair[] = {spread, items[0]};
  dist_value *list = NULL;
  assert_int_equal(dist_value_create_list(*state, pair, 2, &list), DIST_OK);
  assert_int_equal(dist_gather(*state, list, 1, &result), DIST_OK);
  assert_tensor(dist_value_item(result, 0), DIST_BF16, 6, joined);
  assert_ptr_equal(dist_value_item(result, 1), items[0]);
  dist_value_release(result);
  dist_value_release(list);
  dist_value_release(scalar);
  dist_value_release(spread);
}

static void gathers_join_the_copies_of_a_variable(void **state) {
  const int64_t shape[] = {2};
  const double numbers[] = {1, 2}, joined[] = {1, 2, 1, 2, 1, 2};
  dist_value *tensor = tensor_of(*state, DIST_F32, 1, shape, numbers);
  for (int32_t mode = DIST_SYNCHRONIZATION_ON_WRITE; mode <= DIST_SYNCHRONIZATION_ON_READ; mode++) {
    dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
    options.synchronization = mode;
    options.aggregation = DIST_AGGREGATION_SUM;
    dist_variable *variable = NULL;
    dist_value *value = NULL, *result = NULL;
    dist_tensor initial;
    assert_int_equal(dist_value_tensor(tensor, &initial), DIST_OK);
    assert_int_equal(dist_variable_create(*state, &initial, &options, &variable), DIST_OK);
    assert_int_equal(dist_value_create_variable(variable, &value), DIST_OK);
    assert_int_equal(dist_gather(*state, value, 0, &result), DIST_OK);
    assert_tensor(result, DIST_F32, 6, joined);
    dist_value_release(result);
    dist_value_release(value);
    dist_variable_destroy(variable);
  }
  dist_value_release(tensor);
}

static void gathers_refuse_indexed_slices(void **state) {
  const int64_t shape[] = {1};
  const double zero = 0, one = 1;
  dist_value *index = tensor_of(*state, DIST_I64, 1, shape, &zero);
  dist_value *size = tensor_of(*state, DIST_I64, 1, shape, &one);
  dist_value *const parts[] = {size, index, size};
  dist_value *slices = NULL, *result = NULL;
  assert_int_equal(dist_value_create_composite(*state, DIST_VALUE_INDEXED_SLICES, parts, 3, &slices),
                   DIST_OK);
  assert_int_equal(dist_gather(*state, slices, 0, &result), DIST_UNIMPLEMENTED);
  assert_null(result);
  dist_value_release(slices);
  dist_value_release(size);
  dist_value_release(index);
}

static dist_status gather_inside(dist_replica *replica, void *user_data) {
  dist_value *result = NULL;
  return dist_gather(dist_replica_strategy(replica), user_data, 0, &result);
}

static void broadcasts_and_contexts(void **state) {
  dist_variable *variable = variable_of(*state, 0);
  dist_value *spread = scalars(*state, DIST_F32, 1, 2, 3);
  const double two = 2;
  dist_value *tensor = tensor_of(*state, DIST_F32, 0, NULL, &two);
  const dist_destination at_variable = {variable, NULL, NULL}, at_cpu = {NULL, NULL, "CPU:1"};
  dist_value *result = NULL;
  assert_int_equal(dist_broadcast_to(*state, tensor, &at_variable, &result), DIST_OK);
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_MIRRORED);
  assert_ptr_equal(dist_value_item(result, 2), tensor);
  dist_value_release(result);
  assert_int_equal(dist_broadcast_to(*state, tensor, &at_cpu, &result), DIST_OK);
  assert_ptr_equal(result, tensor);
  dist_value_release(result);
  result = NULL;
  assert_int_equal(dist_broadcast_to(*state, spread, NULL, &result), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_broadcast_to(*state, NULL, NULL, &result), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_run(*state, gather_inside, spread, NULL), DIST_FAILED_PRECONDITION);
  assert_non_null(strstr(dist_last_error(), "dist_gather()"));
  char device[64];
  assert_int_equal(dist_destination_device(*state, &at_variable, device, sizeof device),
                   DIST_INVALID_ARGUMENT);
  const dist_destination second = {NULL, NULL, "replica:1"};
  assert_int_equal(dist_destination_device(*state, &second, device, sizeof device), DIST_OK);
  assert_string_equal(device, "/job:localhost/replica:0/task:0/device:CPU:1");
  assert_null(result);
  dist_value_release(tensor);
  dist_value_release(spread);
  dist_variable_destroy(variable);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_copy_has_its_own_arguments),
      cmocka_unit_test(results_without_a_group),
      cmocka_unit_test(an_update_may_run_and_reduce),
      cmocka_unit_test(replicas_update_together),
      cmocka_unit_test(bad_updates),
      cmocka_unit_test(central_storage_updates_its_one_copy),
      cmocka_unit_test(copies_know_their_variable),
      cmocka_unit_test(gathers_join_along_an_axis),
      cmocka_unit_test(gathers_join_the_copies_of_a_variable),
      cmocka_unit_test(gathers_refuse_indexed_slices),
      cmocka_unit_test(broadcasts_and_contexts),
  };
  return cmocka_run_group_tests_name("update", tests, make_strategy, end_strategy);
}
