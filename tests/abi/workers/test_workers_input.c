/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets over several workers: which rows whose replicas get, and that all workers make the same steps.
 */
#include "../workers_support.h"

enum { MOST_REPLICAS = 6, MOST_STEPS = 64, MOST_ROWS = 32 };

typedef struct rows {
  int64_t n;
  int64_t numbers[MOST_ROWS];
} rows;

typedef struct source {
  dist_strategy *strategy; /* whose memory its elements take */
  const int64_t *sizes;    /* of its files, or of it */
} source;

/* A program that passes over a dataset, and what its replicas get. */
typedef struct passing {
  const workers *all; /* NULL: one process */
  dist_dataset_options options;
  enum { ROWS, CALLBACK, FILES, BATCHES } kind;
  int64_t total;
  int64_t totals[MOST_WORKERS]; /* where each worker has a source of its own */
  source sources[MOST_WORKERS];
  int passes;
  int32_t steps[MOST_WORKERS];
  rows got[MOST_STEPS][MOST_REPLICAS];
} passing;

static int32_t first_of(const workers *all, int worker) {
  int32_t first = 0;
  for (int w = 0; w < worker; ++w) first += all->replicas[w];
  return first;
}

static dist_status element(const source *from, size_t file, int64_t index, dist_value **out) {
  int64_t number = 10 * (int64_t)file + index;
  if (index >= from->sizes[file]) return DIST_OUT_OF_RANGE;
  return dist_value_create_tensor(from->strategy, &(dist_tensor){&number, DIST_I64, 0, NULL, NULL}, out);
}

static dist_status counted_element(int64_t index, dist_value **out, void *user_data) {
  return element(user_data, 0, index, out);
}

/* file f: 10 f, 10 f + 1, ... */
static dist_status file_element(size_t file, const char *name, int64_t index, dist_value **out,
                                void *user_data) {
  (void)name;
  return element(user_data, file, index, out);
}

static dist_status make_dataset(dist_strategy *strategy, int worker, passing *p, dist_dataset **out) {
  static const char *const names[] = {"a", "b", "c", "d"};
  int64_t numbers[128];
  for (int64_t i = 0; i < 128; ++i) numbers[i] = i;
  const int64_t shape[] = {p->total, 3}; /* BATCHES: rows of three */
  const dist_tensor tensor = {numbers, DIST_I64, p->kind == BATCHES ? 2 : 1, shape, NULL};
  source *const own = &p->sources[worker];
  *own = (source){strategy, p->kind == FILES ? p->totals : &p->totals[worker]};
  switch (p->kind) {
    case CALLBACK:
      return dist_dataset_create_from_callback(strategy, counted_element, own, NULL, &p->options, out);
    case FILES:
      return dist_dataset_create_from_files(strategy, names, COUNT_OF(names), file_element, own, NULL,
                                            &p->options, out);
    default: return dist_dataset_create_from_tensors(strategy, &tensor, 1, &p->options, out);
  }
}

/* A failure of the test's own. */
__attribute__((format(printf, 1, 2))) static dist_status wrong(const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return dist_fail(DIST_INTERNAL, text);
}

static dist_status keep(const dist_value *batch, int32_t local, int32_t r, rows *out) {
  dist_tensor tensor;
  const dist_status status =
      dist_value_tensor(local == 1 ? batch : dist_value_item(batch, (size_t)r), &tensor);
  if (status != DIST_OK) return status;
  if (tensor.dtype != DIST_I64 || tensor.ndim != 1 || tensor.shape[0] > MOST_ROWS) {
    return wrong("a batch of dtype %d with %d dimensions", tensor.dtype, tensor.ndim);
  }
  out->n = tensor.shape[0];
  memcpy(out->numbers, tensor.data, (size_t)out->n * sizeof *out->numbers);
  return DIST_OK;
}

static int32_t local_of(const passing *p, int worker) {
  return p->all != NULL ? p->all->replicas[worker] : dist_strategy_num_replicas(p->sources[0].strategy);
}

static dist_status pass_over(dist_dataset *dataset, int worker, passing *p) {
  const int32_t local = local_of(p, worker);
  dist_iterator *iterator = NULL;
  dist_status status = dist_iterator_create(dataset, &iterator);
  p->steps[worker] = 0;
  while (status == DIST_OK) {
    dist_value *batch = NULL;
    status = dist_iterator_next(iterator, &batch);
    if (status != DIST_OK) break;
    if (p->steps[worker] == MOST_STEPS) status = wrong("it never ends");
    for (int32_t r = 0; r < local && status == DIST_OK; ++r) {
      const int32_t at = (p->all != NULL ? first_of(p->all, worker) : 0) + r;
      status = keep(batch, local, r, &p->got[p->steps[worker]][at]);
    }
    ++p->steps[worker];
    dist_value_release(batch);
  }
  dist_value *none = NULL;
  if (status == DIST_OUT_OF_RANGE)
    status = dist_iterator_next(iterator, &none); /* again on every further call */
  dist_iterator_destroy(iterator);
  return status == DIST_OUT_OF_RANGE ? DIST_OK : status;
}

