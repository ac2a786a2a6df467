/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables, through libdist.so, and dist_update() of cross_replica.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dist/dist.h>

enum { R = 4 };

static int make_strategy(void **state) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = R;
  return (int)dist_strategy_create(&options, (dist_strategy **)state);
}

static int end_strategy(void **state) { return (int)dist_strategy_destroy((dist_strategy *)*state); }

static void assert_fails_with(dist_status is, dist_status code, const char *message) {
  assert_int_equal(is, code);
  assert_string_equal(dist_last_error(), message);
}

static const int64_t pair_shape[1] = {2};

static dist_tensor pair(float *data) {
  const dist_tensor tensor = {data, DIST_F32, 1, pair_shape, NULL};
  return tensor;
}

static dist_variable *variable_of(dist_strategy *strategy, float a, float b, const char *name) {
  float data[2] = {a, b};
  const dist_tensor initial = pair(data);
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = name;
  dist_variable *variable = NULL;
  assert_int_equal(dist_variable_create(strategy, &initial, &options, &variable), DIST_OK);
  return variable;
}

static dist_value *value_of(dist_strategy *strategy, float a, float b) {
  float data[2] = {a, b};
  const dist_tensor tensor = pair(data);
  dist_value *value = NULL;
  assert_int_equal(dist_value_create_tensor(strategy, &tensor, &value), DIST_OK);
  return value;
}

/* Component r is (r, 10 * r). */
static dist_value *spread_of(dist_strategy *strategy) {
  dist_value *items[R];
  for (int r = 0; r < R; r++) items[r] = value_of(strategy, (float)r, (float)(10 * r));
  dist_value *spread = NULL;
  assert_int_equal(dist_value_create_per_replica(strategy, items, R, &spread), DIST_OK);
  for (int r = 0; r < R; r++) dist_value_release(items[r]);
  return spread;
}

static void assert_copy(const dist_variable *variable, int32_t replica, float a, float b) {
  dist_tensor copy;
  assert_int_equal(dist_variable_component(variable, replica, &copy), DIST_OK);
  assert_true(((float *)copy.data)[0] == a);
  assert_true(((float *)copy.data)[1] == b);
}

static void every_replica_has_a_copy(void **state) {
  int64_t shape[2] = {2, 3};
  int64_t strides[2] = {1, 2};
  double data[6] = {0, 3, 1, 4, 2, 5};
  const dist_tensor initial = {data, DIST_F64, 2, shape, strides};
  dist_variable *variable = NULL;
  assert_int_equal(dist_variable_create(*state, &initial, NULL, &variable), DIST_OK);
  assert_string_equal(dist_variable_name(variable), "Variable");
  const double dense[6] = {0, 1, 2, 3, 4, 5};
  void *seen[R];
  for (int32_t r = 0; r < R; r++) {
    dist_tensor copy;
    assert_int_equal(dist_variable_component(variable, r, &copy), DIST_OK);
    assert_int_equal(copy.dtype, DIST_F64);
    assert_int_equal(copy.ndim, 2);
    assert_int_equal(copy.shape[1], 3);
    assert_null(copy.strides);
    assert_int_equal((uintptr_t)copy.data % 64, 0);
    assert_memory_equal(copy.data, dense, sizeof dense);
    for (int32_t other = 0; other < r; other++) assert_ptr_not_equal(copy.data, seen[other]);
    seen[r] = copy.data;
  }
  dist_tensor none;
  assert_fails_with(
      dist_variable_component(variable, R, &none), DIST_INVALID_ARGUMENT,
      "dist_variable_component(): replica_id is 4, but variable \"Variable\" has components 0 to 3");
  assert_int_equal(dist_variable_component(variable, -1, &none), DIST_INVALID_ARGUMENT);
  dist_variable_destroy(variable);
  dist_variable_destroy(NULL);
  assert_string_equal(dist_variable_name(NULL), "");
}

static void options_are_checked(void **state) {
  int32_t number = 1;
  const dist_tensor initial = {&number, DIST_I32, 0, NULL, NULL};
  dist_variable_options options;
  dist_variable_options_init(&options, sizeof options);
  options.name = "steps";
  options.aggregation = DIST_AGGREGATION_MEAN;
  dist_variable *variable = NULL;
  assert_fails_with(
      dist_variable_create(*state, &initial, &options, &variable), DIST_INVALID_ARGUMENT,
      "variable \"steps\": the MEAN of i32 values is not i32. Use a floating-point dtype, or SUM or "
      "ONLY_FIRST_REPLICA.");
  options.aggregation = -1;
  assert_int_equal(dist_variable_create(*state, &initial, &options, &variable), DIST_INVALID_ARGUMENT);
  assert_null(variable);
  options.aggregation = DIST_AGGREGATION_SUM;
  assert_int_equal(dist_variable_create(*state, &initial, &options, &variable), DIST_OK);
  assert_string_equal(dist_variable_name(variable), "steps");
  dist_variable_destroy(variable);
}

