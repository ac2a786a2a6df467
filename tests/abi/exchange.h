/* SPDX-License-Identifier: Apache-2.0
 *
 * A collective on tensors with all arguments of its members, a function that calls it, and the equations of
 * collective.h as plain loops that compute the expected result.
 */
#ifndef TESTS_ABI_EXCHANGE_H
#define TESTS_ABI_EXCHANGE_H

#include "common.h"

#include "exact_sum.h"
#include "fold.h"
#include "tree_fold.h"
#include "view.h"

enum { MEMBERS = 8, TENSORS = 3, LISTS = 3 };

/* The collectives that make_call() calls. The others are not calls, or have other arguments.
 * @every collective but NONE, RETURN, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD */
static const int32_t exchanged[] = {
    DIST_COLLECTIVE_ALL_REDUCE, DIST_COLLECTIVE_BROADCAST,      DIST_COLLECTIVE_REDUCE,
    DIST_COLLECTIVE_GATHER,     DIST_COLLECTIVE_REDUCE_SCATTER, DIST_COLLECTIVE_ALL_GATHER,
    DIST_COLLECTIVE_SCATTER,    DIST_COLLECTIVE_ALL_TO_ALL,     DIST_COLLECTIVE_SCAN,
    DIST_COLLECTIVE_PERMUTE,    DIST_COLLECTIVE_BARRIER};

typedef struct exchange {
  int32_t collective; /* DIST_COLLECTIVE_... */
  dist_reduce_op op;
  int32_t root, kind, numerics, axis, members;
  size_t n;
  size_t contributions[MEMBERS]; /* if all are 0, each member has one */
  int weighted;
  double weights[MEMBERS][LISTS];
  int has_splits[MEMBERS];
  int64_t splits[MEMBERS][MEMBERS];
  int32_t destination[MEMBERS], source[MEMBERS];
  view in[MEMBERS][LISTS * TENSORS], out[MEMBERS][TENSORS];
  int same_list[MEMBERS]; /* passes the array `in` as `out`, too */
  const dist_group *group;
  const char *tag;
  dist_status statuses[MEMBERS];
  report reports[MEMBERS];
} exchange;

static inline size_t lists_of(const exchange *e, int32_t p) {
  return e->contributions[p] == 0 ? 1 : e->contributions[p];
}
static inline int reduces(int32_t collective) {
  return collective == DIST_COLLECTIVE_ALL_REDUCE || collective == DIST_COLLECTIVE_REDUCE ||
         collective == DIST_COLLECTIVE_REDUCE_SCATTER || collective == DIST_COLLECTIVE_SCAN;
}
static inline int gives(const exchange *e, int32_t p) {
  const int from_root =
      e->collective == DIST_COLLECTIVE_BROADCAST || e->collective == DIST_COLLECTIVE_SCATTER;
  return !from_root || p == e->root;
}
static inline int gets(const exchange *e, int32_t r) {
  const int to_root = e->collective == DIST_COLLECTIVE_REDUCE || e->collective == DIST_COLLECTIVE_GATHER;
  return !to_root || r == e->root;
}

/* A host operator on the bytes of any dtype. Neither commutative nor associative. */
static inline void twist(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  unsigned char *a = acc;
  const unsigned char *b = in;
  const unsigned char factor = *(const unsigned char *)user_data;
  for (int64_t i = 0; i < count * (int64_t)size_of(dtype); i++)
    a[i] = (unsigned char)(a[i] * factor - (b[i] ^ 0x5A));
}

/* The arguments of one member's call. prepare_call() makes them, make_call() uses them, and tests change them
 * in between. */
typedef struct call {
  int32_t collective;
  dist_reduce_op op;
  int32_t root, kind, destination, source;
  dist_tensor in_list[LISTS * TENSORS], out_list[TENSORS];
  dist_tensor *in, *out; /* point into this struct, which must not be moved */
  size_t n;
  dist_collective_options options;
  dist_work **out_work; /* NULL = blocking */
} call;

static inline int joins(int32_t collective) {
  return collective == DIST_COLLECTIVE_ALL_GATHER || collective == DIST_COLLECTIVE_GATHER;
}
static inline int cuts(int32_t collective) {
  return collective == DIST_COLLECTIVE_REDUCE_SCATTER || collective == DIST_COLLECTIVE_SCATTER;
}

