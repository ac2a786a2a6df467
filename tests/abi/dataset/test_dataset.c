/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets of tensors in memory (dataset.h): which replica gets which rows, in which order, and which
 * arguments are rejected.
 */
#include "dataset_support.h"

#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 13 };
static int64_t rows[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

/* A dataset of 0 .. n-1. */
static dist_dataset *numbers(dist_strategy *strategy, int64_t n, const dist_dataset_options *options) {
  const dist_tensor tensor = {rows, DIST_I64, 1, &n, NULL};
  dist_dataset *dataset = NULL;
  assert_ok(dist_dataset_create_from_tensors(strategy, &tensor, 1, options, &dataset));
  return dataset;
}

static dist_iterator *pass(dist_dataset *dataset) {
  dist_iterator *iterator = NULL;
  assert_ok(dist_iterator_create(dataset, &iterator));
  return iterator;
}

static void check_end(dist_iterator *iterator) {
  dist_value *batch = (dist_value *)&rows;
  for (int i = 0; i < 2; i++) {
    assert_ok(dist_iterator_next(iterator, &batch));
    assert_null(batch);
  }
}

/* Compares every number of rows, batch size and number of replicas with the rule in dataset.h. */
static void batches_are_split_by_their_own_size(void **state) {
  (void)state;
  for (int32_t replicas = 1; replicas <= 5; replicas++) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (int64_t n = 0; n <= ROWS; n++) {
      for (int64_t size = 1; size <= 15; size++) {
        for (int32_t drop = 0; drop <= 1; drop++) {
          dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
          options.global_batch_size = size;
          options.drop_remainder = drop;
          options.prefetch = (int32_t)(n + size) % 4 - 1;
          dist_dataset *dataset = numbers(strategy, n, &options);
          dist_iterator *iterator = pass(dataset);
          for (int64_t first = 0; first < n; first += size) {
            const int64_t m = smaller(size, n - first);
            if (drop && m < size) break;
            dist_value *batch = NULL;
            assert_ok(dist_iterator_next(iterator, &batch));
            check_leaf(batch, replicas, rows + first, m);
            dist_value_release(batch);
          }
          check_end(iterator);
          dist_iterator_destroy(iterator);
          dist_dataset_destroy(dataset);
        }
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* Ten rows in batches of eight on two replicas: 0-3 and 4-7, then 8 and 9. */
static void the_documented_example(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 8;
  dist_dataset *dataset = numbers(strategy, 10, &options);
  dist_iterator *iterator = pass(dataset);
  const int64_t expected[2][2][5] = {{{4, 0, 1, 2, 3}, {4, 4, 5, 6, 7}}, {{1, 8}, {1, 9}}};
  for (int step = 0; step < 2; step++) {
    dist_value *batch = NULL;
    assert_ok(dist_iterator_next(iterator, &batch));
    for (int r = 0; r < 2; r++) {
      const dist_tensor tensor = component(batch, 2, r);
      assert_int_equal(tensor.shape[0], expected[step][r][0]);
      assert_memory_equal(tensor.data, &expected[step][r][1], (size_t)tensor.shape[0] * sizeof(int64_t));
    }
    dist_value_release(batch);
  }
  check_end(iterator);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(strategy));
}

/* Features and labels form a list of two leaves. Strided tensors are accepted, and data are copied. */
static void several_tensors_are_a_list(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  float features[2][5]; /* column-major: row i is features[0][i], features[1][i] */
  int16_t labels[5];
  for (int i = 0; i < 5; i++) {
    features[0][i] = (float)i;
    features[1][i] = (float)(i + 100);
    labels[i] = (int16_t)(-i);
  }
  const int64_t shape[] = {5, 2}, strides[] = {1, 5};
  const dist_tensor tensors[] = {{features, DIST_F32, 2, shape, strides}, {labels, DIST_I16, 1, shape, NULL}};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 3;
  dist_dataset *dataset = NULL;
  assert_ok(dist_dataset_create_from_tensors(strategy, tensors, 2, &options, &dataset));
  memset(features, 0, sizeof features);
  memset(labels, 0, sizeof labels);
  dist_iterator *iterator = pass(dataset);
  dist_dataset_destroy(dataset);
  int64_t row = 0;
  for (int step = 0; step < 2; step++) {
    dist_value *batch = NULL;
    assert_ok(dist_iterator_next(iterator, &batch));
    assert_int_equal(dist_value_kind_of(batch), DIST_VALUE_LIST);
    assert_int_equal(dist_value_size(batch), 2);
    for (int r = 0; r < 2; r++) {
      const dist_tensor f = component(dist_value_item(batch, 0), 2, r),
                        l = component(dist_value_item(batch, 1), 2, r);
      assert_int_equal(f.shape[1], 2);
      assert_int_equal(f.shape[0], l.shape[0]);
      assert_int_equal(l.dtype, DIST_I16);
      for (int64_t i = 0; i < f.shape[0]; i++, row++) {
        assert_true(((const float *)f.data)[2 * i] == (float)row);
        assert_true(((const float *)f.data)[2 * i + 1] == (float)(row + 100));
        assert_int_equal(((const int16_t *)l.data)[i], -row);
      }
    }
    dist_value_release(batch);
  }
  assert_int_equal(row, 5);
  check_end(iterator);
  dist_iterator_destroy(iterator);
  assert_ok(dist_strategy_destroy(strategy));
}

/* With batch size 0, each row is a global batch, whose first dimension is divided. */
static void rows_can_be_batches(void **state) {
  (void)state;
  for (int32_t replicas = 1; replicas <= 3; replicas++) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    const int64_t shape[] = {3, 4};
    const dist_tensor tensor = {rows, DIST_I64, 2, shape, NULL};
    dist_dataset *dataset = NULL;
    assert_ok(dist_dataset_create_from_tensors(strategy, &tensor, 1, NULL, &dataset));
    dist_iterator *iterator = pass(dataset);
    for (int step = 0; step < 3; step++) {
      dist_value *batch = NULL;
      assert_ok(dist_iterator_next(iterator, &batch));
      check_leaf(batch, replicas, rows + 4 * step, 4);
      dist_value_release(batch);
    }
    check_end(iterator);
    dist_iterator_destroy(iterator);
    dist_dataset_destroy(dataset);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* A single replica gets such rows unchanged: scalars, and tensors with rows of different lengths. */
static void one_replica_gets_rows_as_they_are(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  const int64_t three = 3, shape[] = {3, 2};
  const dist_tensor tensors[] = {{rows, DIST_I64, 1, &three, NULL}, {rows, DIST_I64, 2, shape, NULL}};
  dist_dataset *dataset = NULL;
  assert_ok(dist_dataset_create_from_tensors(strategy, tensors, 2, NULL, &dataset));
  dist_iterator *iterator = pass(dataset);
  for (int64_t step = 0; step < 3; step++) {
    dist_value *batch = NULL;
    dist_tensor scalar, vector;
    assert_ok(dist_iterator_next(iterator, &batch));
    assert_ok(dist_value_tensor(dist_value_item(batch, 0), &scalar));
    assert_ok(dist_value_tensor(dist_value_item(batch, 1), &vector));
    assert_int_equal(scalar.ndim, 0);
    assert_int_equal(*(const int64_t *)scalar.data, step);
    assert_int_equal(vector.shape[0], 2);
    assert_memory_equal(vector.data, rows + 2 * step, 2 * sizeof *rows);
    dist_value_release(batch);
  }
  check_end(iterator);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(strategy));
}

static void shuffled(int32_t replicas, int32_t prefetch, uint64_t seed, int passes, int64_t out[][10]) {
  dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  options.shuffle = 1;
  options.seed = seed;
  options.prefetch = prefetch;
  dist_dataset *dataset = numbers(strategy, 10, &options);
  for (int i = 0; i < passes; i++) {
    dist_iterator *iterator = pass(dataset);
    assert_int_equal(read_pass(iterator, replicas, out[i], 10), 10);
    dist_iterator_destroy(iterator);
  }
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(strategy));
}

/* The order is a function of seed and pass. It does not depend on the replicas, on prefetching, or on the
 * process. */
static void shuffling_is_reproducible(void **state) {
  (void)state;
  static const int64_t known[2][10] = {{2, 7, 8, 9, 1, 4, 3, 6, 0, 5}, {5, 3, 2, 0, 7, 9, 6, 8, 1, 4}};
  int64_t orders[2][10];
  for (int32_t replicas = 1; replicas <= 3; replicas++) {
    for (int32_t prefetch = -1; prefetch <= 4; prefetch++) {
      shuffled(replicas, prefetch, 42, 2, orders);
      assert_memory_equal(orders, known, sizeof known);
    }
  }
  shuffled(2, 0, 43, 2, orders);
  assert_memory_not_equal(orders[0], known[0], sizeof known[0]);
}

/* Short passes and a long one: libdist tries both ways to make batches, chooses one and reports it. The
 * batches are the same. */
static void what_is_measured_changes_no_batch(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 2;
  options.shuffle = 1;
  dist_dataset *measured = numbers(strategy, 10, &options);
  options.prefetch = -1;
  dist_dataset *in_place = numbers(strategy, 10, &options);
  char text[TEXT_BYTES];
  assert_ok(dist_dataset_explain(measured, keep_text, text));
  assert_non_null(strstr(text, "prefetched: 1 batch, if measurements show that this is faster\n"));
  for (int i = 0; i < 300; i++) {
    int64_t orders[2][10];
    dist_iterator *iterators[] = {pass(measured), pass(in_place)};
    for (int j = 0; j < 2; j++) {
      assert_int_equal(read_pass(iterators[j], 2, orders[j], 10), 10);
      check_end(iterators[j]);
      dist_iterator_destroy(iterators[j]);
    }
    assert_memory_equal(orders[0], orders[1], sizeof orders[0]);
  }
  assert_ok(dist_dataset_explain(measured, keep_text, text));
  assert_non_null(strstr(text, "; the time from one batch to the next was "));
  dist_dataset_destroy(measured);
  dist_dataset_destroy(in_place);
  assert_ok(dist_strategy_destroy(strategy));
}

static void iterators_are_independent(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 2;
  dist_dataset *dataset = numbers(strategy, 7, &options);
  dist_iterator *iterators[] = {pass(dataset), pass(dataset)};
  dist_dataset_destroy(dataset);
  for (int64_t first = 0; first < 7; first += 2) {
    for (int i = 0; i < 2; i++) {
      dist_value *batch = NULL;
      assert_ok(dist_iterator_next(iterators[i], &batch));
      check_leaf(batch, 3, rows + first, smaller(2, 7 - first));
      dist_value_release(batch);
    }
  }
  for (int i = 0; i < 2; i++) {
    check_end(iterators[i]);
    dist_iterator_destroy(iterators[i]);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* Datasets, iterators and batches can be used after the strategy has been destroyed. */
static void passes_outlive_the_strategy(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  dist_dataset *dataset = numbers(strategy, 8, &options);
  assert_ok(dist_strategy_destroy(strategy));
  dist_iterator *iterator = pass(dataset);
  dist_dataset_destroy(dataset);
  dist_value *batch = NULL;
  assert_ok(dist_iterator_next(iterator, &batch));
  dist_iterator_destroy(iterator); /* early, with one batch left */
  check_leaf(batch, 2, rows, 4);
  dist_value_release(batch);
  dist_iterator_destroy(NULL);
  dist_dataset_destroy(NULL);
}

/* Rows that are batches but cannot be divided. A dataset of them may exist, because one replica takes them
 * whole, but a pass may not. */
static void check_no_pass(dist_strategy *strategy, const dist_tensor *tensors, size_t n, const char *words) {
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  assert_ok(dist_dataset_create_from_tensors(strategy, tensors, n, NULL, &dataset));
  assert_fails(dist_iterator_create(dataset, &iterator), DIST_INVALID_ARGUMENT, words);
  assert_null(iterator);
  dist_dataset_destroy(dataset);
}

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_dataset *dataset = NULL;
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 2;
  const int64_t four = 4, five = 5, uneven[] = {4, 3}, even[] = {4, 2};
  const dist_tensor vector = {rows, DIST_I64, 1, &four, NULL}, scalar = {rows, DIST_I64, 0, NULL, NULL};
  const dist_tensor lengths[] = {vector, {rows, DIST_I64, 1, &five, NULL}};
  const dist_tensor batches[] = {{rows, DIST_I64, 2, even, NULL}, {rows, DIST_I64, 2, uneven, NULL}};
  const dist_tensor no_dtype = {rows, 0, 1, &four, NULL};

  assert_int_equal(dist_dataset_create_from_tensors(NULL, &vector, 1, &options, &dataset),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_dataset_create_from_tensors(strategy, NULL, 1, &options, &dataset),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_dataset_create_from_tensors(strategy, &vector, 1, &options, NULL),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_iterator_create(NULL, NULL), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_iterator_next(NULL, NULL), DIST_INVALID_ARGUMENT);
  assert_fails(dist_dataset_create_from_tensors(strategy, &vector, 0, &options, &dataset),
               DIST_INVALID_ARGUMENT, "there are no tensors");
  assert_fails(dist_dataset_create_from_tensors(strategy, &scalar, 1, &options, &dataset),
               DIST_INVALID_ARGUMENT, "scalar");
  assert_fails(dist_dataset_create_from_tensors(strategy, &no_dtype, 1, &options, &dataset),
               DIST_INVALID_ARGUMENT, "dtype");
  assert_fails(dist_dataset_create_from_tensors(strategy, lengths, 2, &options, &dataset),
               DIST_INVALID_ARGUMENT, "tensors[1] has 5 rows, but tensors[0] has 4");
  options.global_batch_size = 0;
  check_no_pass(strategy, &vector, 1, "global_batch_size");
  check_no_pass(strategy, batches, 2, "3 examples");
  options.global_batch_size = -1;
  assert_fails(dist_dataset_create_from_tensors(strategy, &vector, 1, &options, &dataset),
               DIST_INVALID_ARGUMENT, "-1");
  options.global_batch_size = 2;
  options.shuffle = 2;
  assert_fails(dist_dataset_create_from_tensors(strategy, &vector, 1, &options, &dataset),
               DIST_INVALID_ARGUMENT, "shuffle");
  options.shuffle = 0;
  options.drop_remainder = -1;
  assert_fails(dist_dataset_create_from_tensors(strategy, &vector, 1, &options, &dataset),
               DIST_INVALID_ARGUMENT, "drop_remainder");
  options.drop_remainder = 0;
  options.struct_size = 3;
  assert_int_equal(dist_dataset_create_from_tensors(strategy, &vector, 1, &options, &dataset),
                   DIST_INVALID_ARGUMENT);
  assert_null(dataset);
  assert_ok(dist_strategy_destroy(strategy));
}

/* A forked child does not have the threads that make batches ahead. It gets an error and never waits. */
static void a_forked_child_gets_an_error(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  dist_dataset *dataset = numbers(strategy, 8, &options);
  dist_iterator *iterator = pass(dataset);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dist_value *batch = NULL;
    dist_iterator *second = NULL;
    const int failures = (dist_iterator_next(iterator, &batch) != DIST_FAILED_PRECONDITION) +
                         2 * (dist_iterator_create(dataset, &second) != DIST_FAILED_PRECONDITION);
    dist_iterator_destroy(iterator);
    dist_dataset_destroy(dataset);
    _exit(failures);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  int64_t all[8];
  assert_int_equal(read_pass(iterator, 2, all, 8), 8);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(batches_are_split_by_their_own_size),
      cmocka_unit_test(the_documented_example),
      cmocka_unit_test(several_tensors_are_a_list),
      cmocka_unit_test(rows_can_be_batches),
      cmocka_unit_test(shuffling_is_reproducible),
      cmocka_unit_test(what_is_measured_changes_no_batch),
      cmocka_unit_test(iterators_are_independent),
      cmocka_unit_test(passes_outlive_the_strategy),
      cmocka_unit_test(wrong_arguments_are_refused),
      cmocka_unit_test(a_forked_child_gets_an_error),
      cmocka_unit_test(one_replica_gets_rows_as_they_are),
  };
  return cmocka_run_group_tests_name("dataset", tests, NULL, NULL);
}
