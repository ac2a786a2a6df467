// SPDX-License-Identifier: Apache-2.0
//
// Compares the digits trainer's products with loops that make the order of each sum explicit. The bits must
// be equal for all vector widths of this CPU, and for shapes with and without partial tiles.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// Must follow the headers above.
#include <cmocka.h>

#include "matrix.h"

enum { GUARD = 64 };  // floats after a result, which must stay unchanged

static const int64_t kRows[] = {0, 1, 2, 3, 7, 8, 9, 13, 16, 22, 33};
static const int64_t kInner[] = {0, 1, 5, 64};
static const int64_t kColumns[] = {1, 2, 3, 4, 5, 7, 8, 10, 15, 16, 17, 23, 31, 32, 33, 50};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

static uint32_t state = 1;

// Both signs and many magnitudes, so that another order of summation gives other bits.
static float* random_floats(int64_t n) {
  float* all = malloc((size_t)(n + 1) * sizeof *all);
  assert_non_null(all);
  for (int64_t i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    all[i] = ((float)(state >> 8) / 8388608.0f - 1.0f) * (float)(1 << (state >> 3 & 15));
  }
  return all;
}

static float* guarded(int64_t n) {
  float* all = malloc((size_t)(n + GUARD) * sizeof *all);
  assert_non_null(all);
  for (int64_t i = 0; i < n + GUARD; i++) all[i] = -7.5f;
  return all;
}

static void expect(const float* out, const float* wanted, int64_t n) {
  assert_memory_equal(out, wanted, (size_t)n * sizeof *out);
  for (int64_t i = n; i < n + GUARD; i++) assert_true(out[i] == -7.5f);
}

// `a` is rows x inner, or inner x rows with swapped strides if `turned` is set.
static void multiply_once(int64_t rows, int64_t inner, int64_t columns, int turned, int has_start) {
  float *a = random_floats(rows * inner), *b = random_floats(inner * columns);
  float *start = random_floats(columns), *wanted = guarded(rows * columns), *out = guarded(rows * columns);
  const matrix_view view = {a, turned ? 1 : inner, turned ? rows : 1};
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      float sum = has_start ? start[j] : 0.0f;
      for (int64_t k = 0; k < inner; k++)
        sum += a[i * view.row_stride + k * view.column_stride] * b[k * columns + j];
      wanted[i * columns + j] = sum;
    }
  assert_int_equal(matrix_multiply(NULL, rows, inner, columns, view, b, has_start ? start : NULL, out), 0);
  expect(out, wanted, rows * columns);
  free(a);
  free(b);
  free(start);
  free(wanted);
  free(out);
}

static void multiply_by_transposed_once(int64_t rows, int64_t inner, int64_t columns) {
  float *a = random_floats(rows * inner), *b = random_floats(columns * inner);
  float *wanted = guarded(rows * columns), *out = guarded(rows * columns);
  const int64_t room_floats = matrix_room(rows, inner);
  float* room = guarded(room_floats);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      float sum = 0.0f;
      for (int64_t k = 0; k < inner; k++) sum += a[i * inner + k] * b[j * inner + k];
      wanted[i * columns + j] = sum;
    }
  assert_int_equal(matrix_multiply_by_transposed(NULL, rows, inner, columns, a, b, room, out), 0);
  expect(out, wanted, rows * columns);
  for (int64_t i = room_floats; i < room_floats + GUARD; i++) assert_true(room[i] == -7.5f);
  free(a);
  free(b);
  free(wanted);
  free(out);
  free(room);
}

static void every_shape(int lanes) {
  matrix_limit_lanes(lanes);
  for (size_t r = 0; r < LENGTH(kRows); r++)
    for (size_t k = 0; k < LENGTH(kInner); k++)
      for (size_t c = 0; c < LENGTH(kColumns); c++) {
        for (int how = 0; how < 4; how++) multiply_once(kRows[r], kInner[k], kColumns[c], how & 1, how >> 1);
        multiply_by_transposed_once(kRows[r], kInner[k], kColumns[c]);
        // Swapped sizes also test few rows with many columns in the transposed product.
        multiply_by_transposed_once(kColumns[c], kInner[k], kRows[r]);
      }
  matrix_limit_lanes(16);
}

static void sums_have_their_order_in_vectors_of_16(void** unused) {
  (void)unused;
  every_shape(16);
}

static void sums_have_their_order_in_vectors_of_8(void** unused) {
  (void)unused;
  every_shape(8);
}

static void sums_have_their_order_in_vectors_of_4(void** unused) {
  (void)unused;
  every_shape(4);
}

static void sums_have_their_order_without_vectors(void** unused) {
  (void)unused;
  every_shape(1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_have_their_order_in_vectors_of_16),
      cmocka_unit_test(sums_have_their_order_in_vectors_of_8),
      cmocka_unit_test(sums_have_their_order_in_vectors_of_4),
      cmocka_unit_test(sums_have_their_order_without_vectors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
