/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_reduce_apply(): the gradients equal those of the all_reduce oracle. The test repeats each optimizer
 * step operation by operation and compares bits.
 */
#include "tests/abi/recipe.h"

enum { STATES = 2, UNIT = 64, PIECE_UNITS = 8192 / UNIT, CELL_UNITS = 65536 / UNIT };

typedef struct step {
  exchange e; /* its inputs are the gradients */
  int32_t kind;
  double learning_rate, momentum, clip_norm;
  size_t num_states;
  int shared_parameters, shared_states;
  void *parameters[MEMBERS][TENSORS], *states[MEMBERS][STATES][TENSORS];
  void *first_parameters[TENSORS], *first_states[STATES][TENSORS]; /* before the step */
  unsigned char *touched[TENSORS]; /* how often the callback has processed each element */
  double norms[MEMBERS];
  atomic_int wrong_blocks;
} step;

static step s;

static dist_dtype dtype_at(size_t t) { return s.e.out[0][t].tensor.dtype; }
static size_t elements_at(size_t t) { return (size_t)elements_in(&s.e.out[0][t]); }

/* ---- The callback ---- */

/* Computes parameter = parameter - gradient + the states, and counts in the states. Uses f64 for all
 * dtypes. */
static void store_number(dist_dtype dtype, void *at_element, double x) {
  const float narrow = (float)x;
  const uint16_t half = dtype == DIST_F16 ? to_f16(narrow) : to_bf16(narrow);
  if (dtype == DIST_F64)
    memcpy(at_element, &x, sizeof x);
  else if (dtype == DIST_F32)
    memcpy(at_element, &narrow, sizeof narrow);
  else if (dtype == DIST_F16 || dtype == DIST_BF16)
    memcpy(at_element, &half, sizeof half);
  else
    memcpy(at_element, &(int64_t){(int64_t)x}, size_of(dtype));
}

static void update_element(dist_dtype dtype, const void *gradient, void *parameter, void *const *states,
                           size_t num_states) {
  double x = number_of(dtype, parameter) / 2 - number_of(dtype, gradient) / 4;
  for (size_t k = 0; k < num_states; k++) {
    const double state = number_of(dtype, states[k]) + 1 + (double)k;
    store_number(dtype, states[k], state);
    x += state;
  }
  store_number(dtype, parameter, x);
}

static void callback(const dist_block *block, void *user_data) {
  const size_t size = size_of(block->dtype), first = (size_t)block->first, count = (size_t)block->count;
  int wrong = user_data != &s || block->tensor >= s.e.n; /* all blocks use replica 0's user_data */
  if (!wrong) {
    const size_t t = block->tensor;
    wrong = block->dtype != dtype_at(t) || count == 0 || first + count > elements_at(t) ||
            (size_t)block->num_states != s.num_states ||
            block->parameter != (char *)s.parameters[0][t] + first * size;
  }
  if (wrong) {
    atomic_fetch_add(&s.wrong_blocks, 1);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    void *states[STATES];
    for (size_t k = 0; k < s.num_states; k++) states[k] = (char *)block->states[k] + i * size;
    update_element(block->dtype, (const char *)block->gradient + i * size,
                   (char *)block->parameter + i * size, states, s.num_states);
    s.touched[block->tensor][first + i]++;
  }
}

/* ---- One step ---- */

