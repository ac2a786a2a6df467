/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets that several workers read together (dataset.h), sharded by elements, files or batches: every
 * example is read exactly once, in parts whose sizes add up. Also rejected arguments.
 */
#include "dataset_support.h"

enum { MOST_EXAMPLES = 64, FILES = 5 };

static int64_t numbers[MOST_EXAMPLES];

static dist_dataset *rows_of(dist_strategy *strategy, int64_t n, const dist_dataset_options *options) {
  const dist_tensor tensor = {numbers, DIST_I64, 1, &n, NULL};
  dist_dataset *dataset = NULL;
  assert_ok(dist_dataset_create_from_tensors(strategy, &tensor, 1, options, &dataset));
  return dataset;
}

/* Reads a pass, counts how often each number occurs, and returns the number of steps. */
static int count_pass(dist_dataset *dataset, int32_t replicas, int *counts) {
  dist_iterator *iterator = NULL;
  assert_ok(dist_iterator_create(dataset, &iterator));
  int steps = 0;
  for (;; steps++) {
    dist_value *batch = NULL;
    const dist_status status = dist_iterator_next(iterator, &batch);
    assert_ok(status);
    if (batch == NULL) break;
    for (int32_t r = 0; r < replicas; r++) {
      const dist_tensor tensor = component(batch, replicas, r);
      for (int64_t i = 0; i < tensor.shape[0]; i++) counts[((const int64_t *)tensor.data)[i]]++;
    }
    dist_value_release(batch);
  }
  dist_iterator_destroy(iterator);
  return steps;
}

static uint64_t draw(uint64_t *seed, uint64_t below) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (*seed >> 33) % below;
}

/* For random rows, batch sizes, workers, replicas and policies, no element is lost or repeated. */
static void every_example_comes_once(void **state) {
  (void)state;
  const uint64_t first_seed = 20261121;
  print_message("# seed %llu\n", (unsigned long long)first_seed);
  uint64_t seed = first_seed;
  dist_strategy *strategies[] = {strategy_of(1, DIST_THREADS_CALLER), strategy_of(2, DIST_THREADS_CALLER),
                                 strategy_of(3, DIST_THREADS_CALLER)};
  for (int round = 0; round < 400; round++) {
    const int32_t replicas = 1 + (int32_t)draw(&seed, 3);
    dist_strategy *strategy = strategies[replicas - 1];
    const int64_t n = (int64_t)draw(&seed, MOST_EXAMPLES);
    const int32_t ways[] = {DIST_SHARD_AUTO, DIST_SHARD_DATA, DIST_SHARD_HINT, DIST_SHARD_OFF};
    dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
    options.global_batch_size = 1 + (int64_t)draw(&seed, 9);
    options.shard_policy = ways[draw(&seed, 4)];
    options.num_workers = 1 + (int32_t)draw(&seed, 4);
    options.worker_batches = (int32_t)draw(&seed, 2);
    options.shard_hint = options.shard_policy == DIST_SHARD_HINT;
    options.shuffle = (int32_t)draw(&seed, 2);
    options.prefetch = (int32_t)draw(&seed, 3) - 1;
    int counts[MOST_EXAMPLES] = {0};
    int steps[4];
    dist_status covered = DIST_OK;
    for (int32_t worker = 0; worker < options.num_workers; worker++) {
      options.worker_index = worker;
      dist_dataset *dataset = rows_of(strategy, n, &options);
      steps[worker] = count_pass(dataset, replicas, counts);
      covered = dist_dataset_check_shards(dataset, 0);
      dist_dataset_destroy(dataset);
    }
    const int each = options.shard_policy == DIST_SHARD_OFF ? options.num_workers : 1;
    for (int64_t i = 0; i < n; i++) {
      if (counts[i] != each) fail_msg("round %d: number %lld came %d times", round, (long long)i, counts[i]);
    }
    assert_int_equal(covered, each == 1 || n == 0 ? DIST_OK : DIST_DATA_LOSS);
    /* If batches are divided for all workers, each has a part, which may be empty. */
    const int cut_for_all = !options.worker_batches && options.shard_policy <= DIST_SHARD_DATA && each == 1;
    for (int32_t worker = 1; cut_for_all && worker < options.num_workers; worker++) {
      if (options.shard_policy != DIST_SHARD_HINT) assert_int_equal(steps[worker], steps[0]);
    }
  }
  for (int i = 0; i < 3; i++) assert_ok(dist_strategy_destroy(strategies[i]));
}

/* In each step, the parts of all workers add up to the batch. In total, all workers get equally much, and
 * sizes differ by at most one. */
