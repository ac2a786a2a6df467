/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_strategy_options.numerics: the numerics of sums whose own options do not set any.
 */
#include "tests/abi/variable/variable_support.h"

enum { R = 5, NUMERICS = 3, WAYS = 3 };

/* Their sum is different in each of the numerics. */
static const float numbers[R] = {1e8f, 1, -1e8f, 1, 1};
static const float sums[NUMERICS] = {2, 3, 1};
static float sum_in(int32_t numerics) { return sums[numerics - DIST_NUMERICS_ORDERED]; }

static dist_strategy *strategy_in(int32_t numerics, int32_t kind) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = R;
  options.kind = kind;
  options.numerics = numerics;
  return strategy_with(options);
}

/* ---- Collectives ---- */

typedef struct adding {
  int32_t numerics; /* of the call's options; -1 = no options */
  int planned;
  float sums[R][WAYS];
} adding;

static dist_status add_all(dist_replica *replica, void *user_data) {
  adding *a = user_data;
  const int32_t me = dist_replica_id(replica);
  float in = numbers[me], momentum = 0;
  float *out = a->sums[me];
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.numerics = a->numerics;
  const dist_collective_options *given = a->numerics < 0 ? NULL : &options;
  dist_tensor from = scalar_of(&in), to = scalar_of(&out[0]);
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &from, &to, 1, given, NULL);
  if (status != DIST_OK) return status;

  dist_work *work = NULL;
  if (given == NULL) options.numerics = DIST_NUMERICS_DEFAULT;
  options.planned = a->planned;
  to = scalar_of(&out[1]);
  status = dist_all_reduce(replica, DIST_REDUCE_SUM, &from, &to, 1, &options, &work);
  if (status == DIST_OK && a->planned) status = dist_work_start(work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  if (status != DIST_OK) return status;

  options.planned = 0;
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = DIST_APPLY_SGD;
  apply.learning_rate = -1;
  out[2] = momentum;
  to = scalar_of(&out[2]);
  return dist_reduce_apply(replica, DIST_REDUCE_SUM, &from, &to, 1, &apply, given, NULL);
}

