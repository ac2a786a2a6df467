/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_variable_check_drift(): which copy of a variable differs from the others, and from which element on.
 */
#include "tests/abi/alloc_support.h"

#include <math.h>

enum { R = 4, ROWS = 300, COLUMNS = 1000, LARGE = ROWS * COLUMNS };

static dist_variable *variable_of(dist_strategy *strategy, dist_dtype dtype, int32_t ndim,
                                  const int64_t *shape, void *data) {
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = "weights";
  const dist_tensor initial = {data, dtype, ndim, shape, NULL};
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(strategy, &initial, &options, &variable));
  return variable;
}

static void *copy_of(dist_variable *variable, int32_t replica) {
  dist_tensor copy;
  assert_ok(dist_variable_component(variable, replica, &copy));
  return copy.data;
}

static void assert_equal_copies(dist_strategy *strategy, dist_variable *variable, int32_t num_copies) {
  dist_drift drift = DIST_DRIFT_INIT;
  assert_ok(dist_variable_check_drift(strategy, variable, &drift));
  assert_ok(dist_variable_check_drift(strategy, variable, NULL));
  assert_int_equal(drift.struct_size, sizeof drift);
  assert_int_equal(drift.num_copies, num_copies);
  assert_int_equal(drift.replica, -1);
  assert_int_equal(drift.expected_replica, -1);
  assert_int_equal(drift.element, -1);
}

static void assert_drift(dist_strategy *strategy, dist_variable *variable, int32_t replica, int32_t expected,
                         int64_t element) {
  dist_drift drift = DIST_DRIFT_INIT;
  assert_int_equal(dist_variable_check_drift(strategy, variable, &drift), DIST_DATA_LOSS);
  report error;
  read_report(&error);
  assert_int_equal(error.replica, replica);
  assert_string_equal(error.tag, "weights");
  assert_int_equal(drift.replica, replica);
  assert_int_equal(drift.expected_replica, expected);
  assert_int_equal(drift.element, element);
  assert_int_equal(drift.num_copies, dist_strategy_num_replicas(strategy));
}

static void the_first_element_and_the_odd_copy_are_named(void **state) {
  float data[2][3] = {{0}};
  const int64_t shape[] = {2, 3};
  dist_variable *variable = variable_of(*state, DIST_F32, 2, shape, data);
  assert_equal_copies(*state, variable, R);
  ((float *)copy_of(variable, 2))[5] = 0.5f;
  assert_drift(*state, variable, 2, 0, 5);
  ((float *)copy_of(variable, 3))[4] = 0.25f;
  assert_drift(*state, variable, 3, 0, 4);
  report error;
  read_report(&error);
  assert_has(
      error.message,
      "variable \"weights\": the copies have drifted apart: element 4 ([1, 1]) is 0.25 on replica 3 but 0 on "
      "replica 0");
  assert_string_equal(error.expected, "0, as on replica 0");
  assert_string_equal(error.received, "0.25");
  assert_has(error.hint, "dist_variable_assign()");
  /* Most copies equal replica 1's. */
  for (int32_t r = 1; r < R; r++) ((float *)copy_of(variable, r))[4] = 7;
  assert_drift(*state, variable, 0, 1, 4);
  /* In a tie, replica 0 counts as correct, and the report names the lowest of the others. */
  ((float *)copy_of(variable, 3))[4] = 0;
  assert_drift(*state, variable, 1, 0, 4);
  float zeros[2][3] = {{0}};
  const dist_tensor zero = {zeros, DIST_F32, 2, shape, NULL};
  dist_value *value = NULL;
  assert_ok(dist_value_create_tensor(*state, &zero, &value));
  assert_ok(dist_variable_assign(*state, variable, DIST_ASSIGN, value)); /* as the hint recommends */
  assert_equal_copies(*state, variable, R);
  dist_value_release(value);
  dist_variable_destroy(variable);
}