static void assignments_go_to_every_copy(void **state) {
  dist_variable *variable = variable_of(*state, 1, 2, "v");
  dist_value *value = value_of(*state, 10, 20);
  dist_value *spread = spread_of(*state);
  assert_int_equal(dist_variable_assign(*state, variable, DIST_ASSIGN, value), DIST_OK);
  for (int32_t r = 0; r < R; r++) assert_copy(variable, r, 10, 20);
  assert_int_equal(dist_variable_assign(*state, variable, DIST_ASSIGN_ADD, spread), DIST_OK);
  for (int32_t r = 0; r < R; r++) assert_copy(variable, r, 10 + (float)r, 20 + 10 * (float)r);
  assert_int_equal(dist_variable_assign(*state, variable, DIST_ASSIGN_SUB, value), DIST_OK);
  for (int32_t r = 0; r < R; r++) assert_copy(variable, r, (float)r, 10 * (float)r);
  dist_value_release(value);
  dist_value_release(spread);
  dist_variable_destroy(variable);
}

static void a_variable_can_be_assigned_from_its_own_memory(void **state) {
  dist_variable *variable = variable_of(*state, 0, 0, "v");
  dist_value *spread = spread_of(*state);
  dist_value *itself = NULL;
  assert_int_equal(dist_variable_assign(*state, variable, DIST_ASSIGN, spread), DIST_OK);
  assert_int_equal(dist_value_create_variable(variable, &itself), DIST_OK);
  assert_int_equal(dist_value_kind_of(itself), DIST_VALUE_VARIABLE);
  assert_ptr_equal(dist_value_variable(itself), variable);
  assert_int_equal(dist_variable_assign(*state, variable, DIST_ASSIGN_ADD, itself), DIST_OK);
  for (int32_t r = 0; r < R; r++) assert_copy(variable, r, 2 * (float)r, 20 * (float)r);
  /* Exchanges the copies. Each must be read before it is overwritten. */
  dist_value *items[R];
  for (int32_t r = 0; r < R; r++) {
    dist_tensor next;
    assert_int_equal(dist_variable_component(variable, (r + 1) % R, &next), DIST_OK);
    assert_int_equal(dist_value_wrap_tensor(*state, &next, NULL, NULL, &items[r]), DIST_OK);
  }
  dist_value *rotated = NULL;
  assert_int_equal(dist_value_create_per_replica(*state, items, R, &rotated), DIST_OK);
  assert_int_equal(dist_variable_assign(*state, variable, DIST_ASSIGN, rotated), DIST_OK);
  for (int32_t r = 0; r < R; r++)
    assert_copy(variable, r, 2 * (float)((r + 1) % R), 20 * (float)((r + 1) % R));
  dist_value_release(rotated);
  for (int r = 0; r < R; r++) dist_value_release(items[r]);
  dist_value_release(itself);
  dist_value_release(spread);
  dist_variable_destroy(variable);
}

static void nothing_is_written_where_something_does_not_fit(void **state) {
  dist_variable *variable = variable_of(*state, 1, 2, "w");
  float data[3] = {7, 8, 9};
  const int64_t three[1] = {3};
  const dist_tensor longer = {data, DIST_F32, 1, three, NULL};
  dist_value *items[R];
  for (int r = 0; r < R - 1; r++) items[r] = value_of(*state, 5, 5);
  assert_int_equal(dist_value_create_tensor(*state, &longer, &items[R - 1]), DIST_OK);
  dist_value *spread = NULL;
  dist_value *list = NULL;
  assert_int_equal(dist_value_create_per_replica(*state, items, R, &spread), DIST_OK);
  assert_int_equal(dist_value_create_list(*state, items, 1, &list), DIST_OK);
  assert_fails_with(
      dist_variable_assign(*state, variable, DIST_ASSIGN, spread), DIST_INVALID_ARGUMENT,
      "variable \"w\" is f32[2], but value is f32[3]. Both must have the same dtype and shape.");
  assert_fails_with(
      dist_variable_assign(*state, variable, DIST_ASSIGN, list), DIST_INVALID_ARGUMENT,
      "value: a list cannot be assigned to variable \"w\". Pass a tensor, or one for each replica.");
  assert_fails_with(dist_variable_assign(*state, variable, 9, items[0]), DIST_INVALID_ARGUMENT,
                    "variable \"w\": how is 9; use DIST_ASSIGN, DIST_ASSIGN_ADD or DIST_ASSIGN_SUB");
  for (int32_t r = 0; r < R; r++) assert_copy(variable, r, 1, 2);
  dist_value_release(list);
  dist_value_release(spread);
  for (int r = 0; r < R; r++) dist_value_release(items[r]);
  dist_variable_destroy(variable);
}