static void collectives_follow_it(void **state) {
  (void)state;
  for (int32_t of_strategy = DIST_NUMERICS_ORDERED; of_strategy <= DIST_NUMERICS_TREE; of_strategy++) {
    dist_strategy *strategy = strategy_in(of_strategy, DIST_STRATEGY_MIRRORED);
    for (int32_t j = -1; j <= NUMERICS; j++) {
      const int32_t of_call = j < 0 ? -1 : DIST_NUMERICS_DEFAULT + j;
      for (int planned = 0; planned < 2; planned++) {
        adding a = {.numerics = of_call, .planned = planned};
        report error;
        if (run_on(DIST_THREADS_CALLER, strategy, add_all, &a, &error) != DIST_OK)
          fail_msg("%s", error.message);
        const float expected = sum_in(of_call > DIST_NUMERICS_DEFAULT ? of_call : of_strategy);
        for (int r = 0; r < R; r++) {
          for (int way = 0; way < WAYS; way++) {
            if (a.sums[r][way] != expected)
              fail_msg("strategy %d, call %d, way %d: %g, expected %g", (int)of_strategy, (int)of_call, way,
                       (double)a.sums[r][way], (double)expected);
          }
        }
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* Collectives without a sum do not compare numerics: members may pass any if they change no bits. */
static dist_status copy_and_refuse(dist_replica *replica, void *user_data) {
  (void)user_data;
  float number = 1, out = 0;
  const dist_tensor in = scalar_of(&number);
  dist_tensor to = scalar_of(&out);
  dist_status status = dist_broadcast(replica, 0, &in, &to, 1, NULL, NULL);
  if (status == DIST_OK) status = dist_all_reduce(replica, DIST_REDUCE_MAX, &in, &to, 1, NULL, NULL);
  if (status != DIST_OK) return status;
  dist_collective_options tree = DIST_COLLECTIVE_OPTIONS_INIT;
  tree.numerics = DIST_NUMERICS_TREE;
  status = dist_all_reduce(replica, DIST_REDUCE_PROD, &in, &to, 1, &tree, NULL);
  if (status != DIST_OK) return status;
  return dist_all_reduce(replica, DIST_REDUCE_PROD, &in, &to, 1, NULL, NULL);
}

static void it_is_refused_as_if_the_call_had_asked(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_in(DIST_NUMERICS_REPRODUCIBLE, DIST_STRATEGY_MIRRORED);
  assert_fails(dist_run(strategy, copy_and_refuse, NULL, NULL), DIST_UNIMPLEMENTED,
               "numerics REPRODUCIBLE does not support all_reduce PROD f32");
  /* Also in the cross-replica context. */
  float pair[2] = {1, 2};
  const dist_tensor complex = {pair, DIST_COMPLEX64, 0, NULL, NULL};
  dist_value *items[R], *spread = NULL, *sum = NULL;
  for (int r = 0; r < R; r++) assert_ok(dist_value_create_tensor(strategy, &complex, &items[r]));
  assert_ok(dist_value_create_per_replica(strategy, items, R, &spread));
  assert_fails(dist_reduce(strategy, DIST_REDUCE_SUM, spread, NULL, 0, &sum), DIST_UNIMPLEMENTED,
               "REPRODUCIBLE");
  for (int r = 0; r < R; r++) dist_value_release(items[r]);
  dist_value_release(spread);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Reductions in the cross-replica context, and variables ---- */

static float first_of(const dist_value *value) {
  return dist_value_kind_of(value) == DIST_VALUE_TENSOR ? number_in(value)
                                                        : number_in(dist_value_item(value, 0));
}

static void reductions_from_outside_follow_it(void **state) {
  (void)state;
  for (int32_t numerics = DIST_NUMERICS_ORDERED; numerics <= DIST_NUMERICS_TREE; numerics++) {
    dist_strategy *strategy = strategy_in(numerics, DIST_STRATEGY_MIRRORED);
    dist_value *spread = spread_of(strategy, numbers), *result = NULL;
    assert_ok(dist_reduce(strategy, DIST_REDUCE_SUM, spread, NULL, 0, &result));
    assert_true(number_in(result) == sum_in(numerics));
    dist_value_release(result);
    assert_ok(dist_reduce(strategy, DIST_REDUCE_MEAN, spread, NULL, 0, &result));
    assert_true(number_in(result) == sum_in(numerics) / R);
    dist_value_release(result);
    assert_ok(dist_reduce_to(strategy, DIST_REDUCE_SUM, spread, NULL, NULL, &result));
    assert_true(first_of(result) == sum_in(numerics));
    dist_value_release(result);

    /* Each replica is reduced over the axis, and then the replicas are. */
    dist_value *items[R];
    for (int r = 0; r < R; r++) {
      const int64_t one = 1;
      float number = numbers[r];
      const dist_tensor row = {&number, DIST_F32, 1, &one, NULL};
      assert_ok(dist_value_create_tensor(strategy, &row, &items[r]));
    }
    dist_value *rows = NULL;
    const int32_t axis = 0;
    assert_ok(dist_value_create_per_replica(strategy, items, R, &rows));
    assert_ok(dist_reduce(strategy, DIST_REDUCE_SUM, rows, &axis, 1, &result));
    assert_true(number_in(result) == sum_in(numerics));
    dist_value_release(result);
    dist_value_release(rows);
    for (int r = 0; r < R; r++) dist_value_release(items[r]);
    dist_value_release(spread);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

typedef struct assigning {
  dist_variable *variable;
  int32_t numerics;
} assigning;

static dist_status assign_own(dist_replica *replica, void *user_data) {
  const assigning *a = user_data;
  float number = numbers[dist_replica_id(replica)];
  const dist_tensor tensor = scalar_of(&number);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.numerics = a->numerics;
  return dist_replica_assign(replica, a->variable, DIST_ASSIGN, &tensor, &options);
}

static void variables_follow_it(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds) * NUMERICS * (NUMERICS + 1); k++) {
    const int32_t of_strategy = DIST_NUMERICS_ORDERED + (int32_t)(k % NUMERICS);
    const int32_t of_call = DIST_NUMERICS_DEFAULT + (int32_t)(k / NUMERICS % (NUMERICS + 1));
    dist_strategy *strategy = strategy_in(of_strategy, kinds[k / NUMERICS / (NUMERICS + 1)]);
    const float of_write = sum_in(of_call > DIST_NUMERICS_DEFAULT ? of_call : of_strategy);
    /* Reduced when it is written or when it is read. The single copy of central storage is always reduced
     * when it is written. */
    assigning a = {number_variable(strategy, 0, DIST_SYNCHRONIZATION_AUTO, DIST_AGGREGATION_SUM), of_call};
    assert_ok(dist_run(strategy, assign_own, &a, NULL));
    assert_true(copy_of(a.variable, 0) == of_write);
    dist_variable_destroy(a.variable);
    a.variable = number_variable(strategy, 0, DIST_SYNCHRONIZATION_ON_READ, DIST_AGGREGATION_SUM);
    assert_ok(dist_run(strategy, assign_own, &a, NULL));
    const int central = dist_strategy_kind_of(strategy) == DIST_STRATEGY_CENTRAL_STORAGE;
    assert_true(read_of(strategy, a.variable) == (central ? of_write : sum_in(of_strategy)));
    dist_variable_destroy(a.variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* With central storage, one replica assigns for all, so all must pass the same numerics. */
static dist_status assign_in_other_numerics(dist_replica *replica, void *user_data) {
  assigning own = *(const assigning *)user_data;
  if (dist_replica_id(replica) == 3) own.numerics = DIST_NUMERICS_TREE;
  return assign_own(replica, &own);
}

static void members_that_disagree_are_told_so(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = strategy_in(DIST_NUMERICS_ORDERED, kinds[k]);
    assigning a = {number_variable(strategy, 0, DIST_SYNCHRONIZATION_AUTO, DIST_AGGREGATION_SUM), 0};
    assert_int_equal(dist_run(strategy, assign_in_other_numerics, &a, NULL), DIST_INVALID_ARGUMENT);
    a.numerics = 3;
    assert_fails(dist_run(strategy, assign_own, &a, NULL), DIST_INVALID_ARGUMENT, "numerics is 3");
    dist_variable_destroy(a.variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- The option ---- */

static void keep_text(const char *text, size_t size_bytes, void *user_data) {
  char *kept = user_data;
  strncat(kept, text, size_bytes);
}

static void explain_says_it(void **state) {
  (void)state;
  static const char *const words[NUMERICS] = {"numerics: ORDERED unless", "numerics: REPRODUCIBLE unless",
                                              "numerics: TREE unless"};
  for (int32_t numerics = DIST_NUMERICS_ORDERED; numerics <= DIST_NUMERICS_TREE; numerics++) {
    static char text[65536];
    text[0] = '\0';
    dist_strategy *strategy = strategy_in(numerics, DIST_STRATEGY_MIRRORED);
    assert_ok(dist_strategy_explain(strategy, keep_text, text));
    assert_has(text, words[numerics - DIST_NUMERICS_ORDERED]);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void others_are_refused(void **state) {
  (void)state;
  dist_strategy *strategy = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.numerics = DIST_NUMERICS_TREE + 1;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "numerics is 772");
  options.numerics = -1;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "numerics is -1");
  assert_null(strategy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collectives_follow_it),
      cmocka_unit_test(it_is_refused_as_if_the_call_had_asked),
      cmocka_unit_test(reductions_from_outside_follow_it),
      cmocka_unit_test(variables_follow_it),
      cmocka_unit_test(members_that_disagree_are_told_so),
      cmocka_unit_test(explain_says_it),
      cmocka_unit_test(others_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
