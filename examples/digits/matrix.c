// SPDX-License-Identifier: Apache-2.0
//
// Loops that a compiler can turn into SIMD without changing the order of any sum: the innermost loop runs
// over columns, each with a sum of its own.
#include "matrix.h"

#include <string.h>

typedef struct {
  int64_t inner, columns;
  matrix_view a;
  const float *b;
  const float *start;
  float *out;
} product;

// Four terms at a time, so that `out` is read and written once for four; the order stays: left to right.
static void add_four(const float *restrict b, int64_t columns, const float scale[4], float *restrict out) {
  const float s0 = scale[0], s1 = scale[1], s2 = scale[2], s3 = scale[3];
  for (int64_t j = 0; j < columns; j++)
    out[j] =
        (((out[j] + s0 * b[j]) + s1 * b[columns + j]) + s2 * b[2 * columns + j]) + s3 * b[3 * columns + j];
}

static void add_one(const float *restrict b, int64_t columns, float scale, float *restrict out) {
  for (int64_t j = 0; j < columns; j++) out[j] += scale * b[j];
}

static void multiply_rows(int64_t begin, int64_t end, void *user_data) {
  const product *p = user_data;
  for (int64_t i = begin; i < end; i++) {
    float *out = p->out + i * p->columns;
    const float *a = p->a.data + i * p->a.row_stride;
    if (p->start) {
      memcpy(out, p->start, (size_t)p->columns * sizeof *out);
    } else {
      memset(out, 0, (size_t)p->columns * sizeof *out);
    }
    int64_t k = 0;
    for (; k + 4 <= p->inner; k += 4) {
      const float scale[4] = {a[k * p->a.column_stride], a[(k + 1) * p->a.column_stride],
                              a[(k + 2) * p->a.column_stride], a[(k + 3) * p->a.column_stride]};
      add_four(p->b + k * p->columns, p->columns, scale, out);
    }
    for (; k < p->inner; k++) add_one(p->b + k * p->columns, p->columns, a[k * p->a.column_stride], out);
  }
}

dist_status matrix_multiply(dist_replica *replica, int64_t rows, int64_t inner, int64_t columns,
                            matrix_view a, const float *b, const float *start, float *out) {
  // A piece below some ten microseconds costs more to hand over than to do.
  const int64_t row_operations = 2 * inner * columns + 1;
  const int64_t grain = 1 + 65536 / row_operations;
  product p = {inner, columns, a, b, start, out};
  return dist_parallel_for(replica, 0, rows, grain, multiply_rows, &p);
}

void matrix_sum_rows(int64_t rows, int64_t columns, const float *in, float *out) {
  memset(out, 0, (size_t)columns * sizeof *out);
  for (int64_t i = 0; i < rows; i++) add_one(in + i * columns, columns, 1.0f, out);
}

void matrix_transpose(int64_t rows, int64_t columns, const float *in, float *out) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) out[j * rows + i] = in[i * columns + j];
}

float matrix_exp(float x) {
  if (x < -87.0f) return 0.0f;
  const int32_t n = (int32_t)(x * 1.44269504f - 0.5f);
  const float r = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float e = (p * (r * r) + r) + 1.0f;
  // 2^n for n in [-126, 0], by its bits: a biased exponent and no fraction.
  const uint32_t bits = (uint32_t)(n + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return e * power;
}
