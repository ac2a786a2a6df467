/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets whose elements come from a callback (dataset.h): stacking and splitting lists and dictionaries,
 * errors on another thread, early ends, and hosts that run out of memory.
 */
#include "dataset_support.h"

/* The elements that a source makes. From SAID on, it makes numbers, and one mistake at `bad_index`. */
enum kind {
  NUMBER,       /* i64 scalar: index */
  TREE,         /* {"a": [i64[2]: 2i, 2i+1; f32 scalar], "b": i64 scalar} */
  BATCH,        /* i64[index + 1]: 0 .. index */
  STRIDED,      /* i64[3, 2], column-major: {0, 3}, {1, 4}, {2, 5} */
  HOLLOW,       /* i64[2, 0] */
  SAID,         /* fails with a message */
  UNSAID,       /* fails without one */
  NOTHING,      /* DIST_OK, but no element */
  PER_REPLICA,  /* a distributed value */
  OTHER_DTYPE,  /* i32 among i64 */
  OTHER_SHAPE,  /* i64[1] among scalars */
  OTHER_KIND,   /* a list among tensors */
  OTHER_LENGTH, /* a list of three among lists of two */
  OTHER_KEY,    /* {"c"} among {"b"} */
  SCALAR        /* a scalar, although elements are batches */
};

typedef struct source {
  dist_strategy *strategy;
  enum kind kind;
  int64_t size, bad_index;
  atomic_int inside, overlaps, released;
} source;

