/* SPDX-License-Identifier: Apache-2.0
 *
 * A host operator whose elements are larger than those of the tensors: structs as bytes or as numbers. The
 * operator receives only complete elements, wherever libdist splits a tensor, and every byte equals that of a
 * plain loop.
 */
#include <dist/tf.h>
#include "tests/abi/common.h"

enum { R = 5, LISTS = 3, MOST_BYTES = 4096 };

static uint64_t scrambled(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 32);
}

/* Works on complete elements. Neither commutative nor associative: each byte depends on one from the other
 * end of the second operand. */
static void weave(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  const size_t size = *(const size_t *)user_data;
  unsigned char *a = acc;
  const unsigned char *b = in;
  (void)dtype;
  for (int64_t i = 0; i < count; i++, a += size, b += size)
    for (size_t k = 0; k < size; k++) a[k] = (unsigned char)(a[k] * 31 - (b[size - 1 - k] ^ k));
}

/* Rows of elements with gaps between them. */
typedef struct grid {
  int64_t shape[2], strides[2];
  size_t row_bytes, element_bytes, columns;
  unsigned char *data;
  dist_tensor tensor;
} grid;

static void make_grid(grid *g, size_t rows, size_t columns, size_t element_bytes, dist_dtype dtype,
                      size_t gap) {
  const size_t size = dtype == DIST_U8 ? 1 : 4, row = columns * element_bytes;
  g->columns = columns, g->element_bytes = element_bytes, g->row_bytes = row + gap;
  g->shape[0] = (int64_t)rows, g->shape[1] = (int64_t)(row / size);
  g->strides[0] = (int64_t)(g->row_bytes / size), g->strides[1] = 1;
  g->data = calloc(rows * g->row_bytes + 1, 1);
  g->tensor = (dist_tensor){g->data, dtype, 2, g->shape, gap == 0 ? NULL : g->strides};
}

static unsigned char *element_at(const grid *g, size_t row, size_t column) {
  return g->data + row * g->row_bytes + column * g->element_bytes;
}

typedef struct scenario {
  int32_t collective, members;
  size_t element_bytes, rows, columns;
  dist_dtype dtype;
  size_t in_gap, out_gap;
  int32_t axis, kind;
  size_t contributions;
  int work; /* 0 = blocking, 1 = asynchronous, 2 = planned */
  int in_place;
} scenario;

static scenario s;
static grid ins[R][LISTS], outs[R];

static size_t part_of(size_t whole, int32_t r) {
  return whole / (size_t)s.members + ((size_t)r < whole % (size_t)s.members ? 1 : 0);
}
static size_t part_before(size_t whole, int32_t r) {
  size_t before = 0;
  for (int32_t q = 0; q < r; q++) before += part_of(whole, q);
  return before;
}

static void make_scene(void) {
  const int cut = s.collective == DIST_COLLECTIVE_REDUCE_SCATTER;
  for (int32_t r = 0; r < s.members; r++) {
    for (size_t j = 0; j < s.contributions; j++) {
      grid *g = &ins[r][j];
      make_grid(g, s.rows, s.columns, s.element_bytes, s.dtype, s.in_gap);
      for (size_t i = 0; i < s.rows * g->row_bytes; i++)
        g->data[i] = (unsigned char)scrambled((uint64_t)r << 40 ^ (uint64_t)j << 32 ^ i);
    }
    const size_t rows = cut && s.axis == 0 ? part_of(s.rows, r) : s.rows;
    const size_t columns = cut && s.axis == 1 ? part_of(s.columns, r) : s.columns;
    make_grid(&outs[r], rows, columns, s.element_bytes, s.dtype, s.out_gap);
    if (s.in_place) outs[r].tensor.data = ins[r][0].data;
  }
}

static void free_scene(void) {
  for (int32_t r = 0; r < s.members; r++) {
    for (size_t j = 0; j < s.contributions; j++) free(ins[r][j].data);
    free(outs[r].data);
  }
}

