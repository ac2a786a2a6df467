/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_all_reduce_value() and dist_all_gather_value(): nested values are exchanged as one list and keep their
 * structure.
 */
#include "tests/abi/common.h"

enum { REPLICAS = 3 };

typedef struct {
  dist_strategy *strategy;
  dist_value *per_replica; /* i32[2]; that of replica r is {r, 10 r} */
  dist_variable *variable;
  dist_value *results[REPLICAS];
  dist_status status[REPLICAS];
  report errors[REPLICAS];
  int32_t mode;
} shared;

enum { REDUCE, GATHER, OTHER_KEY, OTHER_LENGTH, BAD_AXIS, NO_VALUE, PLAN };

static dist_value *tensor_value(dist_strategy *strategy, void *data, dist_dtype dtype, int32_t ndim,
                                const int64_t *shape) {
  const dist_tensor tensor = {data, dtype, ndim, shape, NULL};
  dist_value *value = NULL;
  if (dist_value_create_tensor(strategy, &tensor, &value)) return NULL;
  return value;
}

/* {"a": [f32[r + 1, 2] or f32[2], per-replica i32[2]], "b": the variable} */
static dist_value *nest_of(shared *s, int32_t id) {
  float floats[8];
  for (int i = 0; i < 8; i++) floats[i] = (float)(id * 100 + i);
  const int64_t rows[] = {id + 1, 2}, flat[] = {2};
  const int gather = s->mode != REDUCE && s->mode != OTHER_KEY && s->mode != OTHER_LENGTH;
  dist_value *first = gather ? tensor_value(s->strategy, floats, DIST_F32, 2, rows)
                             : tensor_value(s->strategy, floats, DIST_F32, 1, flat);
  dist_value *pair[] = {first, s->per_replica, s->per_replica};
  dist_value *list = NULL, *variable = NULL, *dict = NULL;
  const size_t length = s->mode == OTHER_LENGTH && id == 1 ? 3 : 2;
  const char *keys[] = {s->mode == OTHER_KEY && id == 1 ? "c" : "a", "b"};
  if (dist_value_create_list(s->strategy, pair, length, &list) == DIST_OK &&
      dist_value_create_variable(s->variable, &variable) == DIST_OK) {
    dist_value *items[] = {list, variable};
    if (dist_value_create_dict(s->strategy, keys, items, 2, &dict)) dict = NULL;
  }
  dist_value_release(first);
  dist_value_release(list);
  dist_value_release(variable);
  return dict;
}

static dist_status meet(dist_replica *replica, void *user_data) {
  shared *s = user_data;
  const int32_t id = dist_replica_id(replica);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_value *nest = nest_of(s, id);
  if (nest == NULL) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no nest");
  if (s->mode == BAD_AXIS) options.axis = 2;
  if (s->mode == PLAN) options.planned = 1;
  dist_value *in = s->mode == NO_VALUE ? NULL : nest;
  if (s->mode == REDUCE || s->mode == OTHER_KEY || s->mode == OTHER_LENGTH) {
    s->status[id] = dist_all_reduce_value(replica, DIST_REDUCE_SUM, in, &options, &s->results[id]);
  } else {
    s->status[id] = dist_all_gather_value(replica, in, &options, &s->results[id]);
  }
  if (s->status[id]) read_report(&s->errors[id]);
  dist_value_release(nest);
  return s->status[id];
}

static shared *set_up(int32_t mode) {
  shared *s = calloc(1, sizeof *s);
  s->mode = mode;
  s->strategy = strategy_of(REPLICAS, DIST_THREADS_CALLER);
  const int64_t two[] = {2};
  dist_value *items[REPLICAS];
  for (int32_t r = 0; r < REPLICAS; r++) {
    int32_t data[] = {r, 10 * r};
    assert_non_null(items[r] = tensor_value(s->strategy, data, DIST_I32, 1, two));
  }
  assert_ok(dist_value_create_per_replica(s->strategy, items, REPLICAS, &s->per_replica));
  for (int32_t r = 0; r < REPLICAS; r++) dist_value_release(items[r]);
  double initial[] = {0.5, 2};
  const dist_tensor tensor = {initial, DIST_F64, 1, two, NULL};
  assert_ok(dist_variable_create(s->strategy, &tensor, NULL, &s->variable));
  return s;
}