static dist_status number_value(const source *s, int64_t value, dist_value **out) {
  const dist_tensor tensor = {&value, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor(s->strategy, &tensor, out);
}

static dist_status list_value(const source *s, size_t n, int64_t value, dist_value **out) {
  dist_value *items[3] = {NULL, NULL, NULL};
  dist_status status = DIST_OK;
  for (size_t i = 0; i < n && status == DIST_OK; i++) status = number_value(s, value, &items[i]);
  if (status == DIST_OK) status = dist_value_create_list(s->strategy, items, n, out);
  for (size_t i = 0; i < n; i++) dist_value_release(items[i]);
  return status;
}

static dist_status dict_value(const source *s, const char *key, int64_t value, dist_value **out) {
  dist_value *item = NULL;
  dist_status status = number_value(s, value, &item);
  if (status == DIST_OK) status = dist_value_create_dict(s->strategy, &key, &item, 1, out);
  dist_value_release(item);
  return status;
}

static dist_status tree_value(const source *s, int64_t i, dist_value **out) {
  const int64_t pair[] = {2 * i, 2 * i + 1}, two = 2;
  const float real = (float)i;
  const dist_tensor tensors[] = {{(void *)pair, DIST_I64, 1, &two, NULL},
                                 {(void *)&real, DIST_F32, 0, NULL, NULL}};
  const char *keys[] = {"b", "a"};
  dist_value *leaves[2] = {NULL, NULL}, *items[2] = {NULL, NULL};
  dist_status status = dist_value_create_tensor(s->strategy, &tensors[0], &leaves[0]);
  if (status == DIST_OK) status = dist_value_create_tensor(s->strategy, &tensors[1], &leaves[1]);
  if (status == DIST_OK) status = number_value(s, i, &items[0]);
  if (status == DIST_OK) status = dist_value_create_list(s->strategy, leaves, 2, &items[1]);
  if (status == DIST_OK) status = dist_value_create_dict(s->strategy, keys, items, 2, out);
  for (int k = 0; k < 2; k++) {
    dist_value_release(leaves[k]);
    dist_value_release(items[k]);
  }
  return status;
}

static dist_status batch_value(const source *s, int64_t n, dist_value **out) {
  static const int64_t numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const dist_tensor tensor = {(void *)numbers, DIST_I64, 1, &n, NULL};
  return dist_value_create_tensor(s->strategy, &tensor, out);
}

static dist_status matrix_value(const source *s, dist_value **out) {
  static int64_t numbers[6] = {0, 1, 2, 3, 4, 5};
  static const int64_t shape[] = {3, 2}, strides[] = {1, 3}, hollow[] = {2, 0};
  const dist_tensor strided = {numbers, DIST_I64, 2, shape, strides},
                    nothing = {NULL, DIST_I64, 2, hollow, strides};
  return dist_value_wrap_tensor(s->strategy, s->kind == STRIDED ? &strided : &nothing, NULL, NULL, out);
}

static dist_status mistake(const source *s, int64_t index, dist_value **out) {
  const int64_t one = 1, value = index;
  const dist_tensor narrow = {(void *)&value, DIST_I32, 0, NULL, NULL};
  const dist_tensor vector = {(void *)&value, DIST_I64, 1, &one, NULL};
  switch (s->kind) {
    case SAID: return dist_fail(DIST_DATA_LOSS, "no row 5 in the file");
    case UNSAID: return DIST_NOT_FOUND;
    case NOTHING: return DIST_OK;
    case OTHER_DTYPE: return dist_value_create_tensor(s->strategy, &narrow, out);
    case OTHER_SHAPE: return dist_value_create_tensor(s->strategy, &vector, out);
    case OTHER_KIND: return list_value(s, 1, index, out);
    case OTHER_LENGTH: return list_value(s, 3, index, out);
    case OTHER_KEY: return dict_value(s, "c", index, out);
    case SCALAR: return number_value(s, index, out);
    case PER_REPLICA: {
      dist_value *item = NULL;
      dist_status status = number_value(s, index, &item);
      dist_value *items[] = {item, item};
      if (status == DIST_OK) status = dist_value_create_per_replica(s->strategy, items, 2, out);
      dist_value_release(item);
      return status;
    }
    default: return DIST_INTERNAL;
  }
}

static dist_status make(source *s, int64_t index, dist_value **out) {
  if (index == s->size) return DIST_OUT_OF_RANGE;
  if (s->kind == NUMBER) return number_value(s, index, out);
  if (s->kind == TREE) return tree_value(s, index, out);
  if (s->kind == BATCH) return batch_value(s, index + 1, out);
  if (s->kind == STRIDED || s->kind == HOLLOW) return matrix_value(s, out);
  if (index == s->bad_index) return mistake(s, index, out);
  if (s->kind == OTHER_LENGTH) return list_value(s, 2, index, out);
  if (s->kind == OTHER_KEY) return dict_value(s, "b", index, out);
  if (s->kind == SCALAR) return batch_value(s, 2, out);
  return number_value(s, index, out);
}

static dist_status element(dist_strategy *strategy, int64_t index, dist_value **out, void *user_data) {
  (void)strategy;
  source *s = user_data;
  if (atomic_fetch_add(&s->inside, 1) != 0) atomic_fetch_add(&s->overlaps, 1);
  const dist_status status = make(s, index, out);
  atomic_fetch_sub(&s->inside, 1);
  return status;
}

static void source_released(void *user_data) { atomic_fetch_add(&((source *)user_data)->released, 1); }

static dist_dataset *dataset_of(source *s, int64_t global_batch_size, int32_t prefetch) {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = global_batch_size;
  options.prefetch = prefetch;
  dist_dataset *dataset = NULL;
  assert_ok(dist_dataset_create_from_callback(s->strategy, element, s, source_released, &options, &dataset));
  return dataset;
}

static dist_iterator *pass(dist_dataset *dataset) {
  dist_iterator *iterator = NULL;
  assert_ok(dist_iterator_create(dataset, &iterator));
  return iterator;
}

static void elements_are_stacked(void **state) {
  (void)state;
  static const int64_t rows[7] = {0, 1, 2, 3, 4, 5, 6};
  for (int32_t replicas = 1; replicas <= 3; replicas++) {
    for (int32_t prefetch = -1; prefetch <= 4; prefetch++) {
      source s = {.strategy = strategy_of(replicas, DIST_THREADS_CALLER), .kind = NUMBER, .size = 7};
      dist_dataset *dataset = dataset_of(&s, 3, prefetch);
      dist_iterator *iterator = pass(dataset);
      dist_value *batch = NULL;
      for (int64_t first = 0; first < 7; first += 3) {
        assert_ok(dist_iterator_next(iterator, &batch));
        check_leaf(batch, replicas, rows + first, smaller(3, 7 - first));
        dist_value_release(batch);
      }
      for (int again = 0; again < 2; again++) {
        assert_ok(dist_iterator_next(iterator, &batch));
        assert_null(batch);
      }
      dist_iterator_destroy(iterator);
      assert_int_equal(s.released, 0);
      dist_dataset_destroy(dataset);
      assert_int_equal(s.released, 1);
      assert_int_equal(s.overlaps, 0);
      assert_ok(dist_strategy_destroy(s.strategy));
    }
  }
}

static void a_batch_has_its_elements_structure(void **state) {
  (void)state;
  source s = {.strategy = strategy_of(2, DIST_THREADS_CALLER), .kind = TREE, .size = 3};
  dist_dataset *dataset = dataset_of(&s, 4, 0);
  dist_iterator *iterator = pass(dataset);
  dist_value *batch = NULL;
  assert_ok(dist_iterator_next(iterator, &batch));
  assert_int_equal(dist_value_kind_of(batch), DIST_VALUE_DICT);
  assert_int_equal(dist_value_size(batch), 2);
  static const int64_t indices[] = {0, 1, 2};
  check_leaf(dist_value_get(batch, "b"), 2, indices, 3);
  const dist_value *a = dist_value_get(batch, "a");
  assert_int_equal(dist_value_kind_of(a), DIST_VALUE_LIST);
  const dist_tensor first = component(dist_value_item(a, 0), 2, 0),
                    second = component(dist_value_item(a, 0), 2, 1);
  static const int64_t pairs[] = {0, 1, 2, 3, 4, 5};
  assert_int_equal(first.shape[0], 2);
  assert_int_equal(first.shape[1], 2);
  assert_int_equal(second.shape[0], 1);
  assert_memory_equal(first.data, pairs, 4 * sizeof *pairs);
  assert_memory_equal(second.data, pairs + 4, 2 * sizeof *pairs);
  const dist_tensor real = component(dist_value_item(a, 1), 2, 1);
  assert_int_equal(real.dtype, DIST_F32);
  assert_int_equal(real.ndim, 1);
  assert_true(*(const float *)real.data == 2.0f);
  dist_value_release(batch);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(s.strategy));
}

