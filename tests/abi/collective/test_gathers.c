/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives that move data: all_gather, gather_to_root, broadcast, scatter_from_root, all_to_all and
 * permute. Covers every axis, even and uneven parts, members without data, and any memory layout.
 */
#include "sizes.h"
#include "tests/abi/recipe.h"

static const int32_t kinds[] = {DIST_COLLECTIVE_ALL_GATHER, DIST_COLLECTIVE_GATHER,
                                DIST_COLLECTIVE_BROADCAST,  DIST_COLLECTIVE_SCATTER,
                                DIST_COLLECTIVE_ALL_TO_ALL, DIST_COLLECTIVE_PERMUTE};

static int make(void **state) {
  (void)state;
  return make_strategies(DIST_THREADS_CALLER, DIST_THREADS_LIBRARY);
}

/* Runs every collective with the properties that a test varies. The properties that depend on the collective
 * are set here. */
static void check_all_kinds(recipe given, uint64_t seed) {
  static exchange e;
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
      given.collective = kinds[k];
      given.members = sizes[s];
      given.root = (int32_t)(seed % (uint64_t)sizes[s]);
      given.splits = given.uneven;
      given.seed = seed * 100 + k;
      make_exchange(&e, &given);
      check_exchange(strategies[s], DIST_THREADS_CALLER, &e);
    }
  }
}

static void every_axis(void **state) {
  (void)state;
  for (int32_t ndim = 1; ndim <= DIMS; ndim++) {
    for (int32_t axis = -ndim; axis < ndim; axis++) {
      for (int uneven = 0; uneven < 2; uneven++) {
        const recipe given = {
            .n = 1, .dtypes = {DIST_I32}, .ndim = ndim, .axis = axis, .most = 5, .uneven = uneven};
        check_all_kinds(given, (uint64_t)ndim * 10 + (uint64_t)(axis + 4));
      }
    }
  }
}

static void every_layout(void **state) {
  (void)state;
  for (int in_style = DENSE; in_style <= ONE_PLACE; in_style++) {
    for (int out_style = DENSE; out_style < STYLES; out_style++) {
      const recipe given = {.n = 2,
                            .dtypes = {DIST_F64, DIST_BOOL},
                            .ndim = 3,
                            .axis = (in_style + out_style) % 3,
                            .in_style = in_style,
                            .out_style = out_style,
                            .most = 4,
                            .uneven = 1};
      check_all_kinds(given, (uint64_t)in_style * STYLES + (uint64_t)out_style);
    }
  }
}

static void every_dtype(void **state) {
  (void)state;
  for (dist_dtype dtype = DIST_F16; dtype <= LAST_DTYPE; dtype++) {
    for (int style = DENSE; style <= TRANSPOSED; style += TRANSPOSED) {
      const recipe given = {
          .n = 1, .dtypes = {dtype}, .ndim = 2, .axis = 1, .in_style = style, .most = 9, .uneven = 1};
      check_all_kinds(given, (uint64_t)dtype);
    }
  }
}

static void lists(void **state) {
  (void)state;
  for (size_t n = 0; n <= TENSORS; n++) {
    for (uint64_t seed = 0; seed < 6; seed++) {
      const recipe given = {.n = n,
                            .dtypes = {DIST_I8, DIST_COMPLEX64, DIST_F16},
                            .ndim = 1 + (int32_t)seed % 3,
                            .axis = -1,
                            .most = 7,
                            .uneven = (int)seed % 2};
      check_all_kinds(given, seed);
    }
  }
}

/* Up to a few MiB, so that members take blocks from each other. */
static void large(void **state) {
  (void)state;
  for (int32_t axis = 0; axis < 2; axis++) {
    for (int style = DENSE; style <= GAPS; style += GAPS) {
      const recipe given = {.n = 2,
                            .dtypes = {DIST_F32, DIST_U16},
                            .ndim = 2,
                            .axis = axis,
                            .in_style = style,
                            .most = 300,
                            .uneven = 1};
      check_all_kinds(given, (uint64_t)axis + 3);
    }
  }
}

static void a_part_in_its_own_place(void **state) {
  (void)state;
  for (int32_t axis = 0; axis < 2; axis++) {
    for (int style = DENSE; style < STYLES; style++) {
      if (style == DENSE && axis == 1) continue; /* parts of an inner dimension are not dense */
      const recipe given = {.n = 2,
                            .dtypes = {DIST_F32, DIST_U16},
                            .ndim = axis == 0 ? 1 + style % 2 : 2,
                            .axis = axis,
                            .in_style = style,
                            .out_style = style,
                            .most = 40,
                            .uneven = style % 2,
                            .in_place = 1};
      check_all_kinds(given, (uint64_t)style);
    }
  }
}