static void tear_down(shared *s) {
  for (int32_t r = 0; r < REPLICAS; r++) dist_value_release(s->results[r]);
  dist_value_release(s->per_replica);
  dist_variable_destroy(s->variable);
  assert_ok(dist_strategy_destroy(s->strategy));
  free(s);
}

static dist_tensor leaf(dist_value *value) {
  dist_tensor tensor;
  assert_ok(dist_value_tensor(value, &tensor));
  return tensor;
}

static void nests_are_reduced(void **state) {
  (void)state;
  shared *s = set_up(REDUCE);
  assert_ok(dist_run(s->strategy, meet, s, NULL));
  for (int32_t r = 0; r < REPLICAS; r++) {
    dist_value *list = dist_value_get(s->results[r], "a");
    assert_int_equal(dist_value_size(s->results[r]), 2);
    assert_int_equal(dist_value_size(list), 2);
    const float *sum = leaf(dist_value_item(list, 0)).data;
    assert_true(sum[0] == 300 && sum[1] == 303);
    const int32_t *ids = leaf(dist_value_item(list, 1)).data;
    assert_true(ids[0] == 3 && ids[1] == 30);
    const double *copies = leaf(dist_value_get(s->results[r], "b")).data;
    assert_true(copies[0] == 1.5 && copies[1] == 6);
  }
  tear_down(s);
}

static void nests_are_gathered(void **state) {
  (void)state;
  shared *s = set_up(GATHER);
  assert_ok(dist_run(s->strategy, meet, s, NULL));
  for (int32_t r = 0; r < REPLICAS; r++) {
    const dist_tensor rows = leaf(dist_value_item(dist_value_get(s->results[r], "a"), 0));
    assert_int_equal(rows.shape[0], 1 + 2 + 3);
    assert_int_equal(rows.shape[1], 2);
    const float *data = rows.data;
    const float wanted[] = {0, 1, 100, 101, 102, 103, 200, 201, 202, 203, 204, 205};
    assert_memory_equal(data, wanted, sizeof wanted);
    const dist_tensor ids = leaf(dist_value_item(dist_value_get(s->results[r], "a"), 1));
    const int32_t all[] = {0, 0, 1, 10, 2, 20};
    assert_int_equal(ids.shape[0], 6);
    assert_memory_equal(ids.data, all, sizeof all);
    assert_int_equal(leaf(dist_value_get(s->results[r], "b")).shape[0], 6);
  }
  tear_down(s);
}

static void other_structures_disagree(void **state) {
  (void)state;
  for (int32_t mode = OTHER_KEY; mode <= OTHER_LENGTH; mode++) {
    shared *s = set_up(mode);
    assert_int_equal(dist_run(s->strategy, meet, s, NULL), DIST_INVALID_ARGUMENT);
    for (int32_t r = 0; r < REPLICAS; r++) {
      assert_int_equal(s->errors[r].replica, 1);
      assert_null(s->results[r]);
    }
    tear_down(s);
  }
}

static void wrong_arguments(void **state) {
  (void)state;
  const struct {
    int32_t mode;
    const char *words;
  } cases[] = {{BAD_AXIS, "axis is 2"}, {NO_VALUE, "value is NULL"}, {PLAN, "cannot be planned"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    shared *s = set_up(cases[i].mode);
    assert_int_equal(dist_run(s->strategy, meet, s, NULL), DIST_INVALID_ARGUMENT);
    assert_has(s->errors[0].message, cases[i].words);
    s->mode = GATHER;
    assert_ok(dist_run(s->strategy, meet, s, NULL));
    tear_down(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nests_are_reduced),
      cmocka_unit_test(nests_are_gathered),
      cmocka_unit_test(other_structures_disagree),
      cmocka_unit_test(wrong_arguments),
  };
  return cmocka_run_group_tests_name("exchange_values", tests, NULL, NULL);
}