static dist_status reduce_them(dist_replica *replica, void *user_data) {
  const int32_t me = dist_replica_id(replica);
  dist_tensor in[LISTS];
  for (size_t j = 0; j < s.contributions; j++) in[j] = ins[me][j].tensor;
  dist_tensor *out = &outs[me].tensor;
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.reduce_fn = weave, options.reduce_user_data = user_data;
  options.reduce_element_bytes = s.element_bytes;
  options.contributions = s.contributions == 1 ? 0 : s.contributions;
  if (s.collective == DIST_COLLECTIVE_REDUCE_SCATTER) options.axis = s.axis;
  dist_work **const out_work = s.work != 0 ? &work : NULL;
  options.planned = s.work == 2;
  dist_status status = DIST_OK;
  switch (s.collective) {
    case DIST_COLLECTIVE_REDUCE:
      status = dist_reduce_to_root(replica, DIST_REDUCE_USER, s.members - 1, in, out, 1, &options, out_work);
      break;
    case DIST_COLLECTIVE_REDUCE_SCATTER:
      status = dist_reduce_scatter(replica, DIST_REDUCE_USER, in, out, 1, &options, out_work);
      break;
    case DIST_COLLECTIVE_SCAN:
      status = dist_scan(replica, DIST_REDUCE_USER, s.kind, in, out, 1, &options, out_work);
      break;
    default: status = dist_all_reduce(replica, DIST_REDUCE_USER, in, out, 1, &options, out_work);
  }
  if (work == NULL || status != DIST_OK) return status;
  if (s.work == 2) status = dist_work_start(work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status;
}

/* Folds one element over members 0 to n-1. */
static void fold_element(size_t row, size_t column, int32_t n, unsigned char *acc) {
  int first = 1;
  for (int32_t r = 0; r < n; r++) {
    for (size_t j = 0; j < s.contributions; j++) {
      const unsigned char *in = element_at(&ins[r][j], row, column);
      if (first)
        memcpy(acc, in, s.element_bytes);
      else
        weave(acc, in, 1, s.dtype, &s.element_bytes);
      first = 0;
    }
  }
}

/* Returns NULL, or what is wrong with member r's output. */
static const char *look_at(int32_t r) {
  static char text[160];
  const int cut = s.collective == DIST_COLLECTIVE_REDUCE_SCATTER;
  const size_t row_before = cut && s.axis == 0 ? part_before(s.rows, r) : 0;
  const size_t column_before = cut && s.axis == 1 ? part_before(s.columns, r) : 0;
  const grid *out = &outs[r];
  int32_t n = s.members;
  if (s.collective == DIST_COLLECTIVE_SCAN) n = r + (s.kind == DIST_SCAN_INCLUSIVE ? 1 : 0);
  if (n == 0 || (s.collective == DIST_COLLECTIVE_REDUCE && r != s.members - 1)) return NULL;
  for (size_t row = 0; row < (size_t)out->shape[0]; row++) {
    for (size_t column = 0; column < out->columns; column++) {
      unsigned char expected[MOST_BYTES];
      fold_element(row_before + row, column_before + column, n, expected);
      if (memcmp(element_at(out, row, column), expected, s.element_bytes) == 0) continue;
      snprintf(text, sizeof text, "member %d, row %zu, column %zu", r, row, column);
      return text;
    }
    for (size_t gap = 0; gap < s.out_gap; gap++)
      if (out->data[row * out->row_bytes + out->columns * s.element_bytes + gap] != 0) return "a gap";
  }
  return NULL;
}

static void check_scene(dist_strategy *strategy) {
  report error;
  if (s.kind == 0) s.kind = DIST_SCAN_INCLUSIVE;
  make_scene();
  if (run_on(DIST_THREADS_CALLER, strategy, reduce_them, &s.element_bytes, &error) != DIST_OK)
    fail_msg("collective %d of elements of %zu: %s", s.collective, s.element_bytes, error.message);
  for (int32_t r = 0; r < s.members; r++) {
    const char *wrong = look_at(r);
    if (wrong == NULL) continue;
    fail_msg("collective %d, %d members, elements of %zu, %zu rows of %zu, axis %d, gaps %zu and %zu: %s",
             s.collective, s.members, s.element_bytes, s.rows, s.columns, s.axis, s.in_gap, s.out_gap, wrong);
  }
  free_scene();
}

static const int32_t reducing[] = {DIST_COLLECTIVE_ALL_REDUCE, DIST_COLLECTIVE_REDUCE,
                                   DIST_COLLECTIVE_REDUCE_SCATTER, DIST_COLLECTIVE_SCAN};

/* Runs all collectives, small and large, dense and with gaps, along both axes. */
static void check_all(dist_strategy *strategy, int32_t members, int work) {
  static const struct {
    size_t element_bytes, rows, columns;
    dist_dtype dtype;
  } sizes[] = {{2, 1, 1, DIST_U8},     {12, 1, 3, DIST_U8},     {12, 7, 11, DIST_I32},
               {24, 1, 1, DIST_U8},    {24, 5, 1, DIST_U8},     {24, 1, 9000, DIST_U8},
               {24, 300, 31, DIST_U8}, {100, 90, 13, DIST_I32}, {65, 7, 1001, DIST_U8},
               {4096, 3, 7, DIST_U8}};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    for (size_t c = 0; c < sizeof reducing / sizeof *reducing; c++) {
      for (int variant = 0; variant < 4; variant++) {
        s = (scenario){.collective = reducing[c],
                       .members = members,
                       .element_bytes = sizes[k].element_bytes,
                       .rows = sizes[k].rows,
                       .columns = sizes[k].columns,
                       .dtype = sizes[k].dtype,
                       .in_gap = variant & 1 ? 20 : 0,
                       .out_gap = variant & 2 ? 8 : 0,
                       .axis = variant & 1,
                       .kind = variant & 1 ? DIST_SCAN_EXCLUSIVE : DIST_SCAN_INCLUSIVE,
                       .contributions = reducing[c] != DIST_COLLECTIVE_SCAN && variant == 2 ? LISTS : 1,
                       .work = work};
        check_scene(strategy);
      }
    }
  }
}

