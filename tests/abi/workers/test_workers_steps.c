/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets over several workers: all workers take the same number of steps. Also workers that cannot take a
 * step.
 */
#include "input_support.h"

/* ---- The same number of steps ---- */

static void check_steps(const passing *p, int n, int32_t expected) {
  for (int w = 0; w < n; ++w) assert_int_equal(p->steps[w], expected);
}

/* Each worker has its own source. */
static void a_worker_out_of_data_gets_empty_batches(void **state) {
  (void)state;
  workers all = workers_of("1+2+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  static passing p;
  p = (passing){.all = &all, .kind = CALLBACK, .passes = 2, .totals = {2, 9, 5}};
  p.options = (dist_dataset_options)DIST_DATASET_OPTIONS_INIT;
  p.options.global_batch_size = 2;
  p.options.worker_batches = 1;
  p.options.shard_policy = DIST_SHARD_OFF;
  all_workers(&all, play, &p);
  check_steps(&p, all.n, 5);
  for (int k = 0; k < 5; ++k) {
    assert_int_equal(p.got[k][0].n, k < 1 ? 2 : 0);
    assert_int_equal(p.got[k][1].n, 1);
    assert_int_equal(p.got[k][2].n, k < 4 ? 1 : 0);
    assert_int_equal(p.got[k][3].n, k < 2 ? 2 : k == 2 ? 1 : 0);
  }
  /* no worker has any data */
  p.totals[0] = p.totals[1] = p.totals[2] = 0;
  all_workers(&all, play, &p);
  check_steps(&p, all.n, 0);
  end_workers(&all);
}

static void files_are_dealt_to_workers(void **state) {
  (void)state;
  workers all = workers_of("1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  static passing p;
  p = (passing){.all = &all, .kind = FILES, .passes = 1, .totals = {0, 3, 0, 2}}; /* worker 0 has none */
  p.options = (dist_dataset_options)DIST_DATASET_OPTIONS_INIT;
  p.options.global_batch_size = 4;
  all_workers(&all, play, &p);
  check_steps(&p, all.n, 3);
  static const rows expected[] = {{2, {10, 11}}, {2, {12, 30}}, {1, {31}}};
  for (int k = 0; k < 3; ++k) {
    assert_int_equal(p.got[k][0].n, 0);
    check_rows("files", &p.got[k][1], &expected[k]);
  }
  end_workers(&all);
}

static void what_an_empty_batch_is_like_must_be_known(void **state) {
  (void)state;
  workers all = workers_of("1+1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  static passing p;
  p = (passing){.all = &all, .kind = CALLBACK, .passes = 1, .totals = {3, 0, 3}};
  p.options = (dist_dataset_options)DIST_DATASET_OPTIONS_INIT;
  p.options.global_batch_size = 3;
  p.options.shard_policy = DIST_SHARD_OFF;
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, play, &p, threads);
  for (int w = 0; w < all.n; ++w) {
    assert_int_equal(threads[w].status, DIST_FAILED_PRECONDITION);
    assert_has(threads[w].error.message,
               w == 1 ? "this worker's source has no element" : "worker 1 has no more data");
  }
  end_workers(&all);
}

/* ---- Datasets created by a function ---- */

typedef struct pipeline {
  dist_strategy *strategy;
  passing *p;
  int worker;
  dist_input_context context;
  int calls;
  source source;
  int64_t size;
} pipeline;

static dist_status make_part(dist_strategy *strategy, const dist_input_context *context, dist_dataset **out,
                             void *user_data) {
  (void)strategy;
  pipeline *const self = user_data;
  self->context = *context;
  ++self->calls;
  self->size = 1 + 3 * context->input_pipeline_id;
  self->source = (source){self->strategy, &self->size, dist_strategy_num_replicas(self->strategy)};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 1;
  options.drop_remainder = self->p->options.drop_remainder;
  return dist_dataset_create_from_callback(self->strategy, counted_element, &self->source, NULL, &options,
                                           out);
}

static dist_status play_function(dist_strategy *strategy, int worker, void *user_data) {
  passing *const p = user_data;
  pipeline self = {.strategy = strategy, .p = p, .worker = worker};
  const dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  dist_dataset *dataset = NULL;
  dist_status status = dist_dataset_create_from_function(strategy, make_part, &self, &options, &dataset);
  if (status == DIST_OK) status = pass_over(dataset, worker, p);
  dist_dataset_destroy(dataset);
  const dist_input_context *const c = &self.context;
  const int right = self.calls == 1 && c->num_input_pipelines == p->all->n &&
                    c->input_pipeline_id == worker && c->num_replicas_in_sync == first_of(p->all, p->all->n);
  return status == DIST_OK && !right ? wrong("another input context") : status;
}

static void a_function_is_called_once_on_each_worker(void **state) {
  (void)state;
  workers all = workers_of("2+1+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  for (int fixed = 0; fixed < 2; ++fixed) {
    static passing p;
    p = (passing){.all = &all};
    p.options.drop_remainder = fixed; /* batches of one shape: the steps of other workers still fill up */
    all_workers(&all, play_function, &p);
    check_steps(&p, all.n, 4);
    for (int k = 0; k < 4; ++k) {
      static const int64_t sizes[] = {1, 4, 7};
      static const int32_t replicas[] = {2, 1, 2};
      for (int w = 0, at = 0; w < 3; ++w) {
        for (int r = 0; r < replicas[w]; ++r, ++at) {
          const int64_t number = k * replicas[w] + r;
          check_rows("function", &p.got[k][at], &(rows){number < sizes[w], {number}});
        }
      }
    }
  }
  end_workers(&all);
}

/* ---- Faults ---- */

static dist_status failing_element(dist_strategy *strategy, int64_t index, dist_value **out,
                                   void *user_data) {
  (void)strategy;
  source *const from = user_data;
  if (index == 2) return dist_fail(DIST_DATA_LOSS, "element 2 is broken");
  return element(from, 0, index, out);
}

static dist_status pass_over_a_broken_source(dist_strategy *strategy, int worker, void *user_data) {
  (void)user_data;
  const int64_t size = 5;
  source own = {strategy, &size, dist_strategy_num_replicas(strategy)};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 1;
  options.worker_batches = 1;
  options.shard_policy = DIST_SHARD_OFF;
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  dist_status status = dist_dataset_create_from_callback(
      strategy, worker == 1 ? failing_element : counted_element, &own, NULL, &options, &dataset);
  if (status == DIST_OK) status = dist_iterator_create(dataset, &iterator);
  for (int k = 0; k < 2 && status == DIST_OK; ++k) {
    dist_value *batch = NULL;
    status = dist_iterator_next(iterator, &batch);
    dist_value_release(batch);
  }
  dist_value *batch = NULL;
  if (status == DIST_OK) status = dist_iterator_next(iterator, &batch);
  dist_position at = DIST_POSITION_INIT;
  if (dist_iterator_position(iterator, &at) != DIST_OK || at.batches != 2 || batch != NULL) {
    status = wrong("the failed step was taken");
  }
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  return status;
}

static dist_status play_rows(dist_strategy *strategy, int worker, void *user_data);

static void a_broken_source_is_everybodys_failure(void **state) {
  (void)state;
  workers all = workers_of("1+1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, pass_over_a_broken_source, NULL, threads);
  for (int w = 0; w < all.n; ++w) {
    assert_has(threads[w].error.message, w == 1 ? "element 2 is broken" : "worker 1");
    if (w == 1) assert_int_equal(threads[w].status, DIST_DATA_LOSS);
  }
  all_workers(&all, play_rows, &all);
  end_workers(&all);
}

static dist_status play_rows(dist_strategy *strategy, int worker, void *user_data) {
  static passing p[MOST_WORKERS];
  p[worker] = (passing){.all = user_data, .total = 5, .passes = 1};
  p[worker].options = (dist_dataset_options)DIST_DATASET_OPTIONS_INIT;
  p[worker].options.global_batch_size = 4;
  const dist_status status = play(strategy, worker, &p[worker]);
  return status == DIST_OK && p[worker].steps[worker] != 2 ? wrong("another number of steps") : status;
}

/* Worker 1 arrives after worker 0 has given up, and gets the report. Then both get the batch that was not
 * delivered. */
static dist_status come_late(dist_strategy *strategy, int worker, void *user_data) {
  atomic_int *const gone = user_data;
  const int64_t numbers[] = {1, 2, 3, 4};
  const int64_t shape[] = {4};
  const dist_tensor tensor = {(void *)(uintptr_t)numbers, DIST_I64, 1, shape, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  dist_value *batch = NULL;
  dist_status status = dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, &dataset);
  if (status == DIST_OK) status = dist_iterator_create(dataset, &iterator);
  while (worker == 1 && atomic_load(gone) == 0) sched_yield();
  report first = {0};
  if (status == DIST_OK) {
    status = dist_iterator_next(iterator, &batch);
    read_report(&first);
    if (worker == 0) atomic_store(gone, 1);
    if (status != DIST_DEADLINE_EXCEEDED || strstr(first.message, "worker 1") == NULL) {
      status = wrong("not late: %s", first.message);
    } else {
      status = dist_iterator_next(iterator, &batch);
    }
  }
  rows got = {0};
  if (status == DIST_OK) status = keep(batch, 1, 0, &got);
  if (status == DIST_OK && (got.n != 2 || got.numbers[0] != 1 + 2 * worker)) {
    status = wrong("another batch");
  }
  dist_value_release(batch);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  return status;
}

static void a_step_waits_for_all_workers_up_to_the_deadline(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.timeout_ns = 300000000;
  workers all = workers_of("1+1", options);
  atomic_int gone = 0;
  all_workers(&all, come_late, &gone);
  end_workers(&all);
}

/* ---- Where steps are made ---- */

typedef struct merging {
  dist_iterator *iterator;
  dist_status inside; /* result inside a replica function */
  int64_t n;
} merging;

static dist_status take_merged(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                               dist_value **out, void *user_data) {
  (void)strategy, (void)args, (void)out, (void)kwargs;
  merging *const self = user_data;
  dist_value *batch = NULL;
  rows got = {0};
  dist_status status = dist_iterator_next(self->iterator, &batch);
  if (status == DIST_OK) status = keep(batch, 1, 0, &got);
  self->n = got.n;
  dist_value_release(batch);
  return status;
}

static dist_status take_inside(dist_replica *replica, void *user_data) {
  merging *const self = user_data;
  dist_value *batch = NULL;
  self->inside = dist_iterator_next(self->iterator, &batch);
  dist_value *result = NULL;
  const dist_status status = dist_merge_call(replica, take_merged, self, NULL, NULL, NULL, &result);
  dist_value_release(result);
  return status;
}

static dist_status sum_up(dist_dataset *dataset, dist_value *state, dist_value *batch, dist_value **out,
                          void *user_data) {
  (void)dataset, (void)state;
  *out = NULL;
  rows got = {0};
  const dist_status status = keep(batch, 1, 0, &got);
  *(int64_t *)user_data += 100 + got.n; /* counts steps and rows */
  return status;
}

static dist_status take_everywhere(dist_strategy *strategy, int worker, void *user_data) {
  (void)user_data;
  const int64_t numbers[] = {1, 2, 3};
  const int64_t shape[] = {3};
  const dist_tensor tensor = {(void *)(uintptr_t)numbers, DIST_I64, 1, shape, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 2;
  dist_dataset *dataset = NULL;
  merging self = {0};
  dist_status status = dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, &dataset);
  if (status == DIST_OK) status = dist_iterator_create(dataset, &self.iterator);
  if (status == DIST_OK) status = dist_run(strategy, take_inside, &self, NULL);
  if (status == DIST_OK && (self.inside != DIST_FAILED_PRECONDITION || self.n != 1)) {
    status = wrong("inside: %s, %d rows", dist_status_name(self.inside), (int)self.n);
  }
  dist_iterator_destroy(self.iterator);
  int64_t sum = 0;
  dist_value *result = NULL;
  if (status == DIST_OK) status = dist_dataset_reduce(dataset, NULL, sum_up, &sum, &result);
  if (status == DIST_OK && sum != (worker == 0 ? 202 : 201)) {
    status = wrong("reduced to %d", (int)sum);
  }
  dist_dataset_destroy(dataset);
  return status;
}

static void steps_are_taken_outside_and_in_merge_functions(void **state) {
  (void)state;
  workers all = workers_of("1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  all_workers(&all, take_everywhere, NULL);
  end_workers(&all);
}

static void a_dataset_outlives_its_strategy(void **state) {
  (void)state;
  workers all = workers_of("1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  passing p = {.all = &all, .total = 4};
  p.options = (dist_dataset_options)DIST_DATASET_OPTIONS_INIT;
  p.options.global_batch_size = 2;
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  dist_value *batch = NULL;
  assert_ok(make_dataset(all.strategies[0], 0, &p, &dataset));
  assert_ok(dist_iterator_create(dataset, &iterator));
  end_workers(&all);
  assert_fails(dist_iterator_next(iterator, &batch), DIST_FAILED_PRECONDITION,
               "the strategy of the dataset has shut down");
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
}

static void options_that_do_not_go_together_are_refused(void **state) {
  (void)state;
  workers all = workers_of("1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  passing p = {.all = &all, .total = 4};
  static const struct {
    int32_t policy, worker_batches, worker_index, as_one, reserved;
    const char *words;
  } cases[] = {
      {DIST_SHARD_OFF, 0, 0, 1, 0, "as_one_process is set"},
      {DIST_SHARD_FILE, 0, 0, 1, 0, "as_one_process is set"},
      {DIST_SHARD_DATA, 1, 0, 1, 0, "as_one_process is set"},
      {DIST_SHARD_DATA, 0, 0, 2, 0, "as_one_process is 2"},
      {DIST_SHARD_DATA, 0, 1, 0, 0, "worker_index is"},
      {DIST_SHARD_DATA, 0, 0, 0, 1, "reserved"},
  };
  for (size_t k = 0; k < COUNT_OF(cases); ++k) {
    p.options = (dist_dataset_options)DIST_DATASET_OPTIONS_INIT;
    p.options.global_batch_size = 2;
    p.options.shard_policy = cases[k].policy;
    p.options.worker_batches = cases[k].worker_batches;
    p.options.worker_index = cases[k].worker_index;
    p.options.as_one_process = cases[k].as_one;
    p.options.reserved = cases[k].reserved;
    dist_dataset *dataset = NULL;
    assert_fails(make_dataset(all.strategies[0], 0, &p, &dataset), DIST_INVALID_ARGUMENT, cases[k].words);
  }
  end_workers(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_worker_out_of_data_gets_empty_batches),
      cmocka_unit_test(files_are_dealt_to_workers),
      cmocka_unit_test(what_an_empty_batch_is_like_must_be_known),
      cmocka_unit_test(a_function_is_called_once_on_each_worker),
      cmocka_unit_test(a_broken_source_is_everybodys_failure),
      cmocka_unit_test(a_step_waits_for_all_workers_up_to_the_deadline),
      cmocka_unit_test(steps_are_taken_outside_and_in_merge_functions),
      cmocka_unit_test(a_dataset_outlives_its_strategy),
      cmocka_unit_test(options_that_do_not_go_together_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
