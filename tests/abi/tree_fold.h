/* SPDX-License-Identifier: Apache-2.0
 *
 * The equation of TREE in collective.h, element by element: T(a, n) = T(a, m) op T(a + m, n - m).
 */
#ifndef TESTS_ABI_TREE_FOLD_H
#define TESTS_ABI_TREE_FOLD_H

#include "fold.h"

/* A number in the type in which it is folded: float (two for complex64) or double. For a host operator, the
 * element. */
typedef union tree_number {
  float narrow[2];
  double wide;
  unsigned char bytes[8];
} tree_number;

typedef struct tree_fold {
  dist_reduce_op op;
  dist_dtype dtype;
  const void *const *in; /* NULL = adds the weights */
  const double *weights; /* NULL = none */
  dist_reduce_fn user;   /* the host's operator for USER, with this user_data: */
  void *user_data;
} tree_fold;

static inline int folds_in_double(const tree_fold *t) {
  return dtype_of_result(DIST_REDUCE_MEAN, t->dtype) == DIST_F64;
}

static inline tree_number tree_leaf(const tree_fold *t, size_t p) {
  tree_number x = {{0, 0}};
  const double weight = t->weights != NULL ? t->weights[p] : 0;
  if (t->op == DIST_REDUCE_USER) {
    memcpy(x.bytes, t->in[p], size_of(t->dtype));
  } else if (folds_in_double(t)) {
    x.wide = t->in == NULL ? weight : number_of(t->dtype, t->in[p]);
    if (t->in != NULL && t->weights != NULL) x.wide = weight * x.wide;
  } else {
    const int lanes = t->dtype == DIST_COMPLEX64 ? 2 : 1;
    for (int k = 0; k < lanes; k++) {
      const float value = t->in == NULL ? (float)weight
                          : lanes == 2  ? ((const float *)t->in[p])[k]
                                        : (float)number_of(t->dtype, t->in[p]);
      x.narrow[k] = t->in != NULL && t->weights != NULL ? (float)weight * value : value;
    }
  }
  return x;
}

static inline tree_number tree_node(const tree_fold *t, size_t a, size_t n) {
  if (n == 1) return tree_leaf(t, a);
  size_t m = 1;
  while (2 * m < n) m *= 2;
  tree_number left = tree_node(t, a, m);
  const tree_number right = tree_node(t, a + m, n - m);
  if (t->op == DIST_REDUCE_USER)
    t->user(left.bytes, right.bytes, 1, t->dtype, t->user_data);
  else if (folds_in_double(t))
    left.wide = fold_double(t->op, left.wide, right.wide);
  else if (t->dtype == DIST_COMPLEX64)
    fold_complex(t->op, left.narrow, right.narrow);
  else
    left.narrow[0] = fold_float(t->op, left.narrow[0], right.narrow[0]);
  return left;
}

/* Computes one element of the fold of n contributions, in the result's dtype. */
static inline void tree_element(const tree_fold *t, size_t n, void *out) {
  tree_number sum = tree_node(t, 0, n);
  if (t->op == DIST_REDUCE_USER) {
    memcpy(out, sum.bytes, size_of(t->dtype));
    return;
  }
  tree_number total = {{(float)n, (float)n}};
  if (folds_in_double(t)) total.wide = (double)n;
  if (t->weights != NULL) {
    tree_fold weights = *t;
    weights.in = NULL;
    total = tree_node(&weights, 0, n);
    if (t->dtype == DIST_COMPLEX64) total.narrow[1] = total.narrow[0];
  }
  const int mean = t->op == DIST_REDUCE_MEAN;
  if (folds_in_double(t)) {
    if (mean) sum.wide /= total.wide;
    memcpy(out, &sum.wide, sizeof sum.wide);
    return;
  }
  for (int k = 0; mean && k < 2; k++) sum.narrow[k] /= total.narrow[k];
  const uint16_t half = t->dtype == DIST_F16 ? to_f16(sum.narrow[0]) : to_bf16(sum.narrow[0]);
  if (t->dtype == DIST_F16 || t->dtype == DIST_BF16)
    memcpy(out, &half, sizeof half);
  else
    memcpy(out, sum.narrow, t->dtype == DIST_COMPLEX64 ? 8 : 4);
}

/* Whether the order of a fold changes its bits, for operators other than the host's. */
static inline int order_matters(dist_reduce_op op, dist_dtype dtype, int weighted) {
  return weighted ||
         ((dtype <= DIST_F64 || dtype == DIST_COMPLEX64) && op != DIST_REDUCE_MIN && op != DIST_REDUCE_MAX);
}

#endif
