/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of single rows of variables, from the cross-replica context and from replicas, compared with plain
 * loops.
 */
#include "variable_support.h"

enum { R = 3, ROWS = 5, COLUMNS = 2, MOST_ROWS = 8 };

static const int64_t shape[2] = {ROWS, COLUMNS};

static const char *how_name(int32_t how) {
  static const char *const names[] = {"ADD", "SUB", "UPDATE", "MUL", "DIV", "MIN", "MAX", "BATCH_UPDATE"};
  return names[how - DIST_SCATTER_ADD];
}

static float changed(int32_t how, float old, float by) {
  switch (how) {
    case DIST_SCATTER_ADD: return old + by;
    case DIST_SCATTER_SUB: return old - by;
    case DIST_SCATTER_MUL: return old * by;
    case DIST_SCATTER_DIV: return old / by;
    case DIST_SCATTER_MIN: return by < old ? by : old;
    case DIST_SCATTER_MAX: return by > old ? by : old;
    default: return by;
  }
}

/* A replica's rows. An index may occur twice. */
typedef struct rows {
  int64_t count;
  int64_t indices[MOST_ROWS];
  float values[MOST_ROWS][COLUMNS];
} rows;

static rows rows_of(int32_t r) {
  rows given = {.count = 3, .indices = {r, 4, r}};
  for (int k = 0; k < 3; k++)
    for (int c = 0; c < COLUMNS; c++) given.values[k][c] = (float)(2 + r + 3 * k - 5 * c);
  return given;
}

static void apply(int32_t how, const rows *given, float divisor, float model[ROWS][COLUMNS]) {
  for (int64_t k = 0; k < given->count; k++) {
    for (int c = 0; c < COLUMNS; c++) {
      float *const at = &model[given->indices[k]][c];
      *at = changed(how, *at, given->values[k][c] / divisor);
    }
  }
}

static dist_status slices_of(dist_strategy *strategy, const rows *given, dist_value **out) {
  const int64_t values_shape[2] = {given->count, COLUMNS};
  const dist_tensor values = {(void *)given->values, DIST_F32, 2, values_shape, NULL};
  const dist_tensor indices = {(void *)given->indices, DIST_I64, 1, &given->count, NULL};
  dist_value *parts[3] = {NULL, NULL, NULL};
  dist_status status = dist_value_create_tensor(strategy, &values, &parts[0]);
  if (status == DIST_OK) status = dist_value_create_tensor(strategy, &indices, &parts[1]);
  if (status == DIST_OK) status = dist_value_create_none(strategy, &parts[2]);
  if (status == DIST_OK) {
    status = dist_value_create_composite(strategy, DIST_VALUE_INDEXED_SLICES, parts, 3, out);
  }
  for (int i = 0; i < 3; i++) dist_value_release(parts[i]);
  return status;
}

static void begin(float model[ROWS][COLUMNS]) {
  for (int i = 0; i < ROWS; i++)
    for (int c = 0; c < COLUMNS; c++) model[i][c] = (float)(1 + i - 2 * c);
}

static dist_variable *rows_variable(dist_strategy *strategy, int32_t synchronization, int32_t aggregation) {
  float model[ROWS][COLUMNS];
  begin(model);
  const dist_tensor initial = {model, DIST_F32, 2, shape, NULL};
  return variable_with(strategy, &initial, synchronization, aggregation);
}

static void assert_rows(const dist_variable *variable, int32_t replica, float model[ROWS][COLUMNS],
                        const char *what) {
  dist_tensor copy;
  assert_ok(dist_variable_component(variable, replica, &copy));
  const float *const is = copy.data;
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    if (is[i] != (&model[0][0])[i]) {
      fail_msg("%s: replica %d, element %d is %g, not %g", what, replica, i, (double)is[i],
               (double)(&model[0][0])[i]);
    }
  }
}

typedef struct step {
  dist_variable *variable;
  int32_t how;
  dist_value *common; /* passed by all replicas, instead of one each */
  dist_status statuses[R];
} step;

