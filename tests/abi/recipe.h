/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates an exchange from a few properties: the collective, the sizes and layouts of its tensors, and which
 * of them are in place or shared. Everything else is pseudo-random.
 */
#ifndef TESTS_ABI_RECIPE_H
#define TESTS_ABI_RECIPE_H

#include "exchange.h"

typedef struct recipe {
  int32_t collective;
  dist_reduce_op op;
  int32_t root, kind, numerics, axis, members, ndim;
  size_t n;
  dist_dtype dtypes[TENSORS];
  enum style in_style, out_style;
  int64_t most; /* maximum number of elements along a dimension */
  int uneven;   /* parts of different sizes, including 0 */
  int splits;   /* all_to_all: pass the sizes of the pieces */
  int in_place; /* if the collective allows it, out is in, or a part is in its place in the whole */
  int one_out;  /* all members have one output */
  int several;  /* 1 to LISTS contributions from each member */
  int weighted;
  uint64_t seed;
} recipe;

static inline uint64_t draw_of(uint64_t *seed, uint64_t below) { return next_random(seed) % below; }

/* Sets the sizes of each member's input and output along the axis. */
static inline void size_parts(exchange *e, const recipe *given, uint64_t *seed, int64_t *in, int64_t *out) {
  const int32_t n = given->members;
  const uint64_t most = (uint64_t)given->most + 1;
  const int64_t equal = (int64_t)draw_of(seed, most);
  int64_t parts[MEMBERS], whole = 0;
  for (int32_t r = 0; r < n; r++) {
    parts[r] = given->uneven ? (int64_t)draw_of(seed, most) : equal;
    whole += parts[r];
  }
  for (int32_t r = 0; r < n; r++) {
    in[r] = joins(given->collective) ? parts[r] : cuts(given->collective) ? whole : equal;
    out[r] = joins(given->collective) ? whole : cuts(given->collective) ? parts[r] : equal;
  }
  if (given->collective != DIST_COLLECTIVE_ALL_TO_ALL) return;
  for (int32_t p = 0; p < n; p++) in[p] = out[p] = 0;
  for (int32_t p = 0; p < n; p++) {
    e->has_splits[p] = given->splits;
    for (int32_t r = 0; r < n; r++) {
      const int64_t part = given->splits && given->uneven ? (int64_t)draw_of(seed, most) : parts[p];
      e->splits[p][r] = part;
      in[p] += part;
      out[r] += part;
    }
  }
}

/* destination[p] is r if and only if source[r] is p: a shuffled ring with holes. */
static inline void draw_pairs(exchange *e, uint64_t *seed) {
  int32_t order[MEMBERS] = {0};
  for (int32_t r = 0; r < e->members; r++) order[r] = r, e->destination[r] = e->source[r] = -1;
  for (int32_t r = e->members - 1; r > 0; r--) {
    const int32_t other = (int32_t)draw_of(seed, (uint64_t)r + 1), kept = order[r];
    order[r] = order[other];
    order[other] = kept;
  }
  for (int32_t p = 0; p < e->members; p++) {
    if (draw_of(seed, 4) == 0) continue;
    e->destination[p] = order[p];
    e->source[order[p]] = p;
  }
}

/* Places the part of rank r in `whole`. */
static inline void place_inside(const exchange *e, view *part, const view *whole, int64_t before) {
  const int32_t axis = axis_of(e, whole);
  int64_t shape[DIMS];
  memcpy(shape, part->shape, sizeof shape);
  place_view(
      part, part->tensor.dtype, part->tensor.ndim, shape, whole->strides,
      (char *)whole->tensor.data + before * whole->strides[axis] * (int64_t)size_of(whole->tensor.dtype));
}

static inline void alias(view *to, const view *from) {
  const size_t bytes = (size_t)elements_in(from) * size_of(from->tensor.dtype);
  free_view(to);
  place_view(to, from->tensor.dtype, from->tensor.ndim, from->shape,
             from->tensor.strides == NULL ? NULL : from->strides, from->tensor.data);
  if (from->saved == NULL) return;
  to->saved = malloc(bytes + 1);
  memcpy(to->saved, from->saved, bytes);
}

/* Makes inputs and outputs share memory. */
static inline void share_memory(exchange *e, const recipe *given, size_t t, uint64_t seed) {
  for (int32_t r = 0; r < e->members; r++) {
    view *in = &e->in[r][t], *out = &e->out[r][t];
    if (given->one_out && r > 0) alias(out, &e->out[0][t]);
    if (!given->in_place) continue;
    const int all_alike = e->collective == DIST_COLLECTIVE_ALL_REDUCE ||
                          e->collective == DIST_COLLECTIVE_REDUCE || e->collective == DIST_COLLECTIVE_SCAN ||
                          e->collective == DIST_COLLECTIVE_BROADCAST;
    const int alike = all_alike && out->tensor.dtype == in->tensor.dtype && gives(e, r);
    /* Passes the same array if all its tensors are in place, or another array with the same views. */
    e->same_list[r] = alike && r % 2 == 1 && lists_of(e, r) == 1 && (t == 0 || e->same_list[r]);
    if (alike) {
      alias(out, in);
    } else if (joins(e->collective) && gets(e, r)) {
      free(in->memory), free(in->saved);
      int64_t at_part = 0;
      for (int32_t p = 0; p < r; p++) at_part += e->in[p][t].shape[axis_of(e, out)];
      place_inside(e, in, out, at_part);
      fill_view(in, seed + (uint64_t)r);
    } else if (e->collective == DIST_COLLECTIVE_SCATTER && r == e->root) {
      int64_t at_part = 0;
      for (int32_t p = 0; p < r; p++) at_part += e->out[p][t].shape[axis_of(e, in)];
      free(out->memory);
      place_inside(e, out, in, at_part);
    }
  }
}