static dist_status take_step(dist_replica *replica, void *user_data) {
  static unsigned char factor = 31;
  static int not_this_one;
  (void)user_data;
  const int32_t me = dist_replica_id(replica);
  const exchange *e = &s.e;
  dist_tensor gradients[LISTS * TENSORS], parameters[TENSORS], states[STATES * TENSORS];
  for (size_t t = 0; t < lists_of(e, me) * e->n; t++) gradients[t] = e->in[me][t].tensor;
  for (size_t t = 0; t < e->n; t++) {
    parameters[t] = e->out[me][t].tensor;
    parameters[t].data = s.parameters[me][t];
    for (size_t k = 0; k < s.num_states; k++) {
      states[k * e->n + t] = parameters[t];
      states[k * e->n + t].data = s.states[me][k][t];
    }
  }
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.numerics = e->numerics;
  options.contributions = e->contributions[me];
  options.weights = e->weighted ? e->weights[me] : NULL;
  if (e->op == DIST_REDUCE_USER) options.reduce_fn = twist, options.reduce_user_data = &factor;
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = s.kind;
  apply.learning_rate = s.learning_rate, apply.momentum = s.momentum, apply.clip_norm = s.clip_norm;
  apply.states = states, apply.num_states = s.num_states;
  apply.fn = s.kind == DIST_APPLY_CALLBACK ? callback : NULL;
  apply.user_data = me == 0 ? (void *)&s : (void *)&not_this_one;
  return dist_reduce_apply(replica, e->op, gradients, parameters, e->n, &apply, &options,
                           me % 2 == 0 ? &s.norms[me] : NULL);
}

/* ---- The oracle ---- */

/* Returns the sum of squares of some elements in the documented order. */
static double squares(dist_dtype dtype, const char *data, size_t count) {
  double lanes[32] = {0}, sum = 0;
  for (size_t i = 0; i < count; i++) {
    const double x = number_of(dtype, data + i * size_of(dtype));
    lanes[i % 32] += x * x;
  }
  for (int lane = 0; lane < 32; lane++) sum += lanes[lane];
  return sum;
}

/* Adds cells of 64 KiB in pieces of 8 KiB. Each tensor starts at a unit of 64 bytes. */
static double norm_of(char *const *gradients) {
  double total = 0, cell = 0;
  size_t at_unit = 0;
  for (size_t t = 0; t < s.e.n; t++) {
    const size_t size = size_of(dtype_at(t)), per_unit = UNIT / size, elements = elements_at(t);
    const size_t units = (elements * size + UNIT - 1) / UNIT;
    for (size_t u = 0; u < units;) {
      const size_t in_cell = (at_unit + u) % CELL_UNITS;
      if (in_cell == 0) total += cell, cell = 0;
      size_t take = CELL_UNITS - in_cell < PIECE_UNITS ? CELL_UNITS - in_cell : PIECE_UNITS;
      if (take > units - u) take = units - u;
      const size_t first = u * per_unit;
      const size_t count = (u + take) * per_unit < elements ? take * per_unit : elements - first;
      cell += squares(dtype_at(t), gradients[t] + first * size, count);
      u += take;
    }
    at_unit += units;
  }
  return sqrt(total + cell);
}

#define DESCEND(name, type)                                                                            \
  static void name(const void *gradient, double scale, void *parameter, void *velocity) {              \
    const type rate = (type)s.learning_rate, momentum = (type)s.momentum, g = *(const type *)gradient; \
    const type scaled = (type)scale * g, change = rate * scaled;                                       \
    type *p = parameter, *v = velocity;                                                                \
    if (v == NULL) {                                                                                   \
      *p = *p - change;                                                                                \
    } else {                                                                                           \
      const type kept = momentum * *v;                                                                 \
      *v = kept - change;                                                                              \
      *p = *p + *v;                                                                                    \
    }                                                                                                  \
  }
DESCEND(descend_float, float)
DESCEND(descend_double, double)

static void expect_element(size_t t, size_t i, const char *gradient, double scale) {
  const dist_dtype dtype = dtype_at(t);
  const size_t size = size_of(dtype);
  char *parameter = (char *)s.first_parameters[t] + i * size;
  void *states[STATES];
  for (size_t k = 0; k < s.num_states; k++) states[k] = (char *)s.first_states[k][t] + i * size;
  if (s.kind == DIST_APPLY_SGD) {
    void *velocity = s.num_states == 0 ? NULL : states[0];
    (dtype == DIST_F32 ? descend_float : descend_double)(gradient, scale, parameter, velocity);
    return;
  }
  double wide = 0;
  memcpy(&wide, gradient, size);
  if (scale != 1 && dtype == DIST_F32) {
    const float scaled = (float)scale * *(const float *)gradient;
    memcpy(&wide, &scaled, size);
  } else if (scale != 1) {
    wide *= scale;
  }
  update_element(dtype, &wide, parameter, states, s.num_states);
}

