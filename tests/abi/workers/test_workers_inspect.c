/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_variable_check_drift() over several workers: every worker receives the same result as a single process
 * with all replicas, field by field.
 */
#include "../workers_support.h"

enum { REPLICAS = 4, MOST_EDITS = 5, CASES = 60, MOST_ELEMENTS = 3000 };

static uint64_t seed = 20261123;

static uint64_t draw(uint64_t *state, uint64_t below) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (*state >> 33) % below;
}

/* ---- Checks and their results ---- */

typedef struct edit {
  int32_t replica;
  int64_t element;
  unsigned char bytes[8];
} edit;

typedef struct check_case {
  dist_dtype dtype;
  int32_t ndim;
  int64_t shape[3];
  int num_edits;
  edit edits[MOST_EDITS];
} check_case;

typedef struct verdict {
  dist_status status;
  dist_drift drift;
  report error; /* if the status is not OK */
  int32_t worker;
} verdict;

typedef struct checks {
  const check_case *cases;
  int n;
  int32_t first[MOST_WORKERS + 1];
  verdict (*verdicts)[CASES]; /* of each worker */
} checks;

static size_t size_of(dist_dtype dtype) {
  static const size_t sizes[] = {0, 2, 2, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8, 8, 1};
  _Static_assert(COUNT_OF(sizes) == LAST_DTYPE + 1, "every dtype");
  return sizes[dtype];
}

static dist_status check_one(dist_strategy *strategy, const check_case *c, int32_t first, verdict *out) {
  static const unsigned char zeros[MOST_ELEMENTS * 8];
  const dist_tensor initial = {(void *)zeros, c->dtype, c->ndim, c->shape, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = "weights";
  dist_variable *variable = NULL;
  dist_status status = dist_variable_create(strategy, &initial, &options, &variable);
  if (status != DIST_OK) return status;
  for (int i = 0; i < c->num_edits; ++i) {
    const edit *const e = &c->edits[i];
    dist_tensor copy;
    if (e->replica < first || e->replica >= first + dist_variable_num_copies(variable)) continue;
    status = dist_variable_component(variable, e->replica, &copy);
    if (status != DIST_OK) break;
    memcpy((char *)copy.data + (size_t)e->element * size_of(c->dtype), e->bytes, size_of(c->dtype));
  }
  memset(out, 0, sizeof *out);
  out->drift = (dist_drift)DIST_DRIFT_INIT;
  if (status == DIST_OK) {
    out->status = dist_variable_check_drift(strategy, variable, &out->drift);
    if (out->status != DIST_OK) {
      dist_error_info info = DIST_ERROR_INFO_INIT;
      read_report(&out->error);
      status = dist_last_error_info(&info);
      out->worker = info.worker;
    }
  }
  dist_variable_destroy(variable);
  return status;
}

static dist_status check_all(dist_strategy *strategy, int worker, void *user_data) {
  checks *const given = user_data;
  dist_status status = DIST_OK;
  for (int i = 0; i < given->n && status == DIST_OK; ++i) {
    status = check_one(strategy, &given->cases[i], given->first[worker], &given->verdicts[worker][i]);
  }
  return status;
}

static void assert_same_verdict(const verdict *found, const verdict *wanted) {
  assert_int_equal(found->status, wanted->status);
  assert_int_equal(found->drift.num_copies, wanted->drift.num_copies);
  assert_int_equal(found->drift.replica, wanted->drift.replica);
  assert_int_equal(found->drift.expected_replica, wanted->drift.expected_replica);
  assert_int_equal(found->drift.element, wanted->drift.element);
  assert_string_equal(found->error.message, wanted->error.message);
  assert_string_equal(found->error.tag, wanted->error.tag);
  assert_string_equal(found->error.expected, wanted->error.expected);
  assert_string_equal(found->error.received, wanted->error.received);
  assert_string_equal(found->error.hint, wanted->error.hint);
  assert_int_equal(found->error.replica, wanted->error.replica);
  assert_int_equal(found->error.code, wanted->error.code);
  assert_int_equal(found->error.collective, wanted->error.collective);
  assert_int_equal(found->error.sequence, wanted->error.sequence);
}

/* Asserts that all layouts have the same results as one process with the same number of replicas. */
static void compare_layouts(const check_case *cases, int n, const char *const *layouts, size_t num_layouts,
                            int32_t replicas) {
  static verdict wanted[1][CASES];
  static verdict found[MOST_WORKERS][CASES];
  checks one = {cases, n, {0, replicas}, wanted};
  dist_strategy *alone = strategy_of(replicas, DIST_THREADS_CALLER);
  assert_ok(check_all(alone, 0, &one));
  assert_ok(dist_strategy_destroy(alone));
  for (size_t k = 0; k < num_layouts; ++k) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options options_worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &options_worker;
    if (k % 2 == 1) options_worker.staging_bytes = 4096;
    workers all = workers_of(layouts[k], options);
    checks given = {cases, n, {0}, found};
    for (int w = 0; w < all.n; ++w) given.first[w + 1] = given.first[w] + all.replicas[w];
    assert_int_equal(given.first[all.n], replicas);
    all_workers(&all, check_all, &given);
    for (int w = 0; w < all.n; ++w) {
      for (int i = 0; i < n; ++i) {
        assert_same_verdict(&found[w][i], &wanted[0][i]);
        if (wanted[0][i].status == DIST_OK) continue;
        assert_int_equal(wanted[0][i].status, DIST_DATA_LOSS);
        const int32_t named = found[w][i].drift.replica;
        const int32_t worker = found[w][i].worker;
        assert_in_range(named, given.first[worker], given.first[worker + 1] - 1);
      }
    }
    end_workers(&all);
  }
}