static void whole_elements(void **state) {
  (void)state;
  static const int32_t members[] = {1, 2, 3, R};
  for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
    dist_strategy *strategy = strategy_of(members[k], DIST_THREADS_CALLER);
    check_all(strategy, members[k], 0);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void whole_elements_of_works(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_LIBRARY);
  check_all(strategy, 3, 1);
  check_all(strategy, 3, 2);
  assert_ok(dist_strategy_destroy(strategy));
}

/* Above the size from which members take blocks from each other. */
static void large_tensors(void **state) {
  (void)state;
  for (int32_t members = 2; members <= 3; members++) {
    dist_strategy *strategy = strategy_of(members, DIST_THREADS_CALLER);
    for (size_t c = 0; c < sizeof reducing / sizeof *reducing; c++) {
      for (int work = 0; work < 2; work++) {
        s = (scenario){.collective = reducing[c],
                       .members = members,
                       .element_bytes = 24,
                       .rows = 3,
                       .columns = 30011,
                       .dtype = DIST_U8,
                       .axis = work,
                       .contributions = 1,
                       .work = work};
        check_scene(strategy);
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- MAXLOC, in its usual form ---- */

typedef struct located {
  double value;
  int64_t where;
} located;

static void maxloc(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  (void)dtype, (void)user_data;
  located *a = acc;
  const located *b = in;
  for (int64_t i = 0; i < count; i++)
    if (b[i].value > a[i].value || (b[i].value == a[i].value && b[i].where < a[i].where)) a[i] = b[i];
}

enum { PLACES = 20001 };
static located *mine[3];

static located place_of(int32_t r, int i) {
  return (located){(double)(scrambled((uint64_t)i * 3 + (uint64_t)r) % 5), (int64_t)r * PLACES + i};
}

static dist_status find_largest(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int64_t bytes = PLACES * (int64_t)sizeof(located);
  dist_tensor tensor = vector_of(mine[dist_replica_id(replica)], DIST_U8, &bytes);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.reduce_fn = maxloc, options.reduce_element_bytes = sizeof(located);
  return dist_all_reduce(replica, DIST_REDUCE_USER, &tensor, &tensor, 1, &options, NULL);
}

static void maxloc_in_place(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  for (int32_t r = 0; r < 3; r++) {
    mine[r] = malloc(PLACES * sizeof(located));
    for (int i = 0; i < PLACES; i++) mine[r][i] = place_of(r, i);
  }
  assert_ok(dist_run(strategy, find_largest, NULL, NULL));
  for (int i = 0; i < PLACES; i++) {
    located best = place_of(0, i);
    for (int32_t r = 1; r < 3; r++) {
      const located other = place_of(r, i);
      maxloc(&best, &other, 1, DIST_U8, NULL);
    }
    for (int32_t r = 0; r < 3; r++) {
      assert_true(mine[r][i].value == best.value);
      assert_int_equal(mine[r][i].where, best.where);
    }
  }
  for (int32_t r = 0; r < 3; r++) free(mine[r]);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Fused steps ---- */

enum { FUSED = 2, TRIPLE = 12 };
static const int64_t fused_bytes[FUSED] = {TRIPLE * 3, TRIPLE * 20011};
static unsigned char *gradients[3][FUSED], *parameters[3][FUSED];
static atomic_int cut_inside;

static void keep_gradient(const dist_block *block, void *user_data) {
  (void)user_data;
  if (block->first % TRIPLE != 0 || block->count % TRIPLE != 0) atomic_store(&cut_inside, 1);
  memcpy(block->parameter, block->gradient, (size_t)block->count);
}

static dist_status step(dist_replica *replica, void *user_data) {
  const int32_t me = dist_replica_id(replica);
  dist_tensor gradient[FUSED], parameter[FUSED];
  for (int t = 0; t < FUSED; t++) {
    gradient[t] = vector_of(gradients[me][t], DIST_U8, &fused_bytes[t]);
    parameter[t] = vector_of(parameters[me][t], DIST_U8, &fused_bytes[t]);
  }
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = DIST_APPLY_CALLBACK, apply.fn = keep_gradient;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.reduce_fn = weave, options.reduce_user_data = user_data, options.reduce_element_bytes = TRIPLE;
  return dist_reduce_apply(replica, DIST_REDUCE_USER, gradient, parameter, FUSED, &apply, &options, NULL);
}

static void fused_steps(void **state) {
  (void)state;
  size_t size = TRIPLE;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  for (int r = 0; r < 3; r++) {
    for (int t = 0; t < FUSED; t++) {
      gradients[r][t] = malloc((size_t)fused_bytes[t]), parameters[r][t] = calloc(1, (size_t)fused_bytes[t]);
      for (int64_t i = 0; i < fused_bytes[t]; i++)
        gradients[r][t][i] = (unsigned char)scrambled((uint64_t)(i * 3 + r));
    }
  }
  assert_ok(dist_run(strategy, step, &size, NULL));
  assert_int_equal(atomic_load(&cut_inside), 0);
  for (int t = 0; t < FUSED; t++) {
    for (int64_t i = 0; i < fused_bytes[t]; i += TRIPLE) {
      unsigned char acc[TRIPLE];
      memcpy(acc, gradients[0][t] + i, TRIPLE);
      for (int r = 1; r < 3; r++) weave(acc, gradients[r][t] + i, 1, DIST_U8, &size);
      for (int r = 0; r < 3; r++) assert_memory_equal(parameters[r][t] + i, acc, TRIPLE);
    }
    for (int r = 0; r < 3; r++) free(gradients[r][t]), free(parameters[r][t]);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Reductions in the cross-replica context ---- */

static dist_value *per_replica_bytes(dist_strategy *strategy, const located *all, int64_t bytes) {
  dist_value *components[3], *value = NULL;
  for (int r = 0; r < 3; r++) {
    const dist_tensor tensor = vector_of((void *)(uintptr_t)&all[r], DIST_U8, &bytes);
    assert_ok(dist_value_create_tensor(strategy, &tensor, &components[r]));
  }
  assert_ok(dist_value_create_per_replica(strategy, components, 3, &value));
  for (int r = 0; r < 3; r++) dist_value_release(components[r]);
  return value;
}

static void from_outside(void **state) {
  (void)state;
  const located all[3] = {{1, 10}, {7, 11}, {7, 12}};
  const dist_destination cpu = {NULL, NULL, "CPU:0"};
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  dist_cross_device *ops = NULL;
  options.accumulate_element_bytes = sizeof(located);
  assert_fails(dist_cross_device_create(&options, &ops), DIST_INVALID_ARGUMENT,
               "accumulate_element_bytes is 16");
  options.kind = DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
  options.accumulate = maxloc;
  assert_ok(dist_cross_device_create(&options, &ops));
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  dist_value *value = per_replica_bytes(strategy, all, sizeof(located)), *largest = NULL;
  assert_ok(dist_cross_device_reduce(ops, DIST_REDUCE_SUM, value, &cpu, &largest));
  dist_tensor tensor;
  assert_ok(dist_value_tensor(largest, &tensor));
  assert_memory_equal(tensor.data, &all[1], sizeof(located));
  dist_value *some = per_replica_bytes(strategy, all, 12);
  assert_fails(dist_cross_device_reduce(ops, DIST_REDUCE_SUM, some, &cpu, &largest), DIST_INVALID_ARGUMENT,
               "accumulate_element_bytes is 16");
  dist_value_release(value), dist_value_release(largest), dist_value_release(some);
  assert_ok(dist_strategy_destroy(strategy));
  dist_cross_device_destroy(ops);
}

/* ---- Rejected sizes ---- */

typedef struct refusal {
  dist_reduce_op op;
  size_t element_bytes;
  dist_dtype dtype;
  int64_t columns, gap; /* in elements */
  int32_t axis;         /* of a reduce_scatter over 2 replicas; -1 = all_reduce */
  const char *words;
} refusal;

static dist_status ask(dist_replica *replica, void *user_data) {
  const refusal *given = user_data;
  static unsigned char in[2][20000], out[2][20000];
  const int32_t me = dist_replica_id(replica);
  const int64_t in_shape[] = {2, given->columns}, strides[] = {given->columns + given->gap, 1};
  const int64_t out_shape[] = {given->axis == 0 ? 1 : 2,
                               given->axis == 1 ? given->columns / 2 : given->columns};
  const dist_tensor in_tensor = {in[me], given->dtype, 2, in_shape, given->gap == 0 ? NULL : strides};
  dist_tensor out_tensor = {out[me], given->dtype, 2, out_shape, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  if (given->op == DIST_REDUCE_USER) options.reduce_fn = maxloc;
  options.reduce_element_bytes = given->element_bytes;
  if (given->axis < 0) return dist_all_reduce(replica, given->op, &in_tensor, &out_tensor, 1, &options, NULL);
  options.axis = given->axis;
  return dist_reduce_scatter(replica, given->op, &in_tensor, &out_tensor, 1, &options, NULL);
}

static void what_is_refused(void **state) {
  (void)state;
  static const refusal table[] = {
      {DIST_REDUCE_SUM, 16, DIST_U8, 32, 0, -1,
       "uses options->reduce_element_bytes only if op is DIST_REDUCE_USER"},
      {DIST_REDUCE_USER, 4097, DIST_U8, 4097, 0, -1, "reduce_element_bytes is 4097, but must be 0 to 4096"},
      {DIST_REDUCE_USER, SIZE_MAX, DIST_U8, 32, 0, -1, "reduce_element_bytes is -1, but must be 0 to 4096"},
      {DIST_REDUCE_USER, 6, DIST_I32, 12, 0, -1, "tensor 0 is i32, but it must be a multiple of 4"},
      {DIST_REDUCE_USER, 16, DIST_U8, 12, 0, -1, "in has runs of 24 bytes"},
      {DIST_REDUCE_USER, 16, DIST_U8, 24, 8, -1, "in has runs of 24 bytes"},
      {DIST_REDUCE_USER, 16, DIST_U8, 24, 0, 1, "in has runs of 24 bytes"},
      {DIST_REDUCE_USER, 16, DIST_U8, 48, 0, 1, "out has runs of 24 bytes"},
  };
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    assert_fails(dist_run(strategy, ask, (void *)(uintptr_t)&table[k], NULL), DIST_INVALID_ARGUMENT,
                 table[k].words);
  }
  /* Adjacent runs count as one: 16 bytes divide 2 * 24. */
  refusal fits = {DIST_REDUCE_USER, 16, DIST_U8, 24, 0, -1, NULL};
  assert_ok(dist_run(strategy, ask, &fits, NULL));
  fits = (refusal){DIST_REDUCE_USER, 16, DIST_U8, 32, 0, 1, NULL};
  assert_ok(dist_run(strategy, ask, &fits, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status disagree(dist_replica *replica, void *user_data) {
  (void)user_data;
  refusal given = {DIST_REDUCE_USER, dist_replica_id(replica) == 1 ? 8 : 16, DIST_U8, 32, 0, -1, NULL};
  return ask(replica, &given);
}

static void members_that_disagree(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  assert_fails(dist_run(strategy, disagree, NULL, NULL), DIST_INVALID_ARGUMENT, "of elements of 8 bytes");
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_elements),  cmocka_unit_test(whole_elements_of_works),
      cmocka_unit_test(large_tensors),   cmocka_unit_test(maxloc_in_place),
      cmocka_unit_test(fused_steps),     cmocka_unit_test(from_outside),
      cmocka_unit_test(what_is_refused), cmocka_unit_test(members_that_disagree),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
