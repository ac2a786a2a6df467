/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares all reducing collectives with plain loops: any memory layout, several contributions per replica,
 * weights, host operators, and interleaved outputs.
 */
#include "sizes.h"
#include "tests/abi/recipe.h"

static const int32_t kinds[] = {DIST_COLLECTIVE_ALL_REDUCE, DIST_COLLECTIVE_REDUCE,
                                DIST_COLLECTIVE_REDUCE_SCATTER, DIST_COLLECTIVE_SCAN};

static int make(void **state) {
  (void)state;
  return make_strategies(DIST_THREADS_LIBRARY, DIST_THREADS_CALLER);
}

/* Whether a collective can have these properties. */
static int possible(const recipe *given) {
  for (size_t t = 0; t < given->n; t++) {
    if (given->op != DIST_REDUCE_USER && !allowed(given->op, given->dtypes[t])) return 0;
  }
  if (given->collective != DIST_COLLECTIVE_SCAN) return 1;
  return given->op != DIST_REDUCE_MEAN && !given->several && !given->one_out;
}

/* Runs every collective with every number of replicas. Sets the properties that a test does not vary. */
static void check_all_kinds(recipe given, uint64_t seed) {
  static exchange e;
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
      given.collective = kinds[k];
      given.members = sizes[s];
      given.root = (int32_t)(seed % (uint64_t)sizes[s]);
      given.kind = seed % 2 == 0 ? DIST_SCAN_INCLUSIVE : DIST_SCAN_EXCLUSIVE;
      given.seed = seed * 10 + k;
      if (!possible(&given)) continue;
      make_exchange(&e, &given);
      check_exchange(strategies[s], DIST_THREADS_CALLER, &e);
    }
  }
}

static void every_op_and_dtype(void **state) {
  (void)state;
  for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_USER; op++) {
    for (dist_dtype dtype = DIST_F16; dtype <= LAST_DTYPE; dtype++) {
      for (int style = DENSE; style <= TRANSPOSED; style += TRANSPOSED) {
        for (uint64_t kind = 0; kind < 2; kind++) {
          const recipe given = {.op = op,
                                .n = 1,
                                .dtypes = {dtype},
                                .ndim = 2,
                                .axis = -1,
                                .most = 8,
                                .in_style = style,
                                .out_style = style,
                                .uneven = 1};
          check_all_kinds(given, (uint64_t)dtype * 2 + kind);
        }
      }
    }
  }
}

static void every_axis(void **state) {
  (void)state;
  for (int32_t ndim = 1; ndim <= DIMS; ndim++) {
    for (int32_t axis = -ndim; axis < ndim; axis++) {
      for (int uneven = 0; uneven < 2; uneven++) {
        const recipe given = {.op = DIST_REDUCE_SUM,
                              .n = 2,
                              .dtypes = {DIST_F32, DIST_I8},
                              .ndim = ndim,
                              .axis = axis,
                              .most = 5,
                              .uneven = uneven};
        check_all_kinds(given, (uint64_t)ndim * 10 + (uint64_t)(axis + 4));
      }
    }
  }
}

static void every_layout(void **state) {
  (void)state;
  for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_USER; op++) {
    for (int in_style = DENSE; in_style <= ONE_PLACE; in_style++) {
      for (int out_style = DENSE; out_style < STYLES; out_style++) {
        const recipe given = {.op = op,
                              .n = 2,
                              .dtypes = {DIST_F64, DIST_I16},
                              .ndim = 3,
                              .axis = (in_style + out_style) % 3,
                              .in_style = in_style,
                              .out_style = out_style,
                              .most = 4,
                              .uneven = 1};
        check_all_kinds(given, (uint64_t)in_style * STYLES + (uint64_t)(out_style + (int)op));
      }
    }
  }
}

