// SPDX-License-Identifier: Apache-2.0
//
// The little linear algebra that the model needs, in plain loops whose order is part of the contract: every
// element is one sum, folded from left to right in float, so the bits do not depend on how many cores take
// part, on how a range is cut, or on the language it is written in.
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
 * out = start + a * b, shared by this replica's cores row by row; replica NULL: by the calling thread alone.
 *
 *     out[i][j] = ((start[j] + a[i][0] * b[0][j]) + a[i][1] * b[1][j]) + ...      start NULL: 0
 *
 * a is rows x inner, b is inner x columns without gaps, out is rows x columns without gaps.
 */
dist_status matrix_multiply(dist_replica *replica, int64_t rows, int64_t inner, int64_t columns,
                            matrix_view a, const float *b, const float *start, float *out);

/** From now on no vector has more floats, whatever the CPU has: 16, 8, 4 or 1. The bits stay. Before replicas run. */
void matrix_limit_lanes(int most);

/** out[j] = in[0][j] + in[1][j] + ...; 0 for no rows. */
void matrix_sum_rows(int64_t rows, int64_t columns, const float *in, float *out);

/** How many floats matrix_multiply_by_transposed() wants. */
int64_t matrix_room(int64_t rows, int64_t inner);

/**
 * out = a * (b transposed).
 *
 *     out[i][j] = (a[i][0] * b[j][0] + a[i][1] * b[j][1]) + ...
 *
 * a is rows x inner, b columns x inner, out rows x columns. Only a, the small one, is turned round: into `room`.
 */
dist_status matrix_multiply_by_transposed(dist_replica *replica, int64_t rows, int64_t inner, int64_t columns,
                                          const float *a, const float *b, float *room, float *out);

/**
 * e^x for x <= 0, by a stated polynomial (Cephes' expf), so that its bits are everyone's:
 *
 *     x < -87:   0
 *     n = (int)(x * 1.44269504 - 0.5), toward zero;   r = (x - n * 0.693359375) + n * 2.12194440e-4
 *     p = ((((1.9875691500e-4 r + 1.3981999507e-3) r + 8.3334519073e-3) r + 4.1665795894e-2) r
 *          + 1.6666665459e-1) r + 5.0000001201e-1
 *     e^x = ((p * (r * r) + r) + 1) * 2^n
 *
 * Every operation is rounded to float, none is fused. Off by less than 1e-7 of the result.
 */
float matrix_exp(float x);
