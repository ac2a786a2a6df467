/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements other than tensors (dataset.h): strings, host objects, none, tuples, ragged and sparse tensors.
 * Also hosts that run out of memory with any of them.
 */
#include "dataset_support.h"

enum kind { TUPLE, RAGGED, SPARSE, SLICES };

typedef struct source {
  dist_strategy *strategy;
  enum kind kind;
  int64_t size;
} source;

static dist_status vector(dist_strategy *strategy, const int64_t *from, int64_t n, dist_value **out) {
  const dist_tensor tensor = {(void *)from, DIST_I64, 1, &n, NULL};
  return dist_value_create_tensor(strategy, &tensor, out);
}

static void release_all(dist_value **values, size_t n) {
  for (size_t i = 0; i < n; i++) dist_value_release(values[i]);
}

/* (i, "a" to "e", object i, none) */
static dist_status tuple_element(const source *s, int64_t i, dist_value **out) {
  static const char *const texts[] = {"a", "b", "c", "d", "e"};
  static int objects[5];
  const dist_tensor number = {&i, DIST_I64, 0, NULL, NULL};
  dist_value *items[4] = {NULL, NULL, NULL, NULL};
  dist_status status = dist_value_create_tensor(s->strategy, &number, &items[0]);
  if (status == DIST_OK) status = dist_value_create_text(s->strategy, texts[i], &items[1]);
  if (status == DIST_OK) status = dist_value_wrap_object(s->strategy, &objects[i], NULL, &items[2]);
  if (status == DIST_OK) status = dist_value_create_none(s->strategy, &items[3]);
  if (status == DIST_OK) status = dist_value_create_tuple(s->strategy, items, 4, out);
  release_all(items, 4);
  return status;
}

/* Four rows: [[0, 1], []], [], [[2]], [[3, 4, 5]] */
static dist_status ragged_element(const source *s, dist_value **out) {
  static const int64_t values[] = {0, 1, 2, 3, 4, 5}, outer[] = {0, 2, 2, 3, 4}, inner[] = {0, 2, 2, 3, 6};
  dist_value *parts[3] = {NULL, NULL, NULL};
  dist_status status = vector(s->strategy, values, 6, &parts[0]);
  if (status == DIST_OK) status = vector(s->strategy, outer, 5, &parts[1]);
  if (status == DIST_OK) status = vector(s->strategy, inner, 5, &parts[2]);
  if (status == DIST_OK) status = dist_value_create_composite(s->strategy, DIST_VALUE_RAGGED, parts, 3, out);
  release_all(parts, 3);
  return status;
}

/* [4, 3] with (0, 1): 10, (2, 0): 20, (3, 2): 30. As indexed slices: rows 0, 2 and 3. */
static dist_status sparse_element(const source *s, dist_value **out) {
  static const int64_t at[] = {0, 1, 2, 0, 3, 2}, values[] = {10, 20, 30}, dense[] = {4, 3}, shape[] = {3, 2};
  const dist_tensor indices = {(void *)at, DIST_I64, 2, shape, NULL};
  dist_value *parts[3] = {NULL, NULL, NULL};
  const int slices = s->kind == SLICES;
  dist_status status = slices ? vector(s->strategy, values, 3, &parts[0])
                              : dist_value_create_tensor(s->strategy, &indices, &parts[0]);
  if (status == DIST_OK) status = vector(s->strategy, values, 3, &parts[1]);
  if (status == DIST_OK)
    status = slices ? vector(s->strategy, dense, 1, &parts[2]) : vector(s->strategy, dense, 2, &parts[2]);
  const int32_t kind = slices ? DIST_VALUE_INDEXED_SLICES : DIST_VALUE_SPARSE;
  if (status == DIST_OK) status = dist_value_create_composite(s->strategy, kind, parts, 3, out);
  release_all(parts, 3);
  return status;
}