static void batch_sizes_add_up(void **state) {
  (void)state;
  int64_t sizes[4][16];
  for (int64_t batch = 0; batch <= 40; batch++) {
    for (int32_t workers = 1; workers <= 4; workers++) {
      for (int32_t replicas = 1; replicas <= 4; replicas++) {
        const int32_t n = workers * replicas;
        for (int32_t w = 0; w < workers; w++) {
          assert_ok(dist_batch_sizes_for_worker(batch, workers, replicas, w, sizes[w], (size_t)n));
          int64_t sum = 0;
          for (int32_t i = 0; i < n; i++) {
            assert_in_range(sizes[w][i], (uintmax_t)(batch / n), (uintmax_t)(batch / n + 1));
            sum += sizes[w][i];
          }
          assert_int_equal(sum, batch);
        }
        for (int32_t step = 0; step < workers; step++) {
          int64_t sum = 0;
          for (int32_t w = 0; w < workers; w++) {
            for (int32_t r = 0; r < replicas; r++) sum += sizes[w][step * replicas + r];
          }
          assert_int_equal(sum, batch);
        }
      }
    }
  }
  const int64_t expected[2][4] = {{2, 1, 1, 1}, {1, 1, 2, 1}};
  for (int32_t w = 0; w < 2; w++) {
    assert_ok(dist_batch_sizes_for_worker(5, 2, 2, w, sizes[w], 4));
    assert_memory_equal(sizes[w], expected[w], sizeof expected[w]);
  }
  assert_fails(dist_batch_sizes_for_worker(-1, 1, 1, 0, sizes[0], 1), DIST_INVALID_ARGUMENT, "-1");
  assert_fails(dist_batch_sizes_for_worker(4, 0, 1, 0, sizes[0], 0), DIST_INVALID_ARGUMENT, "0 workers");
  assert_fails(dist_batch_sizes_for_worker(4, 2, 1, 2, sizes[0], 2), DIST_INVALID_ARGUMENT, "worker is 2");
  assert_fails(dist_batch_sizes_for_worker(4, 2, 1, 0, sizes[0], 3), DIST_INVALID_ARGUMENT, "room for 3");
  assert_int_equal(dist_batch_sizes_for_worker(4, 1, 1, 0, NULL, 1), DIST_INVALID_ARGUMENT);
}

/* ---- Files: file i contains 10*i + j with j = 0 .. i mod 3 ---- */