static void elements_can_be_batches(void **state) {
  (void)state;
  static const int64_t numbers[] = {0, 1, 2, 3, 4, 5, 6};
  for (int32_t replicas = 1; replicas <= 4; replicas++) {
    source s = {.strategy = strategy_of(replicas, DIST_THREADS_CALLER), .kind = BATCH, .size = 7};
    dist_dataset *dataset = dataset_of(&s, 0, 0);
    dist_iterator *iterator = pass(dataset);
    dist_value *batch = NULL;
    for (int64_t m = 1; m <= 7; m++) {
      assert_ok(dist_iterator_next(iterator, &batch));
      check_leaf(batch, replicas, numbers, m);
      dist_value_release(batch);
    }
    assert_ok(dist_iterator_next(iterator, &batch));
    assert_null(batch);
    dist_iterator_destroy(iterator);
    dist_dataset_destroy(dataset);
    assert_ok(dist_strategy_destroy(s.strategy));
  }
}

/* Checks one batch of a dataset: component r has the shape shapes[r], and its numbers follow those of r-1. */
static void check_first_batch(enum kind kind, int64_t batch_size, int32_t ndim, const int64_t shapes[2][3],
                              const int64_t *numbers) {
  source s = {.strategy = strategy_of(2, DIST_THREADS_CALLER), .kind = kind, .size = 2};
  dist_dataset *dataset = dataset_of(&s, batch_size, 0);
  dist_iterator *iterator = pass(dataset);
  dist_value *batch = NULL;
  assert_ok(dist_iterator_next(iterator, &batch));
  for (int r = 0; r < 2; r++) {
    const dist_tensor tensor = component(batch, 2, r);
    assert_int_equal(tensor.ndim, ndim);
    assert_memory_equal(tensor.shape, shapes[r], (size_t)ndim * sizeof(int64_t));
    size_t n = 1;
    for (int32_t i = 0; i < ndim; i++) n *= (size_t)tensor.shape[i];
    if (n != 0) assert_memory_equal(tensor.data, numbers, n * sizeof *numbers);
    numbers += n;
  }
  dist_value_release(batch);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(s.strategy));
}

