/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables inside replicas: assigned by value, read, created, and used by the wrong run.
 */
#include "variable_support.h"

enum { R = 4 };

typedef struct step {
  dist_variable *variable;
  int32_t how;
  float numbers[R];   /* the number that each replica passes in a separate object */
  dist_value *common; /* or an object that all of them pass */
  dist_status statuses[R];
  float read[R];
  int32_t only; /* the only replica that assigns; -1 = all */
} step;

static dist_status read_own(dist_replica *replica, dist_variable *variable, float *out) {
  dist_value *value = NULL;
  dist_tensor view;
  dist_status status = dist_replica_read(replica, variable, &value);
  if (status == DIST_OK) status = dist_value_tensor(value, &view);
  if (status == DIST_OK) *out = *(const float *)view.data;
  dist_value_release(value);
  return status;
}

static dist_status assign_values(dist_replica *replica, void *user_data) {
  step *s = user_data;
  const int32_t me = dist_replica_id(replica);
  const dist_tensor own = scalar_of(&s->numbers[me]);
  dist_value *value = dist_value_retain(s->common);
  dist_status status = DIST_OK;
  if (value == NULL) status = dist_value_create_tensor(dist_replica_strategy(replica), &own, &value);
  if (status == DIST_OK && (s->only < 0 || s->only == me))
    status = dist_replica_assign_value(replica, s->variable, s->how, value, NULL);
  if (status == DIST_OK) status = read_own(replica, s->variable, &s->read[me]);
  dist_value_release(value);
  return s->statuses[me] = status;
}

static const float given[R] = {1, 2, 3, 10};

/* Returns what assign, assign_add and assign_sub of `given` to 100 leave in copy r. */
static float left_by(int32_t how, int32_t kind, int32_t synchronization, int32_t aggregation, int32_t r) {
  const int own = kind == DIST_STRATEGY_MIRRORED &&
                  (aggregation == DIST_AGGREGATION_NONE || synchronization == DIST_SYNCHRONIZATION_ON_READ);
  const float number = own                                    ? given[r]
                       : aggregation == DIST_AGGREGATION_SUM  ? 16.0f
                       : aggregation == DIST_AGGREGATION_MEAN ? 4.0f
                                                              : given[0];
  return how == DIST_ASSIGN ? number : how == DIST_ASSIGN_ADD ? 100 + number : 100 - number;
}

