/* SPDX-License-Identifier: Apache-2.0
 *
 * The cross-replica context over several workers: functions that reduce, gather, read or write variables. The
 * same program runs in every layout of four replicas; its output on every worker must equal that of a single
 * process.
 */
#include "../workers_support.h"

enum { REPLICAS = 4, MOST_BYTES = 1 << 16 };

typedef struct notes {
  unsigned char bytes[MOST_BYTES];
  size_t size;
} notes;

typedef struct program {
  dist_strategy *strategy;
  int32_t first, local; /* this worker's replicas */
  notes *notes;
} program;

static dist_status note(notes *to, const void *bytes, size_t size) {
  if (to->size + size > sizeof to->bytes) return dist_fail(DIST_RESOURCE_EXHAUSTED, "more notes than room");
  if (size != 0) memcpy(to->bytes + to->size, bytes, size);
  to->size += size;
  return DIST_OK;
}

static dist_status note_tensor(notes *to, const dist_tensor *tensor) {
  size_t bytes = tensor->dtype == DIST_F64 || tensor->dtype == DIST_I64 ? 8
                 : tensor->dtype == DIST_BF16                           ? 2
                                                                        : 4;
  for (int32_t d = 0; d < tensor->ndim; ++d) bytes *= (size_t)tensor->shape[d];
  dist_status status = note(to, &tensor->dtype, sizeof tensor->dtype);
  if (status == DIST_OK) status = note(to, tensor->shape, (size_t)tensor->ndim * sizeof *tensor->shape);
  return status == DIST_OK ? note(to, tensor->data, bytes) : status;
}

static dist_status note_value(notes *to, dist_value *value) {
  dist_status status = DIST_OK;
  if (dist_value_size(value) != 0) {
    for (size_t i = 0; i < dist_value_size(value) && status == DIST_OK; ++i) {
      status = note_value(to, dist_value_item(value, i));
    }
    return status;
  }
  dist_tensor tensor;
  status = dist_value_tensor(value, &tensor);
  return status == DIST_OK ? note_tensor(to, &tensor) : status;
}

/* Elements whose sum depends on the order. */
static float element(int32_t replica, int64_t i) { return (float)(replica + 1) / (float)(7 * i + 3); }

/* Returns the replicas' tensors of shape [rows_of(r), 3]. */
static dist_status per_replica(const program *p, int32_t dtype, int64_t rows, int64_t more,
                               dist_value **out) {
  dist_value *items[REPLICAS] = {0};
  dist_status status = DIST_OK;
  for (int32_t k = 0; k < p->local && status == DIST_OK; ++k) {
    const int32_t r = p->first + k;
    const int64_t shape[] = {rows + more * r, 3};
    float floats[64];
    double doubles[64];
    int32_t ints[64];
    uint16_t halves[64];
    for (int64_t i = 0; i < shape[0] * 3; ++i) {
      floats[i] = element(r, i);
      doubles[i] = element(r, i) * 1e9;
      ints[i] = (int32_t)(1000 * r + i);
      uint32_t bits = 0;
      memcpy(&bits, &floats[i], sizeof bits);
      halves[i] = (uint16_t)(bits >> 16);
    }
    void *const data = dtype == DIST_F32   ? (void *)floats
                       : dtype == DIST_F64 ? (void *)doubles
                       : dtype == DIST_I32 ? (void *)ints
                                           : (void *)halves;
    const dist_tensor tensor = {data, dtype, 2, shape, NULL};
    status = dist_value_create_tensor(p->strategy, &tensor, &items[k]);
  }
  if (status == DIST_OK) status = dist_value_create_per_replica(p->strategy, items, (size_t)p->local, out);
  for (int32_t k = 0; k < p->local; ++k) dist_value_release(items[k]);
  return status;
}

static const int32_t kDtypes[] = {DIST_F32, DIST_F64, DIST_I32, DIST_BF16};

/* ---- Values ---- */

static dist_status reduce_all_ways(const program *p) {
  dist_status status = DIST_OK;
  for (size_t d = 0; d < COUNT_OF(kDtypes) && status == DIST_OK; ++d) {
    for (int k = 0; k < 6 && status == DIST_OK; ++k) {
      const dist_reduce_op op = k % 2 == 0 ? DIST_REDUCE_SUM : DIST_REDUCE_MEAN;
      static const int32_t axes[] = {0, 1};
      const size_t num_axes = (size_t)k / 2;
      dist_value *value = NULL;
      dist_value *result = NULL;
      status = per_replica(p, kDtypes[d], 2, num_axes == 0 ? 0 : 1, &value);
      if (status == DIST_OK) status = dist_reduce(p->strategy, op, value, axes, num_axes, &result);
      if (status == DIST_OK) status = note_value(p->notes, result);
      dist_value_release(result);
      dist_value_release(value);
    }
  }
  return status;
}

