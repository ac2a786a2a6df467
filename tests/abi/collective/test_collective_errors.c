/* SPDX-License-Identifier: Apache-2.0
 *
 * Rejected calls. Only the caller receives the error for an invalid argument, and the run can continue. If
 * replicas disagree in a field, all of them receive the same report, which names the culprit.
 */
#include "tests/abi/recipe.h"

enum { R = 3, CULPRIT = 1 };

static dist_strategy *strategy;

static int make_strategy(void **state) {
  (void)state;
  strategy = strategy_of(R, DIST_THREADS_LIBRARY);
  return 0;
}
static int end_strategy(void **state) {
  (void)state;
  return dist_strategy_destroy(strategy) != DIST_OK;
}

/* A trial with all arguments that can be wrong. Initially they are valid. */
typedef struct trial {
  int32_t collective;
  dist_reduce_op op;
  int32_t root, kind, destination, source;
  int in_is_null, out_is_null, replica_is_null, same_buffer;
  dist_dtype dtype, out_dtype;
  int32_t ndim;
  int64_t in_shape[2], out_shape[2];
  size_t n;
  dist_collective_options options;
} trial;

static trial good_call(int32_t collective) {
  trial c = {.collective = collective,
             .kind = DIST_SCAN_INCLUSIVE,
             .dtype = DIST_F32,
             .out_dtype = DIST_F32,
             .ndim = 2,
             .n = 1,
             .in_shape = {6, 2},
             .out_shape = {6, 2},
             .options = DIST_COLLECTIVE_OPTIONS_INIT};
  if (reduces(collective)) c.op = DIST_REDUCE_SUM;
  if (joins(collective)) c.out_shape[0] = 18;
  if (cuts(collective)) c.out_shape[0] = 2;
  return c;
}

