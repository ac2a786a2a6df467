/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions in a pass (dataset.h): if a pass stops at any step and is resumed there, it yields the same
 * elements as an uninterrupted one. This holds for all sources, orders and batches, and also if the batch
 * size or the number of replicas changes.
 */
#include "dataset_support.h"

enum { ROWS = 23, MOST_SEEN = 128 };
static int64_t numbers[ROWS];

enum kind {
  ROWS_IN_MEMORY,
  SHUFFLED,
  CALLBACK,
  FILES,
  BATCHES,
  OF_FUNCTION,
  PER_REPLICA,
  CUT_ANEW,
  BATCHES_CUT_ANEW,
  KINDS
};

typedef struct made {
  dist_strategy *strategy;
  int64_t batch;
  int32_t prefetch;
} made;

static dist_status tensor_of(dist_strategy *strategy, const int64_t *from, int32_t ndim, int64_t n,
                             dist_value **out) {
  const dist_tensor tensor = {(void *)from, DIST_I64, ndim, &n, NULL};
  return dist_value_create_tensor(strategy, &tensor, out);
}

static dist_status element(dist_strategy *strategy, int64_t index, dist_value **out, void *user_data) {
  (void)strategy;
  if (index >= ROWS) return DIST_OUT_OF_RANGE;
  return tensor_of(((made *)user_data)->strategy, &numbers[index], 0, 0, out);
}

/* Batches of 0, 1, 2, 3, 0, 1, ... numbers. */
static dist_status batch_element(dist_strategy *strategy, int64_t index, dist_value **out, void *user_data) {
  (void)strategy;
  int64_t first = 0;
  for (int64_t i = 0; i < index; i++) first += i % 4;
  if (first + index % 4 > ROWS) return DIST_OUT_OF_RANGE;
  return tensor_of(((made *)user_data)->strategy, &numbers[first], 1, index % 4, out);
}

static dist_status line(dist_strategy *strategy, size_t file, const char *name, int64_t index,
                        dist_value **out, void *user_data) {
  (void)strategy;
  (void)name;
  if (index > (int64_t)file) return DIST_OUT_OF_RANGE;
  const int64_t number = 6 * (int64_t)file + index;
  return tensor_of(((made *)user_data)->strategy, &number, 0, 0, out);
}

static dist_status rows(made *m, const dist_dataset_options *options, dist_dataset **out) {
  const int64_t n = ROWS;
  const dist_tensor tensor = {numbers, DIST_I64, 1, &n, NULL};
  return dist_dataset_create_from_tensors(m->strategy, &tensor, 1, options, out);
}

static dist_status make(dist_strategy *strategy, const dist_input_context *context, dist_dataset **out,
                        void *user_data) {
  (void)strategy;
  made *m = user_data;
  (void)context;
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = m->batch;
  return rows(m, &options, out);
}

static dist_dataset *dataset_of(made *m, enum kind kind) {
  static const char *const names[] = {"a", "b", "c", "d"};
  static const int64_t sizes[] = {3, 0, 2};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.prefetch = m->prefetch;
  options.global_batch_size = kind == OF_FUNCTION || kind == PER_REPLICA ? 0 : m->batch;
  options.shuffle = kind == SHUFFLED;
  options.seed = kind == SHUFFLED ? 7 : 0;
  options.interleave = kind == FILES ? 2 : 0;
  options.replication_mode = kind == PER_REPLICA ? DIST_INPUT_PER_REPLICA : DIST_INPUT_PER_WORKER;
  if (kind == CUT_ANEW || kind == BATCHES_CUT_ANEW) {
    options.batch_sizes = sizes;
    options.num_batch_sizes = 3;
  }
  if (kind == BATCHES || kind == BATCHES_CUT_ANEW) options.global_batch_size = 0;
  dist_dataset *dataset = NULL;
  switch (kind) {
    case CALLBACK:
      assert_ok(dist_dataset_create_from_callback(m->strategy, element, m, NULL, &options, &dataset));
      break;
    case BATCHES:
    case BATCHES_CUT_ANEW:
      assert_ok(dist_dataset_create_from_callback(m->strategy, batch_element, m, NULL, &options, &dataset));
      break;
    case FILES:
      assert_ok(dist_dataset_create_from_files(m->strategy, names, 4, line, m, NULL, &options, &dataset));
      break;
    case OF_FUNCTION:
    case PER_REPLICA:
      assert_ok(dist_dataset_create_from_function(m->strategy, make, m, &options, &dataset));
      break;
    default: assert_ok(rows(m, &options, &dataset)); break;
  }
  return dataset;
}