static void compare(const char *name, size_t t, const void *got, const void *expected) {
  const size_t size = size_of(dtype_at(t));
  for (size_t i = 0; i < elements_at(t); i++) {
    if (same_element(dtype_at(t), (const char *)got + i * size, (const char *)expected + i * size)) continue;
    fail_msg(
        "%s: kind %d, op %d, dtype %d, %d members, clip %g: element %zu of tensor %zu is %.17g, not %.17g",
        name, s.kind, s.e.op, dtype_at(t), s.e.members, s.clip_norm, i, t,
        number_of(dtype_at(t), (const char *)got + i * size),
        number_of(dtype_at(t), (const char *)expected + i * size));
  }
}

static void check_result(void) {
  char *gradients[TENSORS];
  for (size_t t = 0; t < s.e.n; t++) {
    gradients[t] = malloc(elements_at(t) * size_of(dtype_at(t)) + 16);
    for (size_t i = 0; i < elements_at(t); i++)
      folded(&s.e, s.e.members, t, (int64_t)i, gradients[t] + i * size_of(dtype_at(t)));
  }
  double scale = 1;
  if (s.clip_norm > 0) {
    const double norm = norm_of(gradients);
    for (int32_t r = 0; r < s.e.members; r++) {
      const double expected = r % 2 == 0 ? norm : -1;
      if (s.norms[r] != expected && !(isnan(expected) && isnan(s.norms[r])))
        fail_msg("the norm is %.17g, not %.17g", s.norms[r], expected);
    }
    if (norm > s.clip_norm) scale = s.clip_norm / norm;
  }
  assert_int_equal(atomic_load(&s.wrong_blocks), 0);
  for (size_t t = 0; t < s.e.n; t++) {
    for (size_t i = 0; i < elements_at(t); i++) {
      if (s.kind == DIST_APPLY_CALLBACK) assert_int_equal(s.touched[t][i], 1);
      expect_element(t, i, gradients[t] + i * size_of(dtype_at(t)), scale);
    }
    for (int32_t r = 0; r < s.e.members; r++) {
      compare("parameters", t, s.parameters[r][t], s.first_parameters[t]);
      for (size_t k = 0; k < s.num_states; k++) compare("states", t, s.states[r][k][t], s.first_states[k][t]);
    }
    free(gradients[t]);
  }
}

/* ---- Steps of every kind ---- */

static void *numbers(size_t t, uint64_t seed) {
  const size_t size = size_of(dtype_at(t));
  char *data = malloc(elements_at(t) * size + 1);
  for (size_t i = 0; i < elements_at(t); i++)
    store_number(dtype_at(t), data + i * size, (double)(next_random(&seed) % 200) / 8 - 12);
  return data;
}
static void *same_numbers(size_t t, const void *from) {
  void *data = malloc(elements_at(t) * size_of(dtype_at(t)) + 1);
  return memcpy(data, from, elements_at(t) * size_of(dtype_at(t)));
}

static void make_step(const recipe *given) {
  make_exchange(&s.e, given);
  for (int32_t r = 0; s.clip_norm > 0 && r < s.e.members; r++) { /* replaced so that the norm is finite */
    for (size_t t = 0; t < lists_of(&s.e, r) * s.e.n; t++) {
      view *v = &s.e.in[r][t];
      uint64_t seed = given->seed + (uint64_t)r * 100 + t;
      for (int64_t i = 0; i < elements_in(v); i++)
        store_number(v->tensor.dtype, at(v, i), (double)(next_random(&seed) % 100000) / 3e4 - 1.5);
      save_view(v);
    }
  }
  for (int32_t r = 0; r < MEMBERS; r++) s.norms[r] = -1;
  atomic_store(&s.wrong_blocks, 0);
  for (size_t t = 0; t < s.e.n; t++) {
    s.first_parameters[t] = numbers(t, given->seed + t);
    s.touched[t] = calloc(elements_at(t) + 1, 1);
    for (int32_t r = 0; r < s.e.members; r++) {
      const int first = r == 0 || !s.shared_parameters;
      s.parameters[r][t] = first ? same_numbers(t, s.first_parameters[t]) : s.parameters[0][t];
    }
    for (size_t k = 0; k < s.num_states; k++) {
      s.first_states[k][t] = numbers(t, given->seed + t + 1000 * (k + 1));
      for (int32_t r = 0; r < s.e.members; r++) {
        const int first = r == 0 || !s.shared_states;
        s.states[r][k][t] = first ? same_numbers(t, s.first_states[k][t]) : s.states[0][k][t];
      }
    }
  }
}