static void every_number_of_replicas_and_every_size(void **state) {
  (void)state;
  float *zeros = calloc(LARGE, sizeof *zeros);
  assert_non_null(zeros);
  const int64_t large[] = {ROWS, COLUMNS}, none[] = {0};
  for (int32_t n = 1; n <= 8; n++) {
    dist_strategy *const strategy = strategy_of(n, DIST_THREADS_CALLER);
    dist_variable *const variable = variable_of(strategy, DIST_F32, 2, large, zeros);
    dist_variable *const scalar = variable_of(strategy, DIST_F32, 0, NULL, zeros);
    dist_variable *const empty = variable_of(strategy, DIST_F32, 1, none, NULL);
    assert_equal_copies(strategy, variable, n);
    assert_equal_copies(strategy, scalar, n);
    assert_equal_copies(strategy, empty, n);
    for (int32_t r = 1; r < n; r++) {
      float *const copy = copy_of(variable, r);
      const int64_t places[] = {LARGE - 1, 200000, 16384,
                                16383,     17,     0}; /* each before the one found so far */
      for (size_t i = 0; i < COUNT_OF(places); i++) {
        copy[places[i]] = 1;
        assert_drift(strategy, variable, r, 0, places[i]);
      }
      memset(copy, 0, LARGE * sizeof *copy);
    }
    if (n > 1) {
      *(float *)copy_of(scalar, n - 1) = 3;
      assert_drift(strategy, scalar, n - 1, 0, 0);
      assert_has(dist_last_error(), "element 0 ([]) is 3");
    }
    dist_variable_destroy(empty);
    dist_variable_destroy(scalar);
    dist_variable_destroy(variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
  free(zeros);
}

/* Two equal elements, and two that differ although they print alike. */
static void bits_count_but_for_nans_and_truth(void **state) {
  uint16_t f16[] = {0x7E00, 0xFC01, 0, 0x8000}, bf16[] = {0x7FC0, 0xFF81, 0, 0x8000};
  uint32_t f32[] = {0x7FC00000, 0xFF800001, 0, 0x80000000};
  uint64_t f64[] = {0x7FF8ull << 48, 0xFFF0000000000001ull, 0, 1ull << 63};
  uint32_t complex64[] = {0x7FC00000, 0, 0xFF800001, 0, 0, 0, 0, 0x80000000};
  uint8_t boolean[] = {1, 0x80, 0, 1};
  int8_t i8[] = {5, 5, 5, -5};
  const struct {
    dist_dtype dtype;
    size_t size;
    void *data;
  } rows[] = {{DIST_F16, 2, f16}, {DIST_BF16, 2, bf16},           {DIST_F32, 4, f32},     {DIST_F64, 8, f64},
              {DIST_I8, 1, i8},   {DIST_COMPLEX64, 8, complex64}, {DIST_BOOL, 1, boolean}};
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    const unsigned char *const data = rows[i].data;
    const int64_t one = 1;
    dist_variable *variable = variable_of(*state, rows[i].dtype, 1, &one, rows[i].data);
    memcpy(copy_of(variable, 1), data + rows[i].size, rows[i].size);
    assert_equal_copies(*state, variable, R);
    for (int32_t r = 0; r < R; r++) memcpy(copy_of(variable, r), data + 2 * rows[i].size, rows[i].size);
    memcpy(copy_of(variable, 1), data + 3 * rows[i].size, rows[i].size);
    assert_drift(*state, variable, 1, 0, 0);
    dist_variable_destroy(variable);
  }
}

static void copies_that_need_not_be_equal(void **state) {
  float zero = 0;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  options.aggregation = DIST_AGGREGATION_SUM;
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(*state, &initial, &options, &variable));
  *(float *)copy_of(variable, 1) = 1;
  assert_equal_copies(*state, variable, 0); /* the report states that no copy was compared */
  dist_variable_destroy(variable);

  static const int32_t kinds[] = {DIST_STRATEGY_CENTRAL_STORAGE, DIST_STRATEGY_ONE_DEVICE,
                                  DIST_STRATEGY_DEFAULT};
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    dist_strategy_options of = DIST_STRATEGY_OPTIONS_INIT;
    of.kind = kinds[i];
    of.num_replicas = kinds[i] == DIST_STRATEGY_CENTRAL_STORAGE ? 3 : 1;
    dist_strategy *strategy = strategy_with(of);
    variable = variable_of(strategy, DIST_F32, 0, NULL, &zero);
    assert_equal_copies(strategy, variable, 1);
    dist_variable_destroy(variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static dist_status check_inside(dist_replica *replica, void *user_data) {
  return dist_variable_check_drift(dist_replica_strategy(replica), user_data, NULL);
}

static dist_status check_merged(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  return dist_variable_check_drift(strategy, user_data, NULL);
}

static dist_status merge_and_check(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, check_merged, user_data, NULL, NULL, NULL, NULL);
}

static void arguments_and_contexts_are_checked(void **state) {
  float zero = 0;
  dist_variable *variable = variable_of(*state, DIST_F32, 0, NULL, &zero);
  dist_drift drift = DIST_DRIFT_INIT;
  assert_fails(dist_variable_check_drift(NULL, variable, &drift), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_fails(dist_variable_check_drift(*state, NULL, &drift), DIST_INVALID_ARGUMENT, "variable is NULL");
  drift.struct_size = 8;
  assert_fails(dist_variable_check_drift(*state, variable, &drift), DIST_INVALID_ARGUMENT,
               "dist_drift.struct_size is 8: initialize the struct with DIST_DRIFT_INIT");
  for (int32_t replicas = 2; replicas <= 4; replicas += 2) { /* with other and with as many copies */
    dist_strategy *const other = strategy_of(replicas, DIST_THREADS_CALLER);
    assert_fails(dist_variable_check_drift(other, variable, NULL), DIST_INVALID_ARGUMENT, "another strategy");
    assert_ok(dist_strategy_destroy(other));
  }
  assert_fails(dist_run(*state, check_inside, variable, NULL), DIST_FAILED_PRECONDITION,
               "dist_variable_check_drift");
  assert_ok(dist_run(*state, merge_and_check, variable, NULL));
  *(float *)copy_of(variable, 3) = 1;
  assert_fails(dist_run(*state, merge_and_check, variable, NULL), DIST_DATA_LOSS,
               "is 1 on replica 3 but 0 on replica 0");
  dist_variable_destroy(variable);
}

static dist_status make_and_check(dist_strategy *strategy) {
  static float zeros[LARGE];
  const int64_t large[] = {LARGE};
  const dist_tensor initial = {zeros, DIST_F32, 1, large, NULL};
  dist_variable *variable = NULL;
  dist_status status = dist_variable_create(strategy, &initial, NULL, &variable);
  if (status == DIST_OK) status = dist_variable_check_drift(strategy, variable, NULL);
  dist_variable_destroy(variable);
  return status;
}

static void refused_memory_is_a_status(void **state) {
  (void)state;
  assert_true(refuse_every_request(3, make_and_check) >= 3);
}

static int make_strategy(void **state) {
  *state = strategy_of(R, DIST_THREADS_CALLER);
  return 0;
}

static int end_strategy(void **state) { return dist_strategy_destroy(*state); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_element_and_the_odd_copy_are_named),
      cmocka_unit_test(every_number_of_replicas_and_every_size),
      cmocka_unit_test(bits_count_but_for_nans_and_truth),
      cmocka_unit_test(copies_that_need_not_be_equal),
      cmocka_unit_test(arguments_and_contexts_are_checked),
      cmocka_unit_test(refused_memory_is_a_status),
  };
  return cmocka_run_group_tests_name("drift", tests, make_strategy, end_strategy);
}