/* Appends `steps` batches of a pass (all if < 0) to `all`: the size for each replica, and then its
 * numbers. */
static void take(dist_iterator *iterator, int32_t replicas, int64_t steps, int64_t *all, size_t *n) {
  for (int64_t k = 0; k != steps; k++) {
    dist_value *batch = NULL;
    const dist_status status = dist_iterator_next(iterator, &batch);
    assert_ok(status);
    if (batch == NULL) return;
    for (int32_t r = 0; r < replicas; r++) {
      const dist_tensor tensor = component(batch, replicas, r);
      assert_true(*n + 1 + (size_t)tensor.shape[0] <= MOST_SEEN);
      all[(*n)++] = -tensor.shape[0];
      if (tensor.shape[0] > 0) memcpy(all + *n, tensor.data, (size_t)tensor.shape[0] * sizeof *all);
      *n += (size_t)tensor.shape[0];
    }
    dist_value_release(batch);
  }
}

static void every_step_can_be_gone_on_from(void **state) {
  (void)state;
  for (int32_t replicas = 1; replicas <= 3; replicas++) {
    made m = {strategy_of(replicas, DIST_THREADS_CALLER), 4, 0};
    for (int kind = 0; kind < KINDS; kind++) {
      for (m.prefetch = -1; m.prefetch <= 2; m.prefetch++) {
        dist_dataset *dataset = dataset_of(&m, (enum kind)kind);
        for (int64_t left_at = 0; left_at <= 8; left_at++) {
          int64_t whole[MOST_SEEN], resumed[MOST_SEEN];
          size_t whole_n = 0, n = 0;
          dist_iterator *iterator = NULL;
          dist_position position = DIST_POSITION_INIT, same = DIST_POSITION_INIT;
          assert_ok(dist_iterator_create(dataset, &iterator));
          take(iterator, replicas, left_at, whole, &whole_n);
          memcpy(resumed, whole, sizeof whole);
          n = whole_n;
          assert_ok(dist_iterator_position(iterator, &position));
          take(iterator, replicas, -1, whole, &whole_n);
          dist_iterator_destroy(iterator);
          assert_ok(dist_iterator_create_at(dataset, &position, &iterator));
          assert_ok(dist_iterator_position(iterator, &same));
          assert_memory_equal(&same, &position, sizeof same);
          take(iterator, replicas, -1, resumed, &n);
          dist_iterator_destroy(iterator);
          if (n != whole_n || memcmp(resumed, whole, n * sizeof *whole) != 0) {
            fail_msg("kind %d, %d replicas, left at step %lld", kind, (int)replicas, (long long)left_at);
          }
        }
        dist_dataset_destroy(dataset);
      }
    }
    assert_ok(dist_strategy_destroy(m.strategy));
  }
}

/* A pass continues from two replicas and batches of 6 to three replicas and batches of 5 with the same
 * elements. */
static void another_layout_goes_on(void **state) {
  (void)state;
  made before = {strategy_of(2, DIST_THREADS_CALLER), 6, 0},
       after = {strategy_of(3, DIST_THREADS_CALLER), 5, 0};
  dist_dataset *first = dataset_of(&before, SHUFFLED), *second = dataset_of(&after, SHUFFLED);
  int64_t order[ROWS], got[ROWS];
  dist_iterator *iterator = NULL;
  dist_position position = DIST_POSITION_INIT;
  for (int pass = 0; pass < 2; pass++) {
    dist_iterator_destroy(iterator);
    assert_ok(dist_iterator_create(first, &iterator));
  }
  for (int step = 0; step < 2; step++) {
    dist_value *batch = NULL;
    assert_ok(dist_iterator_next(iterator, &batch));
    dist_value_release(batch);
  }
  assert_ok(dist_iterator_position(iterator, &position));
  assert_int_equal(position.pass, 1);
  assert_int_equal(position.elements, 12);
  assert_int_equal(read_pass(iterator, 2, order, ROWS), ROWS - 12);
  dist_iterator_destroy(iterator);
  assert_ok(dist_iterator_create_at(second, &position, &iterator));
  assert_int_equal(read_pass(iterator, 3, got, ROWS), ROWS - 12);
  assert_memory_equal(got, order, (ROWS - 12) * sizeof *got);
  dist_iterator_destroy(iterator);
  /* The next pass has the next number. */
  assert_ok(dist_iterator_create(second, &iterator));
  assert_ok(dist_iterator_position(iterator, &position));
  assert_int_equal(position.pass, 2);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(first);
  dist_dataset_destroy(second);
  assert_ok(dist_strategy_destroy(before.strategy));
  assert_ok(dist_strategy_destroy(after.strategy));
}

