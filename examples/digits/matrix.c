// SPDX-License-Identifier: Apache-2.0
//
// Computes tiles of sums that stay in registers. The vectors are as wide as the CPU allows, and each lane
// holds a separate sum.
#include "matrix.h"

#include <string.h>

typedef struct {
  int64_t rows, inner, columns;
  matrix_view a;
  const float *b;
  const float *start;
  float *out;
  int transposed; /* 1 = out is [kept, rows], and columns from `kept` on are padding; 0 = [rows, columns] */
  int64_t kept;
} product;

#if defined(__x86_64__)
#define TILES_LANES 16
#define TILES_ROWS 8
#define TILES_TARGET __attribute__((target("avx512f")))
#define TILES_NAME(x) x##_16
#include "matrix_tiles.h"

#define TILES_LANES 8
#define TILES_ROWS 4
#define TILES_TARGET __attribute__((target("avx2")))
#define TILES_NAME(x) x##_8
#include "matrix_tiles.h"
#endif

#define TILES_LANES 4
#define TILES_ROWS 4
#define TILES_TARGET
#define TILES_NAME(x) x##_4
#include "matrix_tiles.h"

#define TILES_LANES 1
#define TILES_ROWS 4
#define TILES_TARGET
#define TILES_NAME(x) x##_1
#include "matrix_tiles.h"

enum { BLOCK_ROWS = 8 };

static int most_lanes = 16;

void matrix_limit_lanes(int most) { most_lanes = most; }

// Splits a range into blocks of rows, so that each part consists of whole tiles.
static void multiply_blocks(int64_t begin, int64_t end, void *user_data) {
  const product *p = user_data;
  const int64_t first = begin * BLOCK_ROWS;
  const int64_t last = end * BLOCK_ROWS < p->rows ? end * BLOCK_ROWS : p->rows;
#if defined(__x86_64__)
  if (most_lanes >= 16 && p->columns >= 16 && __builtin_cpu_supports("avx512f")) {
    multiply_16(p, first, last);
    return;
  }
  if (most_lanes >= 8 && p->columns >= 8 && __builtin_cpu_supports("avx2")) {
    multiply_8(p, first, last);
    return;
  }
#endif
  if (most_lanes >= 4 && p->columns >= 4) {
    multiply_4(p, first, last);
  } else {
    multiply_1(p, first, last);
  }
}

static dist_status multiply(dist_replica *replica, product *p) {
  const int64_t blocks = (p->rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  if (!replica) {
    multiply_blocks(0, blocks, p);
    return DIST_OK;
  }
  // Handing over a part that takes less than about 30 us costs more than computing it on the calling thread.
  const int64_t block_operations = 2 * BLOCK_ROWS * p->inner * p->columns + 1;
  const int64_t grain = 1 + 4194304 / block_operations;
  return dist_replica_parallel_for(replica, 0, blocks, grain, multiply_blocks, p);
}

dist_status matrix_multiply(dist_replica *replica, int64_t rows, int64_t inner, int64_t columns,
                            matrix_view a, const float *b, const float *start, float *out) {
  product p = {rows, inner, columns, a, b, start, out, 0, columns};
  return multiply(replica, &p);
}

static int64_t whole_vectors(int64_t n) { return (n + 3) / 4 * 4; }

int64_t matrix_room(int64_t rows, int64_t inner) { return inner * whole_vectors(rows); }

dist_status matrix_multiply_by_transposed(dist_replica *replica, int64_t rows, int64_t inner, int64_t columns,
                                          const float *a, const float *b, float *room, float *out) {
  const int64_t padded = whole_vectors(rows);
  for (int64_t k = 0; k < inner; k++) {
    for (int64_t i = 0; i < rows; i++) room[k * padded + i] = a[i * inner + k];
    for (int64_t i = rows; i < padded; i++) room[k * padded + i] = 0.0f;
  }
  product p = {columns, inner, padded, {b, inner, 1}, room, NULL, out, 1, rows};
  return multiply(replica, &p);
}

void matrix_sum_rows(int64_t rows, int64_t columns, const float *in, float *out) {
  memset(out, 0, (size_t)columns * sizeof *out);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) out[j] += in[i * columns + j];
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
  // Builds 2^n, n in [-126, 0], from its bits: the biased exponent and a zero fraction.
  const uint32_t bits = (uint32_t)(n + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return e * power;
}
