/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack that collectives and fused steps need on a host thread.
 * @every collective function in this file but barrier, all_reduce_value, all_gather_value, merge_call,
 * replica_assign, replica_assign_value, replica_scatter, halo_exchange, reshard: those are not measured
 */
#include "stack_support.h"

/* ---- Collectives ---- */

enum way { BLOCKING, ASYNCHRONOUS, PLANNED, WAYS };
enum layout { DENSE, GAPS, ROWS, LAYOUTS }; /* ROWS: only the last dimension is contiguous */
enum { COLUMNS = 4 };

typedef struct tensors {
  dist_tensor whole_in, whole_out, part_in, part_out;
  dist_tensor *lists; /* one input per contribution */
  double *weights;
} tensors;

/* The call that the replicas of a run make, with its arguments. */
typedef struct job {
  dist_status (*call)(dist_replica *replica, tensors *t, const dist_collective_options *options,
                      dist_work **out_work);
  enum way way;
  enum layout layout;
  int64_t whole_shape[2], part_shape[2], strides[2];
  dist_collective_options options;
  tensors of[MOST];
} job;

static dist_status do_all_reduce(dist_replica *r, tensors *t, const dist_collective_options *o,
                                 dist_work **w) {
  const dist_reduce_op op = o->reduce_fn != NULL ? DIST_REDUCE_USER : DIST_REDUCE_MEAN;
  return dist_all_reduce(r, op, t->lists, &t->whole_out, 1, o, w);
}
static dist_status do_reduce_to_root(dist_replica *r, tensors *t, const dist_collective_options *o,
                                     dist_work **w) {
  return dist_reduce_to_root(r, DIST_REDUCE_MEAN, 0, t->lists, &t->whole_out, 1, o, w);
}
static dist_status do_reduce_scatter(dist_replica *r, tensors *t, const dist_collective_options *o,
                                     dist_work **w) {
  return dist_reduce_scatter(r, DIST_REDUCE_MEAN, t->lists, &t->part_out, 1, o, w);
}
static dist_status do_list(dist_replica *r, tensors *t, const dist_collective_options *o, dist_work **w) {
  const dist_tensor in[] = {t->whole_in, t->part_in};
  dist_tensor out[] = {t->whole_out, t->part_out};
  return dist_all_reduce(r, DIST_REDUCE_SUM, in, out, 2, o, w);
}
static dist_status do_all_gather(dist_replica *r, tensors *t, const dist_collective_options *o,
                                 dist_work **w) {
  return dist_all_gather(r, &t->part_in, &t->whole_out, 1, o, w);
}
static dist_status do_gather(dist_replica *r, tensors *t, const dist_collective_options *o, dist_work **w) {
  return dist_gather_to_root(r, 0, &t->part_in, &t->whole_out, 1, o, w);
}
static dist_status do_broadcast(dist_replica *r, tensors *t, const dist_collective_options *o,
                                dist_work **w) {
  return dist_broadcast(r, 0, &t->whole_in, &t->whole_out, 1, o, w);
}
static dist_status do_scatter(dist_replica *r, tensors *t, const dist_collective_options *o, dist_work **w) {
  return dist_scatter_from_root(r, 0, &t->whole_in, &t->part_out, 1, o, w);
}
static dist_status do_all_to_all(dist_replica *r, tensors *t, const dist_collective_options *o,
                                 dist_work **w) {
  return dist_all_to_all(r, &t->whole_in, &t->whole_out, 1, o, w);
}
static dist_status do_scan(dist_replica *r, tensors *t, const dist_collective_options *o, dist_work **w) {
  return dist_scan(r, DIST_REDUCE_SUM, DIST_SCAN_EXCLUSIVE, &t->whole_in, &t->whole_out, 1, o, w);
}
static dist_status do_permute(dist_replica *r, tensors *t, const dist_collective_options *o, dist_work **w) {
  const int32_t me = dist_replica_id(r), n = dist_replica_num_replicas(r);
  return dist_permute(r, (me + 1) % n, (me + n - 1) % n, &t->whole_in, &t->whole_out, 1, o, w);
}