static void another_strategys_variable_is_refused(void **state) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *other = NULL;
  assert_int_equal(dist_strategy_create(&options, &other), DIST_OK);
  dist_variable *variable = variable_of(other, 1, 2, "theirs");
  dist_value *value = value_of(*state, 1, 1);
  assert_fails_with(
      dist_variable_assign(*state, variable, DIST_ASSIGN, value), DIST_FAILED_PRECONDITION,
      "variable \"theirs\" belongs to another strategy. Use it with the strategy that created it.");
  dist_value_release(value);
  assert_int_equal(dist_strategy_destroy(other), DIST_OK);
  assert_copy(variable, 1, 1, 2);
  dist_variable_destroy(variable);
}

static void values_keep_a_variables_memory(void **state) {
  dist_variable *variable = variable_of(*state, 3, 4, "v");
  dist_value *value = NULL;
  dist_value *copies = NULL;
  assert_int_equal(dist_value_create_variable(variable, &value), DIST_OK);
  assert_int_equal(dist_strategy_local_results(*state, value, &copies), DIST_OK);
  dist_value_release(value);
  dist_variable_destroy(variable);
  assert_int_equal(dist_value_size(copies), R);
  dist_tensor copy;
  assert_int_equal(dist_value_tensor(dist_value_item(copies, R - 1), &copy), DIST_OK);
  assert_true(((float *)copy.data)[1] == 4);
  dist_value_release(copies);
}

/* Adds its argument. */
static dist_status add_first(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                             dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy, (void)kwargs, (void)out_result;
  dist_tensor *copy = place->copy;
  dist_tensor change;
  const dist_status status = dist_value_tensor(dist_value_item(args, 0), &change);
  for (int i = 0; status == DIST_OK && i < 2; i++) ((float *)copy->data)[i] += ((float *)change.data)[i];
  (void)user_data;
  return status;
}

static dist_status fail_from_two_on(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                                    dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy, (void)kwargs, (void)out_result;
  dist_tensor *copy = place->copy;
  (void)args, (void)user_data;
  const float number = *(const float *)copy->data;
  return number == 2 ? dist_fail(DIST_DATA_LOSS, "row 2 is torn") : number > 2 ? DIST_NOT_FOUND : DIST_OK;
}

static dist_status fail_without_words(dist_strategy *strategy, const dist_update_place *place,
                                      dist_value *args, dist_value *kwargs, dist_value **out_result,
                                      void *user_data) {
  (void)strategy, (void)kwargs, (void)out_result;
  (void)place, (void)args, (void)user_data;
  return DIST_NOT_FOUND;
}

static void updates_change_each_copy_with_its_own_arguments(void **state) {
  dist_variable *variable = variable_of(*state, 1, 1, "v");
  dist_value *spread = spread_of(*state);
  dist_value *args = NULL;
  assert_int_equal(dist_value_create_list(*state, &spread, 1, &args), DIST_OK);
  assert_int_equal(dist_update(*state, variable, add_first, NULL, args, NULL, NULL, NULL), DIST_OK);
  for (int32_t r = 0; r < R; r++) assert_copy(variable, r, 1 + (float)r, 1 + 10 * (float)r);
  assert_fails_with(dist_update(*state, variable, add_first, NULL, spread, NULL, NULL, NULL),
                    DIST_INVALID_ARGUMENT,
                    "args is a per-replica value, but must be a list or tuple of arguments, or NULL");
  assert_int_equal(dist_update(*state, variable, NULL, NULL, args, NULL, NULL, NULL), DIST_INVALID_ARGUMENT);

  assert_int_equal(dist_variable_assign(*state, variable, DIST_ASSIGN, spread), DIST_OK);
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  for (options.parallel = 0; options.parallel < 2; options.parallel++) {
    assert_fails_with(dist_update(*state, variable, fail_from_two_on, NULL, NULL, NULL, &options, NULL),
                      DIST_DATA_LOSS, "row 2 is torn");
    dist_error_info info = DIST_ERROR_INFO_INIT;
    assert_int_equal(dist_last_error_info(&info), DIST_OK);
    assert_int_equal(info.replica, 2);
  }
  assert_fails_with(dist_update(*state, variable, fail_from_two_on, NULL, NULL, NULL, &options, NULL),
                    DIST_INVALID_ARGUMENT, "dist_update_options.parallel is 2, but must be 0 or 1");
  assert_fails_with(
      dist_update(*state, variable, fail_without_words, NULL, NULL, NULL, NULL, NULL), DIST_NOT_FOUND,
      "the host's update function returned NOT_FOUND without a reason. Use dist_fail() to report one");
  dist_value_release(args);
  dist_value_release(spread);
  dist_variable_destroy(variable);
}