static dist_status element(dist_strategy *strategy, int64_t index, dist_value **out, void *user_data) {
  (void)strategy;
  const source *s = user_data;
  if (index == s->size) return DIST_OUT_OF_RANGE;
  if (s->kind == TUPLE) return tuple_element(s, index, out);
  return s->kind == RAGGED ? ragged_element(s, out) : sparse_element(s, out);
}

static dist_iterator *pass_of(source *s, int64_t batch) {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = batch;
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  assert_ok(dist_dataset_create_from_callback(s->strategy, element, s, NULL, &options, &dataset));
  assert_ok(dist_iterator_create(dataset, &iterator));
  dist_dataset_destroy(dataset);
  return iterator;
}

/* Returns replica r's part of a leaf, if there are two replicas. */
static dist_value *part(const dist_value *leaf, size_t r) {
  assert_int_equal(dist_value_kind_of(leaf), DIST_VALUE_PER_REPLICA);
  assert_int_equal(dist_value_size(leaf), 2);
  return dist_value_item(leaf, r);
}

static void check_vector(const dist_value *value, const int64_t *expected, int64_t n) {
  dist_tensor tensor;
  assert_ok(dist_value_tensor(value, &tensor));
  assert_int_equal(tensor.shape[0], n);
  if (n > 0) assert_memory_equal(tensor.data, expected, (size_t)n * sizeof *expected);
}

/* Five tuples in batches of three on two replicas: 2 + 1, then 1 + 1. */
static void texts_and_objects_come_in_lists(void **state) {
  (void)state;
  source s = {strategy_of(2, DIST_THREADS_CALLER), TUPLE, 5};
  dist_iterator *iterator = pass_of(&s, 3);
  static const char *const texts[2][2][2] = {{{"a", "b"}, {"c", NULL}}, {{"d", NULL}, {"e", NULL}}};
  for (int step = 0; step < 2; step++) {
    dist_value *batch = NULL;
    assert_ok(dist_iterator_next(iterator, &batch));
    assert_int_equal(dist_value_kind_of(batch), DIST_VALUE_TUPLE);
    for (size_t r = 0; r < 2; r++) {
      const size_t n = texts[step][r][1] == NULL ? 1 : 2;
      const dist_value *own = part(dist_value_item(batch, 1), r),
                       *objects = part(dist_value_item(batch, 2), r);
      assert_int_equal(dist_value_kind_of(own), DIST_VALUE_LIST);
      assert_int_equal(dist_value_size(own), n);
      assert_int_equal(dist_value_size(objects), n);
      for (size_t i = 0; i < n; i++)
        assert_string_equal(dist_value_text(dist_value_item(own, i)), texts[step][r][i]);
      assert_non_null(dist_value_object(dist_value_item(objects, 0)));
    }
    assert_int_equal(dist_value_kind_of(dist_value_item(batch, 3)), DIST_VALUE_NONE);
    dist_value_release(batch);
  }
  dist_iterator_destroy(iterator);
  assert_ok(dist_strategy_destroy(s.strategy));
}

static void ragged_tensors_are_cut_by_rows(void **state) {
  (void)state;
  source s = {strategy_of(2, DIST_THREADS_CALLER), RAGGED, 1};
  dist_iterator *iterator = pass_of(&s, 0);
  dist_value *batch = NULL;
  assert_ok(dist_iterator_next(iterator, &batch));
  static const int64_t values[2][4] = {{0, 1}, {2, 3, 4, 5}}, outer[2][3] = {{0, 2, 2}, {0, 1, 2}},
                       inner[2][3] = {{0, 2, 2}, {0, 1, 4}};
  for (size_t r = 0; r < 2; r++) {
    const dist_value *own = part(batch, r);
    assert_int_equal(dist_value_kind_of(own), DIST_VALUE_RAGGED);
    check_vector(dist_value_item(own, 0), values[r], r == 0 ? 2 : 4);
    check_vector(dist_value_item(own, 1), outer[r], 3);
    check_vector(dist_value_item(own, 2), inner[r], 3);
  }
  dist_value_release(batch);
  dist_iterator_destroy(iterator);
  assert_ok(dist_strategy_destroy(s.strategy));
}