static void strided_and_empty_elements(void **state) {
  (void)state;
  static const int64_t split[][3] = {{2, 2}, {1, 2}}, stacked[][3] = {{1, 3, 2}, {1, 3, 2}};
  static const int64_t hollow_split[][3] = {{1, 0}, {1, 0}}, hollow_stacked[][3] = {{1, 2, 0}, {1, 2, 0}};
  static const int64_t numbers[] = {0, 3, 1, 4, 2, 5, 0, 3, 1, 4, 2, 5};
  check_first_batch(STRIDED, 0, 2, split, numbers);
  check_first_batch(STRIDED, 2, 3, stacked, numbers);
  check_first_batch(HOLLOW, 0, 2, hollow_split, numbers);
  check_first_batch(HOLLOW, 2, 3, hollow_stacked, numbers);
}

/* Batches before the mistake are complete. Then every call returns the error with its own message. */
static void errors_keep_their_words(void **state) {
  (void)state;
  static const struct {
    enum kind kind;
    int64_t batch_size;
    dist_status status;
    const char *words;
  } cases[] = {
      {SAID, 2, DIST_DATA_LOSS, "no row 5 in the file"},
      {UNSAID, 2, DIST_NOT_FOUND, "NOT_FOUND for element 5"},
      {NOTHING, 2, DIST_INVALID_ARGUMENT, "element 5, but set no element"},
      {PER_REPLICA, 2, DIST_INVALID_ARGUMENT, "element 5 is a per-replica value"},
      {OTHER_DTYPE, 2, DIST_INVALID_ARGUMENT, "element 5 is i32[]"},
      {OTHER_SHAPE, 2, DIST_INVALID_ARGUMENT, "element 5 is i64[1]"},
      {OTHER_KIND, 2, DIST_INVALID_ARGUMENT, "element 5 is a list"},
      {OTHER_LENGTH, 2, DIST_INVALID_ARGUMENT, "element 5 has 3 items"},
      {OTHER_KEY, 2, DIST_INVALID_ARGUMENT, "'c'"},
      {SCALAR, 0, DIST_INVALID_ARGUMENT, "element 5 is a scalar"},
      {SAID, 0, DIST_INVALID_ARGUMENT, "element 0 is a scalar"}, /* its valid elements are scalars */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int32_t prefetch = -1; prefetch <= 4; prefetch++) {
      source s = {
          .strategy = strategy_of(2, DIST_THREADS_CALLER), .kind = cases[i].kind, .size = 20, .bad_index = 5};
      dist_dataset *dataset = dataset_of(&s, cases[i].batch_size, prefetch);
      dist_iterator *iterator = pass(dataset);
      const int64_t good = cases[i].batch_size != 0  ? 5 / cases[i].batch_size
                           : cases[i].kind == SCALAR ? 5
                                                     : 0;
      dist_value *batch = NULL;
      for (int64_t step = 0; step < good; step++) {
        assert_ok(dist_iterator_next(iterator, &batch));
        dist_value_release(batch);
      }
      for (int again = 0; again < 3; again++) {
        assert_int_equal(dist_fail(DIST_INTERNAL, "something else"), DIST_INTERNAL);
        assert_fails(dist_iterator_next(iterator, &batch), cases[i].status, cases[i].words);
      }
      dist_iterator_destroy(iterator);
      dist_dataset_destroy(dataset);
      assert_int_equal(s.released, 1);
      assert_ok(dist_strategy_destroy(s.strategy));
    }
  }
}