static void free_step(void) {
  for (size_t t = 0; t < s.e.n; t++) {
    free(s.first_parameters[t]), free(s.touched[t]);
    for (int32_t r = 0; r < (s.shared_parameters ? 1 : s.e.members); r++) free(s.parameters[r][t]);
    for (size_t k = 0; k < s.num_states; k++) {
      free(s.first_states[k][t]);
      for (int32_t r = 0; r < (s.shared_states ? 1 : s.e.members); r++) free(s.states[r][k][t]);
    }
  }
  free_exchange(&s.e);
}

static void check_step(dist_strategy *strategy, int32_t threads, const recipe *given) {
  report error;
  make_step(given);
  if (run_on(threads, strategy, take_step, NULL, &error) != DIST_OK) fail_msg("%s", error.message);
  check_result();
  free_step();
}

/* The bits of k select the properties. */
static recipe recipe_of(uint64_t k, int32_t members, int64_t most) {
  recipe given = {.collective = DIST_COLLECTIVE_ALL_REDUCE,
                  .op = k % 2 == 0 ? DIST_REDUCE_MEAN : DIST_REDUCE_SUM,
                  .members = members,
                  .n = 1 + k % TENSORS,
                  .ndim = 2,
                  .most = most,
                  .seed = k * 7 + (uint64_t)members};
  for (int t = 0; t < TENSORS; t++) given.dtypes[t] = (k + (uint64_t)t) % 2 == 0 ? DIST_F32 : DIST_F64;
  given.several = k % 5 == 1;
  given.weighted = k % 10 == 6;
  given.numerics = k % 7 == 3   ? DIST_NUMERICS_REPRODUCIBLE
                   : k % 7 == 5 ? DIST_NUMERICS_TREE
                                : DIST_NUMERICS_ORDERED;
  if (k % 11 == 10) given.n = 0;
  s.shared_parameters = k % 3 == 2, s.shared_states = k % 4 == 3;
  s.learning_rate = 0.3, s.clip_norm = k % 3 == 0 ? 0 : k % 3 == 1 ? 0.75 : 1e9;
  return given;
}

static const int32_t sizes[] = {1, 2, 3, 5, MEMBERS};