static const char *const kLayouts[] = {"2+2", "1+1+1+1", "3+1", "1+2+1"};

/* ---- Drifting copies ---- */

static void every_dtype_and_every_replica(void **state) {
  (void)state;
  static check_case cases[CASES];
  for (dist_dtype dtype = 1; dtype <= LAST_DTYPE; ++dtype) {
    int n = 0;
    const int64_t sizes[] = {1, 7, MOST_ELEMENTS};
    for (size_t s = 0; s < COUNT_OF(sizes); ++s) {
      cases[n++] = (check_case){.dtype = dtype, .ndim = 1, .shape = {sizes[s]}};
      for (int32_t r = 0; r < REPLICAS; ++r) {
        const int64_t places[] = {0, sizes[s] / 2, sizes[s] - 1};
        for (size_t p = 0; p < COUNT_OF(places); ++p) {
          check_case *const c = &cases[n++];
          *c = (check_case){.dtype = dtype, .ndim = 1, .shape = {sizes[s]}, .num_edits = 1};
          /* The last byte of an element: its sign, or its truth value. */
          c->edits[0] = (edit){.replica = r, .element = places[p]};
          c->edits[0].bytes[size_of(dtype) - 1] = 0x80;
        }
      }
    }
    compare_layouts(cases, n, kLayouts, COUNT_OF(kLayouts), REPLICAS);
  }
}

/* Several copies and elements at a time, with few different values, so that there are ties and majorities. */
static void whatever_is_drawn(void **state) {
  (void)state;
  print_message("# seed %llu\n", (unsigned long long)seed);
  uint64_t random = seed;
  static const unsigned char nans[4][8] = {
      {0x01, 0x7E, 0xC0, 0x7F, 0, 0, 0xF8, 0x7F}, {0, 0, 0xC0, 0xFF, 0, 0, 0xF0, 0xFF}, {1}, {0x80}};
  static check_case cases[CASES];
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < CASES; ++i) {
      check_case *const c = &cases[i];
      *c = (check_case){.dtype = (dist_dtype)(1 + draw(&random, LAST_DTYPE)),
                        .ndim = (int32_t)draw(&random, 4)};
      int64_t elements = 1;
      for (int32_t d = 0; d < c->ndim; ++d) {
        c->shape[d] = (int64_t)draw(&random, 15);
        elements *= c->shape[d];
      }
      c->num_edits = elements == 0 ? 0 : (int)draw(&random, MOST_EDITS + 1);
      for (int k = 0; k < c->num_edits; ++k) {
        edit *const e = &c->edits[k];
        e->replica = (int32_t)draw(&random, REPLICAS);
        e->element = k > 0 && draw(&random, 3) != 0 ? c->edits[k - 1].element
                                                    : (int64_t)draw(&random, (uint64_t)elements);
        memcpy(e->bytes, nans[draw(&random, 4)], sizeof e->bytes);
      }
    }
    compare_layouts(cases, CASES, kLayouts, COUNT_OF(kLayouts), REPLICAS);
  }
}

