// SPDX-License-Identifier: Apache-2.0
//
// matrix.c includes this file once for each vector width that a CPU may have. Before that, it defines
//
//     TILES_LANES      the number of floats in a vector
//     TILES_ROWS       the number of rows in a tile, such that its sums and operands fit in registers
//     TILES_TARGET     an attribute that selects the instruction set; empty = that of the whole program
//     TILES_NAME(x)    x with a unique suffix
//
// This file undefines them at its end. A tile has TILES_ROWS rows and one or two vectors of columns. Its sums
// stay in registers from the first term to the last. Each lane adds up one element from left to right, so
// every width gives the same bits.

// A vector that needs no alignment beyond that of a float.
typedef float TILES_NAME(lanes)
    __attribute__((vector_size(TILES_LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

// Computes the vectors that begin at columns at[0] and at[1]. Callers pass constants for `rows` and
// `vectors`, so the compiler unrolls the loops over them.
TILES_TARGET static inline __attribute__((always_inline)) void TILES_NAME(tile)(const product *p, int64_t i,
                                                                                const int64_t at[2],
                                                                                const int rows,
                                                                                const int vectors) {
  typedef TILES_NAME(lanes) lanes;
  lanes sums[TILES_ROWS][2];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) sums[r][v] = p->start ? *(const lanes *)(p->start + at[v]) : (lanes){0};
  const int64_t row = p->a.row_stride, next = p->a.column_stride;
  const float *a = p->a.data + i * row;
  const float *b = p->b;
  for (int64_t k = 0; k < p->inner; k++, a += next, b += p->columns) {
    lanes terms[2];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) terms[v] = *(const lanes *)(b + at[v]);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) sums[r][v] += a[r * row] * terms[v];
  }
#pragma GCC unroll 2
  for (int v = 0; v < vectors; v++) {
    if (!p->transposed) {
#pragma GCC unroll 8
      for (int r = 0; r < rows; r++) *(lanes *)(p->out + (i + r) * p->columns + at[v]) = sums[r][v];
      continue;
    }
    float copies[TILES_ROWS][TILES_LANES];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) *(lanes *)copies[r] = sums[r][v];
    for (int64_t l = 0; l < TILES_LANES && at[v] + l < p->kept; l++)
#pragma GCC unroll 8
      for (int r = 0; r < rows; r++) p->out[(at[v] + l) * p->rows + i + r] = copies[r][l];
  }
}

TILES_TARGET static inline __attribute__((always_inline)) void TILES_NAME(strip)(const product *p,
                                                                                 int64_t begin, int64_t end,
                                                                                 const int64_t at[2],
                                                                                 const int vectors) {
  int64_t i = begin;
  for (; i + TILES_ROWS <= end; i += TILES_ROWS) TILES_NAME(tile)(p, i, at, TILES_ROWS, vectors);
  for (; i + 2 <= end; i += 2) TILES_NAME(tile)(p, i, at, 2, vectors);
  if (i < end) TILES_NAME(tile)(p, i, at, 1, vectors);
}

// Computes rows [begin, end) of a product with at least one vector of columns. The last vector is aligned
// with the end of the columns, so it may compute some sums twice.
TILES_TARGET static void TILES_NAME(multiply)(const product *p, int64_t begin, int64_t end) {
  const int64_t last = p->columns - TILES_LANES;
  for (int64_t j = 0; j < p->columns; j += 2 * TILES_LANES) {
    const int64_t at[2] = {j < last ? j : last, j + TILES_LANES < last ? j + TILES_LANES : last};
    if (at[0] < at[1]) {
      TILES_NAME(strip)(p, begin, end, at, 2);
    } else {
      TILES_NAME(strip)(p, begin, end, at, 1);
    }
  }
}

#undef TILES_LANES
#undef TILES_ROWS
#undef TILES_TARGET
#undef TILES_NAME