static inline void prepare_call(const exchange *e, int32_t me, call *c) {
  static unsigned char factor = 31;
  const dist_collective_options defaults = DIST_COLLECTIVE_OPTIONS_INIT;
  memset(c, 0, sizeof *c);
  c->collective = e->collective, c->op = e->op, c->root = e->root, c->kind = e->kind;
  c->destination = e->destination[me], c->source = e->source[me], c->n = e->n;
  c->options = defaults;
  c->options.tag = e->tag;
  c->options.group = e->group;
  c->options.numerics = e->numerics;
  if (joins(e->collective) || cuts(e->collective) || e->collective == DIST_COLLECTIVE_ALL_TO_ALL)
    c->options.axis = e->axis;
  c->options.contributions = e->contributions[me];
  c->options.weights = e->weighted ? e->weights[me] : NULL;
  c->options.splits = e->has_splits[me] ? e->splits[me] : NULL;
  if (e->op == DIST_REDUCE_USER) c->options.reduce_fn = twist, c->options.reduce_user_data = &factor;
  for (size_t t = 0; t < lists_of(e, me) * e->n; t++) c->in_list[t] = e->in[me][t].tensor;
  for (size_t t = 0; t < e->n; t++) c->out_list[t] = e->out[me][t].tensor;
  c->in = gives(e, me) ? c->in_list : NULL;
  c->out = !gets(e, me) ? NULL : e->same_list[me] ? c->in_list : c->out_list;
}

/* Handles the collectives of `exchanged`.
 * @every collective but NONE, RETURN, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD */
static inline dist_status make_call(dist_replica *replica, call *c) {
  const dist_collective_options *options = &c->options;
  switch (c->collective) {
    case DIST_COLLECTIVE_ALL_REDUCE:
      return dist_all_reduce(replica, c->op, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_REDUCE:
      return dist_reduce_to_root(replica, c->op, c->root, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_REDUCE_SCATTER:
      return dist_reduce_scatter(replica, c->op, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_SCAN:
      return dist_scan(replica, c->op, c->kind, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_BROADCAST:
      return dist_broadcast(replica, c->root, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_SCATTER:
      return dist_scatter_from_root(replica, c->root, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_ALL_GATHER:
      return dist_all_gather(replica, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_GATHER:
      return dist_gather_to_root(replica, c->root, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_ALL_TO_ALL:
      return dist_all_to_all(replica, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_PERMUTE:
      return dist_permute(replica, c->destination, c->source, c->in, c->out, c->n, options, c->out_work);
    case DIST_COLLECTIVE_BARRIER:
    default: return dist_barrier(replica, options, c->out_work);
  }
}

static inline dist_status call_exchange(dist_replica *replica, exchange *e, int32_t me) {
  call c;
  prepare_call(e, me, &c);
  return make_call(replica, &c);
}

/* A replica function that does one exchange with all replicas, or with those of e->group. */
static inline dist_status do_exchange(dist_replica *replica, void *user_data) {
  exchange *e = user_data;
  const int32_t id = dist_replica_id(replica);
  const int32_t me = e->group == NULL ? id : dist_group_rank(e->group, id);
  if (me < 0) return DIST_OK;
  e->statuses[me] = call_exchange(replica, e, me);
  read_report(&e->reports[me]);
  return e->statuses[me];
}

/* ---- The oracle ---- */

static inline int32_t axis_of(const exchange *e, const view *v) {
  return e->axis < 0 ? e->axis + v->tensor.ndim : e->axis;
}

/* Returns the index in `to` of the coordinates of element `i` of `from`, moved by `shift` along the axis. */
static inline int64_t shifted(const view *from, int64_t i, const view *to, int32_t axis, int64_t shift) {
  int64_t index = 0, step = 1;
  for (int32_t d = from->tensor.ndim - 1; d >= 0; d--) {
    index += (i % from->shape[d] + (d == axis ? shift : 0)) * step;
    i /= from->shape[d];
    step *= to->shape[d];
  }
  return index;
}
static inline int64_t along_axis(const view *v, int64_t i, int32_t axis) {
  for (int32_t d = v->tensor.ndim - 1; d > axis; d--) i /= v->shape[d];
  return i % v->shape[axis];
}

static inline void identity_of(dist_reduce_op op, dist_dtype dtype, void *out) {
  static const uint16_t halves[2][4] = {{0, 0x3C00, 0x7C00, 0xFC00}, {0, 0x3F80, 0x7F80, 0xFF80}};
  static const float floats[4] = {0.0f, 1.0f, INFINITY, -INFINITY};
  static const double doubles[4] = {0.0, 1.0, INFINITY, -INFINITY};
  const int which = op == DIST_REDUCE_PROD ? 1 : op == DIST_REDUCE_MIN ? 2 : op == DIST_REDUCE_MAX ? 3 : 0;
  const size_t size = size_of(dtype);
  memset(out, 0, size);
  switch (dtype) {
    case DIST_F16:
    case DIST_BF16: memcpy(out, &halves[dtype == DIST_BF16][which], size); break;
    case DIST_F32: memcpy(out, &floats[which], size); break;
    case DIST_F64: memcpy(out, &doubles[which], size); break;
    case DIST_COMPLEX64: memcpy(out, &floats[which], sizeof(float)); break;
    case DIST_BOOL: *(unsigned char *)out = which == 2; break;
    default: {
      const int is_signed = dtype % 2 == 1; /* I8, U8, I16, ... */
      if (which == 1) *(unsigned char *)out = 1;
      if (which == 2) memset(out, 0xFF, size);
      if (which == 2 && is_signed) ((unsigned char *)out)[size - 1] = 0x7F;
      if (which == 3 && is_signed) ((unsigned char *)out)[size - 1] = 0x80;
    }
  }
}

/* Computes (sum of w x) / (sum of w). Every step is rounded in the accumulator, which is f64 for f64 and wide
 * integers, and otherwise f32. */
static inline void weighted_element(dist_dtype dtype, const void *const *in, const double *weights, size_t n,
                                    void *out) {
  const int lanes = dtype == DIST_COMPLEX64 ? 2 : 1;
  if (dtype_of_result(DIST_REDUCE_MEAN, dtype) == DIST_F64) {
    double sum = 0, total = 0;
    for (size_t s = 0; s < n; s++) {
      const double product = weights[s] * number_of(dtype, in[s]);
      sum = s == 0 ? product : sum + product;
      total += weights[s];
    }
    sum /= total;
    memcpy(out, &sum, sizeof sum);
    return;
  }
  for (int lane = 0; lane < lanes; lane++) {
    float sum = 0, total = 0;
    for (size_t s = 0; s < n; s++) {
      const float x = lanes == 2 ? ((const float *)in[s])[lane] : (float)number_of(dtype, in[s]);
      const float product = (float)weights[s] * x;
      sum = s == 0 ? product : sum + product;
      total += (float)weights[s];
    }
    sum /= total;
    const uint16_t half = dtype == DIST_F16 ? to_f16(sum) : to_bf16(sum);
    if (dtype == DIST_F16 || dtype == DIST_BF16)
      memcpy(out, &half, sizeof half);
    else
      memcpy((float *)out + lane, &sum, sizeof sum);
  }
}

/* Computes element `i` of the fold over tensor t of the first `members` members. */
static inline void folded(const exchange *e, int32_t members, size_t t, int64_t i, void *out) {
  static const void *sources[MEMBERS * LISTS];
  double weights[MEMBERS * LISTS];
  size_t n = 0;
  const dist_dtype dtype = e->in[0][t].tensor.dtype;
  const size_t size = size_of(dtype);
  for (int32_t p = 0; p < members; p++) {
    for (size_t j = 0; j < lists_of(e, p); j++, n++) {
      sources[n] = e->in[p][j * e->n + t].saved + (size_t)i * size;
      weights[n] = e->weights[p][j];
    }
  }
  unsigned char factor = 31;
  const tree_fold tree = {e->op, dtype, sources, e->weighted ? weights : NULL, twist, &factor};
  if (e->numerics == DIST_NUMERICS_TREE &&
      (e->op == DIST_REDUCE_USER || order_matters(e->op, dtype, e->weighted))) {
    tree_element(&tree, n, out);
  } else if (e->op == DIST_REDUCE_USER) {
    memcpy(out, sources[0], size);
    for (size_t s = 1; s < n; s++) twist(out, sources[s], 1, dtype, &factor);
  } else if (e->numerics == DIST_NUMERICS_REPRODUCIBLE) {
    exact_element(e->op, dtype, sources, e->weighted ? weights : NULL, n, out);
  } else if (e->weighted) {
    weighted_element(dtype, sources, weights, n, out);
  } else {
    fold_element(e->op, dtype, sources, n, 0, out);
  }
}

static inline int64_t split_of(const exchange *e, int32_t p, int32_t r, size_t t) {
  const view *in = &e->in[p][t];
  return e->has_splits[p] ? e->splits[p][r] : in->shape[axis_of(e, in)] / e->members;
}

/* Computes element `i` of member r's output t. Returns 0 if the collective does not write it. */
static inline int expected_element(const exchange *e, int32_t r, size_t t, int64_t i, void *out) {
  const view *to = &e->out[r][t];
  const int32_t axis = axis_of(e, to);
  const size_t size = size_of(to->tensor.dtype);
  int64_t before = 0;
  switch (e->collective) {
    case DIST_COLLECTIVE_ALL_REDUCE:
    case DIST_COLLECTIVE_REDUCE: folded(e, e->members, t, i, out); return 1;
    case DIST_COLLECTIVE_SCAN: {
      const int32_t members = r + (e->kind == DIST_SCAN_INCLUSIVE);
      if (members > 0)
        folded(e, members, t, i, out);
      else if (e->op != DIST_REDUCE_USER)
        identity_of(e->op, to->tensor.dtype, out);
      return members > 0 || e->op != DIST_REDUCE_USER;
    }
    case DIST_COLLECTIVE_REDUCE_SCATTER:
      for (int32_t q = 0; q < r; q++) before += e->out[q][t].shape[axis];
      folded(e, e->members, t, shifted(to, i, &e->in[0][t], axis, before), out);
      return 1;
    case DIST_COLLECTIVE_BROADCAST: memcpy(out, e->in[e->root][t].saved + (size_t)i * size, size); return 1;
    case DIST_COLLECTIVE_SCATTER: {
      const view *whole = &e->in[e->root][t];
      for (int32_t q = 0; q < r; q++) before += e->out[q][t].shape[axis];
      memcpy(out, whole->saved + (size_t)shifted(to, i, whole, axis, before) * size, size);
      return 1;
    }
    case DIST_COLLECTIVE_PERMUTE:
      memset(out, 0, size);
      if (e->source[r] >= 0) memcpy(out, e->in[e->source[r]][t].saved + (size_t)i * size, size);
      return 1;
    default: { /* gathers: find the member whose part contains it, and where that part begins */
      const int all_to_all = e->collective == DIST_COLLECTIVE_ALL_TO_ALL;
      int64_t place = along_axis(to, i, axis);
      for (int32_t p = 0;; p++) {
        const view *in = &e->in[p][t];
        const int64_t part = all_to_all ? split_of(e, p, r, t) : in->shape[axis];
        if (place >= before + part) {
          before += part;
          continue;
        }
        int64_t begin = 0;
        for (int32_t q = 0; all_to_all && q < r; q++) begin += split_of(e, p, q, t);
        memcpy(out, in->saved + (size_t)shifted(to, i, in, axis, begin - before) * size, size);
        return 1;
      }
    }
  }
}

/* Checks the outputs of member r. Returns NULL, or a description of the first error in `text`. */
static inline const char *find_wrong_of(const exchange *e, int32_t r, char *text, size_t room) {
  if (e->collective == DIST_COLLECTIVE_BARRIER || !gets(e, r)) return NULL;
  for (size_t t = 0; t < e->n; t++) {
    const view *to = e->same_list[r] ? &e->in[r][t] : &e->out[r][t];
    const dist_dtype dtype = to->tensor.dtype;
    for (int64_t i = 0; i < elements_in(to); i++) {
      unsigned char expected[16];
      if (!expected_element(e, r, t, i, expected)) {
        if (to->saved == NULL)
          memset(expected, UNTOUCHED, sizeof expected);
        else
          memcpy(expected, to->saved + (size_t)i * size_of(dtype), size_of(dtype));
      }
      const int same = e->op == DIST_REDUCE_USER || !reduces(e->collective)
                           ? memcmp(at(to, i), expected, size_of(dtype)) == 0
                           : same_element(dtype, at(to, i), expected);
      if (same) continue;
      snprintf(text, room,
               "collective %d, op %d, dtype %d, %d members, axis %d, root %d: element %lld of tensor %zu of "
               "member %d is wrong",
               (int)e->collective, (int)e->op, (int)e->in[gives(e, r) ? r : e->root][t].tensor.dtype,
               (int)e->members, (int)e->axis, (int)e->root, (long long)i, t, (int)r);
      return text;
    }
    if (!gaps_untouched(to)) {
      snprintf(text, room, "collective %d: tensor %zu of member %d: memory between elements was written",
               (int)e->collective, t, (int)r);
      return text;
    }
  }
  return NULL;
}

static inline const char *find_wrong(const exchange *e, char *text, size_t room) {
  for (int32_t r = 0; r < e->members; r++)
    if (find_wrong_of(e, r, text, room) != NULL) return text;
  return NULL;
}

static inline void free_exchange(exchange *e) {
  for (int32_t r = 0; r < MEMBERS; r++) {
    for (size_t t = 0; t < LISTS * TENSORS; t++) free_view(&e->in[r][t]);
    for (size_t t = 0; t < TENSORS; t++) free_view(&e->out[r][t]);
  }
}

/* Runs the exchange on all replicas of a strategy, checks it, and frees its memory. */
static inline void check_exchange(dist_strategy *strategy, int32_t threads, exchange *e) {
  report error;
  char text[256];
  if (run_on(threads, strategy, do_exchange, e, &error) != DIST_OK)
    fail_msg("collective %d: %s", (int)e->collective, error.message);
  if (find_wrong(e, text, sizeof text) != NULL) fail_msg("%s", text);
  free_exchange(e);
}

#endif