static void every_step(int32_t kind) {
  for (size_t z = 0; z < COUNT_OF(sizes); z++) {
    for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
      dist_strategy *strategy = strategy_of(sizes[z], threads);
      for (uint64_t k = 0; k < 24; k++) {
        const recipe given = recipe_of(k, sizes[z], k % 8 == 7 && sizes[z] < 5 ? 180 : 30);
        s.kind = kind;
        s.momentum = kind == DIST_APPLY_SGD && k / 3 % 2 == 0 ? 0.9 : 0;
        s.num_states = kind == DIST_APPLY_SGD ? (s.momentum != 0) : (size_t)(k % (STATES + 1));
        check_step(strategy, threads, &given);
      }
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}
static void gradient_descent(void **state) {
  (void)state;
  every_step(DIST_APPLY_SGD);
}
static void callbacks(void **state) {
  (void)state;
  every_step(DIST_APPLY_CALLBACK);
}

/* Only the callback supports other dtypes. With MEAN of integers, the parameters have another dtype. */
static void callbacks_of_every_dtype(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  for (dist_dtype dtype = DIST_F16; dtype <= DIST_U64; dtype++) {
    for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_USER; op++) {
      recipe given = recipe_of(0, 3, 70);
      given.dtypes[0] = dtype, given.op = op;
      s.kind = DIST_APPLY_CALLBACK, s.clip_norm = 0, s.num_states = 0, s.momentum = 0;
      if (dtype >= DIST_I8 && op != DIST_REDUCE_MEAN) given.op = DIST_REDUCE_MAX; /* no overflow */
      check_step(strategy, DIST_THREADS_CALLER, &given);
    }
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* More than 1 MiB, so that members take cells from each other. */
static void large(void **state) {
  (void)state;
  for (size_t z = 1; z < COUNT_OF(sizes); z += 3) {
    dist_strategy *strategy = strategy_of(sizes[z], DIST_THREADS_LIBRARY);
    for (uint64_t k = 0; k < 6; k++) {
      recipe given = recipe_of(k, sizes[z], 0);
      given.n = 3, given.most = sizes[z] == 2 ? 600 : 330, given.several = 0;
      s.kind = k % 2 == 0 ? DIST_APPLY_SGD : DIST_APPLY_CALLBACK;
      s.momentum = 0.5, s.num_states = 1;
      check_step(strategy, DIST_THREADS_LIBRARY, &given);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- Rejected options ---- */

typedef struct bad {
  const char *words;
  dist_status status;
  dist_apply_options apply;
  dist_dtype gradient, parameter;
  int what; /* 1: no states; 2: states of another shape; 3: one buffer; 4: gaps; 5: no shape; 6: planned;
               7: apply is NULL; 8: a shape of another size */
} bad;

static void do_nothing(const dist_block *block, void *user_data) { (void)block, (void)user_data; }

static dist_status offer_bad(dist_replica *replica, void *user_data) {
  const bad *b = user_data;
  double data[3][8] = {{0}};
  const int64_t shape[] = {4}, longer[] = {5}, gaps[] = {2};
  dist_tensor gradient = {data[0], b->gradient, 1, shape, b->what == 4 ? gaps : NULL};
  dist_tensor parameter = {data[1], b->parameter, 1, b->what == 8 ? longer : shape, NULL};
  dist_tensor states[] = {parameter, parameter};
  states[0].data = data[2], states[1].data = data[2];
  if (b->what == 2) states[0].shape = longer;
  if (b->what == 3) parameter.data = gradient.data;
  if (b->what == 5) gradient.shape = NULL;
  dist_apply_options apply = b->apply;
  apply.struct_size = sizeof apply;
  apply.states = b->what == 1 ? NULL : states;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.planned = b->what == 6;
  return dist_reduce_apply(replica, DIST_REDUCE_SUM, &gradient, &parameter, 1, b->what == 7 ? NULL : &apply,
                           &options, NULL);
}

static void options_that_are_refused(void **state) {
  (void)state;
  enum {
    SGD = DIST_APPLY_SGD,
    CALL = DIST_APPLY_CALLBACK,
    WRONG = DIST_INVALID_ARGUMENT,
    NOT = DIST_UNIMPLEMENTED
  };
  static const bad table[] = {
      {"kind is -1", WRONG, {.kind = -1}, DIST_F32, DIST_F32, 0},
      {"kind is 3", WRONG, {.kind = 3}, DIST_F32, DIST_F32, 0},
      {"clip_norm is -1", WRONG, {.kind = SGD, .clip_norm = -1}, DIST_F32, DIST_F32, 0},
      {"clip_norm is nan", WRONG, {.kind = SGD, .clip_norm = NAN}, DIST_F32, DIST_F32, 0},
      {"clip_norm is inf", WRONG, {.kind = SGD, .clip_norm = INFINITY}, DIST_F32, DIST_F32, 0},
      {"must be finite", WRONG, {.kind = SGD, .learning_rate = NAN}, DIST_F32, DIST_F32, 0},
      {"must be finite", WRONG, {.kind = SGD, .momentum = INFINITY, .num_states = 1}, DIST_F32, DIST_F32, 0},
      {"num_states is 0", WRONG, {.kind = SGD, .momentum = 0.5}, DIST_F32, DIST_F32, 0},
      {"num_states is 1", WRONG, {.kind = SGD, .num_states = 1}, DIST_F32, DIST_F32, 0},
      {"num_states is 17, but must be at most 16",
       WRONG,
       {.kind = CALL, .num_states = 17},
       DIST_F32,
       DIST_F32,
       0},
      {"fn is NULL", WRONG, {.kind = CALL}, DIST_F32, DIST_F32, 0},
      {"states is NULL", WRONG, {.kind = SGD, .momentum = 1, .num_states = 1}, DIST_F32, DIST_F32, 1},
      {"dtype and shape of parameter 0",
       WRONG,
       {.kind = SGD, .momentum = 1, .num_states = 1},
       DIST_F32,
       DIST_F32,
       2},
      {"are the same buffer", WRONG, {.kind = SGD}, DIST_F32, DIST_F32, 3},
      {"row-major", WRONG, {.kind = SGD}, DIST_F32, DIST_F32, 4},
      {"shape", WRONG, {.kind = SGD}, DIST_F32, DIST_F32, 5},
      {"shape", WRONG, {.kind = SGD, .clip_norm = 1}, DIST_F32, DIST_F32, 5}, /* its size is not read */
      {"cannot be planned", WRONG, {.kind = SGD}, DIST_F32, DIST_F32, 6},
      {"apply is NULL", WRONG, {.kind = SGD}, DIST_F32, DIST_F32, 7},
      {"shapes must be equal", WRONG, {.kind = SGD, .clip_norm = 1}, DIST_F32, DIST_F32, 8},
      {"dtype", WRONG, {.kind = SGD, .clip_norm = 1}, 99, DIST_F32, 0},
      {"out must be", WRONG, {.kind = SGD}, DIST_F32, DIST_F64, 0},
      {"SGD supports f32 and f64", NOT, {.kind = SGD}, DIST_F16, DIST_F16, 0},
      {"SGD supports f32 and f64", NOT, {.kind = SGD}, DIST_I32, DIST_I32, 0},
      {"clipping supports f32 and f64",
       NOT,
       {.kind = CALL, .clip_norm = 1, .fn = do_nothing},
       DIST_I32,
       DIST_I32,
       0},
  };
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  for (size_t k = 0; k < COUNT_OF(table); k++) {
    bad one = table[k];
    assert_fails(dist_run(strategy, offer_bad, &one, NULL), one.status, one.words);
    assert_healthy(DIST_THREADS_CALLER, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* Options that must be equal on all members. */
static dist_status disagree(dist_replica *replica, void *user_data) {
  const int what = *(int *)user_data, odd = dist_replica_id(replica) == 1;
  bad b = {"", DIST_OK, {.kind = DIST_APPLY_SGD, .learning_rate = 1, .clip_norm = 1}, DIST_F32, DIST_F32, 0};
  if (what == 0 && odd) b.apply.learning_rate = 2;
  if (what == 1 && odd) b.apply.clip_norm = 2;
  if (what == 2 && odd) b.apply.clip_norm = 0;
  if (what == 3 && odd) b.apply.kind = DIST_APPLY_CALLBACK, b.apply.fn = do_nothing;
  if (what == 4 && odd) b.apply.momentum = 1, b.apply.num_states = 1;
  if (what == 5 && odd) b.gradient = b.parameter = DIST_F64;
  if (what == 6 && odd) return DIST_OK;
  return offer_bad(replica, &b);
}

static void members_that_disagree(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  for (int what = 0; what <= 6; what++) {
    const dist_status expected = what == 6 ? DIST_ABORTED : DIST_INVALID_ARGUMENT;
    assert_fails(dist_run(strategy, disagree, &what, NULL), expected, "reduce_apply");
    assert_healthy(DIST_THREADS_CALLER, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradient_descent),         cmocka_unit_test(callbacks),
      cmocka_unit_test(callbacks_of_every_dtype), cmocka_unit_test(large),
      cmocka_unit_test(options_that_are_refused), cmocka_unit_test(members_that_disagree),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