static dist_status line(dist_strategy *strategy, size_t file, const char *name, int64_t index,
                        dist_value **out, void *user_data) {
  (void)strategy;
  if (name[0] != (char)('a' + file)) return dist_fail(DIST_INTERNAL, "another file's name");
  if (index > (int64_t)file % 3) return DIST_OUT_OF_RANGE;
  int64_t number = 10 * (int64_t)file + index;
  const dist_tensor tensor = {&number, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor((dist_strategy *)user_data, &tensor, out);
}

static const char *const names[FILES] = {"a", "b", "c", "d", "e"};

static dist_dataset *files(dist_strategy *strategy, const dist_dataset_options *options) {
  dist_dataset *dataset = NULL;
  assert_ok(dist_dataset_create_from_files(strategy, names, FILES, line, strategy, NULL, options, &dataset));
  return dataset;
}

static void check_numbers(dist_dataset *dataset, const int64_t *expected, int64_t n) {
  int64_t got[MOST_EXAMPLES];
  dist_iterator *iterator = NULL;
  assert_ok(dist_iterator_create(dataset, &iterator));
  assert_int_equal(read_pass(iterator, 1, got, MOST_EXAMPLES), n);
  assert_memory_equal(got, expected, (size_t)n * sizeof *expected);
  dist_iterator_destroy(iterator);
}

static void files_go_to_workers_whole(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  static const int64_t all[] = {0, 10, 11, 20, 21, 22, 30, 40, 41}, zero[] = {0, 20, 21, 22, 40, 41},
                       one[] = {10, 11, 30}, in_turn[] = {0, 10, 11, 20, 21, 30, 22, 40, 41},
                       zero_in_turn[] = {0, 20, 21, 40, 22, 41};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 2;
  const struct {
    int32_t workers, index, policy, interleave;
    const int64_t *expected;
    int64_t n;
  } cases[] = {
      {0, 0, DIST_SHARD_AUTO, 0, all, 9},     {2, 0, DIST_SHARD_AUTO, 0, zero, 6},
      {2, 1, DIST_SHARD_FILE, 0, one, 3},     {2, 1, DIST_SHARD_OFF, 0, all, 9},
      {0, 0, DIST_SHARD_AUTO, 2, in_turn, 9}, {2, 0, DIST_SHARD_FILE, 2, zero_in_turn, 6},
      {2, 0, DIST_SHARD_HINT, 1, all, 9},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options.num_workers = cases[i].workers;
    options.worker_index = cases[i].index;
    options.shard_policy = cases[i].policy;
    options.interleave = cases[i].interleave;
    options.worker_batches = 1;
    dist_dataset *dataset = files(strategy, &options);
    check_numbers(dataset, cases[i].expected, cases[i].n);
    const int repeated = cases[i].workers > 1 && cases[i].expected == all;
    assert_int_equal(dist_dataset_check_shards(dataset, 0), repeated ? DIST_DATA_LOSS : DIST_OK);
    dist_dataset_destroy(dataset);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* Rebatches the source's batches into pieces of given sizes. A piece of size 0 is a batch, too. */
static void batches_are_cut_anew(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  const int64_t sizes[] = {0, 4};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.batch_sizes = sizes;
  options.num_batch_sizes = 2;
  for (int drop = 0; drop < 2; drop++) {
    options.drop_remainder = drop;
    options.global_batch_size = 3;
    dist_dataset *dataset = rows_of(strategy, 6, &options);
    dist_iterator *iterator = NULL;
    assert_ok(dist_iterator_create(dataset, &iterator));
    const int64_t expected[] = {0, 4, 0, 2};
    for (int step = 0; step < 4 - drop; step++) {
      dist_value *batch = NULL;
      assert_ok(dist_iterator_next(iterator, &batch));
      assert_int_equal(component(batch, 1, 0).shape[0], expected[step]);
      dist_value_release(batch);
    }
    dist_value *none = NULL;
    assert_ok(dist_iterator_next(iterator, &none));
    assert_null(none);
    dist_iterator_destroy(iterator);
    dist_dataset_destroy(dataset);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static void mistakes_are_refused(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  const int64_t bad_sizes[] = {2, -1}, no_sizes[] = {0, 0}, four = 4;
  const dist_tensor rows = {numbers, DIST_I64, 1, &four, NULL};
  const struct {
    dist_dataset_options options;
    dist_status status;
    const char *words;
  } cases[] = {
      {{.shard_policy = 4}, DIST_INVALID_ARGUMENT, "shard_policy is 4"},
      {{.shard_policy = -2}, DIST_INVALID_ARGUMENT, "shard_policy is -2"},
      {{.num_workers = -1}, DIST_INVALID_ARGUMENT, "num_workers is -1"},
      {{.num_workers = INT32_MAX}, DIST_INVALID_ARGUMENT, "num_workers"},
      {{.num_workers = 2, .worker_index = 2}, DIST_INVALID_ARGUMENT, "worker_index is 2"},
      {{.num_workers = 2, .worker_index = -1, .shard_policy = DIST_SHARD_OFF}, DIST_INVALID_ARGUMENT, "-1"},
      {{.worker_index = 1}, DIST_INVALID_ARGUMENT, "worker_index is 1"},
      {{.num_workers = 2, .shard_policy = DIST_SHARD_FILE}, DIST_NOT_FOUND, "no files"},
      {{.num_workers = 2, .shard_hint = 1}, DIST_FAILED_PRECONDITION, "shard_hint"},
      {{.shard_hint = 1, .shard_policy = DIST_SHARD_OFF}, DIST_FAILED_PRECONDITION, "shard_hint"},
      {{.worker_batches = 2}, DIST_INVALID_ARGUMENT, "worker_batches"},
      {{.static_shapes = -2}, DIST_INVALID_ARGUMENT, "static_shapes"},
      {{.interleave = -1}, DIST_INVALID_ARGUMENT, "interleave"},
      {{.replication_mode = 2}, DIST_INVALID_ARGUMENT, "replication_mode"},
      {{.replication_mode = DIST_INPUT_PER_REPLICA}, DIST_UNIMPLEMENTED, "PER_REPLICA"},
      {{.batch_sizes = bad_sizes, .num_batch_sizes = 2}, DIST_INVALID_ARGUMENT, "batch_sizes[1] is -1"},
      {{.batch_sizes = no_sizes, .num_batch_sizes = 2}, DIST_INVALID_ARGUMENT, "never end"},
      {{.batch_sizes = bad_sizes}, DIST_INVALID_ARGUMENT, "num_batch_sizes"},
      {{.num_batch_sizes = 1}, DIST_INVALID_ARGUMENT, "num_batch_sizes"},
      {{.batch_sizes = &four, .num_batch_sizes = 1, .num_workers = 2}, DIST_INVALID_ARGUMENT, "batch_sizes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dist_dataset_options options = cases[i].options;
    options.struct_size = sizeof options;
    options.global_batch_size = 2;
    dist_dataset *dataset = NULL;
    assert_fails(dist_dataset_create_from_tensors(strategy, &rows, 1, &options, &dataset), cases[i].status,
                 cases[i].words);
    assert_null(dataset);
  }
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.num_workers = FILES + 1;
  dist_dataset *dataset = NULL;
  assert_fails(
      dist_dataset_create_from_files(strategy, names, FILES, line, strategy, NULL, &options, &dataset),
      DIST_INVALID_ARGUMENT, "5 file(s)");
  assert_fails(dist_dataset_create_from_files(strategy, names, 0, line, strategy, NULL, NULL, &dataset),
               DIST_INVALID_ARGUMENT, "there are no files");
  assert_fails(dist_dataset_create_from_files(strategy, names, FILES, NULL, strategy, NULL, NULL, &dataset),
               DIST_INVALID_ARGUMENT, "fn is NULL");
  static const char *const nameless[] = {"a", NULL};
  assert_fails(dist_dataset_create_from_files(strategy, nameless, 2, line, strategy, NULL, NULL, &dataset),
               DIST_INVALID_ARGUMENT, "names[1]");
  assert_int_equal(dist_dataset_check_shards(NULL, 0), DIST_INVALID_ARGUMENT);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Explanations of lost elements and of each worker's part ---- */

static void what_is_lost_is_named(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  options.drop_remainder = 1;
  dist_dataset *dataset = rows_of(strategy, 10, &options);
  assert_fails(dist_dataset_check_shards(dataset, 0), DIST_DATA_LOSS,
               "no worker reads element 8: drop_remainder");
  assert_ok(dist_dataset_check_shards(dataset, 8));
  assert_fails(dist_dataset_check_shards(dataset, -1), DIST_INVALID_ARGUMENT, "limit is -1");
  dist_dataset_destroy(dataset);
  options.shard_policy = DIST_SHARD_OFF;
  options.num_workers = 3;
  dataset = rows_of(strategy, 12, &options);
  assert_fails(dist_dataset_check_shards(dataset, 0), DIST_DATA_LOSS,
               "element 0 is read by worker 0 and by worker 1");
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(strategy));
}

static void who_reads_what_is_explained(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  char text[TEXT_BYTES] = "";
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 7;
  options.num_workers = 2;
  options.worker_index = 1;
  dist_dataset *dataset = rows_of(strategy, 9, &options);
  assert_ok(dist_dataset_explain(dataset, keep_text, text));
  assert_string_equal(text,
                      "source: 9 rows of 1 tensor in memory\n"
                      "batches: 7 elements; the last batch may be smaller\n"
                      "workers: 2; this is worker 1: each batch is divided among all workers\n"
                      "replicas: a batch of m examples is cut into 4 pieces of ceil(m / 4)\n"
                      "  replica 0: piece 1, elements 2 to 3 of a full batch\n"
                      "  replica 1: piece 3, elements 6 to 6 of a full batch\n"
                      "prefetched: 1 batch, if measurements show that this is faster\n");
  dist_dataset_destroy(dataset);
  options.prefetch = 2;
  dataset = rows_of(strategy, 9, &options);
  assert_ok(dist_dataset_explain(dataset, keep_text, text));
  assert_non_null(strstr(text, "prefetched: 2 batches\n"));
  dist_dataset_destroy(dataset);
  options.shard_policy = DIST_SHARD_FILE;
  options.prefetch = -1;
  dataset = files(strategy, &options);
  assert_ok(dist_dataset_explain(dataset, keep_text, text));
  assert_string_equal(
      text,
      "source: elements of 5 file(s), one after another\n"
      "batches: 7 elements; the last batch may be smaller\n"
      "workers: 2; this is worker 1: it reads files 1, 3, ...\n"
      "replicas: replica r of step k gets piece k * 2 + r; sizes of pieces: 2 1 2 2, and then again from the "
      "first\n"
      "prefetched: 0 batches\n");
  dist_dataset_destroy(dataset);
  assert_int_equal(dist_dataset_explain(NULL, keep_text, text), DIST_INVALID_ARGUMENT);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  for (int64_t i = 0; i < MOST_EXAMPLES; i++) numbers[i] = i;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_example_comes_once),    cmocka_unit_test(batch_sizes_add_up),
      cmocka_unit_test(files_go_to_workers_whole),   cmocka_unit_test(batches_are_cut_anew),
      cmocka_unit_test(mistakes_are_refused),        cmocka_unit_test(what_is_lost_is_named),
      cmocka_unit_test(who_reads_what_is_explained),
  };
  return cmocka_run_group_tests_name("dataset shards", tests, NULL, NULL);
}