static void every_way_to_assign(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = strategy_of_kind(kinds[k], R);
    for (int32_t synchronization = DIST_SYNCHRONIZATION_ON_WRITE;
         synchronization <= DIST_SYNCHRONIZATION_ON_READ; synchronization++) {
      for (int32_t aggregation = DIST_AGGREGATION_NONE; aggregation <= DIST_AGGREGATION_ONLY_FIRST_REPLICA;
           aggregation++) {
        for (int32_t how = DIST_ASSIGN; how <= DIST_ASSIGN_SUB; how++) {
          step s = {.how = how, .only = -1};
          memcpy(s.numbers, given, sizeof given);
          s.variable = number_variable(strategy, 100, synchronization, aggregation);
          const dist_status status = dist_run(strategy, assign_values, &s, NULL);
          if (kinds[k] == DIST_STRATEGY_CENTRAL_STORAGE && aggregation == DIST_AGGREGATION_NONE) {
            assert_int_equal(status, DIST_INVALID_ARGUMENT);
            assert_has(dist_last_error(), "one copy for all replicas and aggregation NONE");
          } else {
            assert_int_equal(status, DIST_OK);
            for (int32_t r = 0; r < R; r++)
              assert_true(s.read[r] == left_by(how, kinds[k], synchronization, aggregation, r));
          }
          dist_variable_destroy(s.variable);
        }
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void one_object_for_all_is_no_part_of_a_sum(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = strategy_of_kind(kinds[k], R);
    for (int32_t aggregation = DIST_AGGREGATION_SUM; aggregation <= DIST_AGGREGATION_ONLY_FIRST_REPLICA;
         aggregation++) {
      step s = {.how = DIST_ASSIGN_ADD, .only = -1, .common = number_of(strategy, 7)};
      s.variable = number_variable(strategy, 1, DIST_SYNCHRONIZATION_ON_WRITE, aggregation);
      const int sum = aggregation == DIST_AGGREGATION_SUM;
      assert_int_equal(dist_run(strategy, assign_values, &s, NULL), sum ? DIST_INVALID_ARGUMENT : DIST_OK);
      if (sum) assert_has(dist_last_error(), "passed the same object");
      for (int32_t r = 0; r < R; r++) assert_true(copy_of(s.variable, r) == (sum ? 1 : 8));
      dist_variable_destroy(s.variable);
      dist_value_release(s.common);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
  /* A single replica needs no sum. */
  dist_strategy *alone = strategy_of_kind(DIST_STRATEGY_MIRRORED, 1);
  step s = {.how = DIST_ASSIGN, .only = -1, .common = number_of(alone, 7)};
  s.variable = number_variable(alone, 1, DIST_SYNCHRONIZATION_ON_WRITE, DIST_AGGREGATION_SUM);
  assert_ok(dist_run(alone, assign_values, &s, NULL));
  assert_true(read_of(alone, s.variable) == 7);
  dist_variable_destroy(s.variable);
  dist_value_release(s.common);
  assert_ok(dist_strategy_destroy(alone));
}

static void a_replica_that_does_not_assign_is_reported(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = strategy_of_kind(kinds[k], R);
    step s = {.how = DIST_ASSIGN, .only = 2};
    memcpy(s.numbers, given, sizeof given);
    s.variable = number_variable(strategy, 5, DIST_SYNCHRONIZATION_ON_WRITE, DIST_AGGREGATION_SUM);
    assert_int_not_equal(dist_run(strategy, assign_values, &s, NULL), DIST_OK);
    assert_has(dist_last_error(), "returned early");
    assert_has(dist_last_error(), "(tag \"v\")");
    for (int32_t r = 0; r < R; r++) assert_true(copy_of(s.variable, r) == 5);
    s.only = -1; /* the strategy still works */
    assert_ok(dist_run(strategy, assign_values, &s, NULL));
    for (int32_t r = 0; r < R; r++) assert_true(s.read[r] == 16);
    dist_variable_destroy(s.variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* Each replica passes its own shape; only that of replica 3 is wrong. */
static dist_status assign_shapes(dist_replica *replica, void *user_data) {
  step *s = user_data;
  const int32_t me = dist_replica_id(replica);
  float pair[2] = {1, 2};
  const int64_t two = 2;
  const dist_tensor vector = vector_of(pair, DIST_F32, &two);
  const dist_tensor tensor = me == R - 1 ? vector : scalar_of(pair);
  return s->statuses[me] = dist_replica_assign(replica, s->variable, DIST_ASSIGN, &tensor, NULL);
}

static void a_wrong_shape_ends_the_assignment_for_all(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = strategy_of_kind(kinds[k], R);
    step s = {.variable = number_variable(strategy, 5, 0, DIST_AGGREGATION_MEAN)};
    assert_fails(dist_run(strategy, assign_shapes, &s, NULL), DIST_INVALID_ARGUMENT, "value is f32[2]");
    for (int32_t r = 0; r < R - 1; r++) assert_int_equal(s.statuses[r], DIST_ABORTED);
    for (int32_t r = 0; r < R; r++) assert_true(copy_of(s.variable, r) == 5);
    dist_variable_destroy(s.variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static dist_status assign_integers(dist_replica *replica, void *user_data) {
  int32_t number = dist_replica_id(replica);
  const dist_tensor tensor = {&number, DIST_I32, 0, NULL, NULL};
  return dist_replica_assign(replica, user_data, DIST_ASSIGN, &tensor, NULL);
}

static void central_storage_cannot_hold_the_mean_of_integers(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_CENTRAL_STORAGE, R);
  int32_t number = 9;
  const dist_tensor initial = {&number, DIST_I32, 0, NULL, NULL};
  dist_variable *variable = variable_with(strategy, &initial, 0, DIST_AGGREGATION_MEAN);
  assert_fails(dist_run(strategy, assign_integers, variable, NULL), DIST_INVALID_ARGUMENT,
               "the MEAN of i32 is f64");
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Variables that replicas create ---- */

typedef struct making {
  const char *name;
  dist_variable *made[R];
  dist_status statuses[R];
  int32_t odd; /* the replica that passes something else; -1 = none */
  const char *odd_name;
  int32_t odd_aggregation;
  int32_t aggregation;
  float read[R];
} making;

static dist_status make_and_add(dist_replica *replica, void *user_data) {
  making *m = user_data;
  const int32_t me = dist_replica_id(replica);
  float number = (float)(me + 1);
  const dist_tensor initial = scalar_of(&number);
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = me == m->odd ? m->odd_aggregation : m->aggregation;
  const char *name = me == m->odd && m->odd_name != NULL ? m->odd_name : m->name;
  dist_status status = dist_replica_variable(replica, name, &initial, &options, &m->made[me]);
  if (status == DIST_OK) status = read_own(replica, m->made[me], &m->read[me]);
  if (status == DIST_OK) status = assign_number(replica, m->made[me], DIST_ASSIGN_ADD, 1);
  return m->statuses[me] = status;
}

static void a_later_run_finds_what_replicas_made(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = strategy_of_kind(kinds[k], R);
    making m = {.name = "layer/w", .odd = -1, .aggregation = DIST_AGGREGATION_SUM};
    for (int run = 0; run < 3; run++) {
      assert_ok(dist_run(strategy, make_and_add, &m, NULL));
      for (int32_t r = 0; r < R; r++) {
        assert_ptr_equal(m.made[r], m.made[0]);
        assert_true(m.read[r] ==
                    (float)(1 + R * run)); /* replica 0's initial value, and what was added since */
      }
    }
    assert_string_equal(dist_variable_name(m.made[0]), "layer/w");
    making other = m;
    other.name = "layer/b";
    assert_ok(dist_run(strategy, make_and_add, &other, NULL));
    assert_ptr_not_equal(other.made[0], m.made[0]);
    dist_variable_destroy(m.made[0]); /* the next run creates it again; the strategy owns the other */
    assert_ok(dist_run(strategy, make_and_add, &m, NULL));
    assert_true(m.read[0] == 1);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void replicas_make_the_same_variable_or_none(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, R);
  /* Names that differ only after the length of a tag. */
  const char *const one = "a/name/that/is/far/too/long/to/be/told/apart/by/its/first/part/one";
  const char *const two = "a/name/that/is/far/too/long/to/be/told/apart/by/its/first/part/two";
  making m = {.name = one, .odd = 2, .odd_name = two, .aggregation = DIST_AGGREGATION_SUM};
  m.odd_aggregation = m.aggregation;
  assert_fails(dist_run(strategy, make_and_add, &m, NULL), DIST_INVALID_ARGUMENT, "replica 2 requested");
  m.odd_name = NULL;
  m.odd_aggregation = DIST_AGGREGATION_MEAN;
  assert_fails(dist_run(strategy, make_and_add, &m, NULL), DIST_INVALID_ARGUMENT, "than replica 2 requests");
  m.odd = -1;
  assert_ok(dist_run(strategy, make_and_add, &m, NULL));
  assert_true(m.read[0] == 1); /* the failed calls created nothing */
  m.aggregation = DIST_AGGREGATION_ONLY_FIRST_REPLICA;
  assert_fails(dist_run(strategy, make_and_add, &m, NULL), DIST_INVALID_ARGUMENT, "was created with another");
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Variables of another strategy ---- */

static void strategies_do_not_mix(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, R);
  dist_strategy *alone = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  dist_strategy *another = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  step s = {.how = DIST_ASSIGN_ADD, .only = -1, .numbers = {1, 1, 1, 1}};
  s.variable = number_variable(strategy, 1, 0, 0);
  assert_fails(dist_run(alone, assign_values, &s, NULL), DIST_FAILED_PRECONDITION, "another strategy");
  dist_variable_destroy(s.variable);
  /* A variable of the default strategy can be used by any strategy: one replica may write it, and several may
   * read it. */
  s.variable = number_variable(alone, 1, 0, DIST_AGGREGATION_SUM);
  assert_ok(dist_run(another, assign_values, &s, NULL));
  assert_true(s.read[0] == 2);
  assert_fails(dist_run(strategy, assign_values, &s, NULL), DIST_FAILED_PRECONDITION, "another strategy");
  s.only = R; /* no replica assigns */
  assert_ok(dist_run(strategy, assign_values, &s, NULL));
  for (int32_t r = 0; r < R; r++) assert_true(s.read[r] == 2);
  dist_variable_destroy(s.variable);
  assert_ok(dist_strategy_destroy(another));
  assert_ok(dist_strategy_destroy(alone));
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status read_from_outside(dist_replica *replica, void *user_data) {
  dist_value *value = NULL;
  const dist_status status = dist_variable_read(dist_replica_strategy(replica), user_data, &value);
  dist_value_release(value);
  return status;
}

static void contexts_are_told_apart(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, R);
  dist_variable *variable = number_variable(strategy, 1, 0, 0);
  assert_fails(dist_run(strategy, read_from_outside, variable, NULL), DIST_FAILED_PRECONDITION,
               "dist_variable_read");
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

/* The example of tf.distribute.StrategyExtended: every replica passes 1.0, and the merge function reduces
 * them to the variable's devices and assigns the sum. With central storage, the result is a single 2.0. */
static dist_status assign_first(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                                dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy, (void)kwargs, (void)out_result;
  dist_tensor *copy = place->copy;
  dist_tensor sum;
  (void)user_data;
  const dist_status status = dist_value_tensor(dist_value_item(args, 0), &sum);
  if (status == DIST_OK) *(float *)copy->data = *(const float *)sum.data;
  return status;
}

static dist_status merge_fn(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                            dist_value **out_result, void *user_data) {
  (void)user_data, (void)kwargs;
  dist_variable *variable = dist_value_variable(dist_value_item(args, 1));
  dist_value *value = dist_value_item(args, 0), *reduced = NULL, *update_args = NULL;
  const dist_destination destination = {.variable = variable};
  dist_status status =
      dist_batch_reduce_to(strategy, DIST_REDUCE_SUM, &value, &destination, 1, NULL, &reduced);
  if (status == DIST_OK) status = dist_value_create_list(strategy, &reduced, 1, &update_args);
  if (status == DIST_OK)
    status = dist_update(strategy, variable, assign_first, NULL, update_args, NULL, NULL, NULL);
  if (status == DIST_OK) *out_result = dist_value_retain(dist_value_item(args, 1));
  dist_value_release(update_args);
  dist_value_release(reduced);
  return status;
}

static dist_status step_fn(dist_replica *replica, dist_value *args, dist_value *kwargs,
                           dist_value **out_result, void *user_data) {
  (void)kwargs, (void)user_data;
  dist_strategy *strategy = dist_replica_strategy(replica);
  float one = 1;
  const dist_tensor tensor = scalar_of(&one);
  dist_value *items[2] = {NULL, dist_value_item(args, 0)}, *merged = NULL;
  dist_status status = dist_value_create_tensor(strategy, &tensor, &items[0]);
  if (status == DIST_OK) status = dist_value_create_list(strategy, items, 2, &merged);
  if (status == DIST_OK) status = dist_merge_call(replica, merge_fn, NULL, merged, NULL, NULL, out_result);
  dist_value_release(merged);
  dist_value_release(items[0]);
  return status;
}

static void the_documented_example_gives_what_it_says(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = strategy_of_kind(kinds[k], 2);
    dist_variable *variable = number_variable(strategy, 0, 0, 0);
    dist_value *value = NULL, *args = NULL, *result = NULL, *copies = NULL;
    assert_ok(dist_value_create_variable(variable, &value));
    assert_ok(dist_value_create_list(strategy, &value, 1, &args));
    assert_ok(dist_run_values(strategy, step_fn, NULL, args, NULL, NULL, &result));
    assert_ptr_equal(dist_value_variable(result), variable);
    assert_ok(dist_strategy_local_results(strategy, result, &copies));
    assert_int_equal(dist_value_size(copies), kinds[k] == DIST_STRATEGY_MIRRORED ? 2 : 1);
    for (size_t i = 0; i < dist_value_size(copies); i++) {
      assert_true(number_in(dist_value_item(copies, i)) == 2);
    }
    dist_value_release(copies);
    dist_value_release(result);
    dist_value_release(args);
    dist_value_release(value);
    dist_variable_destroy(variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_way_to_assign),
      cmocka_unit_test(one_object_for_all_is_no_part_of_a_sum),
      cmocka_unit_test(a_replica_that_does_not_assign_is_reported),
      cmocka_unit_test(a_wrong_shape_ends_the_assignment_for_all),
      cmocka_unit_test(central_storage_cannot_hold_the_mean_of_integers),
      cmocka_unit_test(a_later_run_finds_what_replicas_made),
      cmocka_unit_test(replicas_make_the_same_variable_or_none),
      cmocka_unit_test(strategies_do_not_mix),
      cmocka_unit_test(contexts_are_told_apart),
      cmocka_unit_test(the_documented_example_gives_what_it_says),
  };
  return cmocka_run_group_tests_name("replica_variables", tests, NULL, NULL);
}
