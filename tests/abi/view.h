/* SPDX-License-Identifier: Apache-2.0
 *
 * Test tensors with any memory layout: contiguous, transposed, reversed, with gaps, or with all elements at
 * one address. A view keeps a dense copy of its original contents for oracles, and detects writes to the gaps
 * between its elements.
 */
#ifndef TESTS_ABI_VIEW_H
#define TESTS_ABI_VIEW_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <dist/dist.h>

#include "fold.h"

enum { DIMS = 4, UNTOUCHED = 0xA5 };
enum style { DENSE, EXPLICIT, TRANSPOSED, BACKWARDS, GAPS, STYLES, ONE_PLACE = STYLES };

typedef struct view {
  dist_tensor tensor; /* its shape and strides point into the view, which must not be moved */
  int64_t shape[DIMS], strides[DIMS];
  unsigned char *memory; /* owned by the view; NULL = another view's memory */
  size_t bytes;
  unsigned char *saved; /* the original elements in row-major order */
} view;

static inline int64_t elements_in(const view *v) {
  int64_t elements = 1;
  for (int32_t d = 0; d < v->tensor.ndim; d++) elements *= v->shape[d];
  return elements;
}

/* Returns the offset of element `i` in row-major order, in elements from `data`. */
static inline int64_t offset_of(const view *v, int64_t i) {
  int64_t offset = 0;
  for (int32_t d = v->tensor.ndim - 1; d >= 0; d--) {
    offset += i % v->shape[d] * v->strides[d];
    i /= v->shape[d];
  }
  return offset;
}
static inline void *at(const view *v, int64_t i) {
  return (char *)v->tensor.data + offset_of(v, i) * (int64_t)size_of(v->tensor.dtype);
}

static inline void set_dense_strides(view *v, int32_t ndim, int transposed, int64_t step, int64_t extra) {
  for (int32_t k = 0; k < ndim; k++) {
    const int32_t d = transposed ? k : ndim - 1 - k;
    v->strides[d] = step;
    step = step * (v->shape[d] > 0 ? v->shape[d] : 1) + extra;
  }
}

/* A view of memory that something else owns. If `strides` is NULL, it has no gaps. */
static inline void place_view(view *v, dist_dtype dtype, int32_t ndim, const int64_t *shape,
                              const int64_t *strides, void *data) {
  memset(v, 0, sizeof *v);
  for (int32_t d = 0; d < ndim; d++) v->shape[d] = shape[d];
  set_dense_strides(v, ndim, 0, 1, 0);
  for (int32_t d = 0; strides != NULL && d < ndim; d++) v->strides[d] = strides[d];
  v->tensor =
      (dist_tensor){data, dtype, ndim, ndim == 0 ? NULL : v->shape, strides == NULL ? NULL : v->strides};
}

static inline void make_view(view *v, dist_dtype dtype, int32_t ndim, const int64_t *shape,
                             enum style style) {
  place_view(v, dtype, ndim, shape, NULL, NULL);
  if (style == TRANSPOSED) set_dense_strides(v, ndim, 1, 1, 0);
  if (style == GAPS) set_dense_strides(v, ndim, 0, 2, 1);
  int64_t lowest = 0, highest = 0;
  for (int32_t d = 0; d < ndim; d++) {
    if (style == ONE_PLACE) v->strides[d] = 0;
    if (style == BACKWARDS) v->strides[d] = -v->strides[d];
    const int64_t reach = v->shape[d] > 0 ? (v->shape[d] - 1) * v->strides[d] : 0;
    lowest += reach < 0 ? reach : 0;
    highest += reach > 0 ? reach : 0;
  }
  if (style != DENSE && ndim > 0) v->tensor.strides = v->strides;
  const size_t size = size_of(dtype);
  v->bytes = (size_t)(highest - lowest + 1) * size;
  v->memory = malloc(v->bytes);
  memset(v->memory, UNTOUCHED, v->bytes);
  v->tensor.data = v->memory + (size_t)-lowest * size;
}

static inline void save_view(view *v) {
  const size_t size = size_of(v->tensor.dtype);
  const int64_t elements = elements_in(v);
  free(v->saved);
  v->saved = malloc((size_t)elements * size + 1);
  for (int64_t i = 0; i < elements; i++) memcpy(v->saved + (size_t)i * size, at(v, i), size);
}

static inline void fill_view(view *v, uint64_t seed) {
  const size_t size = size_of(v->tensor.dtype);
  const int64_t elements = elements_in(v);
  unsigned char *data = malloc((size_t)elements * size + 1);
  fill_random(v->tensor.dtype, data, (size_t)elements, seed);
  for (int64_t i = 0; i < elements; i++) memcpy(at(v, i), data + (size_t)i * size, size);
  free(data);
  save_view(v);
}

/* Whether the bytes between the elements are as make_view() left them. */
static inline int gaps_untouched(const view *v) {
  if (v->memory == NULL) return 1;
  const size_t size = size_of(v->tensor.dtype);
  const int64_t elements = elements_in(v);
  unsigned char *written = calloc(v->bytes, 1);
  for (int64_t i = 0; i < elements; i++) memset(written + ((unsigned char *)at(v, i) - v->memory), 1, size);
  int untouched = 1;
  for (size_t b = 0; b < v->bytes; b++) untouched &= written[b] || v->memory[b] == UNTOUCHED;
  free(written);
  return untouched;
}

static inline void free_view(view *v) {
  free(v->memory);
  free(v->saved);
  memset(v, 0, sizeof *v);
}

#endif
