/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain fold from left to right, element by element. all_reduce must produce the same bits.
 */
#ifndef TESTS_ABI_FOLD_H
#define TESTS_ABI_FOLD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <dist/dist.h>

#include "tests/enums.h"

static inline size_t size_of(dist_dtype dtype) {
  static const size_t sizes[] = {0, 2, 2, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8, 8, 1};
  _Static_assert(sizeof sizes / sizeof sizes[0] == LAST_DTYPE + 1,
                 "sizes has the size of each dtype, by its number");
  return sizes[dtype];
}

static inline int allowed(dist_reduce_op op, dist_dtype dtype) {
  const int order = op == DIST_REDUCE_MIN || op == DIST_REDUCE_MAX;
  return dtype == DIST_COMPLEX64 ? !order : dtype == DIST_BOOL ? order : 1;
}

static inline dist_dtype dtype_of_result(dist_reduce_op op, dist_dtype dtype) {
  if (op != DIST_REDUCE_MEAN || dtype < DIST_I8 || dtype > DIST_U64) return dtype;
  return size_of(dtype) >= 4 ? DIST_F64 : DIST_F32;
}

static inline float bits_as_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static inline uint32_t float_as_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float from_bf16(uint16_t half) { return bits_as_float((uint32_t)half << 16); }
static inline uint16_t to_bf16(float value) {
  const uint32_t bits = float_as_bits(value);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline float from_f16(uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  float value = exponent == 31  ? (mantissa != 0 ? NAN : INFINITY)
                : exponent == 0 ? ldexpf((float)mantissa, -24)
                                : ldexpf((float)(mantissa + 1024), exponent - 25);
  return half >> 15 ? -value : value;
}
/* Rounds to the nearest f16, ties to even, by comparing the two neighbours. */
static inline uint16_t to_f16(float value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  const float size = fabsf(value);
  if (isnan(value)) return (uint16_t)(sign | 0x7E00);
  if (size >= 65520.0f) return (uint16_t)(sign | 0x7C00);
  uint16_t low = 0, high = 0x7C00;
  while (high - low > 1) {
    const uint16_t middle = (uint16_t)((low + high) / 2);
    if (middle < 0x7C00 && from_f16(middle) <= size)
      low = middle;
    else
      high = middle;
  }
  if (low == 0x7BFF) return (uint16_t)(sign | low); /* smaller than 65520 */
  const double under = (double)size - from_f16(low), over = (double)from_f16((uint16_t)(low + 1)) - size;
  const int up = over < under || (over == under && low % 2 == 1);
  return (uint16_t)(sign | (low + up));
}

#define FOLD_FLOATING(name, type)                                                                \
  static inline type name(dist_reduce_op op, type a, type b) {                                   \
    switch (op) {                                                                                \
      case DIST_REDUCE_MIN:                                                                      \
        return isnan(a) || isnan(b) ? (type)NAN : a == b ? (signbit(a) ? a : b) : a < b ? a : b; \
      case DIST_REDUCE_MAX:                                                                      \
        return isnan(a) || isnan(b) ? (type)NAN : a == b ? (signbit(a) ? b : a) : a > b ? a : b; \
      case DIST_REDUCE_PROD: return a * b;                                                       \
      default: return a + b;                                                                     \
    }                                                                                            \
  }
FOLD_FLOATING(fold_float, float)
FOLD_FLOATING(fold_double, double)

static inline void fold_complex(dist_reduce_op op, float *a, const float *b) {
  const float re = op == DIST_REDUCE_PROD ? a[0] * b[0] - a[1] * b[1] : a[0] + b[0];
  const float im = op == DIST_REDUCE_PROD ? a[0] * b[1] + a[1] * b[0] : a[1] + b[1];
  a[0] = re, a[1] = im;
}

/* Loads integers of every width into 64 bits. They are truncated and extended after each step. */
static inline int64_t load_integer(dist_dtype dtype, const void *at) {
  switch (dtype) {
    case DIST_I8: return *(const int8_t *)at;
    case DIST_U8: return *(const uint8_t *)at;
    case DIST_I16: return *(const int16_t *)at;
    case DIST_U16: return *(const uint16_t *)at;
    case DIST_I32: return *(const int32_t *)at;
    case DIST_U32: return *(const uint32_t *)at;
    default: return *(const int64_t *)at;
  }
}
static inline int64_t wrap_integer(dist_dtype dtype, uint64_t bits) {
  return load_integer(dtype, &bits);
} /* little-endian */

static inline int64_t fold_integer(dist_reduce_op op, dist_dtype dtype, int64_t a, int64_t b) {
  const int less = dtype == DIST_U64 ? (uint64_t)a < (uint64_t)b : a < b;
  switch (op) {
    case DIST_REDUCE_MIN: return less ? a : b;
    case DIST_REDUCE_MAX: return less ? b : a;
    case DIST_REDUCE_PROD: return wrap_integer(dtype, (uint64_t)a * (uint64_t)b);
    default: return wrap_integer(dtype, (uint64_t)a + (uint64_t)b);
  }
}

static inline float load_half(dist_dtype dtype, const uint16_t *at) {
  return dtype == DIST_F16 ? from_f16(*at) : from_bf16(*at);
}

/* Computes element i of the fold of n buffers and writes it to `out` in the result's dtype. */
static inline void fold_element(dist_reduce_op op, dist_dtype dtype, const void *const *in, size_t n,
                                size_t i, void *out) {
  const int mean = op == DIST_REDUCE_MEAN;
  if (dtype == DIST_F16 || dtype == DIST_BF16) {
    float acc = load_half(dtype, (const uint16_t *)in[0] + i);
    for (size_t p = 1; p < n; p++) acc = fold_float(op, acc, load_half(dtype, (const uint16_t *)in[p] + i));
    if (mean) acc /= (float)n;
    *(uint16_t *)out = dtype == DIST_F16 ? to_f16(acc) : to_bf16(acc);
  } else if (dtype == DIST_F32) {
    float acc = ((const float *)in[0])[i];
    for (size_t p = 1; p < n; p++) acc = fold_float(op, acc, ((const float *)in[p])[i]);
    *(float *)out = mean ? acc / (float)n : acc;
  } else if (dtype == DIST_F64) {
    double acc = ((const double *)in[0])[i];
    for (size_t p = 1; p < n; p++) acc = fold_double(op, acc, ((const double *)in[p])[i]);
    *(double *)out = mean ? acc / (double)n : acc;
  } else if (dtype == DIST_COMPLEX64) {
    float acc[2];
    memcpy(acc, (const float *)in[0] + 2 * i, sizeof acc);
    for (size_t p = 1; p < n; p++) fold_complex(op, acc, (const float *)in[p] + 2 * i);
    if (mean) acc[0] /= (float)n, acc[1] /= (float)n;
    memcpy(out, acc, sizeof acc);
  } else if (dtype == DIST_BOOL) {
    int acc = ((const uint8_t *)in[0])[i] != 0;
    for (size_t p = 1; p < n; p++) {
      const int next = ((const uint8_t *)in[p])[i] != 0;
      acc = op == DIST_REDUCE_MIN ? acc && next : acc || next;
    }
    *(uint8_t *)out = (uint8_t)acc;
  } else {
    const size_t size = size_of(dtype);
    int64_t acc = load_integer(dtype, (const char *)in[0] + i * size);
    for (size_t p = 1; p < n; p++)
      acc = fold_integer(op, dtype, acc, load_integer(dtype, (const char *)in[p] + i * size));
    if (!mean) {
      memcpy(out, &acc, size);
    } else if (size >= 4) {
      *(double *)out = (dtype == DIST_U64 ? (double)(uint64_t)acc : (double)acc) / (double)n;
    } else {
      *(float *)out = (float)acc / (float)n;
    }
  }
}

static inline double number_of(dist_dtype dtype, const void *at) {
  switch (dtype) {
    case DIST_F16:
    case DIST_BF16: return (double)load_half(dtype, at);
    case DIST_F32: return (double)*(const float *)at;
    case DIST_F64: return *(const double *)at;
    case DIST_U64: return (double)*(const uint64_t *)at;
    default: return (double)load_integer(dtype, at);
  }
}

/* Compares bits, except that all NaNs are equal. */
static inline int same_element(dist_dtype dtype, const void *a, const void *b) {
  if (memcmp(a, b, size_of(dtype)) == 0) return 1;
  switch (dtype) {
    case DIST_F16:
    case DIST_BF16: return isnan(load_half(dtype, a)) && isnan(load_half(dtype, b));
    case DIST_F32: return isnan(*(const float *)a) && isnan(*(const float *)b);
    case DIST_F64: return isnan(*(const double *)a) && isnan(*(const double *)b);
    case DIST_COMPLEX64:
      return same_element(DIST_F32, a, b) &&
             same_element(DIST_F32, (const float *)a + 1, (const float *)b + 1);
    default: return 0;
  }
}

/* Numbers of every magnitude and sign, including special ones. Each seed gives the same sequence. */
static inline uint64_t next_random(uint64_t *seed) {
  *seed += 0x9E3779B97F4A7C15u;
  uint64_t z = *seed;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static inline void fill_random(dist_dtype dtype, void *data, size_t elements, uint64_t seed) {
  char *at = data;
  const size_t size = size_of(dtype);
  for (size_t i = 0; i < elements; i++, at += size) {
    const uint64_t bits = next_random(&seed);
    const double number = ((double)(bits >> 11) / 9007199254740992.0 - 0.5) * (bits % 3 == 0 ? 1e4 : 3.0);
    const float small = (float)number;
    const uint16_t f16 = dtype == DIST_F16 ? to_f16(small) : 0, bf16 = to_bf16(small);
    const float pair[2] = {small, (float)(bits & 1023) / 7.0f - 50.0f};
    const uint32_t subnormal = (uint32_t)bits & 0x803FFFFF;
    switch (dtype) {
      case DIST_F16:
        memcpy(at, bits % 17 == 0 ? (const void *)&bits : &f16, size);
        break; /* any bits, including inf and NaN */
      case DIST_BF16: memcpy(at, bits % 17 == 0 ? (const void *)&bits : &bf16, size); break;
      case DIST_F32:
        memcpy(at,
               bits % 17 == 0  ? (const void *)&bits
               : bits % 5 == 0 ? (const void *)&subnormal
                               : &small,
               size);
        break;
      case DIST_F64: memcpy(at, bits % 17 == 0 ? (const void *)&bits : &number, size); break;
      case DIST_COMPLEX64: memcpy(at, pair, size); break;
      case DIST_BOOL: *at = (char)(bits % 3); break;
      default: memcpy(at, &bits, size); break;
    }
  }
}

#endif
