/* SPDX-License-Identifier: Apache-2.0
 *
 * all_reduces that repeat an earlier call, whose arguments libdist does not check again. The results are the
 * same as the first time, and so are the reports if a peer passes something different.
 */
#include "tests/abi/common.h"

enum { ROOM = (1 << 18) + 64, TIMES = 4 };

typedef struct repeats {
  int64_t length;
  dist_dtype dtype, result;
  dist_reduce_op op;
  int placing;               /* of the results */
  int32_t odd_one, odd_time; /* this replica makes another call at this time */
  int what;                  /* which call */
  dist_status status[MOST];
  report reports[MOST];
} repeats;

enum { IN_PLACE, APART, SHARED, PLACINGS };
enum { NOTHING, GAPS, OVERLAP, OTHER_SHAPE, LEAVES };

static union {
  float f32[ROOM];
  int32_t i32[ROOM];
  double f64[ROOM];
} in[MOST], out[MOST];

static double brought(int32_t replica, int64_t i) { return (double)(replica * 100 + i % 1000 + 1); }

static void fill(const repeats *r, int32_t replica, int64_t step) {
  for (int64_t i = 0; i < r->length; i++) {
    if (r->dtype == DIST_F32) in[replica].f32[i * step] = (float)brought(replica, i);
    if (r->dtype == DIST_I32) in[replica].i32[i * step] = (int32_t)brought(replica, i);
    if (r->dtype == DIST_F64) in[replica].f64[i * step] = brought(replica, i);
  }
}

static double result_at(const repeats *r, const void *data, int64_t i) {
  if (r->result == DIST_F32) return (double)((const float *)data)[i];
  return r->result == DIST_I32 ? (double)((const int32_t *)data)[i] : ((const double *)data)[i];
}

static double expected(const repeats *r, int32_t replicas, int64_t i) {
  const int32_t pairs = replicas * (replicas - 1) / 2;
  const double sum = pairs * 100.0 + replicas * (double)(i % 1000 + 1);
  return r->op == DIST_REDUCE_MEAN ? sum / replicas : sum;
}

static dist_status repeat(dist_replica *replica, void *user_data) {
  repeats *r = user_data;
  const int32_t me = dist_replica_id(replica);
  const int32_t replicas = dist_replica_num_replicas(replica);
  const int64_t two = 2;
  for (int32_t time = 0; time < TIMES; time++) {
    const int odd = me == r->odd_one && time == r->odd_time ? r->what : NOTHING;
    const int64_t step = odd == GAPS ? 2 : 1;
    int64_t length = r->length + (odd == OTHER_SHAPE);
    if (odd == LEAVES) return DIST_OK;
    fill(r, me, step);
    void *to = r->placing == IN_PLACE ? (void *)&in[me] : (void *)&out[r->placing == SHARED ? 0 : me];
    if (odd == OVERLAP) to = (char *)&out[(me + 1) % replicas] + 4;
    const dist_tensor from = {&in[me], r->dtype, 1, &length, odd == GAPS ? &two : NULL};
    dist_tensor result = {to, r->result, 1, &length, odd == GAPS && r->placing == IN_PLACE ? &two : NULL};
    const dist_status status = dist_all_reduce(replica, r->op, &from, &result, 1, NULL, NULL);
    if (status != DIST_OK) {
      r->status[me] = status;
      read_report(&r->reports[me]);
      return status;
    }
    for (int64_t i = 0; i < r->length; i++) {
      const int64_t at = result.strides == NULL ? i : 2 * i;
      if (result_at(r, to, at) != expected(r, replicas, i)) {
        printf("time %d, replica %d, element %lld: %g\n", (int)time, (int)me, (long long)i,
               result_at(r, to, at));
        return DIST_DATA_LOSS;
      }
    }
    /* A replica must not write a shared output while another one still compares it. */
    const dist_status met = dist_barrier(replica, NULL, NULL);
    if (met != DIST_OK) return met;
  }
  return DIST_OK;
}

static const int64_t lengths[] = {1, 16, 255, 256, 511, 512, 513, 1024, 4096, 16383, 16384, (1 << 18) + 1};

