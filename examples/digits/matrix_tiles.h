// SPDX-License-Identifier: Apache-2.0
//
// matrix.c includes this once for each width of vectors that a CPU may have, after it has defined
//
//     TILES_LANES      how many floats a vector has
//     TILES_ROWS       how many rows a tile has: its sums, and what is added to them, fit into the registers
//     TILES_TARGET     the instructions that may be used, as an attribute; empty: those of the whole program
//     TILES_NAME(x)    x, with a name of its own
//
// which are undefined at its end. A tile is some rows by one vector of columns or two. Its sums stay in registers from the
// first term to the last. Each lane adds up one element from left to right, so any width gives the same bits.

// Lies anywhere among floats.
typedef float TILES_NAME(lanes)
    __attribute__((vector_size(TILES_LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

// The vectors begin at columns at[0] and at[1]. `rows` and `vectors` are constants wherever this is called, so no
// loop over them is left.
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

// Rows [begin, end) of a product with at least one vector of columns. The last vector ends with the columns, and may
// make some sums a second time.
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
