/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for the tests of cross_replica.h: values of every dtype, created from and compared with plain
 * numbers.
 */
#ifndef REDUCE_SUPPORT_H
#define REDUCE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dist/dist.h>

enum { R = 3 };

static inline int make_strategy(void **state) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = R;
  return (int)dist_strategy_create(&options, (dist_strategy **)state);
}

static inline int end_strategy(void **state) { return (int)dist_strategy_destroy((dist_strategy *)*state); }

static inline void assert_fails_with(dist_status is, dist_status code, const char *message) {
  assert_int_equal(is, code);
  assert_string_equal(dist_last_error(), message);
}

/* Stores a number as one element of a dtype: a small integer or, for the result dtypes of MEAN, any number.
 * @every dtype */
static inline size_t put(dist_dtype dtype, double number, void *to) {
  const float f32 = (float)number;
  uint32_t bits;
  memcpy(&bits, &f32, sizeof bits);
  const float complex64[2] = {f32, -f32};
  const uint16_t bf16 = (uint16_t)(bits >> 16);
  const uint16_t f16 =
      bits == 0 ? 0 : (uint16_t)((bits >> 16 & 0x8000) | (((bits & 0x7FFFFFFF) - (112u << 23)) >> 13));
  const int64_t whole = (int64_t)number;
  switch (dtype) {
    case DIST_F16: memcpy(to, &f16, 2); return 2;
    case DIST_BF16: memcpy(to, &bf16, 2); return 2;
    case DIST_F32: memcpy(to, &f32, 4); return 4;
    case DIST_F64: memcpy(to, &number, 8); return 8;
    case DIST_COMPLEX64: memcpy(to, complex64, 8); return 8;
    case DIST_I8:
    case DIST_U8:
    case DIST_BOOL: memcpy(to, &whole, 1); return 1; /* little-endian */
    case DIST_I16:
    case DIST_U16: memcpy(to, &whole, 2); return 2;
    case DIST_I32:
    case DIST_U32: memcpy(to, &whole, 4); return 4;
    case DIST_I64:
    case DIST_U64:
    default: memcpy(to, &whole, 8); return 8;
  }
}

static inline dist_value *tensor_of(dist_strategy *strategy, dist_dtype dtype, int32_t ndim,
                                    const int64_t *shape, const double *numbers) {
  unsigned char data[512];
  size_t count = 1;
  size_t bytes = 0;
  for (int32_t i = 0; i < ndim; i++) count *= (size_t)shape[i];
  for (size_t i = 0; i < count; i++) bytes += put(dtype, numbers[i], data + bytes);
  const dist_tensor tensor = {data, dtype, ndim, shape, NULL};
  dist_value *value = NULL;
  assert_int_equal(dist_value_create_tensor(strategy, &tensor, &value), DIST_OK);
  return value;
}

/* Takes over the references of the items. */
static inline dist_value *spread_of(dist_strategy *strategy, dist_value *const items[R]) {
  dist_value *spread = NULL;
  assert_int_equal(dist_value_create_per_replica(strategy, items, R, &spread), DIST_OK);
  for (int r = 0; r < R; r++) dist_value_release(items[r]);
  return spread;
}

static inline dist_value *scalars(dist_strategy *strategy, dist_dtype dtype, double a, double b, double c) {
  dist_value *const items[R] = {tensor_of(strategy, dtype, 0, NULL, &a),
                                tensor_of(strategy, dtype, 0, NULL, &b),
                                tensor_of(strategy, dtype, 0, NULL, &c)};
  return spread_of(strategy, items);
}

static inline void assert_tensor(const dist_value *value, dist_dtype dtype, size_t count,
                                 const double *numbers) {
  dist_tensor tensor;
  assert_int_equal(dist_value_tensor(value, &tensor), DIST_OK);
  assert_int_equal(tensor.dtype, dtype);
  size_t elements = 1;
  for (int32_t i = 0; i < tensor.ndim; i++) elements *= (size_t)tensor.shape[i];
  assert_int_equal(elements, count);
  unsigned char wanted[512];
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += put(dtype, numbers[i], wanted + bytes);
  if (bytes != 0) assert_memory_equal(tensor.data, wanted, bytes);
}

/* Reduces the value, checks the numbers, and releases the value. */
static inline void assert_reduced(dist_strategy *strategy, dist_reduce_op op, dist_value *value,
                                  const int32_t *axes, size_t num_axes, dist_dtype dtype, size_t count,
                                  const double *numbers) {
  dist_value *result = NULL;
  if (dist_reduce(strategy, op, value, axes, num_axes, &result) != DIST_OK) fail_msg("%s", dist_last_error());
  assert_tensor(result, dtype, count, numbers);
  dist_value_release(result);
  dist_value_release(value);
}

/* @every dtype but BOOL: it is not numeric */
static const dist_dtype numeric[] = {DIST_F16, DIST_BF16, DIST_F32,      DIST_F64, DIST_I8,
                                     DIST_U8,  DIST_I16,  DIST_U16,      DIST_I32, DIST_U32,
                                     DIST_I64, DIST_U64,  DIST_COMPLEX64};
enum { NUMERIC = sizeof numeric / sizeof numeric[0] };

static inline dist_dtype mean_of(dist_dtype dtype) {
  switch (dtype) {
    case DIST_I8:
    case DIST_U8:
    case DIST_I16:
    case DIST_U16: return DIST_F32;
    case DIST_I32:
    case DIST_U32:
    case DIST_I64:
    case DIST_U64: return DIST_F64;
    default: return dtype;
  }
}

#endif /* REDUCE_SUPPORT_H */
