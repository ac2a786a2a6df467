/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets created by a function (dataset.h): how batches are distributed, how the last step ends, options
 * and errors. Also functions of all datasets: optional batches, reducing a pass, and the specs of batches.
 */
#include "dataset_support.h"

enum { NUMBERS = 16 };
static int64_t numbers[NUMBERS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* The function's results and the arguments that it got. */
typedef struct plan {
  dist_strategy *strategy;
  int64_t rows, batch;
  int32_t drop, static_shapes, mistake;
  int calls;
  dist_input_context seen[4];
} plan;

enum { FAILS = 1, FAILS_SILENTLY, MAKES_NOTHING, MAKES_A_VALUE, MAKES_A_FUNCTION };

static dist_status make(dist_strategy *strategy, const dist_input_context *context, dist_dataset **out,
                        void *user_data) {
  (void)strategy;
  plan *p = user_data;
  p->seen[p->calls++] = *context;
  if (p->mistake == FAILS) return dist_fail(DIST_NOT_FOUND, "no such table");
  if (p->mistake == FAILS_SILENTLY) return DIST_UNAVAILABLE;
  if (p->mistake == MAKES_NOTHING) return DIST_OK;
  const dist_tensor tensor = {numbers, DIST_I64, 1, &p->rows, NULL};
  if (p->mistake == MAKES_A_VALUE) return dist_value_create_tensor(p->strategy, &tensor, (dist_value **)out);
  if (p->mistake == MAKES_A_FUNCTION) {
    p->mistake = 0;
    return dist_dataset_create_from_function(p->strategy, make, p, NULL, out);
  }
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = p->batch;
  options.drop_remainder = p->drop;
  options.static_shapes = p->static_shapes;
  return dist_dataset_create_from_tensors(p->strategy, &tensor, 1, &options, out);
}

/* Replica r of step k gets batch k*R + r. At the end, missing batches are empty, or the step is omitted. */
static void batches_are_dealt_in_turn(void **state) {
  (void)state;
  for (int32_t replicas = 1; replicas <= 3; replicas++) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (int64_t rows = 0; rows <= 13; rows++) {
      for (int64_t size = 1; size <= 3; size++) {
        for (int32_t drop = 0; drop <= 1; drop++) {
          plan p = {.strategy = strategy, .rows = rows, .batch = size, .drop = drop};
          dist_dataset *dataset = NULL;
          assert_ok(dist_dataset_create_from_function(strategy, make, &p, NULL, &dataset));
          assert_int_equal(p.calls, 1);
          assert_int_equal(p.seen[0].num_input_pipelines, 1);
          assert_int_equal(p.seen[0].input_pipeline_id, 0);
          assert_int_equal(p.seen[0].num_replicas_in_sync, replicas);
          const int64_t batches = drop ? rows / size : (rows + size - 1) / size;
          const int64_t steps = drop ? batches / replicas : (batches + replicas - 1) / replicas;
          dist_iterator *iterator = NULL;
          assert_ok(dist_iterator_create(dataset, &iterator));
          dist_value *batch = NULL;
          for (int64_t k = 0; k < steps; k++) {
            assert_ok(dist_iterator_next(iterator, &batch));
            for (int32_t r = 0; r < replicas; r++) {
              const dist_tensor tensor = component(batch, replicas, r);
              const int64_t first = smaller(rows, (k * replicas + r) * size);
              assert_int_equal(tensor.shape[0], smaller(size, rows - first));
              if (tensor.shape[0] > 0) assert_int_equal(*(const int64_t *)tensor.data, first);
            }
            dist_value_release(batch);
          }
          assert_ok(dist_iterator_next(iterator, &batch));
          assert_null(batch);
          dist_iterator_destroy(iterator);
          dist_dataset_destroy(dataset);
        }
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static dist_status count_batches(dist_dataset *dataset, dist_value *state, dist_value *batch,
                                 dist_value **out_state, void *user_data) {
  (void)dataset, (void)batch;
  ++*(int32_t *)user_data;
  *out_state = state;
  return DIST_OK;
}

/*
 * If all batches have the same shape, dist_iterator_next() omits a last step that lacks a batch, and
 * dist_iterator_next_optional() and dist_dataset_reduce() deliver it. Scalars cannot be empty, so nothing
 * delivers it.
 */
static void shapes_decide_about_the_last_step(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  const struct {
    int64_t batch;
    int32_t drop, static_shapes, steps, optional_steps;
  } cases[] = {{0, 0, 0, 2, 2}, {0, 0, -1, 2, 2}, {1, 0, 0, 3, 3},
               {1, 1, 0, 2, 3}, {1, 1, -1, 3, 3}, {1, 0, 1, 2, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    plan p = {.strategy = strategy,
              .rows = 5,
              .batch = cases[i].batch,
              .drop = cases[i].drop,
              .static_shapes = cases[i].static_shapes};
    dist_dataset *dataset = NULL;
    dist_iterator *iterator = NULL;
    dist_value *batch = NULL;
    assert_ok(dist_dataset_create_from_function(strategy, make, &p, NULL, &dataset));
    assert_ok(dist_iterator_create(dataset, &iterator));
    int32_t steps = 0;
    for (; dist_iterator_next(iterator, &batch) == DIST_OK && batch != NULL; steps++)
      dist_value_release(batch);
    assert_int_equal(steps, cases[i].steps);
    /* The pass has ended, including what it has omitted. */
    assert_ok(dist_iterator_next_optional(iterator, &batch));
    assert_null(batch);
    dist_iterator_destroy(iterator);

    assert_ok(dist_iterator_create(dataset, &iterator));
    for (steps = 0;; steps++) {
      assert_ok(dist_iterator_next_optional(iterator, &batch));
      if (batch == NULL) break;
      if (steps == 2) {
        const dist_tensor first = component(batch, 2, 0);
        assert_int_equal(first.shape[0], 1);
        assert_int_equal(*(const int64_t *)first.data, 4);
        assert_int_equal(component(batch, 2, 1).shape[0], 0);
      }
      dist_value_release(batch);
    }
    assert_int_equal(steps, cases[i].optional_steps);
    dist_iterator_destroy(iterator);

    steps = 0;
    dist_value *result = NULL;
    assert_ok(dist_dataset_reduce(dataset, NULL, count_batches, &steps, &result));
    assert_null(result);
    assert_int_equal(steps, cases[i].optional_steps);
    dist_dataset_destroy(dataset);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static void each_replica_may_have_a_pipeline(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  plan p = {.strategy = strategy, .rows = 4, .batch = 2};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.replication_mode = DIST_INPUT_PER_REPLICA;
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  dist_value *batch = NULL;
  assert_ok(dist_dataset_create_from_function(strategy, make, &p, &options, &dataset));
  assert_int_equal(p.calls, 3);
  for (int32_t i = 0; i < 3; i++) {
    assert_int_equal(p.seen[i].num_input_pipelines, 3);
    assert_int_equal(p.seen[i].input_pipeline_id, i);
  }
  assert_ok(dist_iterator_create(dataset, &iterator));
  for (int64_t k = 0; k < 2; k++) {
    assert_ok(dist_iterator_next(iterator, &batch));
    for (int32_t r = 0; r < 3; r++) {
      assert_memory_equal(component(batch, 3, r).data, numbers + 2 * k, 2 * sizeof *numbers);
    }
    dist_value_release(batch);
  }
  assert_ok(dist_iterator_next(iterator, &batch));
  assert_null(batch);
  dist_iterator_destroy(iterator);
  assert_int_equal(dist_dataset_check_shards(dataset, 0), DIST_UNIMPLEMENTED);
  dist_dataset_destroy(dataset);
  /* The context is per dataset: the next one has one pipeline again. */
  p.calls = 0;
  assert_ok(dist_dataset_create_from_function(strategy, make, &p, NULL, &dataset));
  assert_int_equal(p.calls, 1);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_functions_mistakes_are_reported(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  const struct {
    int32_t mistake;
    dist_status status;
    const char *words;
  } cases[] = {{FAILS, DIST_NOT_FOUND, "no such table"},
               {FAILS_SILENTLY, DIST_UNAVAILABLE, "input pipeline 0"},
               {MAKES_NOTHING, DIST_INVALID_ARGUMENT, "no dataset"},
               {MAKES_A_FUNCTION, DIST_INVALID_ARGUMENT, "created from a function"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    plan p = {.strategy = strategy, .rows = 4, .batch = 2, .mistake = cases[i].mistake};
    dist_dataset *dataset = NULL;
    assert_fails(dist_dataset_create_from_function(strategy, make, &p, NULL, &dataset), cases[i].status,
                 cases[i].words);
    assert_null(dataset);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* A handle of another kind is detected, and is not released. */
static dist_value *kept;
static dist_status hand_over_a_value(dist_strategy *strategy, const dist_input_context *context,
                                     dist_dataset **out, void *user_data) {
  (void)strategy;
  (void)context, (void)user_data;
  *out = (dist_dataset *)kept;
  return DIST_OK;
}

static void other_handles_are_no_datasets(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  const dist_tensor tensor = {numbers, DIST_I64, 0, NULL, NULL};
  assert_ok(dist_value_create_tensor(strategy, &tensor, &kept));
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  assert_fails(dist_dataset_create_from_function(strategy, hand_over_a_value, NULL, NULL, &dataset),
               DIST_INVALID_ARGUMENT, "not a dataset");
  assert_fails(dist_iterator_create((dist_dataset *)kept, &iterator), DIST_INVALID_ARGUMENT, "not a dataset");
  dist_value_release(kept);
  assert_ok(dist_strategy_destroy(strategy));
}

static void options_that_do_not_go_together(void **state) {
  (void)state;
  dist_strategy *mirrored = strategy_of(2, DIST_THREADS_CALLER);
  dist_strategy_options one = DIST_STRATEGY_OPTIONS_INIT;
  one.kind = DIST_STRATEGY_ONE_DEVICE;
  dist_strategy *single = NULL;
  assert_ok(dist_strategy_create(&one, &single));
  const struct {
    dist_strategy *strategy;
    dist_dataset_options options;
    dist_status status;
  } cases[] = {
      {mirrored, {.prefetch = 3}, DIST_OK},
      {mirrored, {.replication_mode = DIST_INPUT_PER_REPLICA}, DIST_OK},
      {single, {.replication_mode = DIST_INPUT_PER_REPLICA}, DIST_UNIMPLEMENTED},
      {mirrored, {.global_batch_size = 2}, DIST_INVALID_ARGUMENT},
      {mirrored, {.num_workers = 2}, DIST_INVALID_ARGUMENT},
      {mirrored, {.replication_mode = 7}, DIST_INVALID_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    plan p = {.strategy = cases[i].strategy, .rows = 4, .batch = 2};
    dist_dataset_options options = cases[i].options;
    options.struct_size = sizeof options;
    dist_dataset *dataset = NULL;
    assert_int_equal(dist_dataset_create_from_function(cases[i].strategy, make, &p, &options, &dataset),
                     cases[i].status);
    dist_dataset_destroy(dataset);
  }
  plan p = {.strategy = mirrored, .rows = 4, .batch = 2};
  dist_dataset *dataset = NULL;
  assert_int_equal(dist_dataset_create_from_function(NULL, make, &p, NULL, &dataset), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_dataset_create_from_function(mirrored, NULL, &p, NULL, &dataset),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_dataset_create_from_function(mirrored, make, &p, NULL, NULL), DIST_INVALID_ARGUMENT);
  assert_int_equal(p.calls, 0);
  assert_ok(dist_strategy_destroy(single));
  assert_ok(dist_strategy_destroy(mirrored));
}

static dist_status make_in_replica(dist_replica *replica, void *user_data) {
  plan *p = user_data;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  dist_dataset *dataset = NULL;
  return dist_dataset_create_from_function(p->strategy, make, p, NULL, &dataset);
}

static void replicas_make_no_datasets(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  plan p = {.strategy = strategy, .rows = 4, .batch = 2};
  assert_fails(dist_run(strategy, make_in_replica, &p, NULL), DIST_FAILED_PRECONDITION, "cross-replica");
  assert_int_equal(p.calls, 0);
  assert_ok(dist_strategy_destroy(strategy));
}

/* They cannot iterate over a dataset for all replicas either. They may iterate over one for a single
 * replica. */
static dist_status iterate_in_replica(dist_replica *replica, void *user_data) {
  void **two = user_data;
  dist_value *batch = NULL;
  dist_iterator *iterator = NULL;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  dist_status status = dist_iterator_next(two[1], &batch);
  dist_value_release(batch);
  batch = NULL;
  if (status != DIST_OK || dist_iterator_create(two[2], &iterator) != DIST_FAILED_PRECONDITION)
    return DIST_INTERNAL;
  return dist_iterator_next_optional(two[0], &batch);
}

static void replicas_do_not_iterate(void **state) {
  (void)state;
  dist_strategy *strategies[] = {strategy_of(2, DIST_THREADS_CALLER), strategy_of(1, DIST_THREADS_CALLER)};
  dist_dataset *datasets[2];
  dist_iterator *iterators[2];
  for (int i = 0; i < 2; i++) {
    const int64_t n = 4;
    const dist_tensor tensor = {numbers, DIST_I64, 1, &n, NULL};
    dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
    options.global_batch_size = 2;
    assert_ok(dist_dataset_create_from_tensors(strategies[i], &tensor, 1, &options, &datasets[i]));
    assert_ok(dist_iterator_create(datasets[i], &iterators[i]));
  }
  void *all[] = {iterators[0], iterators[1], datasets[0]};
  assert_fails(dist_run(strategies[0], iterate_in_replica, all, NULL), DIST_FAILED_PRECONDITION,
               "inside replica 0's function");
  for (int i = 0; i < 2; i++) {
    dist_iterator_destroy(iterators[i]);
    dist_dataset_destroy(datasets[i]);
    assert_ok(dist_strategy_destroy(strategies[i]));
  }
}

static void a_share_of_the_batch(void **state) {
  (void)state;
  dist_input_context context = DIST_INPUT_CONTEXT_INIT;
  int64_t size = -7;
  assert_ok(dist_input_context_per_replica_batch_size(&context, 5, &size));
  assert_int_equal(size, 5);
  context.num_replicas_in_sync = 4;
  assert_ok(dist_input_context_per_replica_batch_size(&context, 8, &size));
  assert_int_equal(size, 2);
  assert_fails(dist_input_context_per_replica_batch_size(&context, 6, &size), DIST_INVALID_ARGUMENT,
               "multiple");
  assert_int_equal(size, 2);
  context.num_replicas_in_sync = 0;
  assert_int_equal(dist_input_context_per_replica_batch_size(&context, 6, &size), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_input_context_per_replica_batch_size(NULL, 6, &size), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_input_context_per_replica_batch_size(&context, 6, NULL), DIST_INVALID_ARGUMENT);
}

/* ---- Functions of all datasets ---- */

static dist_dataset *rows_of(dist_strategy *strategy, int64_t n, int64_t batch, int32_t drop) {
  const dist_tensor tensor = {numbers, DIST_I64, 1, &n, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = batch;
  options.drop_remainder = drop;
  dist_dataset *dataset = NULL;
  assert_ok(dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, &dataset));
  return dataset;
}

static void the_end_may_be_no_error(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_dataset *dataset = rows_of(strategy, 5, 4, 0);
  dist_iterator *iterator = NULL;
  assert_ok(dist_iterator_create(dataset, &iterator));
  for (int i = 0; i < 5; i++) {
    dist_value *batch = (dist_value *)&numbers;
    assert_ok(dist_iterator_next_optional(iterator, &batch));
    if (i < 2) {
      check_leaf(batch, 2, numbers + 4 * i, i == 0 ? 4 : 1);
    } else {
      assert_null(batch);
    }
    dist_value_release(batch);
  }
  assert_int_equal(dist_iterator_next_optional(NULL, NULL), DIST_INVALID_ARGUMENT);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(strategy));
}

typedef struct summing {
  dist_strategy *strategy;
  int64_t fail_at, calls;
} summing;

static dist_status add_up(dist_dataset *dataset, dist_value *state, dist_value *batch, dist_value **out,
                          void *user_data) {
  summing *s = user_data;
  assert_non_null(dataset);
  if (s->calls++ == s->fail_at) return dist_fail(DIST_CANCELLED, "enough");
  dist_tensor tensor;
  dist_status status = dist_value_tensor(state, &tensor);
  if (status != DIST_OK) return status;
  int64_t sum = *(const int64_t *)tensor.data;
  for (size_t r = 0; r < dist_value_size(batch) && status == DIST_OK; r++) {
    status = dist_value_tensor(dist_value_item(batch, r), &tensor);
    for (int64_t i = 0; i < tensor.shape[0]; i++) sum += ((const int64_t *)tensor.data)[i];
  }
  const dist_tensor total = {&sum, DIST_I64, 0, NULL, NULL};
  return status != DIST_OK ? status : dist_value_create_tensor(s->strategy, &total, out);
}

static void a_pass_can_be_reduced(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_dataset *dataset = rows_of(strategy, 11, 4, 0);
  int64_t hundred = 100;
  const dist_tensor tensor = {&hundred, DIST_I64, 0, NULL, NULL};
  dist_value *initial = NULL, *result = NULL;
  assert_ok(dist_value_create_tensor(strategy, &tensor, &initial));
  summing s = {strategy, -1, 0};
  for (int again = 0; again < 2; again++) {
    dist_tensor sum;
    assert_ok(dist_dataset_reduce(dataset, initial, add_up, &s, &result));
    assert_ok(dist_value_tensor(result, &sum));
    assert_int_equal(*(const int64_t *)sum.data, 155);
    dist_value_release(result);
  }
  s = (summing){strategy, 1, 0};
  result = NULL;
  assert_fails(dist_dataset_reduce(dataset, initial, add_up, &s, &result), DIST_CANCELLED, "enough");
  assert_null(result);
  assert_int_equal(dist_dataset_reduce(dataset, initial, NULL, &s, &result), DIST_INVALID_ARGUMENT);
  dist_value_release(initial);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(strategy));
}

static void batches_are_specified(void **state) {
  (void)state;
  dist_strategy *strategies[] = {strategy_of(1, DIST_THREADS_CALLER), strategy_of(2, DIST_THREADS_CALLER)};
  const struct {
    int replicas;
    int64_t batch;
    int32_t drop;
    const char *text;
  } cases[] = {
      {1, 4, 0, "i64[?]"}, {1, 4, 1, "i64[4]"}, {2, 4, 1, "i64[2]"}, {2, 5, 1, "i64[?]"}, {1, 0, 0, "i64[]"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dist_dataset *dataset = rows_of(strategies[cases[i].replicas - 1], 9, cases[i].batch, cases[i].drop);
    dist_value *spec = NULL;
    assert_ok(dist_dataset_element_spec(dataset, &spec));
    if (cases[i].replicas == 2) {
      assert_int_equal(dist_value_kind_of(spec), DIST_VALUE_PER_REPLICA);
      assert_string_equal(dist_value_text(dist_value_item(spec, 1)), cases[i].text);
    } else {
      assert_string_equal(dist_value_text(spec), cases[i].text);
    }
    dist_value_release(spec);
    dist_dataset_destroy(dataset);
  }
  dist_value *spec = NULL;
  assert_int_equal(dist_dataset_element_spec(NULL, &spec), DIST_INVALID_ARGUMENT);
  for (int i = 0; i < 2; i++) assert_ok(dist_strategy_destroy(strategies[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(batches_are_dealt_in_turn),
      cmocka_unit_test(shapes_decide_about_the_last_step),
      cmocka_unit_test(each_replica_may_have_a_pipeline),
      cmocka_unit_test(a_functions_mistakes_are_reported),
      cmocka_unit_test(other_handles_are_no_datasets),
      cmocka_unit_test(options_that_do_not_go_together),
      cmocka_unit_test(replicas_make_no_datasets),
      cmocka_unit_test(replicas_do_not_iterate),
      cmocka_unit_test(a_share_of_the_batch),
      cmocka_unit_test(the_end_may_be_no_error),
      cmocka_unit_test(a_pass_can_be_reduced),
      cmocka_unit_test(batches_are_specified),
  };
  return cmocka_run_group_tests_name("dataset function", tests, NULL, NULL);
}
