// SPDX-License-Identifier: Apache-2.0
//
// The linear algebra that the model needs, in plain loops. The order of operations is part of the contract:
// every element is a single sum, folded from left to right in float. The bits therefore do not depend on the
// number of cores, on how a range is split, or on the programming language.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

/** A view of floats: element (i, j) is data[i * row_stride + j * column_stride]. */
typedef struct {
  const float *data;
  int64_t row_stride;
  int64_t column_stride;
} matrix_view;

/**
 * out = start + a * b. The replica's cores share the rows; if `replica` is NULL, the calling thread does all
 * the work.
 *
 *     out[i][j] = ((start[j] + a[i][0] * b[0][j]) + a[i][1] * b[1][j]) + ...      start NULL: 0
 *
 * a is rows x inner, b is inner x columns without gaps, out is rows x columns without gaps.
 */
dist_status matrix_multiply(dist_replica *replica, int64_t rows, int64_t inner, int64_t columns,
                            matrix_view a, const float *b, const float *start, float *out);

/** Limits vectors to `most` floats (16, 8, 4 or 1), without changing the bits. Call it before replicas run. */
void matrix_limit_lanes(int most);

/** out[j] = in[0][j] + in[1][j] + ..., or 0 if there are no rows. */
void matrix_sum_rows(int64_t rows, int64_t columns, const float *in, float *out);

/** The number of floats that matrix_multiply_by_transposed() needs in `room`. */
int64_t matrix_room(int64_t rows, int64_t inner);

/**
 * out = a * (b transposed).
 *
 *     out[i][j] = (a[i][0] * b[j][0] + a[i][1] * b[j][1]) + ...
 *
 * a is rows x inner, b is columns x inner, out is rows x columns. Only `a`, the smaller matrix, is
 * transposed, into `room`.
 */
dist_status matrix_multiply_by_transposed(dist_replica *replica, int64_t rows, int64_t inner, int64_t columns,
                                          const float *a, const float *b, float *room, float *out);

/**
 * e^x for x <= 0, by a fixed polynomial (Cephes' expf), so that every implementation computes the same bits:
 *
 *     x < -87:   0
 *     n = (int)(x * 1.44269504 - 0.5), toward zero;   r = (x - n * 0.693359375) + n * 2.12194440e-4
 *     p = ((((1.9875691500e-4 r + 1.3981999507e-3) r + 8.3334519073e-3) r + 4.1665795894e-2) r
 *          + 1.6666665459e-1) r + 5.0000001201e-1
 *     e^x = ((p * (r * r) + r) + 1) * 2^n
 *
 * Every operation is rounded to float, without fused multiply-add. The relative error is below 1e-7.
 */
float matrix_exp(float x);