static dist_status reduce_a_batch(const program *p, int64_t bytes_per_pack) {
  dist_value *values[20] = {0};
  dist_value *results[20] = {0};
  dist_communication_options options = DIST_COMMUNICATION_OPTIONS_INIT;
  options.bytes_per_pack = bytes_per_pack;
  dist_status status = DIST_OK;
  for (int k = 0; k < 20 && status == DIST_OK; ++k)
    status = per_replica(p, kDtypes[k % 4], k % 5, 0, &values[k]);
  if (status == DIST_OK)
    status = dist_batch_reduce_to(p->strategy, DIST_REDUCE_MEAN, values, NULL, 20, &options, results);
  for (int k = 0; k < 20; ++k) {
    /* mirrored: a value made of the first component */
    if (status == DIST_OK) {
      dist_value *const first =
          dist_value_size(results[k]) != 0 ? dist_value_item(results[k], 0) : results[k];
      status = note_value(p->notes, first);
    }
    dist_value_release(results[k]);
    dist_value_release(values[k]);
  }
  return status;
}

static dist_status gather_uneven_parts(const program *p) {
  dist_value *value = NULL;
  dist_value *result = NULL;
  dist_status status = per_replica(p, DIST_F32, 0, 2, &value);
  if (status == DIST_OK) status = dist_gather(p->strategy, value, 0, &result);
  if (status == DIST_OK) status = note_value(p->notes, result);
  dist_value_release(result);
  dist_value_release(value);
  return status;
}

/* ---- Variables ---- */

typedef struct step {
  dist_variable *sum, *mean, *on_read;
} step;

static dist_status assign_in_replicas(dist_replica *replica, void *user_data) {
  const step *given = user_data;
  float mine[6];
  for (int i = 0; i < 6; ++i) mine[i] = element(dist_replica_id(replica), i);
  const int64_t shape[] = {2, 3};
  const dist_tensor tensor = {mine, DIST_F32, 2, shape, NULL};
  dist_status status = dist_replica_assign(replica, given->sum, DIST_ASSIGN_ADD, &tensor, NULL);
  if (status == DIST_OK) status = dist_replica_assign(replica, given->mean, DIST_ASSIGN, &tensor, NULL);
  if (status == DIST_OK)
    status = dist_replica_assign(replica, given->on_read, DIST_ASSIGN_ADD, &tensor, NULL);
  return status;
}

static dist_status note_variable(const program *p, dist_variable *variable) {
  dist_value *value = NULL;
  dist_status status = dist_variable_read(p->strategy, variable, &value);
  if (status == DIST_OK) status = note_value(p->notes, value);
  dist_value_release(value);
  return status;
}

