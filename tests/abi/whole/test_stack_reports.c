/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack that error reports, and replica functions other than tensor collectives, need on a host thread.
 */
#include "stack_support.h"
#include "tests/abi/gate.h"
#include "tests/abi/replica_calls.h"

static int id_of(dist_replica *replica) { return (int)dist_replica_id(replica); }

/* ---- All other calls of a replica ---- */

typedef struct other_call {
  const struct replica_call *row;
  call_things *things;
} other_call;

static dist_status do_other_call(dist_replica *replica, void *user_data) {
  const other_call *c = user_data;
  return c->row->call(replica, c->things);
}

/* Except loops and logical devices, which run host functions, and calls whose work outlives its tensors. */
static void every_other_call(void **state) {
  (void)state;
  static const char *const left_out[] = {"leave", "detach", "parallel_for", "run_on_devices", "begun"};
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_HOST);
  call_things things = things_of(strategy);
  for (size_t i = 0; i < COUNT_OF(replica_calls); i++) {
    int skip = replica_calls[i].of_devices;
    for (size_t k = 0; k < COUNT_OF(left_out); k++)
      skip = skip || strcmp(replica_calls[i].name, left_out[k]) == 0;
    other_call call = {&replica_calls[i], &things};
    if (!skip) assert_needs_little(replica_calls[i].name, strategy, do_other_call, &call, -1);
  }
  end_things(&things);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Reports ---- */

typedef struct trouble {
  gate given_up;     /* members that no longer wait for replica 0 */
  dist_group **ring; /* one for each replica and the next */
} trouble;

static dist_status begin_sum(dist_replica *replica, int64_t length, dist_collective_options *options,
                             dist_work **out_work) {
  static double memory[MOST][2][8];
  double(*mine)[8] = memory[dist_replica_id(replica)];
  const dist_tensor in = vector_of(mine[0], DIST_F64, &length);
  dist_tensor out = vector_of(mine[1], DIST_F64, &length);
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, options, out_work);
}

static dist_status sum_of(dist_replica *replica, int64_t length, dist_collective_options *options) {
  return begin_sum(replica, length, options, NULL);
}