static dist_status scatter_rows(dist_replica *replica, void *user_data) {
  step *s = user_data;
  const int32_t me = dist_replica_id(replica);
  const rows own = rows_of(me);
  dist_value *slices = dist_value_retain(s->common);
  dist_status status = DIST_OK;
  if (slices == NULL) status = slices_of(dist_replica_strategy(replica), &own, &slices);
  if (status == DIST_OK) status = dist_replica_scatter(replica, s->variable, s->how, slices, NULL);
  dist_value_release(slices);
  return s->statuses[me] = status;
}

/* Whether TensorFlow supports this combination. */
static int offered(int32_t kind, int32_t synchronization, int32_t aggregation, int32_t how) {
  if (kind == DIST_STRATEGY_CENTRAL_STORAGE) return 1;
  if (synchronization == DIST_SYNCHRONIZATION_ON_READ || how == DIST_SCATTER_BATCH_UPDATE) return 0;
  const int picks = how == DIST_SCATTER_UPDATE || how == DIST_SCATTER_MIN || how == DIST_SCATTER_MAX;
  return !picks || aggregation == DIST_AGGREGATION_NONE || aggregation == DIST_AGGREGATION_ONLY_FIRST_REPLICA;
}

/* Computes what replica r's copy contains after all have scattered. */
static void expect(int32_t kind, int32_t aggregation, int32_t how, int32_t r, float model[ROWS][COLUMNS]) {
  const int central = kind == DIST_STRATEGY_CENTRAL_STORAGE;
  begin(model);
  for (int32_t p = 0; p < R; p++) {
    const rows given = rows_of(p);
    const int counts = central || aggregation == DIST_AGGREGATION_SUM ||
                       aggregation == DIST_AGGREGATION_MEAN ||
                       p == (aggregation == DIST_AGGREGATION_NONE ? r : 0);
    if (counts) apply(how, &given, !central && aggregation == DIST_AGGREGATION_MEAN ? R : 1, model);
  }
}