static void same_results(void **state) {
  (void)state;
  static repeats r;
  static const struct {
    dist_dtype dtype, result;
    dist_reduce_op op;
  } kinds[] = {{DIST_F32, DIST_F32, DIST_REDUCE_SUM},
               {DIST_I32, DIST_F64, DIST_REDUCE_MEAN},
               {DIST_F64, DIST_F64, DIST_REDUCE_SUM}};
  for (int32_t replicas = 1; replicas <= 8; replicas *= 2) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (size_t k = 0; k < COUNT_OF(kinds) * COUNT_OF(lengths) * PLACINGS; k++) {
      r = (repeats){.dtype = kinds[k % COUNT_OF(kinds)].dtype,
                    .result = kinds[k % COUNT_OF(kinds)].result,
                    .op = kinds[k % COUNT_OF(kinds)].op,
                    .length = lengths[k / COUNT_OF(kinds) % COUNT_OF(lengths)],
                    .placing = (int)(k / COUNT_OF(kinds) / COUNT_OF(lengths)),
                    .odd_one = -1};
      if (r.placing == IN_PLACE && r.dtype != r.result) continue;
      if (r.dtype == DIST_F64 && r.length > ROOM / 2) continue;
      assert_ok(dist_run(strategy, repeat, &r, NULL));
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* A replica whose tensor has gaps, from the start or later, gets and contributes the same values. */
static void gaps_come_and_go(void **state) {
  (void)state;
  static repeats r;
  for (int32_t replicas = 2; replicas <= 4; replicas += 2) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (size_t k = 0; k < COUNT_OF(lengths) * PLACINGS * TIMES; k++) {
      r = (repeats){.dtype = DIST_F32,
                    .result = DIST_F32,
                    .op = DIST_REDUCE_SUM,
                    .length = lengths[k % COUNT_OF(lengths)],
                    .placing = (int)(k / COUNT_OF(lengths) % PLACINGS),
                    .odd_one = (int32_t)(k % (size_t)replicas),
                    .odd_time = (int32_t)(k / COUNT_OF(lengths) / PLACINGS),
                    .what = GAPS};
      if (r.length > ROOM / 2) continue;
      assert_ok(dist_run(strategy, repeat, &r, NULL));
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

typedef struct odd_case {
  int what;
  dist_status status;
  const char *words;
} odd_case;
static const odd_case cases[] = {{OVERLAP, DIST_INVALID_ARGUMENT, "overlapping buffers"},
                                 {OTHER_SHAPE, DIST_INVALID_ARGUMENT, "all_reduce"},
                                 {LEAVES, DIST_ABORTED, "all_reduce"}};

/* All replicas except one that has left must have the same report about the last all_reduce. */
static void assert_told(const dist_status *status, const report *reports, int32_t replicas, int32_t odd_one,
                        const odd_case *odd) {
  const int32_t other = odd_one == 0 ? 1 : 0;
  for (int32_t i = 0; i < replicas; i++) {
    if (i == odd_one && odd->what == LEAVES) continue;
    assert_int_equal(status[i], odd->status);
    assert_int_equal(reports[i].code, odd->status);
    assert_has(reports[i].message, odd->words);
    assert_int_equal(reports[i].collective, DIST_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(reports[i].sequence, 2 * TIMES - 1); /* there is also a barrier each time */
    assert_string_equal(reports[i].message, reports[other].message);
  }
}

/* Whatever a peer does instead, all replicas get one report, and the next run starts clean. */
static void peers_that_do_something_else(void **state) {
  (void)state;
  static repeats r;
  for (int32_t replicas = 2; replicas <= 4; replicas += 2) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (size_t k = 0; k < COUNT_OF(cases) * COUNT_OF(lengths); k++) {
      const size_t c = k % COUNT_OF(cases);
      r = (repeats){.dtype = DIST_F32,
                    .result = DIST_F32,
                    .op = DIST_REDUCE_SUM,
                    .length = lengths[k / COUNT_OF(cases)],
                    .placing = APART,
                    .odd_one = (int32_t)(k % 2),
                    .odd_time = TIMES - 1,
                    .what = cases[c].what};
      if (r.length < 16) continue; /* shorter tensors do not overlap when they are moved by one byte */
      assert_int_not_equal(dist_run(strategy, repeat, &r, NULL), DIST_OK);
      assert_told(r.status, r.reports, replicas, r.odd_one, &cases[c]);
      r.odd_one = -1;
      assert_ok(dist_run(strategy, repeat, &r, NULL));
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

enum { LISTED = 9, LIST_ROOM = 400 };

typedef struct lists {
  size_t n;
  const int64_t *lengths; /* LISTED lengths */
  int placing, what;
  int32_t odd_one, odd_time;
  dist_status status[MOST];
  report reports[MOST];
} lists;

static double list_in[MOST][LISTED][LIST_ROOM], list_out[MOST][LISTED][LIST_ROOM];

static dist_status repeat_list(dist_replica *replica, void *user_data) {
  lists *l = user_data;
  const int32_t me = dist_replica_id(replica);
  const int32_t replicas = dist_replica_num_replicas(replica);
  for (int32_t time = 0; time < TIMES; time++) {
    const int odd = me == l->odd_one && time == l->odd_time ? l->what : NOTHING;
    const int64_t two = 2, longer = l->lengths[0] + 1;
    dist_tensor from[LISTED], to[LISTED];
    if (odd == LEAVES) return DIST_OK;
    for (size_t t = 0; t < l->n; t++) {
      const int32_t owner = l->placing == SHARED ? 0 : me;
      const dist_dtype dtype = t % 3 == 1 ? DIST_I32 : DIST_F64;
      const int64_t step = odd == GAPS && t == 1 ? 2 : 1;
      from[t] = (dist_tensor){list_in[me][t], dtype, 1, &l->lengths[t], step == 2 ? &two : NULL};
      to[t] = from[t];
      if (l->placing != IN_PLACE) to[t].data = list_out[owner][t], to[t].strides = NULL;
      if (l->lengths[t] == 0) from[t].data = to[t].data = NULL;
      for (int64_t i = 0; i < l->lengths[t]; i++) {
        if (dtype == DIST_F64) list_in[me][t][i * step] = brought(me, i);
        if (dtype == DIST_I32) ((int32_t *)list_in[me][t])[i * step] = (int32_t)brought(me, i);
      }
    }
    if (odd == OTHER_SHAPE) from[0].shape = to[0].shape = &longer;
    if (odd == OVERLAP) to[l->n - 1].data = (char *)list_out[(me + 1) % replicas][l->n - 1] + 8;
    const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, from, to, l->n, NULL, NULL);
    if (status != DIST_OK) {
      l->status[me] = status;
      read_report(&l->reports[me]);
      return status;
    }
    for (size_t t = 0; t < l->n; t++) {
      const int64_t step = to[t].strides == NULL ? 1 : 2;
      for (int64_t i = 0; i < l->lengths[t]; i++) {
        const int32_t pairs = replicas * (replicas - 1) / 2;
        const double sum = pairs * 100.0 + replicas * (double)(i % 1000 + 1);
        const double got = to[t].dtype == DIST_F64 ? ((const double *)to[t].data)[i * step]
                                                   : (double)((const int32_t *)to[t].data)[i * step];
        if (got == sum) continue;
        printf("time %d, replica %d, tensor %zu, element %lld: %g\n", (int)time, (int)me, t, (long long)i,
               got);
        return DIST_DATA_LOSS;
      }
    }
    const dist_status met = dist_barrier(replica, NULL, NULL);
    if (met != DIST_OK) return met;
  }
  return DIST_OK;
}

static const int64_t list_lengths[][LISTED] = {{1, 1, 1, 1, 1, 1, 1, 1, 1},
                                               {5, 3, 40, 2, 7, 1, 9, 30, 6},
                                               {30, 0, 7, 0, 1, 2, 0, 3, 16},
                                               {20, 80, 33, 29, 27, 1, 2, 3, 4},
                                               {1, 300, 2, 300, 3, 4, 5, 6, 7}};

static void short_lists(void **state) {
  (void)state;
  static lists l;
  for (int32_t replicas = 1; replicas <= 8; replicas *= 2) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (size_t k = 0; k < COUNT_OF(list_lengths) * PLACINGS * (LISTED - 1); k++) {
      l = (lists){.n = 2 + k % (LISTED - 1),
                  .lengths = list_lengths[k / (LISTED - 1) % COUNT_OF(list_lengths)],
                  .placing = (int)(k / (LISTED - 1) / COUNT_OF(list_lengths)),
                  .odd_one = -1};
      assert_ok(dist_run(strategy, repeat_list, &l, NULL));
      if (replicas == 1) continue;
      l.odd_one = (int32_t)(k % 2), l.odd_time = (int32_t)(k % TIMES), l.what = GAPS;
      assert_ok(dist_run(strategy, repeat_list, &l, NULL));
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void lists_of_peers_that_do_something_else(void **state) {
  (void)state;
  static lists l;
  static const int64_t lengths[LISTED] = {5, 3, 40, 20, 7, 9, 9, 30, 6};
  for (int32_t replicas = 2; replicas <= 4; replicas += 2) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (size_t k = 0; k < COUNT_OF(cases) * (LISTED - 1); k++) {
      l = (lists){.n = 2 + k / COUNT_OF(cases),
                  .lengths = lengths,
                  .placing = APART,
                  .odd_one = (int32_t)(k % 2),
                  .odd_time = TIMES - 1,
                  .what = cases[k % COUNT_OF(cases)].what};
      if (l.what == OVERLAP && !MAY_OVERLAP) continue;
      assert_int_not_equal(dist_run(strategy, repeat_list, &l, NULL), DIST_OK);
      assert_told(l.status, l.reports, replicas, l.odd_one, &cases[k % COUNT_OF(cases)]);
      l.odd_one = -1;
      assert_ok(dist_run(strategy, repeat_list, &l, NULL));
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same_results),
      cmocka_unit_test(gaps_come_and_go),
      cmocka_unit_test(peers_that_do_something_else),
      cmocka_unit_test(short_lists),
      cmocka_unit_test(lists_of_peers_that_do_something_else),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
