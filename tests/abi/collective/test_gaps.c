/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas with differently laid out tensors, or with contributions of which only some are small. All
 * replicas must choose the same algorithm for the collective.
 */
#include "tests/abi/common.h"

enum { GAPPED = 700 };

typedef struct gaps {
  int64_t length;
  dist_reduce_op op;
  int64_t parts[MOST], whole;
  int32_t in[MOST][2 * GAPPED];
  double out[MOST][2 * GAPPED];
  int32_t joined[MOST][2 * (GAPPED + 4 * MOST)];
} gaps;

static dist_dtype result_of(dist_reduce_op op) { return op == DIST_REDUCE_MEAN ? DIST_F64 : DIST_I32; }
static int in_has_gaps(int32_t r) { return r % 2 == 0; }
static int out_has_gaps(int32_t r) { return r % 3 != 0; }

static dist_status reduce_gaps(dist_replica *replica, void *user_data) {
  gaps *g = user_data;
  const int32_t r = dist_replica_id(replica);
  const int64_t two = 2;
  const dist_dtype result = result_of(g->op);
  const dist_tensor in = {g->in[r], DIST_I32, 1, &g->length, in_has_gaps(r) ? &two : NULL};
  dist_tensor out = {g->out[r], result, 1, &g->length, out_has_gaps(r) ? &two : NULL};
  return dist_all_reduce(replica, g->op, &in, &out, 1, NULL, NULL);
}

/* Whether the result is in its place, and the gaps have not changed. */
static int is_there(const gaps *g, int32_t r, size_t place, int64_t sum, int32_t replicas) {
  if (g->op == DIST_REDUCE_MEAN) return g->out[r][place] == (double)sum / replicas;
  return ((const int32_t *)g->out[r])[place] == (int32_t)sum;
}

static void gaps_on_some_replicas(void **state) {
  (void)state;
  static gaps g;
  static const int64_t lengths[] = {1, 5, 16, 30, 100, 384, GAPPED};
  static const dist_reduce_op ops[] = {DIST_REDUCE_SUM, DIST_REDUCE_MEAN};
  for (int32_t replicas = 1; replicas <= MOST; replicas += 1 + replicas / 3) {
    dist_strategy *strategy =
        strategy_of(replicas, replicas % 2 ? DIST_THREADS_LIBRARY : DIST_THREADS_CALLER);
    for (size_t k = 0; k < COUNT_OF(lengths) * COUNT_OF(ops); k++) {
      memset(&g, 0x55, sizeof g);
      g.length = lengths[k / 2], g.op = ops[k % 2];
      for (int32_t r = 0; r < replicas; r++) {
        for (int64_t i = 0; i < g.length; i++)
          g.in[r][i * (in_has_gaps(r) ? 2 : 1)] = (int32_t)(r * 1000 + i);
      }
      assert_ok(dist_run(strategy, reduce_gaps, &g, NULL));
      for (int32_t r = 0; r < replicas; r++) {
        for (int64_t i = 0; i < g.length; i++) {
          const int64_t sum = (int64_t)replicas * (replicas - 1) / 2 * 1000 + replicas * i;
          const size_t place = (size_t)i * (out_has_gaps(r) ? 2 : 1);
          if (!is_there(&g, r, place, sum, replicas))
            fail_msg("%d replicas, %lld elements: replica %d, element %lld", (int)replicas,
                     (long long)g.length, (int)r, (long long)i);
        }
        if (g.op == DIST_REDUCE_SUM && out_has_gaps(r))
          assert_int_equal(((const int32_t *)g.out[r])[1], 0x55555555);
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* Small parts, except one replica's, which is too large to travel with the slots. */
static dist_status join_gaps(dist_replica *replica, void *user_data) {
  gaps *g = user_data;
  const int32_t r = dist_replica_id(replica);
  const int64_t two = 2;
  const dist_tensor in = {g->in[r], DIST_I32, 1, &g->parts[r], in_has_gaps(r) ? &two : NULL};
  dist_tensor out = {g->joined[r], DIST_I32, 1, &g->whole, out_has_gaps(r) ? &two : NULL};
  return dist_all_gather(replica, &in, &out, 1, NULL, NULL);
}

static void join(dist_strategy *strategy, gaps *g, int32_t replicas, int32_t large) {
  memset(g, 0x55, sizeof *g);
  g->whole = 0;
  for (int32_t r = 0; r < replicas; r++) {
    g->parts[r] = r == large ? GAPPED : r % 4;
    g->whole += g->parts[r];
    for (int64_t i = 0; i < g->parts[r]; i++)
      g->in[r][i * (in_has_gaps(r) ? 2 : 1)] = (int32_t)(r * 1000 + i);
  }
  assert_ok(dist_run(strategy, join_gaps, g, NULL));
  for (int32_t r = 0; r < replicas; r++) {
    int64_t at = 0;
    for (int32_t p = 0; p < replicas; p++) {
      for (int64_t i = 0; i < g->parts[p]; i++, at++) {
        if (g->joined[r][at * (out_has_gaps(r) ? 2 : 1)] != p * 1000 + i)
          fail_msg("%d replicas, %d has most: on %d, element %lld of %d", (int)replicas, (int)large, (int)r,
                   (long long)i, (int)p);
      }
    }
  }
}

static void parts_of_which_some_are_small(void **state) {
  (void)state;
  static gaps g;
  for (int32_t replicas = 1; replicas <= MOST; replicas += 1 + replicas / 3) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (int32_t large = -1; large < replicas; large++) join(strategy, &g, replicas, large);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gaps_on_some_replicas),
      cmocka_unit_test(parts_of_which_some_are_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
