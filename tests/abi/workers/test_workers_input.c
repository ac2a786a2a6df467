/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets over several workers: which rows whose replicas get, and that all workers make the same steps.
 */
#include "../workers_input.h"

/* ---- As one process ---- */

static void play_as_one(const char *layout, passing p) {
  static passing alone;
  static passing many;
  many = p;
  many.options.as_one_process = 1;
  many.passes = 2; /* the second one has another order */
  play_both(layout, &many, &alone);
  char what[160];
  snprintf(what, sizeof what, "%s, source %d, %d rows, batches of %d, shuffle %d, policy %d: steps", layout,
           (int)p.kind, (int)p.total, (int)p.options.global_batch_size, p.options.shuffle,
           p.options.shard_policy);
  if (many.steps[0] != alone.steps[0]) fail_msg("%s: %d for %d", what, many.steps[0], alone.steps[0]);
  for (int32_t k = 0; k < alone.steps[0]; ++k) {
    for (int32_t r = 0; r < local_of(&alone, 0); ++r) check_rows(what, &many.got[k][r], &alone.got[k][r]);
  }
}

static void replicas_get_what_those_of_one_process_get(void **state) {
  (void)state;
  static const int64_t sizes[] = {2, 0, 3, 1, 5};
  for (size_t l = 0; l < COUNT_OF(kLayouts); ++l) {
    for (size_t t = 0; t < COUNT_OF(kTotals); ++t) {
      for (size_t b = 0; b < COUNT_OF(kBatches); ++b) {
        passing p = {.total = kTotals[t], .options = DIST_DATASET_OPTIONS_INIT};
        p.options.global_batch_size = kBatches[b];
        p.options.shuffle = b % 2 == 0;
        p.options.seed = 7;
        p.options.drop_remainder = b == 1;
        p.options.shard_policy = t % 2 == 0 ? DIST_SHARD_AUTO : DIST_SHARD_DATA;
        play_as_one(kLayouts[l], p);
        p.kind = CALLBACK;
        p.options.shuffle = 0;
        play_as_one(kLayouts[l], p);
      }
      passing p = {.total = kTotals[t], .kind = BATCHES, .options = DIST_DATASET_OPTIONS_INIT};
      play_as_one(kLayouts[l], p);
      p.options.batch_sizes = sizes;
      p.options.num_batch_sizes = COUNT_OF(sizes);
      play_as_one(kLayouts[l], p);
      p.kind = ROWS;
      p.options.global_batch_size = 1;
      play_as_one(kLayouts[l], p);
    }
  }
}

/* ---- As TensorFlow's workers ---- */

static workers layout_of(const char *layout) {
  workers all = {0};
  for (const char *at = layout; *at != 0; ++at) {
    if (*at != '+') all.replicas[all.n++] = *at - '0';
  }
  return all;
}

/* replica r of worker w, where workers take turns: how many come before it */
static int64_t turn_of(const workers *all, int worker, int32_t replica) {
  int64_t before = 0;
  for (int w = 0; w < all->n; ++w) {
    for (int32_t r = 0; r < all->replicas[w]; ++r) before += r < replica || (r == replica && w < worker);
  }
  return before;
}

static void workers_take_turns_at_the_pieces(void **state) {
  (void)state;
  for (size_t l = 0; l < COUNT_OF(kLayouts); ++l) {
    for (size_t t = 0; t < COUNT_OF(kTotals); ++t) {
      for (size_t b = 0; b < COUNT_OF(kBatches); ++b) {
        static passing p;
        static passing alone;
        p = (passing){.total = kTotals[t], .passes = 1, .kind = t % 2, .options = DIST_DATASET_OPTIONS_INIT};
        p.options.global_batch_size = kBatches[b];
        play_both(kLayouts[l], &p, &alone);
        assert_int_equal(p.steps[0], alone.steps[0]);
        const workers all = layout_of(kLayouts[l]);
        for (int32_t k = 0; k < p.steps[0]; ++k) {
          for (int w = 0; w < all.n; ++w) {
            for (int32_t r = 0; r < all.replicas[w]; ++r) {
              check_rows(kLayouts[l], &p.got[k][first_of(&all, w) + r], &alone.got[k][turn_of(&all, w, r)]);
            }
          }
        }
      }
    }
  }
}