static dist_status sum_begun(dist_replica *replica, int64_t length, dist_collective_options *options) {
  dist_work *work = NULL;
  dist_status status = begin_sum(replica, length, options, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status;
}

#define OPTIONS dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT
#define ODD(replica) (id_of(replica) % 2)

static dist_status disagree(dist_replica *replica, void *user_data) {
  (void)user_data;
  OPTIONS;
  options.tag = "a tag";
  return ODD(replica) ? sum_of(replica, 1 + id_of(replica) % 8, &options)
                      : dist_barrier(replica, &options, NULL);
}
static dist_status disagree_begun(dist_replica *replica, void *user_data) {
  (void)user_data;
  OPTIONS;
  return sum_begun(replica, 1 + id_of(replica) % 8, &options);
}
static dist_status return_early(dist_replica *replica, void *user_data) {
  (void)user_data;
  OPTIONS;
  return ODD(replica) ? sum_of(replica, 8, &options) : DIST_OK;
}
static dist_status fail_early(dist_replica *replica, void *user_data) {
  (void)user_data;
  OPTIONS;
  return ODD(replica) ? sum_of(replica, 8, &options) : dist_fail(DIST_NOT_FOUND, "no row");
}
static dist_status return_early_from_begun(dist_replica *replica, void *user_data) {
  (void)user_data;
  OPTIONS;
  return ODD(replica) ? sum_begun(replica, 8, &options) : DIST_OK;
}
static dist_status fail_early_from_begun(dist_replica *replica, void *user_data) {
  (void)user_data;
  OPTIONS;
  return ODD(replica) ? sum_begun(replica, 8, &options) : dist_fail(DIST_NOT_FOUND, "no row");
}
static dist_status come_too_late(dist_replica *replica, void *user_data, int begun) {
  trouble *t = user_data;
  OPTIONS;
  options.timeout_ns = 1000000;
  if (id_of(replica) == 0) {
    gate_await(&t->given_up, 1);
    return DIST_OK;
  }
  const dist_status status = begun ? sum_begun(replica, 8, &options) : sum_of(replica, 8, &options);
  gate_add(&t->given_up);
  return status;
}
static dist_status overstay(dist_replica *replica, void *user_data) {
  return come_too_late(replica, user_data, 0);
}
static dist_status overstay_begun(dist_replica *replica, void *user_data) {
  return come_too_late(replica, user_data, 1);
}
static dist_status cancel_peers(dist_replica *replica, void *user_data) {
  (void)user_data;
  OPTIONS;
  return id_of(replica) == 0 ? dist_strategy_cancel(dist_replica_strategy(replica))
                             : sum_of(replica, 8, &options);
}
static dist_status cancel_begun(dist_replica *replica, void *user_data) {
  (void)user_data;
  OPTIONS;
  return id_of(replica) == 0 ? dist_strategy_cancel(dist_replica_strategy(replica))
                             : sum_begun(replica, 8, &options);
}
/* Each replica waits in its group with the next one, which waits in another group. */
static dist_status wait_in_a_ring(dist_replica *replica, void *user_data) {
  const trouble *t = user_data;
  const int n = dist_replica_num_replicas(replica);
  OPTIONS;
  options.group = t->ring[id_of(replica)];
  const dist_status status = sum_of(replica, 8, &options);
  if (status != DIST_OK) return status;
  options.group = t->ring[(id_of(replica) + n - 1) % n];
  return sum_of(replica, 8, &options);
}
static dist_status wait_in_a_ring_begun(dist_replica *replica, void *user_data) {
  const trouble *t = user_data;
  const int n = dist_replica_num_replicas(replica);
  OPTIONS;
  options.group = t->ring[id_of(replica)];
  const dist_status status = sum_begun(replica, 8, &options);
  if (status != DIST_OK) return status;
  options.group = t->ring[(id_of(replica) + n - 1) % n];
  return sum_begun(replica, 8, &options);
}
/* Each output overlaps the next replica's. */
static dist_status overlap(dist_replica *replica, int64_t length, double *memory, int begun) {
  OPTIONS;
  dist_work *work = NULL;
  double *in = calloc((size_t)length, sizeof *in);
  const dist_tensor from = vector_of(in, DIST_F64, &length);
  dist_tensor to = vector_of(memory + id_of(replica), DIST_F64, &length);
  dist_status status =
      dist_all_reduce(replica, DIST_REDUCE_SUM, &from, &to, 1, &options, begun ? &work : NULL);
  if (status == DIST_OK && begun) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  free(in);
  return status;
}
static double common[MOST + (16 << 10)];
static dist_status overlap_a_little(dist_replica *replica, void *user_data) {
  (void)user_data;
  return overlap(replica, 8, common, 0);
}
static dist_status overlap_much(dist_replica *replica, void *user_data) {
  (void)user_data;
  return overlap(replica, 16 << 10, common, 0);
}
static dist_status overlap_begun(dist_replica *replica, void *user_data) {
  (void)user_data;
  return overlap(replica, 8, common, 1);
}
/* The parts do not add up to the whole. */
static dist_status cut_wrong(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int64_t whole = dist_replica_num_replicas(replica), part = 2;
  const dist_tensor in = vector_of(common, DIST_F64, &whole);
  double own[2];
  dist_tensor out = vector_of(own, DIST_F64, &part);
  return dist_reduce_scatter(replica, DIST_REDUCE_SUM, &in, &out, 1, NULL, NULL);
}

static void reports(void **state) {
  (void)state;
  static const struct {
    const char *name;
    dist_replica_fn fn;
    dist_status status;
  } kinds[] = {
      {"a disagreement", disagree, DIST_INVALID_ARGUMENT},
      {"an asynchronous disagreement", disagree_begun, DIST_INVALID_ARGUMENT},
      {"an early return", return_early, DIST_ABORTED},
      {"an early failure", fail_early, DIST_NOT_FOUND},
      {"an early return, asynchronous", return_early_from_begun, DIST_ABORTED},
      {"an early failure, asynchronous", fail_early_from_begun, DIST_NOT_FOUND},
      {"a deadline", overstay, DIST_DEADLINE_EXCEEDED},
      {"a deadline, asynchronous", overstay_begun, DIST_DEADLINE_EXCEEDED},
      {"a cancellation", cancel_peers, DIST_CANCELLED},
      {"a cancellation, asynchronous", cancel_begun, DIST_CANCELLED},
      {"a ring", wait_in_a_ring, DIST_ABORTED},
      {"a ring, asynchronous", wait_in_a_ring_begun, DIST_ABORTED},
      {"an overlap", overlap_a_little, DIST_INVALID_ARGUMENT},
      {"a long overlap", overlap_much, DIST_INVALID_ARGUMENT},
      {"an asynchronous overlap", overlap_begun, DIST_INVALID_ARGUMENT},
      {"parts of the wrong size", cut_wrong, DIST_INVALID_ARGUMENT},
  };
  static const int replicas[] = {2, 8, MOST};
  for (size_t r = 0; r < COUNT_OF(replicas); r++) {
    const int n = replicas[r];
    dist_strategy *strategy = strategy_of(n, DIST_THREADS_HOST);
    dist_group *ring[MOST];
    for (int i = 0; i < n; i++) {
      const int32_t pair[] = {i + 1 < n ? i : 0, i + 1 < n ? i + 1 : i};
      assert_ok(dist_group_create(strategy, pair, 2, &ring[i]));
    }
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
      trouble t = {.given_up = GATE_INIT, .ring = ring};
      assert_needs_little(kinds[k].name, strategy, kinds[k].fn, &t, (int)kinds[k].status);
    }
    for (int i = 0; i < n; i++) assert_ok(dist_group_destroy(ring[i]));
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_other_call),
      cmocka_unit_test(reports),
  };
  return STACK_TESTS("stack reports", tests);
}