static dist_status play(dist_strategy *strategy, int worker, void *user_data) {
  passing *const p = user_data;
  dist_dataset *dataset = NULL;
  dist_status status = make_dataset(strategy, worker, p, &dataset);
  for (int pass = 0; pass < p->passes && status == DIST_OK; ++pass) status = pass_over(dataset, worker, p);
  dist_dataset_destroy(dataset);
  return status;
}

/* `p` on the workers of the layout, and in *alone on one process with as many replicas. */
static void play_both(const char *layout, passing *p, passing *alone) {
  workers all = workers_of(layout, (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  for (int w = 0; w < all.n; ++w) {
    if (p->kind != FILES) p->totals[w] = p->total;
  }
  *alone = *p;
  alone->options.as_one_process = 0;
  p->all = &all;
  all_workers(&all, play, p);
  dist_strategy *const one = strategy_of(first_of(&all, all.n), DIST_THREADS_CALLER);
  assert_ok(play(one, 0, alone));
  assert_ok(dist_strategy_destroy(one));
  for (int w = 1; w < all.n; ++w) assert_int_equal(p->steps[w], p->steps[0]);
  end_workers(&all);
}

static void check_rows(const char *what, const rows *got, const rows *expected) {
  if (got->n == expected->n && memcmp(got->numbers, expected->numbers, (size_t)got->n * sizeof(int64_t)) == 0)
    return;
  char text[512];
  size_t used = 0;
  for (int64_t i = 0; i < got->n && used < 200; ++i)
    used += (size_t)snprintf(text + used, sizeof text - used, " %d", (int)got->numbers[i]);
  used += (size_t)snprintf(text + used, sizeof text - used, " for");
  for (int64_t i = 0; i < expected->n && used < 400; ++i)
    used += (size_t)snprintf(text + used, sizeof text - used, " %d", (int)expected->numbers[i]);
  fail_msg("%s:%s", what, text);
}

static const char *const kLayouts[] = {"1+1", "2+2", "3+1", "1+3", "1+2+1", "2+1+3", "1+1+1+1"};
static const int64_t kTotals[] = {0, 1, 4, 7, 8, 19};
static const int64_t kBatches[] = {1, 3, 4, 6, 13};

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

/* ---- Trouble ---- */

static dist_status failing_element(int64_t index, dist_value **out, void *user_data) {
  source *const from = user_data;
  if (index == 2) return dist_fail(DIST_DATA_LOSS, "element 2 is broken");
  return element(from, 0, index, out);
}

static dist_status pass_over_a_broken_source(dist_strategy *strategy, int worker, void *user_data) {
  (void)user_data;
  const int64_t size = 5;
  source own = {strategy, &size};
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

/* Worker 1 comes when worker 0 has given up, and is told; then both get the batch that was not given out. */
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

/* ---- Where steps are taken ---- */

typedef struct merging {
  dist_iterator *iterator;
  dist_status inside; /* of a replica's function */
  int64_t n;
} merging;

static dist_status take_merged(dist_strategy *strategy, dist_value *args, dist_value **out, void *user_data) {
  (void)strategy, (void)args, (void)out;
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
  const dist_status status = dist_merge_call(replica, take_merged, self, NULL, NULL, &result);
  dist_value_release(result);
  return status;
}

static dist_status sum_up(dist_value *state, dist_value *batch, dist_value **out, void *user_data) {
  (void)state;
  *out = NULL;
  rows got = {0};
  const dist_status status = keep(batch, 1, 0, &got);
  *(int64_t *)user_data += 100 + got.n; /* steps, rows */
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
  assert_fails(dist_iterator_next(iterator, &batch), DIST_FAILED_PRECONDITION, "strategy has ended");
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
      {DIST_SHARD_OFF, 0, 0, 1, 0, "as_one_process is 1"},
      {DIST_SHARD_FILE, 0, 0, 1, 0, "as_one_process is 1"},
      {DIST_SHARD_DATA, 1, 0, 1, 0, "as_one_process is 1"},
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
      cmocka_unit_test(replicas_get_what_those_of_one_process_get),
      cmocka_unit_test(workers_take_turns_at_the_pieces),
      cmocka_unit_test(sizes_add_up_in_each_step),
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
