/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of variables that strategies and options produce, and reading and assigning them in the
 * cross-replica context.
 */
#include <dist/tf.h>
#include "variable_support.h"

enum { R = 3 };

static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_ONE_DEVICE, DIST_STRATEGY_DEFAULT,
                                DIST_STRATEGY_CENTRAL_STORAGE};

static dist_strategy *of_kind(int32_t kind) {
  const int one = kind == DIST_STRATEGY_ONE_DEVICE || kind == DIST_STRATEGY_DEFAULT;
  return strategy_of_kind(kind, one ? 1 : R);
}

static void the_strategy_says_what_a_variable_becomes(void **state) {
  (void)state;
  static const char *const classes[] = {"MirroredVariable", "Variable", "Variable", "AggregatingVariable"};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = of_kind(kinds[k]);
    dist_variable *variable = number_variable(strategy, 1, DIST_SYNCHRONIZATION_AUTO, DIST_AGGREGATION_SUM);
    const int mirrored = kinds[k] == DIST_STRATEGY_MIRRORED;
    assert_string_equal(dist_variable_class(variable), classes[k]);
    assert_int_equal(dist_variable_synchronization(variable),
                     mirrored ? DIST_SYNCHRONIZATION_ON_WRITE : DIST_SYNCHRONIZATION_AUTO);
    assert_int_equal(dist_variable_aggregation(variable), DIST_AGGREGATION_SUM);
    assert_int_equal(dist_variable_num_copies(variable), mirrored ? R : 1);
    assert_string_equal(dist_variable_copy_name(variable, 0), "v");
    assert_string_equal(dist_variable_copy_name(variable, 1), mirrored ? "v/replica_1" : "");
    assert_string_equal(dist_variable_copy_name(variable, -1), "");
    dist_variable_destroy(variable);

    variable = number_variable(strategy, 1, DIST_SYNCHRONIZATION_ON_READ, DIST_AGGREGATION_NONE);
    assert_string_equal(dist_variable_class(variable), mirrored ? "SyncOnReadVariable" : classes[k]);
    dist_variable_destroy(variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
  assert_string_equal(dist_variable_class(NULL), "");
  assert_int_equal(dist_variable_synchronization(NULL), 0);
  assert_int_equal(dist_variable_aggregation(NULL), 0);
  assert_int_equal(dist_variable_num_copies(NULL), 0);
}

static void options_are_checked_by_the_strategys_rules(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = of_kind(kinds[k]);
    const dist_status mirrored_only = kinds[k] == DIST_STRATEGY_MIRRORED ? DIST_INVALID_ARGUMENT : DIST_OK;
    int32_t number = 1;
    const dist_tensor integer = {&number, DIST_I32, 0, NULL, NULL};
    const struct {
      dist_variable_options options;
      dist_status status;
    } tried[] = {
        {{.synchronization = DIST_SYNCHRONIZATION_NONE}, mirrored_only},
        {{.aggregation = DIST_AGGREGATION_MEAN}, mirrored_only},
        {{.synchronization = 7}, DIST_INVALID_ARGUMENT},
        {{.synchronization = -1}, DIST_INVALID_ARGUMENT},
        {{.aggregation = 7}, DIST_INVALID_ARGUMENT},
        {{.reserved = 1}, DIST_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < COUNT_OF(tried); i++) {
      dist_variable_options options = tried[i].options;
      options.struct_size = sizeof options;
      dist_variable *variable = NULL;
      assert_int_equal(dist_variable_create(strategy, &integer, &options, &variable), tried[i].status);
      assert_int_equal(variable != NULL, tried[i].status == DIST_OK);
      dist_variable_destroy(variable);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

typedef struct source {
  dist_strategy *strategy;
  int calls;
  dist_status status;
  int gives_list;
} source;

static dist_status count_calls(dist_strategy *strategy, dist_value **out_value, void *user_data) {
  (void)strategy;
  source *self = user_data;
  float number = (float)++self->calls;
  const dist_tensor tensor = scalar_of(&number);
  if (self->status == DIST_DATA_LOSS) return dist_fail(self->status, "no seed");
  if (self->status != DIST_OK) return self->status;
  if (self->gives_list) return dist_value_create_list(self->strategy, NULL, 0, out_value);
  return dist_value_create_tensor(self->strategy, &tensor, out_value);
}

static dist_status give_nothing(dist_strategy *strategy, dist_value **out_value, void *user_data) {
  (void)strategy;
  (void)out_value, (void)user_data;
  return DIST_OK;
}

static void an_initial_function_is_called_once(void **state) {
  (void)state;
  dist_strategy *strategy = of_kind(DIST_STRATEGY_MIRRORED);
  source given = {strategy, 0, DIST_OK, 0};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.initial_fn = count_calls;
  options.initial_user_data = &given;
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(strategy, NULL, &options, &variable));
  assert_int_equal(given.calls, 1);
  for (int32_t r = 0; r < R; r++) assert_true(copy_of(variable, r) == 1);
  dist_variable_destroy(variable);

  variable = NULL;
  float number = 1;
  const dist_tensor initial = scalar_of(&number);
  assert_fails(dist_variable_create(strategy, &initial, &options, &variable), DIST_INVALID_ARGUMENT,
               "both set");
  assert_fails(dist_variable_create(strategy, NULL, NULL, &variable), DIST_INVALID_ARGUMENT,
               "initial and options->initial_fn are both NULL");
  given.status = DIST_DATA_LOSS;
  assert_fails(dist_variable_create(strategy, NULL, &options, &variable), DIST_DATA_LOSS, "no seed");
  given.status = DIST_NOT_FOUND;
  assert_fails(dist_variable_create(strategy, NULL, &options, &variable), DIST_NOT_FOUND, "without a reason");
  given.status = DIST_OK;
  given.gives_list = 1;
  assert_fails(dist_variable_create(strategy, NULL, &options, &variable), DIST_INVALID_ARGUMENT,
               "returned a list");
  options.initial_fn = give_nothing;
  assert_fails(dist_variable_create(strategy, NULL, &options, &variable), DIST_INVALID_ARGUMENT,
               "returned nothing");
  assert_null(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

/* The result of a read if copy r is r + 1, and the copies after an assignment of 6. */
static void sync_on_read_aggregates_reads_and_spreads_writes(void **state) {
  (void)state;
  static const float read[] = {0, 6, 2, 1};
  static const float copies[] = {0, 2, 6, 6};
  const float apart[R] = {1, 2, 3};
  dist_strategy *strategy = of_kind(DIST_STRATEGY_MIRRORED);
  dist_value *spread = spread_of(strategy, apart);
  dist_value *six = number_of(strategy, 6);
  for (int32_t aggregation = DIST_AGGREGATION_NONE; aggregation <= DIST_AGGREGATION_ONLY_FIRST_REPLICA;
       aggregation++) {
    dist_variable *variable = number_variable(strategy, 0, DIST_SYNCHRONIZATION_ON_READ, aggregation);
    for (int32_t r = 0; r < R; r++) {
      dist_tensor copy;
      assert_ok(dist_variable_component(variable, r, &copy));
      *(float *)copy.data = apart[r];
    }
    dist_value *value = NULL;
    assert_fails(dist_variable_assign(strategy, variable, DIST_ASSIGN, spread), DIST_INVALID_ARGUMENT,
                 aggregation == DIST_AGGREGATION_NONE ? "aggregation NONE" : "takes one value");
    if (aggregation == DIST_AGGREGATION_NONE) {
      assert_fails(dist_variable_read(strategy, variable, &value), DIST_INVALID_ARGUMENT, "aggregation NONE");
      assert_fails(dist_variable_assign(strategy, variable, DIST_ASSIGN, six), DIST_INVALID_ARGUMENT,
                   "aggregation NONE");
    } else {
      assert_true(read_of(strategy, variable) == read[aggregation - DIST_AGGREGATION_NONE]);
      assert_ok(dist_variable_assign(strategy, variable, DIST_ASSIGN, six));
      assert_true(read_of(strategy, variable) == 6);
      for (int32_t r = 0; r < R; r++)
        assert_true(copy_of(variable, r) == copies[aggregation - DIST_AGGREGATION_NONE]);
      const dist_status added = dist_variable_assign(strategy, variable, DIST_ASSIGN_ADD, six);
      assert_int_equal(added, aggregation == DIST_AGGREGATION_SUM ? DIST_INVALID_ARGUMENT : DIST_OK);
      assert_true(read_of(strategy, variable) == (aggregation == DIST_AGGREGATION_SUM ? 6.0f : 12.0f));
    }
    dist_variable_destroy(variable);
  }
  dist_value_release(six);
  dist_value_release(spread);
  assert_ok(dist_strategy_destroy(strategy));
}

/* Integers that do not divide evenly are restored exactly, also at the ends of their ranges. */
static void sums_of_integers_lose_nothing(void **state) {
  (void)state;
  dist_strategy *strategy = of_kind(DIST_STRATEGY_MIRRORED);
  const int64_t wholes[] = {5, -5, 0, 1, -1, INT64_MAX, INT64_MIN, 3000000000000000001};
  int64_t zero = 0;
  const dist_tensor initial = {&zero, DIST_I64, 0, NULL, NULL};
  dist_variable *variable =
      variable_with(strategy, &initial, DIST_SYNCHRONIZATION_ON_READ, DIST_AGGREGATION_SUM);
  for (size_t i = 0; i < COUNT_OF(wholes); i++) {
    int64_t whole = wholes[i];
    const dist_tensor tensor = {&whole, DIST_I64, 0, NULL, NULL};
    dist_value *value = NULL, *back = NULL;
    assert_ok(dist_value_create_tensor(strategy, &tensor, &value));
    assert_ok(dist_variable_assign(strategy, variable, DIST_ASSIGN, value));
    assert_ok(dist_variable_read(strategy, variable, &back));
    dist_tensor view;
    assert_ok(dist_value_tensor(back, &view));
    assert_true(*(const int64_t *)view.data == whole);
    dist_value_release(back);
    dist_value_release(value);
  }
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

static void central_storage_has_one_copy(void **state) {
  (void)state;
  const float apart[R] = {4, 5, 6};
  dist_strategy *strategy = of_kind(DIST_STRATEGY_CENTRAL_STORAGE);
  dist_value *spread = spread_of(strategy, apart);
  for (int32_t synchronization = DIST_SYNCHRONIZATION_AUTO; synchronization <= DIST_SYNCHRONIZATION_ON_READ;
       synchronization++) {
    dist_variable *variable = number_variable(strategy, 1, synchronization, DIST_AGGREGATION_SUM);
    dist_tensor first, last;
    assert_ok(dist_variable_component(variable, 0, &first));
    assert_ok(dist_variable_component(variable, R - 1, &last));
    assert_ptr_equal(first.data, last.data);
    assert_ok(dist_variable_assign(strategy, variable, DIST_ASSIGN_ADD, spread)); /* the first component */
    assert_true(read_of(strategy, variable) == 5);
    dist_value *value = NULL, *copies = NULL;
    assert_ok(dist_value_create_variable(variable, &value));
    assert_ok(dist_strategy_local_results(strategy, value, &copies));
    assert_int_equal(dist_value_size(copies), 1);
    dist_value_release(copies);
    dist_value_release(value);
    dist_variable_destroy(variable);
  }
  dist_value_release(spread);
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_variable_knows_who_made_it(void **state) {
  (void)state;
  dist_strategy *strategy = of_kind(DIST_STRATEGY_MIRRORED);
  dist_strategy *other = of_kind(DIST_STRATEGY_MIRRORED);
  dist_variable *variable = number_variable(strategy, 1, 0, 0);
  dist_value *value = NULL, *copies = NULL, *number = number_of(strategy, 1);
  assert_ok(dist_value_create_variable(variable, &value));
  assert_ok(dist_strategy_local_results(strategy, value, &copies));
  int32_t created = -1;
  assert_ok(dist_variable_created_in_scope(strategy, value, &created));
  assert_int_equal(created, 1);
  assert_ok(dist_variable_created_in_scope(strategy, dist_value_item(copies, R - 1), &created));
  assert_int_equal(created, 1);
  assert_ok(dist_variable_created_in_scope(other, value, &created));
  assert_int_equal(created, 0);
  assert_fails(dist_variable_created_in_scope(strategy, number, &created), DIST_INVALID_ARGUMENT, "a tensor");
  assert_int_equal(created, 0);
  /* A different strategy, even with equal options, does not affect it. */
  dist_value *read = NULL;
  assert_fails(dist_variable_read(other, variable, &read), DIST_FAILED_PRECONDITION, "another strategy");
  assert_fails(dist_variable_assign(other, variable, DIST_ASSIGN, number), DIST_FAILED_PRECONDITION,
               "another strategy");
  const char *device = NULL;
  assert_ok(dist_variable_device(strategy, variable, R - 1, &device));
  assert_has(device, "CPU:2");
  assert_int_equal(dist_variable_device(strategy, variable, R, &device), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_variable_device(other, variable, 0, &device), DIST_FAILED_PRECONDITION);
  dist_value_release(number);
  dist_value_release(copies);
  dist_value_release(value);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(other));
  assert_ok(dist_strategy_destroy(strategy));
}

static void colocation_wants_a_scope_and_a_variable(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    if (kinds[k] == DIST_STRATEGY_DEFAULT) continue;
    dist_strategy *strategy = of_kind(kinds[k]);
    dist_variable *variable = number_variable(strategy, 1, 0, 0);
    dist_value *value = NULL, *copies = NULL, *number = number_of(strategy, 1);
    assert_ok(dist_value_create_variable(variable, &value));
    assert_ok(dist_strategy_local_results(strategy, value, &copies));
    assert_fails(dist_colocate_enter(strategy, value), DIST_FAILED_PRECONDITION,
                 "outside the strategy's scope");
    assert_ok(dist_scope_enter(strategy));
    assert_fails(dist_colocate_exit(strategy), DIST_FAILED_PRECONDITION,
                 "is not inside dist_colocate_enter()");
    assert_fails(dist_colocate_enter(strategy, number), DIST_INVALID_ARGUMENT,
                 "not a variable of this strategy");
    const int mirrored = kinds[k] == DIST_STRATEGY_MIRRORED;
    const dist_status of_copy = dist_colocate_enter(strategy, dist_value_item(copies, 0));
    assert_int_equal(of_copy, mirrored ? DIST_INVALID_ARGUMENT : DIST_OK);
    if (!mirrored) assert_ok(dist_colocate_exit(strategy));
    assert_ok(dist_colocate_enter(strategy, value));
    dist_variable *beside = number_variable(strategy, 2, 0, 0);
    assert_string_equal(dist_variable_class(beside), dist_variable_class(variable));
    assert_ok(dist_colocate_exit(strategy));
    assert_ok(dist_scope_exit(strategy));
    dist_variable_destroy(beside);
    dist_value_release(number);
    dist_value_release(copies);
    dist_value_release(value);
    dist_variable_destroy(variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void null_is_an_error(void **state) {
  (void)state;
  dist_strategy *strategy = of_kind(DIST_STRATEGY_MIRRORED);
  dist_variable *variable = number_variable(strategy, 1, 0, 0);
  dist_value *number = number_of(strategy, 1), *out = NULL;
  int32_t created = 0;
  const char *device = NULL;
  const dist_status tried[] = {
      dist_variable_read(NULL, variable, &out),
      dist_variable_read(strategy, NULL, &out),
      dist_variable_read(strategy, variable, NULL),
      dist_variable_scatter(NULL, variable, DIST_SCATTER_ADD, number),
      dist_variable_scatter(strategy, NULL, DIST_SCATTER_ADD, number),
      dist_variable_scatter(strategy, variable, DIST_SCATTER_ADD, NULL),
      dist_variable_created_in_scope(NULL, number, &created),
      dist_variable_created_in_scope(strategy, NULL, &created),
      dist_variable_created_in_scope(strategy, number, NULL),
      dist_variable_device(NULL, variable, 0, &device),
      dist_variable_device(strategy, NULL, 0, &device),
      dist_variable_device(strategy, variable, 0, NULL),
      dist_colocate_enter(NULL, number),
      dist_colocate_enter(strategy, NULL),
      dist_colocate_exit(NULL),
      dist_replica_variable(NULL, "v", NULL, NULL, &variable),
      dist_replica_read(NULL, variable, &out),
      dist_replica_assign_value(NULL, variable, DIST_ASSIGN, number, NULL),
      dist_replica_scatter(NULL, variable, DIST_SCATTER_ADD, number, NULL),
  };
  for (size_t i = 0; i < COUNT_OF(tried); i++) assert_int_equal(tried[i], DIST_INVALID_ARGUMENT);
  assert_null(out);
  dist_value_release(number);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_strategy_says_what_a_variable_becomes),
      cmocka_unit_test(options_are_checked_by_the_strategys_rules),
      cmocka_unit_test(an_initial_function_is_called_once),
      cmocka_unit_test(sync_on_read_aggregates_reads_and_spreads_writes),
      cmocka_unit_test(sums_of_integers_lose_nothing),
      cmocka_unit_test(central_storage_has_one_copy),
      cmocka_unit_test(a_variable_knows_who_made_it),
      cmocka_unit_test(colocation_wants_a_scope_and_a_variable),
      cmocka_unit_test(null_is_an_error),
  };
  return cmocka_run_group_tests_name("variable_kinds", tests, NULL, NULL);
}