static const struct {
  const char *name;
  dist_status (*call)(dist_replica *replica, tensors *t, const dist_collective_options *options,
                      dist_work **out_work);
  int reduces;
} collectives[] = {
    {"all_reduce", do_all_reduce, 1},
    {"reduce_to_root", do_reduce_to_root, 1},
    {"reduce_scatter", do_reduce_scatter, 1},
    {"all_reduce of a list", do_list, 0},
    {"all_gather", do_all_gather, 0},
    {"gather_to_root", do_gather, 0},
    {"broadcast", do_broadcast, 0},
    {"scatter_from_root", do_scatter, 0},
    {"all_to_all", do_all_to_all, 0},
    {"scan", do_scan, 0},
    {"permute", do_permute, 0},
};

static dist_tensor matrix(job *j, int64_t *shape) {
  const size_t elements = (size_t)shape[0] * (size_t)(j->layout == DENSE ? COLUMNS : j->strides[0]);
  const dist_tensor made = {calloc(elements, sizeof(double)), DIST_F64, 2, shape,
                            j->layout == DENSE ? NULL : j->strides};
  if (made.data == NULL) abort();
  return made;
}

static void make_tensors(job *j, int replicas, int64_t rows, size_t contributions) {
  static const int64_t strides[LAYOUTS][2] = {{COLUMNS, 1}, {4 * COLUMNS, 2}, {2 * COLUMNS, 1}};
  j->whole_shape[0] = rows * replicas;
  j->part_shape[0] = rows;
  j->whole_shape[1] = j->part_shape[1] = COLUMNS;
  memcpy(j->strides, strides[j->layout], sizeof j->strides);
  const size_t lists = contributions == 0 ? 1 : contributions;
  for (int i = 0; i < replicas; i++) {
    tensors *t = &j->of[i];
    t->whole_in = matrix(j, j->whole_shape);
    t->whole_out = matrix(j, j->whole_shape);
    t->part_in = matrix(j, j->part_shape);
    t->part_out = matrix(j, j->part_shape);
    t->lists = calloc(lists, sizeof *t->lists);
    t->weights = calloc(lists, sizeof *t->weights);
    if (t->lists == NULL || t->weights == NULL) abort();
    for (size_t k = 0; k < lists; k++) t->lists[k] = t->whole_in;
    for (size_t k = 0; k < lists; k++) t->weights[k] = 0.25;
  }
  j->options.contributions = contributions;
}

static void free_tensors(job *j, int replicas) {
  for (int i = 0; i < replicas; i++) {
    tensors *t = &j->of[i];
    free(t->whole_in.data), free(t->whole_out.data), free(t->part_in.data), free(t->part_out.data);
    free(t->lists), free(t->weights);
  }
}

static dist_status do_job(dist_replica *replica, void *user_data) {
  job *j = user_data;
  tensors *t = &j->of[dist_replica_id(replica)];
  dist_collective_options options = j->options;
  if (options.weights != NULL) options.weights = t->weights;
  dist_work *work = NULL;
  options.planned = j->way == PLANNED;
  dist_status status = j->call(replica, t, &options, j->way == BLOCKING ? NULL : &work);
  for (int round = 0; round < 2 && status == DIST_OK && work != NULL; round++) {
    if (j->way == PLANNED) status = dist_work_start(work);
    if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  }
  dist_work_destroy(work);
  return status;
}

static void add_doubles(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  (void)acc, (void)in, (void)count, (void)dtype, (void)user_data;
}

static void try_job(const char *name, dist_strategy *strategy, job *j, int64_t rows, size_t contributions) {
  static const char *const ways[] = {"", ", asynchronous", ", planned"};
  static const char *const layouts[] = {"", ", with gaps", ", with gaps between rows"};
  static const char *const numerics[] = {"", ", reproducible", ", as a tree"};
  const int replicas = dist_strategy_num_replicas(strategy);
  char what[160];
  make_tensors(j, replicas, rows, contributions);
  for (int way = 0; way < WAYS; way++) {
    j->way = (enum way)way;
    snprintf(what, sizeof what, "%s of %d rows, %d lists%s%s%s%s", name, (int)rows, (int)contributions,
             layouts[j->layout], j->options.weights != NULL ? ", weighted" : "",
             numerics[j->options.numerics - DIST_NUMERICS_ORDERED], ways[way]);
    assert_needs_little(what, strategy, do_job, j, DIST_OK);
  }
  free_tensors(j, replicas);
}