static void in_place(void **state) {
  (void)state;
  for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_USER; op++) {
    for (int style = DENSE; style < STYLES; style++) {
      for (uint64_t seed = 0; seed < 4; seed++) {
        recipe given = {.op = op,
                        .n = 2,
                        .dtypes = {DIST_F32, DIST_BF16},
                        .ndim = 2,
                        .most = seed < 2 ? 6 : 90,
                        .in_style = style,
                        .out_style = style,
                        .in_place = 1};
        static exchange e;
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
          for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            if (kinds[k] == DIST_COLLECTIVE_REDUCE_SCATTER) continue;
            given.collective = kinds[k], given.members = sizes[s],
            given.kind = seed % 2 == 0 ? DIST_SCAN_INCLUSIVE : DIST_SCAN_EXCLUSIVE;
            given.root = sizes[s] - 1, given.seed = seed;
            if (!possible(&given)) continue;
            make_exchange(&e, &given);
            check_exchange(strategies[s], DIST_THREADS_CALLER, &e);
          }
        }
      }
    }
  }
}

static void contributions(void **state) {
  (void)state;
  for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_USER; op++) {
    for (uint64_t seed = 0; seed < 12; seed++) {
      const recipe given = {.op = op,
                            .n = 1 + seed % 3,
                            .dtypes = {DIST_F32, DIST_F16, DIST_I64},
                            .ndim = 1,
                            .most = seed < 8 ? 20 : 5000,
                            .several = 1,
                            .uneven = 1,
                            .one_out = 0,
                            .in_style = seed % 4 == 3 ? BACKWARDS : DENSE,
                            .out_style = seed % 4 == 2 ? GAPS : DENSE};
      check_all_kinds(given, seed);
    }
  }
}

static void weighted_means(void **state) {
  (void)state;
  for (dist_dtype dtype = DIST_F16; dtype <= DIST_COMPLEX64; dtype++) {
    for (uint64_t seed = 0; seed < 8; seed++) {
      const recipe given = {.op = DIST_REDUCE_MEAN,
                            .n = 1 + seed % 2,
                            .dtypes = {dtype, DIST_I32},
                            .ndim = 1,
                            .most = 40,
                            .weighted = 1,
                            .several = (int)(seed / 2 % 2),
                            .uneven = 1,
                            .in_style = seed == 7 ? TRANSPOSED : DENSE,
                            .out_style = seed == 6 ? BACKWARDS : DENSE};
      check_all_kinds(given, seed);
    }
  }
}

/* A contribution with weight 0 (an empty batch) has no effect, whatever its tensor contains. If all weights
 * are 0, the result is NaN. */
static void weights_of_zero(void **state) {
  (void)state;
  for (dist_dtype dtype = DIST_F16; dtype <= DIST_COMPLEX64; dtype++) {
    for (int everyone = 0; everyone < 2; everyone++) {
      static exchange e;
      recipe given = {.collective = DIST_COLLECTIVE_ALL_REDUCE,
                      .op = DIST_REDUCE_MEAN,
                      .members = 3,
                      .n = 1,
                      .dtypes = {dtype},
                      .ndim = 0,
                      .most = 1,
                      .weighted = 1,
                      .seed = (uint64_t)dtype};
      make_exchange(&e, &given);
      for (int r = 0; r < 3; r++) e.weights[r][0] = everyone || r != 1 ? 0 : 2.5;
      const dist_dtype result = dtype_of_result(DIST_REDUCE_MEAN, dtype);
      report error;
      if (run_on(0, strategies[2], do_exchange, &e, &error) != DIST_OK) fail_msg("%s", error.message);
      for (int r = 0; r < 3; r++) {
        const void *out = e.out[r][0].tensor.data;
        const double got = result == DIST_COMPLEX64 ? (double)*(const float *)out : number_of(result, out);
        const double had = dtype == DIST_COMPLEX64 ? (double)*(const float *)(const void *)e.in[1][0].saved
                                                   : number_of(dtype, e.in[1][0].saved);
        if (everyone)
          assert_true(isnan(got));
        else
          assert_true(isnan(got) || fabs(got - had) <= fabs(had) * 1e-2);
      }
      free_exchange(&e);
    }
  }
}