static void sparse_tensors_are_cut_by_rows(void **state) {
  (void)state;
  source s = {strategy_of(2, DIST_THREADS_CALLER), SPARSE, 1};
  dist_iterator *iterator = pass_of(&s, 0);
  dist_value *batch = NULL;
  assert_ok(dist_iterator_next(iterator, &batch));
  static const int64_t at[2][4] = {{0, 1}, {0, 0, 1, 2}}, values[2][2] = {{10}, {20, 30}}, dense[] = {2, 3};
  for (size_t r = 0; r < 2; r++) {
    const dist_value *own = part(batch, r);
    dist_tensor indices;
    assert_int_equal(dist_value_kind_of(own), DIST_VALUE_SPARSE);
    assert_ok(dist_value_tensor(dist_value_item(own, 0), &indices));
    assert_int_equal(indices.shape[0], r + 1);
    assert_memory_equal(indices.data, at[r], 2 * (r + 1) * sizeof **at);
    check_vector(dist_value_item(own, 1), values[r], (int64_t)r + 1);
    check_vector(dist_value_item(own, 2), dense, 2);
  }
  dist_value_release(batch);
  dist_iterator_destroy(iterator);
  assert_ok(dist_strategy_destroy(s.strategy));
}

static void what_is_not_offered_is_said(void **state) {
  (void)state;
  source s = {strategy_of(2, DIST_THREADS_CALLER), RAGGED, 3};
  const struct {
    enum kind kind;
    int64_t batch;
    dist_status status;
    const char *words;
  } cases[] = {{RAGGED, 2, DIST_UNIMPLEMENTED, "a ragged tensor"},
               {SPARSE, 2, DIST_UNIMPLEMENTED, "global_batch_size"},
               {SLICES, 0, DIST_INVALID_ARGUMENT, "cannot be split"},
               {TUPLE, 0, DIST_INVALID_ARGUMENT, "element 0[0] is a scalar"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    s.kind = cases[i].kind;
    dist_iterator *iterator = pass_of(&s, cases[i].batch);
    dist_value *batch = NULL;
    assert_fails(dist_iterator_next(iterator, &batch), cases[i].status, cases[i].words);
    dist_iterator_destroy(iterator);
  }
  assert_ok(dist_strategy_destroy(s.strategy));
}

static void structures_are_specified(void **state) {
  (void)state;
  source s = {strategy_of(1, DIST_THREADS_CALLER), TUPLE, 5};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  dist_dataset *dataset = NULL;
  dist_value *spec = NULL;
  assert_ok(dist_dataset_create_from_callback(s.strategy, element, &s, NULL, &options, &dataset));
  assert_ok(dist_dataset_element_spec(dataset, &spec));
  assert_int_equal(dist_value_kind_of(spec), DIST_VALUE_TUPLE);
  assert_string_equal(dist_value_text(dist_value_item(spec, 0)), "i64[?]");
  assert_string_equal(dist_value_text(dist_value_item(spec, 1)), "text[?]");
  assert_string_equal(dist_value_text(dist_value_item(spec, 2)), "object[?]");
  assert_int_equal(dist_value_kind_of(dist_value_item(spec, 3)), DIST_VALUE_NONE);
  dist_value_release(spec);
  s.size = 0;
  assert_int_equal(dist_dataset_element_spec(dataset, &spec), DIST_OUT_OF_RANGE);
  s.size = 1;
  dist_dataset_destroy(dataset);
  s.kind = RAGGED;
  assert_ok(dist_dataset_create_from_callback(s.strategy, element, &s, NULL, NULL, &dataset));
  assert_ok(dist_dataset_element_spec(dataset, &spec));
  assert_string_equal(dist_value_text(spec), "ragged i64[?, ?, ?]");
  dist_value_release(spec);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(s.strategy));
}

/* ---- Without memory ---- */