/* Small tensors travel with the slots, and larger ones are divided among the members. */
static const int64_t sizes[] = {1, 2048};

static void every_collective(void **state) {
  (void)state;
  for (size_t r = 0; r < COUNT_OF(counts); r++) {
    dist_strategy *strategy = strategy_of(counts[r], DIST_THREADS_HOST);
    for (size_t c = 0; c < COUNT_OF(collectives); c++) {
      for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        for (int layout = DENSE; layout <= GAPS; layout++) {
          job j = {.call = collectives[c].call,
                   .layout = (enum layout)layout,
                   .options = DIST_COLLECTIVE_OPTIONS_INIT};
          try_job(collectives[c].name, strategy, &j, sizes[s], 0);
        }
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* The largest number of contributions of a sum, from as few members as possible. */
static void the_longest_lists(void **state) {
  (void)state;
  static double some_weights;
  for (size_t r = 0; r < COUNT_OF(counts); r++) {
    dist_strategy *strategy = strategy_of(counts[r], DIST_THREADS_HOST);
    for (size_t c = 0; c < COUNT_OF(collectives); c++) {
      for (int kind = 0; kind < 12 && collectives[c].reduces; kind++) {
        job j = {.call = collectives[c].call,
                 .layout = (kind & 1) != 0 ? GAPS : DENSE,
                 .options = DIST_COLLECTIVE_OPTIONS_INIT};
        j.options.weights = (kind & 2) != 0 ? &some_weights : NULL;
        j.options.numerics = DIST_NUMERICS_ORDERED + kind / 4;
        try_job(collectives[c].name, strategy, &j, 16, (size_t)(1024 / counts[r]));
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void operators_of_the_host(void **state) {
  (void)state;
  for (size_t r = 0; r < COUNT_OF(counts); r++) {
    dist_strategy *strategy = strategy_of(counts[r], DIST_THREADS_HOST);
    for (int layout = DENSE; layout < LAYOUTS; layout++) {
      job j = {.call = do_all_reduce, .layout = (enum layout)layout, .options = DIST_COLLECTIVE_OPTIONS_INIT};
      j.options.reduce_fn = add_doubles;
      if (layout != GAPS) j.options.reduce_element_bytes = COLUMNS * sizeof(double);
      for (int32_t tree = 0; tree < 2; tree++) {
        j.options.numerics = tree ? DIST_NUMERICS_TREE : DIST_NUMERICS_ORDERED;
        try_job("all_reduce by an operator", strategy, &j, sizes[1], (size_t)(1024 / counts[r]));
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void in_groups(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(8, DIST_THREADS_HOST);
  static const int32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
  dist_group *group = NULL;
  assert_ok(dist_group_create(strategy, all, COUNT_OF(all), &group));
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    job j = {.call = do_all_reduce, .options = DIST_COLLECTIVE_OPTIONS_INIT};
    j.options.group = group;
    try_job("all_reduce in a group", strategy, &j, sizes[s], 0);
  }
  assert_ok(dist_group_destroy(group));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Fused steps ---- */

enum { STATES = 16, PARAMETERS = 16 << 10 };

typedef struct step {
  dist_apply_options apply;
  dist_collective_options options;
  dist_dtype gradients; /* the parameters are f64 if this is f64, and otherwise f32 */
  int64_t length;
  int weighted;
  tensors of[MOST]; /* gradients and parameters */
  dist_tensor states[MOST][STATES];
} step;

static void no_step(const dist_block *block, void *user_data) { (void)block, (void)user_data; }

static dist_status do_step(dist_replica *replica, void *user_data) {
  step *s = user_data;
  tensors *t = &s->of[dist_replica_id(replica)];
  dist_collective_options options = s->options;
  dist_apply_options apply = s->apply;
  if (s->weighted) options.weights = t->weights;
  apply.states = s->states[dist_replica_id(replica)];
  return dist_reduce_apply(replica, DIST_REDUCE_MEAN, t->lists, &t->whole_out, 1, &apply, &options, NULL);
}

static void try_step(const char *what, dist_strategy *strategy, step *s) {
  const int replicas = dist_strategy_num_replicas(strategy);
  const size_t lists = s->options.contributions == 0 ? 1 : s->options.contributions;
  s->length = PARAMETERS;
  const dist_dtype parameters = s->gradients == DIST_F64 ? DIST_F64 : DIST_F32;
  for (int i = 0; i < replicas; i++) {
    tensors *t = &s->of[i];
    t->whole_in = vector_of(calloc(PARAMETERS, sizeof(double)), s->gradients, &s->length);
    t->whole_out = vector_of(calloc(PARAMETERS, sizeof(double)), parameters, &s->length);
    t->lists = calloc(lists, sizeof *t->lists);
    t->weights = calloc(lists, sizeof *t->weights);
    for (size_t k = 0; k < lists; k++) t->lists[k] = t->whole_in;
    for (size_t k = 0; k < lists; k++) t->weights[k] = 0.5;
    for (size_t k = 0; k < s->apply.num_states; k++)
      s->states[i][k] = vector_of(calloc(PARAMETERS, sizeof(double)), parameters, &s->length);
  }
  assert_needs_little(what, strategy, do_step, s, DIST_OK);
  for (int i = 0; i < replicas; i++) {
    free(s->of[i].whole_in.data), free(s->of[i].whole_out.data), free(s->of[i].lists), free(s->of[i].weights);
    for (size_t k = 0; k < s->apply.num_states; k++) free(s->states[i][k].data);
  }
}

static void fused_steps(void **state) {
  (void)state;
  static const struct {
    const char *name;
    dist_dtype gradients;
    int lists; /* the maximum number */
    int32_t numerics;
    int32_t kind;
    size_t num_states;
    double clip_norm;
  } kinds[] = {
      {"SGD", DIST_F32, 0, DIST_NUMERICS_ORDERED, DIST_APPLY_SGD, 0, 0},
      {"SGD with momentum", DIST_F64, 0, DIST_NUMERICS_ORDERED, DIST_APPLY_SGD, 1, 0},
      {"SGD with momentum and a clip", DIST_F32, 0, DIST_NUMERICS_ORDERED, DIST_APPLY_SGD, 1, 0.5},
      {"SGD of long lists", DIST_F64, 1, DIST_NUMERICS_ORDERED, DIST_APPLY_SGD, 1, 0},
      {"SGD of long lists, exactly", DIST_F64, 1, DIST_NUMERICS_REPRODUCIBLE, DIST_APPLY_SGD, 1, 0},
      {"SGD of long lists with a clip", DIST_F32, 1, DIST_NUMERICS_REPRODUCIBLE, DIST_APPLY_SGD, 1, 0.5},
      {"a callback", DIST_F32, 0, DIST_NUMERICS_ORDERED, DIST_APPLY_CALLBACK, STATES, 0},
      {"a callback with a clip", DIST_F64, 0, DIST_NUMERICS_ORDERED, DIST_APPLY_CALLBACK, STATES, 0.5},
      {"a callback for i8", DIST_I8, 0, DIST_NUMERICS_ORDERED, DIST_APPLY_CALLBACK, STATES, 0},
  };
  for (size_t r = 0; r < COUNT_OF(counts); r++) {
    dist_strategy *strategy = strategy_of(counts[r], DIST_THREADS_HOST);
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
      static step s;
      s = (step){.apply = DIST_APPLY_OPTIONS_INIT, .options = DIST_COLLECTIVE_OPTIONS_INIT};
      s.gradients = kinds[k].gradients;
      s.weighted = kinds[k].lists;
      s.options.contributions = kinds[k].lists ? (size_t)(1024 / counts[r]) : 0;
      s.options.numerics = kinds[k].numerics;
      s.apply.kind = kinds[k].kind;
      s.apply.fn = no_step;
      s.apply.learning_rate = 0.5;
      s.apply.momentum = kinds[k].kind == DIST_APPLY_SGD && kinds[k].num_states != 0 ? 0.5 : 0;
      s.apply.num_states = kinds[k].num_states;
      s.apply.clip_norm = kinds[k].clip_norm;
      if (kinds[k].kind == DIST_APPLY_SGD) s.apply.fn = NULL;
      try_step(kinds[k].name, strategy, &s);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_collective),      cmocka_unit_test(the_longest_lists),
      cmocka_unit_test(operators_of_the_host), cmocka_unit_test(in_groups),
      cmocka_unit_test(fused_steps),
  };
  return STACK_TESTS("stack", tests);
}
