/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums depend only on the contributions and their order (REPRODUCIBLE sums not even on their order), not on
 * the number of replicas and workers that contribute them. Sixteen workers with one replica each equal
 * sixteen replicas in one process.
 *
 * DIST_TEST_SEED seeds the random choices.
 */
#include "../layouts_support.h"

/* ---- The same contributions, distributed differently ---- */

enum { DEALT = 24, DEALT_SIZE = 40 };

typedef struct deal {
  dist_dtype dtype;
  dist_reduce_op op;
  int32_t numerics;
  int weighted;
  const unsigned char *in; /* DEALT tensors */
  const double *weights;
  int order[DEALT];   /* the order of the contributions */
  int first[ALL + 1]; /* the first contribution of each replica, in that order */
  unsigned char out[ALL][DEALT_SIZE * 8];
} deal;

static dist_status play_deal(dist_replica *replica, void *user_data) {
  deal *d = user_data;
  const int32_t me = dist_replica_id(replica);
  const int64_t shape[] = {DEALT_SIZE};
  dist_tensor in[DEALT];
  double weights[DEALT];
  size_t n = 0;
  for (int i = d->first[me]; i < d->first[me + 1]; ++i, ++n) {
    const size_t at = (size_t)d->order[i] * DEALT_SIZE * size_of(d->dtype);
    in[n] = (dist_tensor){(void *)(d->in + at), d->dtype, 1, shape, NULL};
    weights[n] = d->weights[d->order[i]];
  }
  dist_tensor out = {d->out[me], dtype_of_result(d->op, d->dtype), 1, shape, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.contributions = n;
  options.numerics = d->numerics;
  options.weights = d->weighted ? weights : NULL;
  return dist_all_reduce(replica, d->op, in, &out, 1, &options, NULL);
}

/* Each of `replicas` gets at least one. REPRODUCIBLE sums do not depend on which replica has which. */
static void deal_out(deal *d, int replicas, int shuffled, uint64_t *seed) {
  for (int i = 0; i < DEALT; ++i) d->order[i] = i;
  for (int i = DEALT - 1; shuffled && i > 0; --i) {
    const int other = (int)draw_of(seed, (uint64_t)i + 1);
    const int kept = d->order[i];
    d->order[i] = d->order[other];
    d->order[other] = kept;
  }
  d->first[0] = 0;
  for (int r = 1; r <= replicas; ++r) {
    const int rest = DEALT - d->first[r - 1] - (replicas - r);
    d->first[r] = r == replicas ? DEALT : d->first[r - 1] + 1 + (int)draw_of(seed, (uint64_t)rest);
  }
}

static void who_brings_what_changes_no_sum(void **state) {
  (void)state;
  static const char *const other_layouts[] = {"1+1", "3+1", "2+2+1", "1+1+1+1+1+1+1", "8", "1"};
  uint64_t seed = seed_of_test() + 2;
  workers others[COUNT_OF(other_layouts)];
  for (size_t l = 0; l < COUNT_OF(others); ++l)
    others[l] = workers_of(other_layouts[l], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  unsigned char in[DEALT * DEALT_SIZE * 8];
  double weights[DEALT];
  for (int i = 0; i < DEALT; ++i) weights[i] = (double)draw_of(&seed, 1000) / 7;
  static deal d;
  for (dist_dtype dtype = DIST_F16; dtype <= DIST_F64; ++dtype) {
    fill_random(dtype, in, DEALT * DEALT_SIZE, next_random(&seed));
    for (int k = 0; k < 9; ++k) {
      memset(&d, 0, sizeof d);
      d.dtype = dtype, d.in = in, d.weights = weights;
      d.numerics = DIST_NUMERICS_ORDERED + k / 3;
      d.op = k % 3 == 0 ? DIST_REDUCE_SUM : DIST_REDUCE_MEAN;
      d.weighted = k % 3 == 2;
      deal_out(&d, ALL, 0, &seed);
      assert_ok(dist_run(one_process, play_deal, &d, NULL));
      unsigned char expected[sizeof d.out[0]];
      memcpy(expected, d.out[0], sizeof expected);
      for (size_t l = 0; l < COUNT_OF(others); ++l) {
        int replicas = 0;
        for (int w = 0; w < others[l].n; ++w) replicas += others[l].replicas[w];
        memset(d.out, UNTOUCHED, sizeof d.out);
        deal_out(&d, replicas, d.numerics == DIST_NUMERICS_REPRODUCIBLE, &seed);
        run_on_workers(&others[l], play_deal, &d);
        const size_t size = size_of(dtype);
        for (int r = 0; r < replicas; ++r)
          for (size_t i = 0; i < DEALT_SIZE; ++i) /* the order determines which of two NaN is the result */
            if (!same_element(dtype, d.out[r] + i * size, expected + i * size))
              fail_msg("%s: dtype %d, numerics %d, %s: element %zu of replica %d is another one",
                       other_layouts[l], (int)dtype, (int)d.numerics, d.weighted ? "weighted" : "plain", i,
                       r);
      }
    }
  }
  for (size_t l = 0; l < COUNT_OF(others); ++l) end_workers(&others[l]);
}

/* ---- Sixteen workers ---- */

enum { SIXTEEN = 16, ROWS = 5, STEPS_OF_SIXTEEN = 6, LARGEST = SIXTEEN * 1024 };

typedef struct sixteen {
  float in[SIXTEEN][LARGEST];
  float out[SIXTEEN][STEPS_OF_SIXTEEN][ROWS][LARGEST];
} sixteen;

static dist_status play_sixteen(dist_replica *replica, void *user_data) {
  sixteen *s = user_data;
  static const int64_t parts[ROWS] = {0, 1, 3, 40, 1024};
  const int32_t me = dist_replica_id(replica);
  dist_status status = DIST_OK;
  for (int row = 0; row < ROWS; ++row) {
    for (int step = 0; step < STEPS_OF_SIXTEEN && status == DIST_OK; ++step) {
      const int64_t part[] = {parts[row]};
      const int64_t whole[] = {SIXTEEN * parts[row]};
      dist_tensor in = {s->in[me], DIST_F32, 1, step == 4 ? part : whole, NULL};
      dist_tensor out = {s->out[me][step][row], DIST_F32, 1, step == 3 ? part : whole, NULL};
      dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
      switch (step) {
        case 0:
        case 1:
        case 2:
          options.numerics = DIST_NUMERICS_ORDERED + step;
          status = dist_all_reduce(replica, DIST_REDUCE_MEAN, &in, &out, 1, &options, NULL);
          break;
        case 3: status = dist_reduce_scatter(replica, DIST_REDUCE_SUM, &in, &out, 1, &options, NULL); break;
        case 4: status = dist_all_gather(replica, &in, &out, 1, &options, NULL); break;
        default:
          status = dist_scan(replica, DIST_REDUCE_SUM, DIST_SCAN_INCLUSIVE, &in, &out, 1, &options, NULL);
      }
    }
  }
  return status;
}

static void sixteen_workers_are_sixteen_replicas(void **state) {
  (void)state;
  sixteen *s = malloc(sizeof *s);
  float(*expected)[STEPS_OF_SIXTEEN][ROWS][LARGEST] = malloc(sizeof s->out);
  fill_random(DIST_F32, s->in, SIXTEEN * LARGEST, seed_of_test() + 3);
  memset(s->out, UNTOUCHED, sizeof s->out);
  dist_strategy *alone = strategy_of(SIXTEEN, DIST_THREADS_CALLER);
  assert_ok(dist_run(alone, play_sixteen, s, NULL));
  assert_ok(dist_strategy_destroy(alone));
  memcpy(expected, s->out, sizeof s->out);
  workers all =
      workers_of("1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  memset(s->out, UNTOUCHED, sizeof s->out);
  run_on_workers(&all, play_sixteen, s);
  assert_memory_equal(s->out, expected, sizeof s->out);
  end_workers(&all);
  free(expected);
  free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_brings_what_changes_no_sum),
      cmocka_unit_test(sixteen_workers_are_sixteen_replicas),
  };
  return cmocka_run_group_tests(tests, make_one, end_one);
}