static void positions_that_are_none(void **state) {
  (void)state;
  made m = {strategy_of(2, DIST_THREADS_CALLER), 4, 0};
  const dist_position bad[] = {{sizeof *bad, 0, -1, 0, 0, 0}, {sizeof *bad, 0, 0, -1, 0, 0},
                               {sizeof *bad, 0, 0, 0, -1, 0}, {sizeof *bad, 0, 0, 0, 0, -1},
                               {sizeof *bad, 1, 0, 0, 0, 0},  {3, 0, 0, 0, 0, 0}};
  const enum kind kinds[] = {ROWS_IN_MEMORY, CALLBACK, FILES, OF_FUNCTION};
  for (size_t k = 0; k < 4; k++) {
    dist_dataset *dataset = dataset_of(&m, kinds[k]);
    dist_iterator *iterator = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
      assert_int_equal(dist_iterator_create_at(dataset, &bad[i], &iterator), DIST_INVALID_ARGUMENT);
    }
    dist_position far = DIST_POSITION_INIT;
    far.elements = INT64_MAX;
    if (kinds[k] != CALLBACK) {
      assert_int_equal(dist_iterator_create_at(dataset, &far, &iterator), DIST_INVALID_ARGUMENT);
    }
    assert_null(iterator);
    assert_int_equal(dist_iterator_create_at(dataset, NULL, &iterator), DIST_INVALID_ARGUMENT);
    assert_int_equal(dist_iterator_position(NULL, &far), DIST_INVALID_ARGUMENT);
    assert_ok(dist_iterator_create(dataset, &iterator));
    assert_int_equal(dist_iterator_position(iterator, NULL), DIST_INVALID_ARGUMENT);
    for (far.struct_size = 0; far.struct_size < 8; far.struct_size++) {
      assert_fails(dist_iterator_position(iterator, &far), DIST_INVALID_ARGUMENT,
                   "dist_position.struct_size is");
    }
    dist_iterator_destroy(iterator);
    dist_dataset_destroy(dataset);
  }
  assert_ok(dist_strategy_destroy(m.strategy));
}

/* Numbers with which a pass cannot continue are rejected, with their names, by every kind of dataset. */
static void numbers_out_of_range_are_named(void **state) {
  (void)state;
  static const char *const names[] = {"pass", "elements", "examples", "batches"};
  const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, ((int64_t)1 << 62) + 1};
  made m = {strategy_of(2, DIST_THREADS_CALLER), 4, 0};
  const enum kind kinds[] = {ROWS_IN_MEMORY, CALLBACK, FILES, OF_FUNCTION};
  for (size_t k = 0; k < 4; k++) {
    dist_dataset *dataset = dataset_of(&m, kinds[k]);
    dist_iterator *iterator = NULL;
    for (size_t i = 0; i < 16; i++) {
      dist_position position = DIST_POSITION_INIT;
      (&position.pass)[i / 4] = bad[i % 4];
      assert_int_equal(dist_iterator_create_at(dataset, &position, &iterator), DIST_INVALID_ARGUMENT);
      char words[64];
      snprintf(words, sizeof words, "dist_position.%s is %lld", names[i / 4], (long long)bad[i % 4]);
      if (strstr(dist_last_error(), words) == NULL) fail_msg("%s: %s", words, dist_last_error());
    }
    /* The next pass has the right number nevertheless. */
    dist_position last = DIST_POSITION_INIT;
    last.pass = (int64_t)1 << 62;
    assert_ok(dist_iterator_create_at(dataset, &last, &iterator));
    dist_iterator_destroy(iterator);
    assert_ok(dist_iterator_create(dataset, &iterator));
    assert_ok(dist_iterator_position(iterator, &last));
    assert_int_equal(last.pass, ((int64_t)1 << 62) + 1);
    dist_iterator_destroy(iterator);
    dist_dataset_destroy(dataset);
  }
  assert_ok(dist_strategy_destroy(m.strategy));
}

int main(void) {
  for (int64_t i = 0; i < ROWS; i++) numbers[i] = i;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_step_can_be_gone_on_from),
      cmocka_unit_test(another_layout_goes_on),
      cmocka_unit_test(positions_that_are_none),
      cmocka_unit_test(numbers_out_of_range_are_named),
  };
  return cmocka_run_group_tests_name("dataset position", tests, NULL, NULL);
}