/* A source that is prefetched ends when the iterator is destroyed, at any step. */
static void a_pass_can_end_at_any_step(void **state) {
  (void)state;
  for (int taken = 0; taken < 5; taken++) {
    for (int32_t prefetch = -1; prefetch <= 4; prefetch++) {
      source s = {.strategy = strategy_of(2, DIST_THREADS_CALLER), .kind = TREE, .size = INT64_MAX};
      dist_dataset *dataset = dataset_of(&s, 3, prefetch);
      dist_iterator *iterators[] = {pass(dataset), pass(dataset)};
      dist_dataset_destroy(dataset);
      for (int step = 0; step < taken; step++) {
        for (int k = 0; k < 2; k++) {
          dist_value *batch = NULL;
          assert_ok(dist_iterator_next(iterators[k], &batch));
          dist_value_release(batch);
        }
      }
      dist_iterator_destroy(iterators[0]);
      assert_int_equal(s.released, 0);
      dist_iterator_destroy(iterators[1]);
      assert_int_equal(s.released, 1);
      assert_int_equal(s.overlaps, 0);
      assert_ok(dist_strategy_destroy(s.strategy));
    }
  }
}

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  source s = {.strategy = strategy_of(2, DIST_THREADS_CALLER), .kind = NUMBER, .size = 3};
  dist_dataset *dataset = NULL;
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  assert_int_equal(dist_dataset_create_from_callback(NULL, element, &s, source_released, NULL, &dataset),
                   DIST_INVALID_ARGUMENT);
  assert_fails(dist_dataset_create_from_callback(s.strategy, NULL, &s, source_released, NULL, &dataset),
               DIST_INVALID_ARGUMENT, "fn is NULL");
  assert_int_equal(dist_dataset_create_from_callback(s.strategy, element, &s, source_released, NULL, NULL),
                   DIST_INVALID_ARGUMENT);
  options.shuffle = 1;
  assert_fails(
      dist_dataset_create_from_callback(s.strategy, element, &s, source_released, &options, &dataset),
      DIST_INVALID_ARGUMENT, "shuffle");
  options.shuffle = 0;
  options.global_batch_size = -2;
  assert_fails(
      dist_dataset_create_from_callback(s.strategy, element, &s, source_released, &options, &dataset),
      DIST_INVALID_ARGUMENT, "-2");
  assert_null(dataset);
  assert_int_equal(s.released, 0);
  assert_ok(dist_strategy_destroy(s.strategy));
}

/* A shuffled pass over tensors and a pass over a source. Ends at the first failure. */
static dist_status two_passes(dist_strategy *strategy, void *user_data) {
  source *s = user_data;
  s->strategy = strategy;
  static int64_t rows[9];
  const int64_t nine = 9;
  const dist_tensor tensors[] = {{rows, DIST_I64, 1, &nine, NULL}, {rows, DIST_I64, 1, &nine, NULL}};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  dist_dataset *datasets[2] = {NULL, NULL};
  dist_iterator *iterator = NULL;
  dist_status status =
      dist_dataset_create_from_callback(s->strategy, element, s, source_released, &options, &datasets[0]);
  options.shuffle = 1;
  if (status == DIST_OK) {
    status = dist_dataset_create_from_tensors(s->strategy, tensors, 2, &options, &datasets[1]);
  }
  for (int i = 0; i < 2 && status == DIST_OK; i++) {
    status = dist_iterator_create(datasets[i], &iterator);
    for (dist_value *batch = NULL; status == DIST_OK; dist_value_release(batch)) {
      status = dist_iterator_next(iterator, &batch);
      if (status != DIST_OK || batch == NULL) break;
    }
    dist_iterator_destroy(iterator);
    iterator = NULL;
  }
  for (int i = 0; i < 2; i++) dist_dataset_destroy(datasets[i]);
  return status;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  int refused = 1;
  for (long k = 0; refused; k++) {
    source s = {.kind = TREE, .size = 9};
    refused = refuse_request(k, two_passes, &s);
    assert_true(s.released <= 1);
    assert_true(k < 100000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_are_stacked),        cmocka_unit_test(a_batch_has_its_elements_structure),
      cmocka_unit_test(elements_can_be_batches),     cmocka_unit_test(strided_and_empty_elements),
      cmocka_unit_test(errors_keep_their_words),     cmocka_unit_test(a_pass_can_end_at_any_step),
      cmocka_unit_test(wrong_arguments_are_refused), cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests_name("dataset source", tests, NULL, NULL);
}