static void nans_and_truths_are_equal_across_workers(void **state) {
  (void)state;
  const struct {
    dist_dtype dtype;
    unsigned char one[8], other[8];
  } rows[] = {{DIST_F16, {0, 0x7E}, {1, 0xFC}},
              {DIST_BF16, {0xC0, 0x7F}, {0x81, 0xFF}},
              {DIST_F32, {0, 0, 0xC0, 0x7F}, {1, 0, 0x80, 0xFF}},
              {DIST_F64, {0, 0, 0, 0, 0, 0, 0xF8, 0x7F}, {1, 0, 0, 0, 0, 0, 0xF0, 0xFF}},
              {DIST_COMPLEX64, {0, 0, 0xC0, 0x7F, 0, 0, 0, 0}, {1, 0, 0x80, 0xFF, 0, 0, 0, 0}},
              {DIST_BOOL, {1}, {0x80}}};
  check_case cases[2 * COUNT_OF(rows)];
  for (size_t i = 0; i < COUNT_OF(rows); ++i) {
    check_case *const c = &cases[2 * i];
    *c = (check_case){.dtype = rows[i].dtype, .ndim = 2, .shape = {3, 500}, .num_edits = REPLICAS};
    for (int r = 0; r < REPLICAS; ++r) {
      c->edits[r] = (edit){.replica = r, .element = 1001};
      memcpy(c->edits[r].bytes, r % 2 == 0 ? rows[i].one : rows[i].other, 8);
    }
    /* The same case, with one copy that has neither value. */
    cases[2 * i + 1] = *c;
    memset(cases[2 * i + 1].edits[3].bytes, 0, 8);
  }
  compare_layouts(cases, COUNT_OF(cases), kLayouts, COUNT_OF(kLayouts), REPLICAS);
  verdict found[1][CASES];
  checks one = {cases, COUNT_OF(cases), {0, REPLICAS}, found};
  dist_strategy *alone = strategy_of(REPLICAS, DIST_THREADS_CALLER);
  assert_ok(check_all(alone, 0, &one));
  for (size_t i = 0; i < COUNT_OF(cases); ++i) {
    assert_int_equal(found[0][i].status, i % 2 == 0 ? DIST_OK : DIST_DATA_LOSS);
    assert_int_equal(found[0][i].drift.replica, i % 2 == 0 ? -1 : 3);
  }
  assert_ok(dist_strategy_destroy(alone));
}

static void sixteen_workers_and_unequal_ones(void **state) {
  (void)state;
  const char *const layouts[] = {"1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1", "5+1+1+2+7", "8+8"};
  static check_case cases[20];
  for (int i = 0; i < 20; ++i) {
    cases[i] = (check_case){.dtype = DIST_F32, .ndim = 2, .shape = {30, 100}, .num_edits = i == 0 ? 0 : 1};
    cases[i].edits[0] = (edit){.replica = i % 16, .element = 157 * i, .bytes = {1}};
  }
  compare_layouts(cases, 20, layouts, COUNT_OF(layouts), 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_dtype_and_every_replica),
      cmocka_unit_test(whatever_is_drawn),
      cmocka_unit_test(nans_and_truths_are_equal_across_workers),
      cmocka_unit_test(sixteen_workers_and_unequal_ones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