static dist_status make(const program *p, int32_t aggregation, int32_t synchronization, dist_variable **out) {
  float first[6]; /* different on every worker */
  for (int i = 0; i < 6; ++i) first[i] = (float)(p->first * 100 + i);
  const int64_t shape[] = {2, 3};
  const dist_tensor initial = {first, DIST_F32, 2, shape, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = aggregation;
  options.synchronization = synchronization;
  return dist_variable_create(p->strategy, &initial, &options, out);
}

static dist_status use_variables(const program *p) {
  step given = {0};
  dist_status status = make(p, DIST_AGGREGATION_SUM, DIST_SYNCHRONIZATION_ON_WRITE, &given.sum);
  if (status == DIST_OK) status = make(p, DIST_AGGREGATION_MEAN, DIST_SYNCHRONIZATION_ON_WRITE, &given.mean);
  if (status == DIST_OK) status = make(p, DIST_AGGREGATION_SUM, DIST_SYNCHRONIZATION_ON_READ, &given.on_read);
  dist_variable *const all[] = {given.sum, given.mean, given.on_read};
  for (int i = 0; i < 3 && status == DIST_OK; ++i) status = note_variable(p, all[i]);
  if (status == DIST_OK) status = dist_run(p->strategy, assign_in_replicas, &given, NULL);
  for (int i = 0; i < 3 && status == DIST_OK; ++i) status = note_variable(p, all[i]);
  /* A SUM variable that was assigned outside replicas is read as it was assigned. */
  if (status == DIST_OK) {
    float whole[6];
    for (int i = 0; i < 6; ++i) whole[i] = (float)(i - 2) * 1.25f;
    const int64_t shape[] = {2, 3};
    const dist_tensor tensor = {whole, DIST_F32, 2, shape, NULL};
    dist_value *value = NULL;
    status = dist_value_create_tensor(p->strategy, &tensor, &value);
    if (status == DIST_OK) status = dist_variable_assign(p->strategy, given.on_read, DIST_ASSIGN, value);
    if (status == DIST_OK) status = note_variable(p, given.on_read);
    dist_value_release(value);
  }
  for (int i = 0; i < 3; ++i) dist_variable_destroy(all[i]);
  return status;
}

/* ---- Metrics ---- */

static dist_status measure(dist_replica *replica, void *user_data) {
  const float mine[] = {element(dist_replica_id(replica), 1), element(dist_replica_id(replica), 2)};
  const int64_t shape[] = {2};
  const dist_tensor tensor = {(void *)mine, DIST_F32, 1, shape, NULL};
  return dist_metric_update(replica, user_data, &tensor, NULL, NULL);
}

static dist_status use_metric(const program *p) {
  dist_metric *metric = NULL;
  double result = 0;
  dist_status status = dist_metric_create(p->strategy, DIST_METRIC_MEAN, "loss", &metric);
  for (int k = 0; k < 2 && status == DIST_OK; ++k) {
    status = dist_run(p->strategy, measure, metric, NULL);
    if (status == DIST_OK) status = dist_metric_result(p->strategy, metric, &result);
    if (status == DIST_OK) status = note(p->notes, &result, sizeof result);
    if (status == DIST_OK) status = dist_metric_reset(p->strategy, metric);
  }
  dist_metric_destroy(metric);
  return status;
}

/* ---- A value of all replicas in a merge function ---- */

static dist_status reduce_here(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                               dist_value **out_result, void *user_data) {
  (void)user_data, (void)kwargs;
  return dist_reduce(strategy, DIST_REDUCE_SUM, dist_value_item(args, 0), NULL, 0, out_result);
}

typedef struct merged {
  dist_strategy *strategy;
  float sums[REPLICAS];
} merged;

static dist_status merge_and_note(dist_replica *replica, void *user_data) {
  merged *to = user_data;
  float mine = element(dist_replica_id(replica), 5);
  const dist_tensor tensor = {&mine, DIST_F32, 0, NULL, NULL};
  dist_value *item = NULL;
  dist_value *args = NULL;
  dist_value *result = NULL;
  dist_status status = dist_value_create_tensor(to->strategy, &tensor, &item);
  if (status == DIST_OK) status = dist_value_create_list(to->strategy, &item, 1, &args);
  if (status == DIST_OK) status = dist_merge_call(replica, reduce_here, to, args, NULL, NULL, &result);
  dist_tensor sum;
  if (status == DIST_OK) status = dist_value_tensor(result, &sum);
  if (status == DIST_OK) memcpy(&to->sums[dist_replica_id(replica)], sum.data, sizeof(float));
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(item);
  return status;
}

static dist_status merge(const program *p) {
  merged to = {.strategy = p->strategy};
  dist_status status = dist_run(p->strategy, merge_and_note, &to, NULL);
  for (int32_t k = 1; k < p->local && status == DIST_OK; ++k) {
    if (memcmp(&to.sums[p->first + k], &to.sums[p->first], sizeof(float)) != 0)
      status = dist_fail(DIST_INTERNAL, "replicas got different results");
  }
  return status == DIST_OK ? note(p->notes, &to.sums[p->first], sizeof(float)) : status;
}

/* ---- In every layout ---- */

static dist_status play(dist_strategy *strategy, int worker, void *user_data) {
  dist_strategy_properties properties = DIST_STRATEGY_PROPERTIES_INIT;
  dist_status status = dist_strategy_query(strategy, &properties);
  program p = {strategy, properties.first_replica, properties.num_local_replicas,
               (notes *)user_data + worker};
  if (status == DIST_OK) status = reduce_all_ways(&p);
  if (status == DIST_OK) status = reduce_a_batch(&p, 0);
  if (status == DIST_OK) status = reduce_a_batch(&p, 1);
  if (status == DIST_OK) status = reduce_a_batch(&p, 40);
  if (status == DIST_OK) status = gather_uneven_parts(&p);
  if (status == DIST_OK) status = use_variables(&p);
  if (status == DIST_OK) status = use_metric(&p);
  if (status == DIST_OK) status = merge(&p);
  return status;
}

/* The smallest staging memory divides everything into pieces. */
static void every_layout_notes_what_one_process_does(void **state) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  worker.staging_bytes = *state != NULL;
  static notes wanted;
  static notes found[MOST_WORKERS];
  memset(&wanted, 0, sizeof wanted);
  dist_strategy *alone = strategy_of(REPLICAS, DIST_THREADS_CALLER);
  assert_ok(play(alone, 0, &wanted));
  assert_ok(dist_strategy_destroy(alone));
  const char *const layouts[] = {"4", "2+2", "1+1+1+1", "3+1", "1+2+1"};
  for (size_t k = 0; k < COUNT_OF(layouts); ++k) {
    workers all = workers_of(layouts[k], options);
    memset(found, 0, sizeof found);
    all_workers(&all, play, found);
    for (int w = 0; w < all.n; ++w) {
      assert_int_equal(found[w].size, wanted.size);
      assert_memory_equal(found[w].bytes, wanted.bytes, wanted.size);
    }
    end_workers(&all);
  }
}