static inline void make_exchange(exchange *e, const recipe *given) {
  uint64_t seed = given->seed * 0x9E3779B97F4A7C15u + 1;
  memset(e, 0, sizeof *e);
  e->collective = given->collective, e->op = given->op, e->root = given->root;
  e->kind = given->kind == 0 ? DIST_SCAN_INCLUSIVE : given->kind;
  e->numerics = given->numerics == 0 ? DIST_NUMERICS_ORDERED : given->numerics, e->axis = given->axis,
  e->members = given->members, e->n = given->n;
  e->weighted = given->weighted;
  int64_t in_sizes[MEMBERS], out_sizes[MEMBERS];
  size_parts(e, given, &seed, in_sizes, out_sizes);
  draw_pairs(e, &seed);
  for (int32_t r = 0; r < e->members; r++) {
    e->contributions[r] = given->several ? 1 + draw_of(&seed, LISTS) : 0;
    for (int j = 0; j < LISTS; j++)
      e->weights[r][j] = draw_of(&seed, 3) == 0 ? 0 : (double)draw_of(&seed, 1000) / 7;
  }
  for (size_t t = 0; t < e->n; t++) {
    int64_t shape[DIMS];
    for (int32_t d = 0; d < given->ndim; d++)
      shape[d] = (int64_t)draw_of(&seed, (uint64_t)given->most) + (draw_of(&seed, 16) != 0);
    const int32_t axis = given->axis < 0 ? given->axis + given->ndim : given->axis;
    const int along =
        joins(e->collective) || cuts(e->collective) || e->collective == DIST_COLLECTIVE_ALL_TO_ALL;
    const dist_dtype dtype = given->dtypes[t],
                     result = reduces(e->collective) ? dtype_of_result(e->op, dtype) : dtype;
    for (int32_t r = 0; r < e->members; r++) {
      if (along) shape[axis] = in_sizes[r];
      for (size_t j = 0; j < lists_of(e, r) && gives(e, r); j++) {
        make_view(&e->in[r][j * e->n + t], dtype, given->ndim, shape, given->in_style);
        fill_view(&e->in[r][j * e->n + t], next_random(&seed));
      }
      if (along) shape[axis] = out_sizes[r];
      make_view(&e->out[r][t], result, given->ndim, shape, given->out_style);
    }
    share_memory(e, given, t, next_random(&seed));
  }
}

/* ---- Random recipes ---- */

static inline int one_in(uint64_t *seed, uint64_t n) { return draw_of(seed, n) == 0; }

/* Chooses the properties of reductions: an operator that all dtypes have, contributions, weights,
 * numerics. */
static inline void draw_reduction(recipe *given, uint64_t *seed) {
  given->op = DIST_REDUCE_SUM + (dist_reduce_op)draw_of(seed, DIST_REDUCE_USER - DIST_REDUCE_SUM + 1);
  const int scan = given->collective == DIST_COLLECTIVE_SCAN;
  if (scan && given->op == DIST_REDUCE_MEAN) given->op = DIST_REDUCE_PROD;
  int real = 1;
  for (size_t t = 0; t < given->n; t++) {
    if (given->op != DIST_REDUCE_USER && !allowed(given->op, given->dtypes[t])) given->dtypes[t] = DIST_F32;
    real = real && given->dtypes[t] <= DIST_F64;
  }
  given->several = !scan && one_in(seed, 3);
  given->weighted = given->op == DIST_REDUCE_MEAN && one_in(seed, 2);
  const int sums = given->op == DIST_REDUCE_SUM || given->op == DIST_REDUCE_MEAN;
  if (sums && real && given->n > 0 && !scan && one_in(seed, 3)) given->numerics = DIST_NUMERICS_REPRODUCIBLE;
  if (given->numerics != DIST_NUMERICS_REPRODUCIBLE && one_in(seed, 3)) given->numerics = DIST_NUMERICS_TREE;
}

/* Returns a random recipe of any collective. */
static inline recipe draw_recipe(int32_t members, uint64_t *seed) {
  recipe given = {.members = members, .n = draw_of(seed, TENSORS + 1)};
  given.collective = exchanged[draw_of(seed, COUNT_OF(exchanged))];
  given.root = (int32_t)draw_of(seed, (uint64_t)members);
  given.kind = DIST_SCAN_INCLUSIVE + (int32_t)draw_of(seed, 2);
  given.ndim = 1 + (int32_t)draw_of(seed, DIMS);
  given.axis = (int32_t)draw_of(seed, 2 * (uint64_t)given.ndim) - given.ndim;
  given.most = one_in(seed, 12) ? (given.ndim < 3 ? 180 : 14) : (int64_t)(1 + draw_of(seed, 6));
  for (int t = 0; t < TENSORS; t++) given.dtypes[t] = (dist_dtype)(1 + draw_of(seed, LAST_DTYPE));
  given.in_style = one_in(seed, 2) ? DENSE : (enum style)draw_of(seed, STYLES + 1);
  given.out_style = one_in(seed, 2) ? DENSE : (enum style)draw_of(seed, STYLES);
  given.uneven = !one_in(seed, 3);
  given.splits = given.uneven && one_in(seed, 2);
  if (reduces(given.collective)) draw_reduction(&given, seed);
  given.one_out = given.collective == DIST_COLLECTIVE_ALL_REDUCE && one_in(seed, 5);
  const int alike = !joins(given.collective) && given.collective != DIST_COLLECTIVE_SCATTER;
  given.in_place = !given.one_out && alike && given.in_style != ONE_PLACE && one_in(seed, 3);
  given.seed = next_random(seed);
  return given;
}

#endif