static dist_status make_trial(dist_replica *replica, const trial *c) {
  const int32_t me = dist_replica_id(replica);
  float in_data[64] = {0}, out_data[128] = {0};
  dist_tensor in[8], out[8];
  for (size_t t = 0; t < 8; t++) {
    in[t] = (dist_tensor){in_data, c->dtype, c->ndim, c->in_shape, NULL};
    out[t] =
        (dist_tensor){c->same_buffer ? in_data + 1 : out_data, c->out_dtype, c->ndim, c->out_shape, NULL};
  }
  const dist_tensor *from = c->in_is_null ? NULL : in;
  dist_tensor *to = c->out_is_null ? NULL : out;
  const int32_t right = c->destination == 0 ? (me + 1) % R : c->destination;
  const int32_t left = c->source == 0 ? (me + R - 1) % R : c->source;
  dist_replica *who = c->replica_is_null ? NULL : replica;
  /* Handles the collectives of `exchanged`.
     @every collective but NONE, RETURN, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD */
  switch (c->collective) {
    case DIST_COLLECTIVE_ALL_REDUCE: return dist_all_reduce(who, c->op, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_REDUCE:
      return dist_reduce_to_root(who, c->op, c->root, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_REDUCE_SCATTER:
      return dist_reduce_scatter(who, c->op, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_SCAN: return dist_scan(who, c->op, c->kind, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_BROADCAST: return dist_broadcast(who, c->root, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_SCATTER:
      return dist_scatter_from_root(who, c->root, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_ALL_GATHER: return dist_all_gather(who, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_GATHER: return dist_gather_to_root(who, c->root, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_ALL_TO_ALL: return dist_all_to_all(who, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_PERMUTE: return dist_permute(who, right, left, from, to, c->n, &c->options, NULL);
    case DIST_COLLECTIVE_BARRIER:
    default: return dist_barrier(who, &c->options, NULL);
  }
}

/* The collectives of `exchanged` that have tensors.
 * @every collective but NONE, RETURN, BARRIER, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD */
static const int32_t collectives[] = {DIST_COLLECTIVE_ALL_REDUCE,     DIST_COLLECTIVE_BROADCAST,
                                      DIST_COLLECTIVE_REDUCE,         DIST_COLLECTIVE_GATHER,
                                      DIST_COLLECTIVE_REDUCE_SCATTER, DIST_COLLECTIVE_ALL_GATHER,
                                      DIST_COLLECTIVE_SCATTER,        DIST_COLLECTIVE_ALL_TO_ALL,
                                      DIST_COLLECTIVE_SCAN,           DIST_COLLECTIVE_PERMUTE};

/* ---- Invalid arguments ---- */

typedef struct attempt {
  trial bad;
  dist_status status;
  report error;
} attempt;

/* Replica 0 makes the invalid call, and then all replicas make the valid one. */
static dist_status try_it(dist_replica *replica, void *user_data) {
  attempt *a = user_data;
  if (dist_replica_id(replica) == 0) {
    a->status = make_trial(replica, &a->bad);
    read_report(&a->error);
  }
  const trial good = good_call(a->bad.collective);
  return make_trial(replica, &good);
}

static void refused(const trial *bad, const char *words) {
  static attempt a;
  a = (attempt){.bad = *bad};
  assert_ok(dist_run(strategy, try_it, &a, NULL));
  if (a.status != DIST_INVALID_ARGUMENT || strstr(a.error.message, words) == NULL)
    fail_msg("collective %d: %s: '%s', expected '%s'", (int)bad->collective, dist_status_name(a.status),
             a.error.message, words);
  assert_int_equal(a.error.sequence, 0);
  assert_int_equal(a.error.replica, -1);
}

static void wrong_for_every_collective(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT_OF(collectives); k++) {
    const trial good = good_call(collectives[k]);
    trial bad = good;
    bad.replica_is_null = 1;
    refused(&bad, "replica is NULL");
    bad = good, bad.in_is_null = 1;
    refused(&bad, "in is NULL");
    bad = good, bad.out_is_null = 1;
    refused(&bad, "out is NULL");
    bad = good, bad.dtype = 77;
    refused(&bad, "in: 77 is not a dtype");
    bad = good, bad.dtype = bad.out_dtype = 0; /* not set */
    refused(&bad, "0 is not a dtype");
    bad = good, bad.out_dtype = 77;
    refused(&bad, "out: 77 is not a dtype");
    bad = good, bad.out_dtype = DIST_F64;
    refused(&bad, "out must be f32");
    bad = good, bad.in_shape[1] = -2;
    refused(&bad, "shape[1] is -2");
    bad = good, bad.out_shape[1] = 3;
    refused(&bad, "in is f32[6, 2] and out f32[");
    bad = good, bad.ndim = 17;
    refused(&bad, "ndim is 17");
    bad = good, bad.ndim = -1;
    refused(&bad, "ndim is -1");
    bad = good, bad.options.numerics = 3;
    refused(&bad, "numerics is 3");
    bad.options.numerics = -1;
    refused(&bad, "numerics is -1");
    bad = good, bad.options.struct_size = 0;
    refused(&bad, "struct_size");
    bad = good, bad.options.contributions = 1024 + 1;
    refused(&bad, reduces(bad.collective) ? "contributions is 1025" : "does not use options->contributions");
    bad = good, bad.options.weights = (const double[]){1};
    refused(&bad, reduces(bad.collective) ? "weights are set, but op is" : "does not use options->weights");
    bad = good, bad.same_buffer = 1;
    if (!joins(bad.collective) && bad.collective != DIST_COLLECTIVE_SCATTER) refused(&bad, "overlap");
  }
}

static void one(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  (void)acc, (void)in, (void)count, (void)dtype, (void)user_data;
}

static void wrong_for_some(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT_OF(collectives); k++) {
    const int32_t kind = collectives[k];
    const trial good = good_call(kind);
    trial bad;
    const int rooted = kind == DIST_COLLECTIVE_REDUCE || kind == DIST_COLLECTIVE_GATHER ||
                       kind == DIST_COLLECTIVE_BROADCAST || kind == DIST_COLLECTIVE_SCATTER;
    for (int32_t root = -1; rooted && root <= R; root += R + 1) {
      bad = good, bad.root = root;
      refused(&bad, root < 0 ? "root is -1" : "root is 3");
    }
    if (joins(kind) || cuts(kind) || kind == DIST_COLLECTIVE_ALL_TO_ALL) {
      bad = good, bad.options.axis = 2;
      refused(&bad, "axis is 2");
      bad = good, bad.options.axis = -3;
      refused(&bad, "axis is -3");
      bad = good, bad.ndim = 0;
      refused(&bad, "scalar");
    }
    static const int64_t unused_splits[R];
    if (!joins(kind) && !cuts(kind) && kind != DIST_COLLECTIVE_ALL_TO_ALL) {
      bad = good, bad.options.axis = -1;
      refused(&bad, "does not use options->axis");
    }
    if (kind != DIST_COLLECTIVE_ALL_TO_ALL) {
      bad = good, bad.options.splits = unused_splits;
      refused(&bad, "does not use options->splits");
    }
    bad = good, bad.options.reduce_fn = one;
    refused(&bad, reduces(kind) ? "uses options->reduce_fn only if op is DIST_REDUCE_USER"
                                : "does not use options->reduce_fn");
    bad = good, bad.options.reduce_element_bytes = 8;
    refused(&bad, reduces(kind) ? "uses options->reduce_element_bytes only if op is DIST_REDUCE_USER"
                                : "does not use options->reduce_element_bytes");
    if (!reduces(kind)) continue;
    static const dist_reduce_op no_ops[] = {0, -1, 7};
    for (size_t o = 0; o < COUNT_OF(no_ops); o++) {
      bad = good, bad.op = no_ops[o];
      refused(&bad, "op ");
      bad.n = 0; /* even if there is nothing to reduce */
      refused(&bad, "op ");
    }
    bad = good, bad.op = DIST_REDUCE_USER;
    refused(&bad, "reduce_fn is NULL");
    bad = good, bad.dtype = bad.out_dtype = DIST_BOOL;
    refused(&bad, "bool");
    bad = good, bad.dtype = bad.out_dtype = DIST_COMPLEX64, bad.op = DIST_REDUCE_MAX;
    refused(&bad, "complex64");
    if (kind == DIST_COLLECTIVE_SCAN) {
      bad = good, bad.op = DIST_REDUCE_MEAN;
      refused(&bad, "op is MEAN, which dist_scan() does not support");
      bad = good, bad.kind = 2;
      refused(&bad, "kind is 2");
      bad = good, bad.options.contributions = 2;
      refused(&bad, "one tensor from each replica");
      continue;
    }
    static const double weights[][2] = {{-1, 1}, {NAN, 1}, {INFINITY, 1}, {1, -0.5}};
    for (size_t w = 0; w < COUNT_OF(weights); w++) {
      bad = good, bad.op = DIST_REDUCE_MEAN, bad.options.weights = weights[w], bad.options.contributions = 2;
      refused(&bad, w < 3 ? "weights[0] is" : "weights[1] is -0.5");
    }
  }
  trial bad = good_call(DIST_COLLECTIVE_PERMUTE);
  bad.destination = R;
  refused(&bad, "destination is 3");
  bad = good_call(DIST_COLLECTIVE_PERMUTE), bad.source = -2;
  refused(&bad, "source is -2");
  bad = good_call(DIST_COLLECTIVE_ALL_TO_ALL), bad.in_shape[0] = 7;
  refused(&bad, "its size along the axis, 7, is not a multiple of the 3 replicas");
  static const int64_t splits[][R] = {{1, 2, 2}, {1, 2, 4}, {-1, 3, 4}, {INT64_MAX, INT64_MAX, 8}};
  for (size_t s = 0; s < COUNT_OF(splits); s++) {
    bad = good_call(DIST_COLLECTIVE_ALL_TO_ALL), bad.options.splits = splits[s];
    refused(&bad, "splits must be 0 or more and add up to 6");
  }
}

/* ---- Disagreement ---- */

enum field {
  ROOT,
  OP,
  DTYPE,
  SHAPE,
  NDIM,
  COUNT,
  TAG,
  NUMERICS,
  AXIS,
  KIND,
  CONTRIBUTIONS,
  WEIGHTS,
  FUNCTION,
  WHICH,
  FIELDS
};

typedef struct quarrel {
  int32_t collective;
  enum field field;
  dist_status statuses[R];
  report reports[R];
} quarrel;

static void another(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  one(acc, in, count, dtype, user_data);
}

/* Returns the culprit's call, or that of the others if `otherwise` is 0. */
static trial side(int32_t collective, enum field field, int otherwise) {
  trial c = good_call(collective);
  c.options.tag = "step";
  if (field == FUNCTION) c.op = DIST_REDUCE_USER, c.options.reduce_fn = otherwise ? another : one;
  if (field == WEIGHTS) c.op = DIST_REDUCE_MEAN;
  if (!otherwise) return c;
  static const double weight = 1;
  switch (field) {
    case ROOT: c.root = 2; break;
    case OP: c.op = DIST_REDUCE_MAX; break;
    case DTYPE: c.dtype = c.out_dtype = DIST_I32; break;
    case SHAPE: c.in_shape[1] = c.out_shape[1] = 1; break;
    case NDIM: c.ndim = 1; break;
    case COUNT: c.n = 2; break;
    case TAG: c.options.tag = "other step"; break;
    case NUMERICS: c.options.numerics = DIST_NUMERICS_REPRODUCIBLE; break;
    case AXIS:
      c.options.axis = 1;
      c.in_shape[0] = c.out_shape[0] = 2, c.in_shape[1] = c.out_shape[1] = 6;
      if (joins(collective)) c.in_shape[1] = 2;
      if (cuts(collective)) c.in_shape[0] = c.out_shape[0] = 6, c.in_shape[1] = 2, c.out_shape[1] = 1;
      break;
    case KIND: c.kind = DIST_SCAN_EXCLUSIVE; break;
    case CONTRIBUTIONS: c.options.contributions = 1; break;
    case WEIGHTS: c.options.weights = &weight; break;
    case WHICH: return good_call(DIST_COLLECTIVE_BARRIER);
    default: break;
  }
  return c;
}

static int has_field(int32_t collective, enum field field) {
  switch (field) {
    case ROOT:
      return collective == DIST_COLLECTIVE_REDUCE || collective == DIST_COLLECTIVE_GATHER ||
             collective == DIST_COLLECTIVE_BROADCAST || collective == DIST_COLLECTIVE_SCATTER;
    case AXIS: return joins(collective) || cuts(collective) || collective == DIST_COLLECTIVE_ALL_TO_ALL;
    case KIND: return collective == DIST_COLLECTIVE_SCAN;
    case OP:
    case FUNCTION: return reduces(collective);
    case NUMERICS:
    case CONTRIBUTIONS:
    case WEIGHTS: return reduces(collective) && collective != DIST_COLLECTIVE_SCAN;
    default: return 1;
  }
}

static dist_status quarrel_once(dist_replica *replica, void *user_data) {
  quarrel *q = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_status status = dist_barrier(replica, NULL, NULL);
  const trial mine = side(q->collective, q->field, me == CULPRIT);
  if (status == DIST_OK) status = make_trial(replica, &mine);
  q->statuses[me] = status;
  read_report(&q->reports[me]);
  return status;
}

static void replicas_that_disagree(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT_OF(collectives); k++) {
    for (enum field field = ROOT; field < FIELDS; field++) {
      if (!has_field(collectives[k], field)) continue;
      static quarrel q;
      q = (quarrel){.collective = collectives[k], .field = field};
      assert_int_equal(dist_run(strategy, quarrel_once, &q, NULL), DIST_INVALID_ARGUMENT);
      for (int32_t r = 0; r < R; r++) {
        const report *got = &q.reports[r];
        if (q.statuses[r] != DIST_INVALID_ARGUMENT || strstr(got->message, ": replica 1 ") == NULL)
          fail_msg("collective %d, field %d, replica %d: %s: %s", (int)collectives[k], (int)field, (int)r,
                   dist_status_name(q.statuses[r]), got->message);
        assert_int_equal(got->replica, CULPRIT);
        assert_int_equal(got->collective, collectives[k]);
        assert_int_equal(got->sequence, 2);
        assert_string_equal(got->tag, "step");
        assert_string_equal(got->message, q.reports[0].message);
        assert_true(strlen(got->hint) > 0);
        /* The two descriptions must show the difference. */
        if (strcmp(got->expected, got->received) == 0)
          fail_msg("collective %d, field %d: both '%s'", (int)collectives[k], (int)field, got->expected);
      }
      assert_healthy(DIST_THREADS_LIBRARY, strategy);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_for_every_collective),
      cmocka_unit_test(wrong_for_some),
      cmocka_unit_test(replicas_that_disagree),
  };
  return cmocka_run_group_tests(tests, make_strategy, end_strategy);
}