static void one_output_for_all(void **state) {
  (void)state;
  static exchange e;
  for (int own_place = 0; own_place < 2; own_place++) {
    for (int style = DENSE; style < STYLES; style++) {
      for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        recipe given = {.collective = DIST_COLLECTIVE_ALL_GATHER,
                        .members = sizes[s],
                        .n = 1,
                        .dtypes = {DIST_I64},
                        .ndim = 1,
                        .out_style = style,
                        .most = 60,
                        .uneven = 1,
                        .one_out = 1,
                        .in_place = own_place,
                        .seed = (uint64_t)style};
        make_exchange(&e, &given);
        check_exchange(strategies[s], DIST_THREADS_CALLER, &e);
        given.collective = DIST_COLLECTIVE_BROADCAST;
        given.in_place = 0;
        make_exchange(&e, &given);
        check_exchange(strategies[s], DIST_THREADS_CALLER, &e);
      }
    }
  }
}

/* Uneven sizes, which follow from the equations: member p has r + 1 rows for rank r. */
static void a_list_of_tensors_with_unlike_ranks(void **state) {
  (void)state;
  static exchange e;
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    memset(&e, 0, sizeof e);
    e.collective = DIST_COLLECTIVE_ALL_GATHER, e.members = sizes[s], e.n = 2, e.axis = -1;
    const int64_t all = sizes[s] * (sizes[s] + 1) / 2;
    for (int32_t r = 0; r < sizes[s]; r++) {
      make_view(&e.in[r][0], DIST_I32, 1, (int64_t[]){r + 1}, DENSE);
      make_view(&e.in[r][1], DIST_I32, 2, (int64_t[]){3, r + 1}, DENSE);
      make_view(&e.out[r][0], DIST_I32, 1, (int64_t[]){all}, DENSE);
      make_view(&e.out[r][1], DIST_I32, 2, (int64_t[]){3, all}, DENSE);
      fill_view(&e.in[r][0], (uint64_t)r), fill_view(&e.in[r][1], (uint64_t)r + 100);
    }
    check_exchange(strategies[s], DIST_THREADS_CALLER, &e); /* the last axis of each tensor */
  }
}

static void permutations(void **state) {
  (void)state;
  static exchange e;
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    const int32_t n = sizes[s];
    for (int32_t shift = -n; shift <= n; shift++) { /* 0 and n: all send to themselves */
      for (int hole = 0; hole < 2; hole++) {
        const recipe given = {.collective = DIST_COLLECTIVE_PERMUTE,
                              .members = n,
                              .n = 1 + (size_t)hole,
                              .dtypes = {DIST_BF16, DIST_F64},
                              .ndim = 2,
                              .most = 12,
                              .seed = (uint64_t)(shift + n),
                              .out_style = hole ? BACKWARDS : DENSE};
        make_exchange(&e, &given);
        for (int32_t p = 0; p < n; p++) {
          e.destination[p] = (p + shift + n) % n;
          e.source[(p + shift + n) % n] = p;
        }
        if (hole) {
          e.source[e.destination[0]] = -1;
          e.destination[0] = -1;
        }
        check_exchange(strategies[s], DIST_THREADS_CALLER, &e);
      }
    }
  }
}

/* Errors that can be detected only when all members have arrived. */
typedef struct mismatch {
  const char *words, *hint;
  int32_t collective, culprit;
  int64_t in, out; /* sizes; that of replica `culprit` is larger by one if more_in or more_out is set */
  int more_in, more_out;
  int32_t destination, source; /* of the culprit; -2 = as in a ring */
} mismatch;