/* Large enough that oneTBB processes the copies in parallel. */
static dist_status fill(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                        dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy, (void)kwargs, (void)out_result;
  dist_tensor *copy = place->copy;
  dist_tensor number;
  const dist_status status = dist_value_tensor(dist_value_item(args, 0), &number);
  const size_t n = *(const size_t *)user_data;
  for (size_t i = 0; status == DIST_OK && i < n; i++) ((float *)copy->data)[i] = *(const float *)number.data;
  return status;
}

static void large_updates_are_shared_out(void **state) {
  enum { N = 1 << 18 };
  const int64_t shape[1] = {N};
  float *data = calloc(N, sizeof *data);
  assert_non_null(data);
  const dist_tensor initial = {data, DIST_F32, 1, shape, NULL};
  dist_variable *variable = NULL;
  assert_int_equal(dist_variable_create(*state, &initial, NULL, &variable), DIST_OK);
  dist_value *spread = spread_of(*state);
  dist_value *args = NULL;
  assert_int_equal(dist_value_create_list(*state, &spread, 1, &args), DIST_OK);
  size_t n = N;
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  options.parallel = 1;
  assert_int_equal(dist_update(*state, variable, fill, &n, args, NULL, &options, NULL), DIST_OK);
  for (int32_t r = 0; r < R; r++) {
    dist_tensor copy;
    assert_int_equal(dist_variable_component(variable, r, &copy), DIST_OK);
    for (int i = 0; i < N; i++) data[i] = (float)r;
    assert_memory_equal(copy.data, data, N * sizeof *data);
  }
  dist_value_release(args);
  dist_value_release(spread);
  dist_variable_destroy(variable);
  free(data);
}

static dist_status assign_inside(dist_replica *replica, void *user_data) {
  dist_value *const value = user_data;
  return dist_variable_assign(dist_replica_strategy(replica), dist_value_variable(value), DIST_ASSIGN_ADD,
                              value);
}

static dist_status update_inside(dist_replica *replica, void *user_data) {
  return dist_update(dist_replica_strategy(replica), user_data, fail_without_words, NULL, NULL, NULL, NULL,
                     NULL);
}

static void only_from_outside_the_replicas(void **state) {
  dist_variable *variable = variable_of(*state, 1, 1, "v");
  dist_value *value = NULL;
  assert_int_equal(dist_value_create_variable(variable, &value), DIST_OK);
  assert_int_equal(dist_run(*state, assign_inside, value, NULL), DIST_FAILED_PRECONDITION);
  dist_value_release(value);
  assert_int_equal(dist_run(*state, update_inside, variable, NULL), DIST_FAILED_PRECONDITION);
  assert_non_null(strstr(dist_last_error(), "dist_update"));
  for (int32_t r = 0; r < R; r++) assert_copy(variable, r, 1, 1);
  dist_variable_destroy(variable);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_replica_has_a_copy),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(assignments_go_to_every_copy),
      cmocka_unit_test(a_variable_can_be_assigned_from_its_own_memory),
      cmocka_unit_test(nothing_is_written_where_something_does_not_fit),
      cmocka_unit_test(another_strategys_variable_is_refused),
      cmocka_unit_test(values_keep_a_variables_memory),
      cmocka_unit_test(updates_change_each_copy_with_its_own_arguments),
      cmocka_unit_test(large_updates_are_shared_out),
      cmocka_unit_test(only_from_outside_the_replicas),
  };
  return cmocka_run_group_tests_name("variable", tests, make_strategy, end_strategy);
}
