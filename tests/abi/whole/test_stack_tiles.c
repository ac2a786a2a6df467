/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack that halo exchange, resharding and loops need on a host thread, including their error reports.
 */
#include "stack_support.h"

enum { COLUMNS = 4, MOST_ROWS = 2048, HELD = 8 };

typedef struct tiles {
  int64_t rows;
  int gaps;    /* every second element */
  int32_t odd; /* the member at fault; -1 = none */
  enum { WELL, OTHER_WIDTH, LEAVES } fault;
  double *in[HELD], *out[HELD];
} tiles;

static dist_status exchange(dist_replica *replica, void *user_data) {
  const tiles *t = user_data;
  const int32_t me = dist_replica_id(replica);
  if (me == t->odd && t->fault == LEAVES) return DIST_OK;
  const int64_t parts[] = {dist_replica_num_replicas(replica), 1};
  const int64_t wide[] = {1 + (me == t->odd), 1};
  static const int64_t high[] = {1, 1};
  static const int32_t edges[] = {DIST_EDGE_WRAP, DIST_EDGE_REFLECT};
  const int64_t step = t->gaps ? 2 : 1;
  const int64_t in_shape[] = {t->rows, COLUMNS}, out_shape[] = {t->rows + wide[0] + 1, COLUMNS + 2};
  const int64_t in_strides[] = {COLUMNS * step, step}, out_strides[] = {(COLUMNS + 2) * step, step};
  const dist_tensor in = {t->in[me], DIST_F64, 2, in_shape, in_strides};
  dist_tensor out = {t->out[me], DIST_F64, 2, out_shape, out_strides};
  dist_halo halo = DIST_HALO_INIT;
  halo.ndim = 2;
  halo.parts = parts, halo.low = wide, halo.high = high, halo.edges = edges;
  return dist_halo_exchange(replica, &in, &halo, &out, NULL);
}

/* Reshards from rows to columns. */
static dist_status divide_anew(dist_replica *replica, void *user_data) {
  const tiles *t = user_data;
  const int32_t me = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  if (me == t->odd && t->fault == LEAVES) return DIST_OK;
  const int64_t shape[] = {t->rows * n, COLUMNS};
  const int64_t rows[] = {n, 1}, columns[] = {1, n};
  dist_partition from = DIST_PARTITION_INIT, to = DIST_PARTITION_INIT;
  from.shape = to.shape = shape;
  from.ndim = to.ndim = 2;
  from.num_logical_devices = to.num_logical_devices = n;
  from.uneven = to.uneven = 1;
  from.dimensions = rows, to.dimensions = columns;
  from.num_dimensions = to.num_dimensions = 2;
  const dist_partition *wanted = me == t->odd ? &from : &to;
  int64_t begin[2], in_size[2], out_size[2], in_elements = 0, out_elements = 0;
  dist_status status = dist_partition_shard(&from, me, NULL, begin, in_size, &in_elements);
  if (status == DIST_OK) status = dist_partition_shard(wanted, me, NULL, begin, out_size, &out_elements);
  if (status != DIST_OK) return status;
  const dist_tensor in = {t->in[me], DIST_F64, 2, in_size, NULL};
  dist_tensor out = {t->out[me], DIST_F64, 2, out_size, NULL};
  return dist_reshard(replica, &from, wanted, in_elements != 0 ? &in : NULL, out_elements != 0 ? &out : NULL,
                      NULL);
}

static void add_one(int64_t begin, int64_t end, void *user_data) {
  double *numbers = user_data;
  for (int64_t i = begin; i < end; i++) numbers[i] += 1;
}
static dist_status loop(dist_replica *replica, void *user_data) {
  const tiles *t = user_data;
  return dist_replica_parallel_for(replica, 0, t->rows, 1, add_one, t->in[dist_replica_id(replica)]);
}

static void try_all(dist_strategy *strategy, tiles *t, const char *how, dist_status wanted) {
  char what[120];
  const struct {
    const char *name;
    dist_replica_fn fn;
  } calls[] = {{"halo_exchange", exchange}, {"reshard", divide_anew}, {"parallel_for", loop}};
  for (int i = 0; i < 2 + (t->fault == WELL); i++) {
    snprintf(what, sizeof what, "%s of %d rows%s%s", calls[i].name, (int)t->rows,
             t->gaps ? ", with gaps" : "", how);
    assert_needs_little(what, strategy, calls[i].fn, t, wanted);
  }
}

static void tiles_and_loops(void **state) {
  (void)state;
  static tiles t;
  const size_t most = 2 * HELD * MOST_ROWS * COLUMNS;
  for (int i = 0; i < HELD; i++) {
    t.in[i] = calloc(most, sizeof(double));
    t.out[i] = calloc(most, sizeof(double));
    if (t.in[i] == NULL || t.out[i] == NULL) abort();
  }
  for (size_t r = 0; r < COUNT_OF(counts); r++) {
    dist_strategy *strategy = strategy_of(counts[r], DIST_THREADS_HOST);
    for (t.rows = 2; t.rows <= MOST_ROWS; t.rows *= MOST_ROWS / 2) {
      t.odd = -1, t.fault = WELL;
      for (t.gaps = 0; t.gaps <= 1; t.gaps++) try_all(strategy, &t, "", DIST_OK);
      t.gaps = 0, t.odd = counts[r] - 1;
      t.fault = OTHER_WIDTH;
      try_all(strategy, &t, ", which differ", DIST_INVALID_ARGUMENT);
      t.fault = LEAVES;
      try_all(strategy, &t, ", of which one leaves", DIST_ABORTED);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
  for (int i = 0; i < HELD; i++) free(t.in[i]), free(t.out[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_and_loops)};
  return STACK_TESTS("tiles and loops", tests);
}