/* Everybody sees everything, in steps that add up to a batch. */
static void sizes_add_up_in_each_step(void **state) {
  (void)state;
  for (size_t l = 0; l < COUNT_OF(kLayouts); ++l) {
    for (size_t b = 0; b < COUNT_OF(kBatches); ++b) {
      static passing p;
      static passing alone;
      p = (passing){.total = 40, .passes = 1, .options = DIST_DATASET_OPTIONS_INIT};
      p.options.global_batch_size = kBatches[b] + 4;
      p.options.shard_policy = DIST_SHARD_OFF;
      play_both(kLayouts[l], &p, &alone);
      const workers all = layout_of(kLayouts[l]);
      int64_t read[MOST_WORKERS] = {0};
      int over[MOST_WORKERS] = {0};
      int ended = 0; /* workers that have read everything */
      for (int32_t k = 0; k < p.steps[0]; ++k) {
        int64_t step = 0;
        for (int w = 0; w < all.n; ++w) {
          for (int32_t r = 0; r < all.replicas[w]; ++r) {
            const rows *const got = &p.got[k][first_of(&all, w) + r];
            for (int64_t i = 0; i < got->n; ++i) assert_int_equal(got->numbers[i], read[w]++);
            step += got->n;
          }
          if (read[w] == p.total && !over[w]) over[w] = 1, ++ended;
        }
        if (ended == 0) assert_int_equal(step, p.options.global_batch_size);
        assert_true(step <= p.options.global_batch_size);
      }
      assert_int_equal(ended, all.n);
    }
  }
}

/* ---- The same number of steps ---- */

static void check_steps(const passing *p, int n, int32_t expected) {
  for (int w = 0; w < n; ++w) assert_int_equal(p->steps[w], expected);
}

/* Each worker has a source of its own. */
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
  /* nobody has anything */
  p.totals[0] = p.totals[1] = p.totals[2] = 0;
  all_workers(&all, play, &p);
  check_steps(&p, all.n, 0);
  end_workers(&all);
}

static void files_are_dealt_to_workers(void **state) {
  (void)state;
  workers all = workers_of("1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  static passing p;
  p = (passing){.all = &all, .kind = FILES, .passes = 1, .totals = {0, 3, 0, 2}}; /* worker 0: no element */
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
               w == 1 ? "this worker's source has no element" : "worker 1 is out of data");
  }
  end_workers(&all);
}

/* ---- Datasets of a function ---- */

typedef struct pipeline {
  dist_strategy *strategy;
  passing *p;
  int worker;
  dist_input_context context;
  int calls;
  source source;
  int64_t size;
} pipeline;

static dist_status make_part(const dist_input_context *context, dist_dataset **out, void *user_data) {
  pipeline *const self = user_data;
  self->context = *context;
  ++self->calls;
  self->size = 1 + 3 * context->input_pipeline_id;
  self->source = (source){self->strategy, &self->size};
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
    p.options.drop_remainder = fixed; /* batches of one shape: other workers' steps fill up nevertheless */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replicas_get_what_those_of_one_process_get),
      cmocka_unit_test(workers_take_turns_at_the_pieces),
      cmocka_unit_test(sizes_add_up_in_each_step),
      cmocka_unit_test(a_worker_out_of_data_gets_empty_batches),
      cmocka_unit_test(files_are_dealt_to_workers),
      cmocka_unit_test(what_an_empty_batch_is_like_must_be_known),
      cmocka_unit_test(a_function_is_called_once_on_each_worker),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