static void what_does_not_fit_together(void **state) {
  (void)state;
  static const mismatch table[] = {
      {"add up", "sizes", DIST_COLLECTIVE_ALL_GATHER, 1, 2, 6, 0, 1, -2, -2},
      {"add up", "sizes", DIST_COLLECTIVE_ALL_GATHER, 0, 2, 6, 1, 0, -2, -2},
      {"add up", "sizes", DIST_COLLECTIVE_ALL_GATHER, 0, 0, 0, 0, 1, -2, -2},
      {"add up", "sizes", DIST_COLLECTIVE_GATHER, 1, 2, 6, 0, 1, -2, -2},
      {"add up", "sizes", DIST_COLLECTIVE_SCATTER, 1, 6, 2, 1, 0, -2, -2},
      {"add up", "sizes", DIST_COLLECTIVE_SCATTER, 1, 0, 0, 1, 0, -2, -2},
      {"add up", "sizes", DIST_COLLECTIVE_REDUCE_SCATTER, 0, 6, 2, 0, 1, -2, -2},
      {"add up", "sizes", DIST_COLLECTIVE_REDUCE_SCATTER, 0, 0, 0, 0, 1, -2, -2},
      {"add up", "sizes", DIST_COLLECTIVE_ALL_TO_ALL, 2, 6, 6, 0, 1, -2, -2},
      {"whose source is", "destination", DIST_COLLECTIVE_PERMUTE, 0, 3, 3, 0, 0, 2, -2},
      {"whose destination is", "destination", DIST_COLLECTIVE_PERMUTE, 0, 3, 3, 0, 0, -1, -2},
      {"whose source is", "destination", DIST_COLLECTIVE_PERMUTE, 1, 3, 3, 0, 0, -2, 1},
      {"whose source is", "destination", DIST_COLLECTIVE_PERMUTE, 1, 0, 0, 0, 0, -2, -1},
  };
  static exchange e;
  for (size_t k = 0; k < COUNT_OF(table); k++) {
    const mismatch *m = &table[k];
    memset(&e, 0, sizeof e);
    e.collective = m->collective, e.members = 3, e.n = 1, e.root = 1, e.tag = "odd";
    if (m->collective == DIST_COLLECTIVE_REDUCE_SCATTER) e.op = DIST_REDUCE_SUM;
    for (int32_t r = 0; r < 3; r++) {
      const int culprit = r == m->culprit;
      make_view(&e.in[r][0], DIST_F32, 1, (int64_t[]){m->in + (culprit && m->more_in)}, DENSE);
      make_view(&e.out[r][0], DIST_F32, 1, (int64_t[]){m->out + (culprit && m->more_out)}, DENSE);
      e.destination[r] = culprit && m->destination != -2 ? m->destination : (r + 1) % 3;
      e.source[r] = culprit && m->source != -2 ? m->source : (r + 2) % 3;
    }
    for (int threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
      assert_int_equal(dist_run(strategies[2], do_exchange, &e, NULL), DIST_INVALID_ARGUMENT);
      for (int32_t r = 0; r < 3; r++) {
        assert_int_equal(e.statuses[r], DIST_INVALID_ARGUMENT);
        assert_int_equal(e.reports[r].collective, m->collective);
        assert_int_equal(e.reports[r].sequence, 1);
        assert_string_equal(e.reports[r].tag, "odd");
        assert_has(e.reports[r].message, "(tag \"odd\")");
        assert_has(e.reports[r].hint, m->hint);
        if (strcmp(m->words, "add up") != 0) assert_has(e.reports[r].message, m->words);
        assert_string_equal(e.reports[r].message, e.reports[0].message);
        assert_in_range(e.reports[r].replica, 0, 2);
      }
      assert_healthy(DIST_THREADS_CALLER, strategies[2]);
    }
    free_exchange(&e);
  }
}

/* A part that overlaps the whole in a wrong place, or that is in a peer's output. */
static void parts_in_a_wrong_place(void **state) {
  (void)state;
  static exchange e;
  static const int32_t collectives[] = {DIST_COLLECTIVE_ALL_GATHER, DIST_COLLECTIVE_GATHER,
                                        DIST_COLLECTIVE_SCATTER, DIST_COLLECTIVE_ALL_TO_ALL,
                                        DIST_COLLECTIVE_PERMUTE};
  for (size_t k = 0; k < COUNT_OF(collectives); k++) {
    for (int of_a_peer = 0; of_a_peer < 2; of_a_peer++) {
      memset(&e, 0, sizeof e);
      e.collective = collectives[k], e.members = 3, e.n = 1, e.root = 1;
      static int32_t memory[3][64];
      const int cut = cuts(e.collective);
      const int64_t whole = 6, part = joins(e.collective) || cut ? 2 : 6;
      for (int32_t r = 0; r < 3; r++) {
        e.destination[r] = (r + 1) % 3, e.source[r] = (r + 2) % 3;
        int32_t *place = memory[r] + 1; /* not in its own place, but within the whole */
        if (of_a_peer) place = memory[(r + 1) % 3];
        place_view(&e.in[r][0], DIST_I32, 1, cut ? &whole : &part, NULL, cut ? memory[r] : place);
        place_view(&e.out[r][0], DIST_I32, 1, cut ? &part : &whole, NULL, cut ? place : memory[r]);
      }
      if (of_a_peer && cut) e.root = 2;
      assert_int_equal(dist_run(strategies[2], do_exchange, &e, NULL), DIST_INVALID_ARGUMENT);
      assert_has(dist_last_error(), "overlap");
      assert_healthy(DIST_THREADS_CALLER, strategies[2]);
      free_exchange(&e);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_axis),
      cmocka_unit_test(every_layout),
      cmocka_unit_test(every_dtype),
      cmocka_unit_test(lists),
      cmocka_unit_test(large),
      cmocka_unit_test(a_part_in_its_own_place),
      cmocka_unit_test(one_output_for_all),
      cmocka_unit_test(a_list_of_tensors_with_unlike_ranks),
      cmocka_unit_test(permutations),
      cmocka_unit_test(what_does_not_fit_together),
      cmocka_unit_test(parts_in_a_wrong_place),
  };
  return cmocka_run_group_tests(tests, make, end_strategies);
}