/* ---- Differences between several workers and one process ---- */

static dist_status reduce_what_is_not_distributed(dist_strategy *strategy, int worker, void *user_data) {
  float *sums = user_data;
  float mine = (float)(worker + 1);
  const dist_tensor tensor = {&mine, DIST_F32, 0, NULL, NULL};
  dist_value *value = NULL;
  dist_value *result = NULL;
  dist_status status = dist_value_create_tensor(strategy, &tensor, &value);
  if (status == DIST_OK) status = dist_reduce(strategy, DIST_REDUCE_SUM, value, NULL, 0, &result);
  dist_tensor sum;
  if (status == DIST_OK) status = dist_value_tensor(result, &sum);
  if (status == DIST_OK) memcpy(&sums[worker], sum.data, sizeof(float));
  dist_value_release(result);
  dist_value_release(value);
  return status;
}

static void a_tensor_is_one_contribution_of_its_worker(void **state) {
  (void)state;
  workers all = workers_of("2+1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  float sums[MOST_WORKERS] = {0};
  all_workers(&all, reduce_what_is_not_distributed, sums);
  for (int w = 0; w < 3; ++w) assert_true(sums[w] == 6.0f);
  end_workers(&all);
}

/* The mean of slices, whose rows are concatenated, divides by the number of replicas of all workers. */
static dist_status mean_of_slices(dist_strategy *strategy, int worker, void *user_data) {
  float *rows = user_data;
  float row = (float)(worker + 1);
  int64_t index = worker;
  int64_t dense[] = {4, 1};
  const int64_t row_shape[] = {1, 1};
  const int64_t one[] = {1};
  const int64_t two[] = {2};
  const dist_tensor tensors[] = {{&row, DIST_F32, 2, row_shape, NULL},
                                 {&index, DIST_I64, 1, one, NULL},
                                 {dense, DIST_I64, 1, two, NULL}};
  dist_value *parts[3] = {0};
  dist_value *slices = NULL;
  dist_value *result = NULL;
  dist_status status = DIST_OK;
  for (int i = 0; i < 3 && status == DIST_OK; ++i)
    status = dist_value_create_tensor(strategy, &tensors[i], &parts[i]);
  if (status == DIST_OK)
    status = dist_value_create_composite(strategy, DIST_VALUE_INDEXED_SLICES, parts, 3, &slices);
  if (status == DIST_OK) status = dist_reduce(strategy, DIST_REDUCE_MEAN, slices, NULL, 0, &result);
  dist_tensor joined;
  if (status == DIST_OK) status = dist_value_tensor(dist_value_item(result, 0), &joined);
  if (status == DIST_OK && joined.shape[0] == 3) memcpy(&rows[3 * worker], joined.data, 3 * sizeof(float));
  dist_value_release(result);
  dist_value_release(slices);
  for (int i = 0; i < 3; ++i) dist_value_release(parts[i]);
  return status;
}

static void slices_are_one_contribution_of_their_worker(void **state) {
  (void)state;
  workers all = workers_of("2+1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  float rows[9] = {0};
  all_workers(&all, mean_of_slices, rows);
  for (int i = 0; i < 9; ++i) assert_true(rows[i] == (float)(i % 3 + 1) / 3.0f);
  end_workers(&all);
}

static dist_status assign_first(dist_replica *replica, void *user_data) {
  const float mine = (float)dist_replica_id(replica);
  const dist_tensor tensor = {(void *)&mine, DIST_F32, 0, NULL, NULL};
  return dist_replica_assign(replica, user_data, DIST_ASSIGN, &tensor, NULL);
}

static dist_status assign_the_first_replicas(dist_strategy *strategy, int worker, void *user_data) {
  float *read = user_data;
  float zero = 0;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = DIST_AGGREGATION_ONLY_FIRST_REPLICA;
  dist_variable *variable = NULL;
  dist_status status = dist_variable_create(strategy, &initial, &options, &variable);
  if (status == DIST_OK) status = dist_run(strategy, assign_first, variable, NULL);
  dist_value *value = NULL;
  if (status == DIST_OK) status = dist_variable_read(strategy, variable, &value);
  dist_tensor tensor;
  if (status == DIST_OK) status = dist_value_tensor(value, &tensor);
  if (status == DIST_OK) memcpy(&read[worker], tensor.data, sizeof(float));
  dist_value_release(value);
  dist_variable_destroy(variable);
  return status;
}

static void the_first_replica_is_each_workers(void **state) {
  (void)state;
  workers all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  float read[MOST_WORKERS] = {0};
  all_workers(&all, assign_the_first_replicas, read);
  assert_true(read[0] == 0.0f && read[1] == 2.0f);
  end_workers(&all);
}

static dist_status reduce_badly(dist_strategy *strategy, int worker, void *user_data) {
  (void)user_data;
  float two[] = {1, 2};
  const int64_t shape[] = {worker == 1 ? 2 : 1};
  const dist_tensor tensor = {two, DIST_F32, 1, shape, NULL};
  dist_value *value = NULL;
  dist_value *result = NULL;
  dist_status status = dist_value_create_tensor(strategy, &tensor, &value);
  if (status == DIST_OK) status = dist_reduce(strategy, DIST_REDUCE_SUM, value, NULL, 0, &result);
  dist_value_release(result);
  dist_value_release(value);
  return status;
}

static dist_status make_another(dist_strategy *strategy, int worker, void *user_data) {
  (void)user_data;
  float zero = 0;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = worker == 1 ? DIST_AGGREGATION_MEAN : DIST_AGGREGATION_SUM;
  dist_variable *variable = NULL;
  const dist_status status = dist_variable_create(strategy, &initial, &options, &variable);
  dist_variable_destroy(variable);
  return status;
}

static dist_status fail_before(dist_strategy *strategy, int worker, void *user_data) {
  if (worker != 1) return reduce_what_is_not_distributed(strategy, worker, user_data);
  char flag = 1;
  const dist_tensor tensor = {&flag, DIST_BOOL, 0, NULL, NULL};
  dist_value *value = NULL;
  dist_value *result = NULL;
  dist_status status = dist_value_create_tensor(strategy, &tensor, &value);
  if (status == DIST_OK) status = dist_reduce(strategy, DIST_REDUCE_SUM, value, NULL, 0, &result);
  dist_value_release(value);
  return status;
}

static void workers_that_disagree_are_told_so(void **state) {
  (void)state;
  workers all = workers_of("2+2+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  const worker_fn cases[] = {reduce_badly, make_another, fail_before};
  for (size_t k = 0; k < COUNT_OF(cases); ++k) {
    float sums[MOST_WORKERS] = {0};
    worker_thread threads[MOST_WORKERS];
    on_workers(&all, cases[k], sums, threads);
    for (int w = 0; w < all.n; ++w) {
      assert_int_not_equal(threads[w].status, DIST_OK);
      if (w != 1 || k < 2) assert_has(threads[w].error.message, "worker 1");
    }
    all_workers(&all, reduce_what_is_not_distributed, sums);
    for (int w = 0; w < 3; ++w) assert_true(sums[w] == 6.0f);
  }
  end_workers(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layout_notes_what_one_process_does),
      cmocka_unit_test_prestate(every_layout_notes_what_one_process_does, "in pieces"),
      cmocka_unit_test(a_tensor_is_one_contribution_of_its_worker),
      cmocka_unit_test(slices_are_one_contribution_of_their_worker),
      cmocka_unit_test(the_first_replica_is_each_workers),
      cmocka_unit_test(workers_that_disagree_are_told_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
