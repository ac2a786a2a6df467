/* SPDX-License-Identifier: Apache-2.0
 *
 * The exact sum of floating-point numbers in an integer of 2,240 bits, and its rounding. REPRODUCIBLE sums
 * must equal it. It is slow but simple enough to trust.
 */
#ifndef TESTS_ABI_EXACT_SUM_H
#define TESTS_ABI_EXACT_SUM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fold.h"

enum { LIMBS = 70, LOWEST_BIT = -1074 }; /* 32 bits each, two's complement; bit 0 has the value 2^-1074 */

typedef struct exact_sum {
  uint32_t limbs[LIMBS];
  int plus_inf, minus_inf, nan, only_minus_zero;
} exact_sum;

static inline void exact_begin(exact_sum *sum) {
  memset(sum, 0, sizeof *sum);
  sum->only_minus_zero = 1;
}

static inline void exact_add(exact_sum *sum, double x) {
  if (!(x == 0 && signbit(x))) sum->only_minus_zero = 0;
  if (isnan(x)) sum->nan = 1;
  if (isinf(x)) *(x > 0 ? &sum->plus_inf : &sum->minus_inf) = 1;
  if (!isfinite(x) || x == 0) return;
  int exponent;
  const int64_t mantissa = (int64_t)ldexp(frexp(fabs(x), &exponent), 53);
  /* The lowest bits of a subnormal are zero here, because a double has no bits below 2^-1074. */
  int shift = exponent - 53 - LOWEST_BIT;
  uint64_t bits = (uint64_t)mantissa;
  if (shift < 0) bits >>= -shift, shift = 0;
  const int limb = shift / 32;
  uint32_t parts[3] = {(uint32_t)(bits << shift % 32), (uint32_t)(bits << shift % 32 >> 32), 0};
  if (shift % 32 != 0) parts[2] = (uint32_t)(bits >> (64 - shift % 32));
  uint64_t carry = 0;
  for (int k = 0; limb + k < LIMBS; k++) {
    const uint64_t part = k < 3 ? parts[k] : 0;
    const uint64_t limb_now = sum->limbs[limb + k];
    const uint64_t result = x > 0 ? limb_now + part + carry : limb_now - part - carry;
    sum->limbs[limb + k] = (uint32_t)result;
    carry = result >> 32 & 1;
  }
}

enum rounding { TO_NEAREST, TO_ODD };

/* Rounds to `precision` bits, none below 2^lowest. Returns infinity from 2^limit. */
static inline double exact_round(const exact_sum *sum, enum rounding rounding, int precision, int lowest,
                                 int limit) {
  if (sum->nan || (sum->plus_inf && sum->minus_inf)) return NAN;
  if (sum->plus_inf || sum->minus_inf) return sum->plus_inf ? INFINITY : -INFINITY;
  if (sum->only_minus_zero) return -0.0;
  uint32_t limbs[LIMBS];
  memcpy(limbs, sum->limbs, sizeof limbs);
  const int negative = limbs[LIMBS - 1] >> 31 != 0;
  uint64_t carry = 1;
  for (int k = 0; negative && k < LIMBS; k++) {
    carry += (uint32_t)~limbs[k];
    limbs[k] = (uint32_t)carry;
    carry >>= 32;
  }
  int top = LIMBS * 32 - 1;
  while (top >= 0 && !(limbs[top / 32] >> top % 32 & 1)) top--;
  if (top < 0) return 0.0;
  int low = top - precision + 1; /* the lowest bit of the result */
  if (low < lowest - LOWEST_BIT) low = lowest - LOWEST_BIT;
  if (low < 0) low = 0;
  uint64_t kept = 0;
  for (int b = top; b >= low; b--) kept = kept << 1 | (limbs[b / 32] >> b % 32 & 1);
  int half = 0, rest = 0;
  if (low > 0) half = limbs[(low - 1) / 32] >> (low - 1) % 32 & 1;
  for (int b = 0; b < low - 1; b++) rest |= limbs[b / 32] >> b % 32 & 1;
  if (rounding == TO_ODD)
    kept |= (uint64_t)(half | rest);
  else if (half && (rest || kept % 2 == 1))
    kept++;
  double value = ldexp((double)kept, low + LOWEST_BIT); /* exact, or infinite */
  if (value >= ldexp(1.0, limit)) value = INFINITY;
  return negative ? -value : value;
}

static inline double exact_as(const exact_sum *sum, dist_dtype dtype) {
  switch (dtype) {
    case DIST_F16: return exact_round(sum, TO_NEAREST, 11, -24, 16);
    case DIST_BF16: return exact_round(sum, TO_NEAREST, 8, -133, 128);
    case DIST_F32: return exact_round(sum, TO_NEAREST, 24, -149, 128);
    default: return exact_round(sum, TO_NEAREST, 53, -1074, 1024);
  }
}

/* Rounds a double once, to nearest, to another dtype, and stores it. */
static inline void store_rounded(dist_dtype dtype, double value, void *out) {
  if (isfinite(value)) {
    exact_sum alone;
    exact_begin(&alone);
    exact_add(&alone, value);
    value = copysign(exact_as(&alone, dtype), value);
  }
  const float narrow = (float)value;
  const uint16_t half = dtype == DIST_F16 ? to_f16(narrow) : to_bf16(narrow);
  if (dtype == DIST_F64)
    memcpy(out, &value, sizeof value);
  else if (dtype == DIST_F32)
    memcpy(out, &narrow, sizeof narrow);
  else
    memcpy(out, &half, sizeof half);
}

static inline double wide(dist_dtype dtype, const void *at) {
  return dtype == DIST_F64   ? *(const double *)at
         : dtype == DIST_F32 ? (double)*(const float *)at
                             : (double)load_half(dtype, at);
}

/* Computes SUM or MEAN of n elements. If weights is NULL, all are 1. */
static inline void exact_element(dist_reduce_op op, dist_dtype dtype, const void *const *in,
                                 const double *weights, size_t n, void *out) {
  exact_sum sum, total;
  exact_begin(&sum), exact_begin(&total);
  for (size_t s = 0; s < n; s++) {
    exact_add(&sum, weights == NULL ? wide(dtype, in[s]) : weights[s] * wide(dtype, in[s]));
    exact_add(&total, weights == NULL ? 1.0 : weights[s]);
  }
  if (op == DIST_REDUCE_SUM) {
    store_rounded(dtype, exact_as(&sum, dtype), out);
    return;
  }
  /* An f64 sum is the final result. For narrower dtypes, round to odd first, so that the second rounding is
   * correct. */
  const double dividend = exact_round(&sum, dtype == DIST_F64 ? TO_NEAREST : TO_ODD, 53, -1074, 1024);
  store_rounded(dtype, dividend / exact_as(&total, DIST_F64), out);
}

#endif