static dist_status make(dist_strategy *strategy, const dist_input_context *context, dist_dataset **out,
                        void *user_data) {
  (void)strategy;
  (void)context;
  source *s = user_data;
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = s->kind == TUPLE ? 2 : 0;
  options.prefetch = -1;
  return dist_dataset_create_from_callback(s->strategy, element, s, NULL, &options, out);
}

static dist_status line(dist_strategy *strategy, size_t file, const char *name, int64_t index,
                        dist_value **out, void *user_data) {
  (void)strategy;
  (void)file, (void)name;
  return index == 2 ? DIST_OUT_OF_RANGE : tuple_element(user_data, index, out);
}

static dist_status nothing_new(dist_dataset *dataset, dist_value *state, dist_value *batch, dist_value **out,
                               void *user_data) {
  (void)dataset, (void)batch, (void)user_data;
  *out = dist_value_retain(state);
  return DIST_OK;
}

static void ignore_text(const char *text, size_t size, void *user_data) {
  (void)text, (void)size, (void)user_data;
}

/* Calls all functions of a dataset, and stops and resumes a pass. */
static dist_status use(dist_dataset *dataset) {
  dist_value *value = NULL;
  dist_iterator *iterator = NULL, *later = NULL;
  dist_position position = DIST_POSITION_INIT;
  dist_status status = dist_dataset_element_spec(dataset, &value);
  dist_value_release(value);
  value = NULL;
  if (status == DIST_OK) status = dist_dataset_explain(dataset, ignore_text, NULL);
  if (status == DIST_OK) status = dist_dataset_reduce(dataset, NULL, nothing_new, NULL, &value);
  if (status == DIST_OK) status = dist_iterator_create(dataset, &iterator);
  if (status == DIST_OK) status = dist_iterator_next_optional(iterator, &value);
  dist_value_release(value);
  value = NULL;
  if (status == DIST_OK) status = dist_iterator_position(iterator, &position);
  if (status == DIST_OK) status = dist_iterator_create_at(dataset, &position, &later);
  if (status == DIST_OK) status = dist_iterator_next_optional(later, &value);
  dist_value_release(value);
  dist_iterator_destroy(later);
  dist_iterator_destroy(iterator);
  return status;
}

static dist_status every_kind(dist_strategy *strategy, void *user_data) {
  source *s = user_data;
  s->strategy = strategy;
  static const char *const names[] = {"x", "y", "z"};
  static const int64_t sizes[] = {2, 1};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  dist_status status = DIST_OK;
  for (int i = 0; i < 4 && status == DIST_OK; i++) {
    dist_dataset *dataset = NULL;
    options = (dist_dataset_options)DIST_DATASET_OPTIONS_INIT;
    options.prefetch = -1; /* batches that are prefetched and never read may fail without being reported */
    s->kind = i == 0 ? RAGGED : i == 1 ? SPARSE : TUPLE;
    if (i < 3) {
      status = dist_dataset_create_from_function(s->strategy, make, s, &options, &dataset);
    } else {
      options.batch_sizes = sizes;
      options.num_batch_sizes = 2;
      options.global_batch_size = 2;
      options.interleave = 2;
      status = dist_dataset_create_from_files(s->strategy, names, 3, line, s, NULL, &options, &dataset);
    }
    if (status == DIST_OK) status = use(dataset);
    if (status == DIST_OK && i == 3) status = dist_dataset_check_shards(dataset, 0);
    dist_dataset_destroy(dataset);
  }
  return status;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  int refused = 1;
  for (long k = 0; refused; k++) {
    source s = {.size = 3};
    refused = refuse_request(k, every_kind, &s);
    assert_true(k < 100000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_and_objects_come_in_lists), cmocka_unit_test(ragged_tensors_are_cut_by_rows),
      cmocka_unit_test(sparse_tensors_are_cut_by_rows),  cmocka_unit_test(what_is_not_offered_is_said),
      cmocka_unit_test(structures_are_specified),        cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests_name("dataset values", tests, NULL, NULL);
}