static void inside_replicas_by_aggregation(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = strategy_of_kind(kinds[k], R);
    for (int32_t aggregation = DIST_AGGREGATION_NONE; aggregation <= DIST_AGGREGATION_ONLY_FIRST_REPLICA;
         aggregation++) {
      for (int32_t how = DIST_SCATTER_ADD; how <= DIST_SCATTER_BATCH_UPDATE; how++) {
        for (int32_t synchronization = DIST_SYNCHRONIZATION_ON_WRITE;
             synchronization <= DIST_SYNCHRONIZATION_ON_READ; synchronization++) {
          step s = {.how = how, .variable = rows_variable(strategy, synchronization, aggregation)};
          const int there = offered(kinds[k], synchronization, aggregation, how);
          assert_int_equal(dist_run(strategy, scatter_rows, &s, NULL), there ? DIST_OK : DIST_UNIMPLEMENTED);
          for (int32_t r = 0; r < R; r++) {
            float model[ROWS][COLUMNS];
            begin(model);
            if (there) expect(kinds[k], aggregation, how, r, model);
            assert_rows(s.variable, r, model, how_name(how));
          }
          dist_variable_destroy(s.variable);
        }
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void one_object_for_all_replicas(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_CENTRAL_STORAGE};
  const rows given = rows_of(1);
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    dist_strategy *strategy = strategy_of_kind(kinds[k], R);
    const int central = kinds[k] == DIST_STRATEGY_CENTRAL_STORAGE;
    for (int32_t aggregation = DIST_AGGREGATION_SUM; aggregation <= DIST_AGGREGATION_ONLY_FIRST_REPLICA;
         aggregation++) {
      step s = {.how = DIST_SCATTER_ADD,
                .variable = rows_variable(strategy, DIST_SYNCHRONIZATION_ON_WRITE, aggregation)};
      assert_ok(slices_of(strategy, &given, &s.common));
      const int refused = !central && aggregation == DIST_AGGREGATION_SUM;
      assert_int_equal(dist_run(strategy, scatter_rows, &s, NULL), refused ? DIST_INVALID_ARGUMENT : DIST_OK);
      float model[ROWS][COLUMNS];
      begin(model);
      for (int times = refused ? 0 : central ? R : 1; times > 0; times--) apply(s.how, &given, 1, model);
      for (int32_t r = 0; r < R; r++) assert_rows(s.variable, r, model, "common");
      dist_value_release(s.common);
      dist_variable_destroy(s.variable);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void from_outside_to_every_copy(void **state) {
  (void)state;
  static const int32_t kinds[] = {DIST_STRATEGY_MIRRORED, DIST_STRATEGY_ONE_DEVICE,
                                  DIST_STRATEGY_CENTRAL_STORAGE};
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    const int mirrored = kinds[k] == DIST_STRATEGY_MIRRORED;
    const int32_t n = kinds[k] == DIST_STRATEGY_ONE_DEVICE ? 1 : R;
    dist_strategy *strategy = strategy_of_kind(kinds[k], n);
    dist_value *items[R], *spread = NULL;
    for (int32_t r = 0; r < n; r++) {
      const rows given = rows_of(r);
      assert_ok(slices_of(strategy, &given, &items[r]));
    }
    assert_ok(dist_value_create_per_replica(strategy, items, (size_t)n, &spread));
    for (int32_t how = DIST_SCATTER_ADD; how <= DIST_SCATTER_MAX; how++) {
      dist_variable *variable = rows_variable(strategy, 0, DIST_AGGREGATION_NONE);
      assert_ok(dist_variable_scatter(strategy, variable, how, items[0]));
      assert_ok(dist_variable_scatter(strategy, variable, how, spread));
      for (int32_t r = 0; r < n; r++) {
        const rows first = rows_of(0), own = rows_of(mirrored ? r : 0);
        float model[ROWS][COLUMNS];
        begin(model);
        apply(how, &first, 1, model);
        apply(how, &own, 1, model);
        assert_rows(variable, r, model, how_name(how));
      }
      dist_variable_destroy(variable);
    }
    dist_value_release(spread);
    for (int32_t r = 0; r < n; r++) dist_value_release(items[r]);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* The variable has shape [2, 3]. Row 1 of the first slices and row 0 of the second are replaced. */
static void a_batch_has_leading_dimensions(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  float data[6] = {0, 1, 2, 3, 4, 5};
  const int64_t wide[2] = {2, 3}, narrow[2] = {2, 1};
  const dist_tensor initial = {data, DIST_F32, 2, wide, NULL};
  float numbers[2] = {10, 20};
  int32_t where[2] = {1, 0};
  const dist_tensor values = {numbers, DIST_F32, 2, narrow, NULL};
  const dist_tensor indices = {where, DIST_I32, 2, narrow, NULL};
  dist_variable *variable = variable_with(strategy, &initial, 0, 0);
  dist_value *parts[2], *list = NULL;
  assert_ok(dist_value_create_tensor(strategy, &values, &parts[0]));
  assert_ok(dist_value_create_tensor(strategy, &indices, &parts[1]));
  assert_ok(dist_value_create_list(strategy, parts, 2, &list));
  assert_ok(dist_variable_scatter(strategy, variable, DIST_SCATTER_BATCH_UPDATE, list));
  dist_tensor copy;
  assert_ok(dist_variable_component(variable, 0, &copy));
  const float wanted[6] = {0, 10, 2, 20, 4, 5};
  assert_memory_equal(copy.data, wanted, sizeof wanted);
  assert_fails(dist_variable_scatter(strategy, variable, DIST_SCATTER_UPDATE, list), DIST_INVALID_ARGUMENT,
               "Pass indexed slices");
  dist_value_release(list);
  for (int i = 0; i < 2; i++) dist_value_release(parts[i]);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

static void what_does_not_fit_changes_nothing(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, R);
  dist_variable *variable = rows_variable(strategy, 0, DIST_AGGREGATION_NONE);
  float model[ROWS][COLUMNS];
  begin(model);
  rows given = rows_of(0);
  static const int64_t outside[] = {ROWS, -1, INT64_MAX, INT64_MIN};
  dist_value *slices = NULL;
  for (size_t i = 0; i < COUNT_OF(outside); i++) {
    given.indices[2] = outside[i];
    assert_ok(slices_of(strategy, &given, &slices));
    assert_fails(dist_variable_scatter(strategy, variable, DIST_SCATTER_ADD, slices), DIST_INVALID_ARGUMENT,
                 "is out of range. It must be 0 to 4.");
    dist_value_release(slices);
  }
  given = rows_of(0);
  assert_ok(slices_of(strategy, &given, &slices));
  assert_fails(dist_variable_scatter(strategy, variable, 0, slices), DIST_INVALID_ARGUMENT, "how is 0");
  assert_fails(dist_variable_scatter(strategy, variable, 9, slices), DIST_INVALID_ARGUMENT, "how is 9");
  dist_variable *number = number_variable(strategy, 1, 0, 0);
  assert_fails(dist_variable_scatter(strategy, number, DIST_SCATTER_ADD, slices), DIST_INVALID_ARGUMENT,
               "rows of the variable");
  dist_value *scalar = number_of(strategy, 1);
  assert_fails(dist_variable_scatter(strategy, variable, DIST_SCATTER_ADD, scalar), DIST_INVALID_ARGUMENT,
               "slices is a tensor f32[]");
  for (int32_t r = 0; r < R; r++) assert_rows(variable, r, model, "a failure");
  dist_value_release(scalar);
  dist_value_release(slices);
  dist_variable_destroy(number);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_value *integer_slices(dist_strategy *strategy, const int32_t *numbers, int64_t count) {
  int64_t indices[MOST_ROWS] = {0, 1, 2, 3};
  const dist_tensor values = {(void *)numbers, DIST_I32, 1, &count, NULL};
  const dist_tensor where = {indices, DIST_I64, 1, &count, NULL};
  dist_value *parts[3], *slices = NULL;
  assert_ok(dist_value_create_tensor(strategy, &values, &parts[0]));
  assert_ok(dist_value_create_tensor(strategy, &where, &parts[1]));
  assert_ok(dist_value_create_none(strategy, &parts[2]));
  assert_ok(dist_value_create_composite(strategy, DIST_VALUE_INDEXED_SLICES, parts, 3, &slices));
  for (int i = 0; i < 3; i++) dist_value_release(parts[i]);
  return slices;
}

/* Integer division rounds toward zero. The only quotient out of range wraps, and division by 0 is rejected
 * instead of trapping. */
static void integers_divide_without_a_trap(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  int32_t data[4] = {INT32_MIN, -7, 7, 9};
  const int64_t four = 4;
  const dist_tensor initial = {data, DIST_I32, 1, &four, NULL};
  dist_variable *variable = variable_with(strategy, &initial, 0, 0);
  const int32_t by[4] = {-1, 2, -2, 3}, by_zero[4] = {1, 1, 0, 1};
  dist_value *slices = integer_slices(strategy, by, four);
  assert_ok(dist_variable_scatter(strategy, variable, DIST_SCATTER_DIV, slices));
  dist_value_release(slices);
  const int32_t wanted[4] = {INT32_MIN, -3, -3, 3};
  dist_tensor copy;
  assert_ok(dist_variable_component(variable, 0, &copy));
  assert_memory_equal(copy.data, wanted, sizeof wanted);
  slices = integer_slices(strategy, by_zero, four);
  assert_fails(dist_variable_scatter(strategy, variable, DIST_SCATTER_DIV, slices), DIST_INVALID_ARGUMENT,
               "by 0");
  assert_memory_equal(copy.data, wanted, sizeof wanted);
  dist_value_release(slices);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inside_replicas_by_aggregation),    cmocka_unit_test(one_object_for_all_replicas),
      cmocka_unit_test(from_outside_to_every_copy),        cmocka_unit_test(a_batch_has_leading_dimensions),
      cmocka_unit_test(what_does_not_fit_changes_nothing), cmocka_unit_test(integers_divide_without_a_trap),
  };
  return cmocka_run_group_tests_name("scatter", tests, NULL, NULL);
}