/* Replica r's output is every R-th element or row of one array. All inputs refer to a single scalar. */
static void outputs_among_each_other(void **state) {
  (void)state;
  static exchange e;
  static float memory[8 * 6 * 50];
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    const int64_t n = sizes[s], shape[] = {6, 50};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
      if (kinds[k] == DIST_COLLECTIVE_REDUCE) continue; /* it has a single output */
      for (int by_rows = 0; by_rows < 2; by_rows++) {
        recipe given = {.collective = kinds[k],
                        .op = DIST_REDUCE_SUM,
                        .members = sizes[s],
                        .n = 1,
                        .dtypes = {DIST_F32},
                        .ndim = 2,
                        .most = 1,
                        .seed = k};
        make_exchange(&e, &given);
        for (int32_t r = 0; r < sizes[s]; r++) {
          const int64_t whole[] = {kinds[k] == DIST_COLLECTIVE_REDUCE_SCATTER ? 6 * n : 6, 50};
          const int64_t strides[] = {50 * n, by_rows ? 1 : n};
          free_view(&e.in[r][0]), free_view(&e.out[r][0]);
          make_view(&e.in[r][0], DIST_F32, 2, whole, r % 2 == 0 ? ONE_PLACE : TRANSPOSED);
          fill_view(&e.in[r][0], (uint64_t)r);
          place_view(&e.out[r][0], DIST_F32, 2, shape, strides, memory + (by_rows ? 50 * r : r));
        }
        check_exchange(strategies[s], DIST_THREADS_CALLER, &e);
      }
    }
  }
}

/* Large enough that members take blocks from each other, and that results bypass the caches. */
static void large(void **state) {
  (void)state;
  static const enum style styles[] = {DENSE, TRANSPOSED};
  for (size_t k = 0; k < COUNT_OF(styles); k++) {
    for (dist_reduce_op op = DIST_REDUCE_MEAN; op <= DIST_REDUCE_USER; op += 2) {
      const recipe given = {.op = op,
                            .n = 2,
                            .dtypes = {DIST_F32, DIST_U8},
                            .ndim = 2,
                            .axis = 1,
                            .most = 200,
                            .in_style = styles[k],
                            .out_style = styles[k],
                            .uneven = 1};
      check_all_kinds(given, k + 11);
    }
  }
}

static void identities(void **state) {
  (void)state;
  static exchange e;
  for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_PROD; op++) {
    for (dist_dtype dtype = DIST_F16; dtype <= LAST_DTYPE; dtype++) {
      if (op == DIST_REDUCE_MEAN || !allowed(op, dtype)) continue;
      for (int style = DENSE; style < STYLES; style++) {
        const recipe given = {.collective = DIST_COLLECTIVE_SCAN,
                              .op = op,
                              .kind = DIST_SCAN_EXCLUSIVE,
                              .members = 3,
                              .n = 1,
                              .dtypes = {dtype},
                              .ndim = 1,
                              .most = 30,
                              .out_style = style,
                              .seed = (uint64_t)dtype};
        make_exchange(&e, &given);
        unsigned char identity[16];
        identity_of(op, dtype, identity);
        report error;
        if (run_on(0, strategies[2], do_exchange, &e, &error) != DIST_OK) fail_msg("%s", error.message);
        for (int64_t i = 0; i < elements_in(&e.out[0][0]); i++)
          assert_memory_equal(at(&e.out[0][0], i), identity, size_of(dtype));
        free_exchange(&e);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_and_dtype),
      cmocka_unit_test(every_axis),
      cmocka_unit_test(every_layout),
      cmocka_unit_test(in_place),
      cmocka_unit_test(contributions),
      cmocka_unit_test(weighted_means),
      cmocka_unit_test(weights_of_zero),
      cmocka_unit_test(outputs_among_each_other),
      cmocka_unit_test(large),
      cmocka_unit_test(identities),
  };
  return cmocka_run_group_tests(tests, make, end_strategies);
}
