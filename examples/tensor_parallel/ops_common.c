// SPDX-License-Identifier: Apache-2.0
// The parts that both implementations of ops.h share.
#include <stdlib.h>

#include "ops.h"

enum { LINE = 64 };

int64_t ops_inputs(const ops_sizes *sizes, ops_product product) {
  switch (product) {
    case OPS_ATTENTION_OUTPUT: return sizes->width;
    case OPS_OUTPUT: return sizes->intermediate;
    default: return sizes->hidden;
  }
}

int64_t ops_outputs(const ops_sizes *sizes, ops_product product) {
  switch (product) {
    case OPS_QUERY_KEY_VALUE: return 3 * sizes->width;
    case OPS_INTERMEDIATE: return sizes->intermediate;
    default: return sizes->hidden;
  }
}

void *ops_memory(size_t bytes) { return aligned_alloc(LINE, (bytes + LINE) / LINE * LINE); }

void ops_release(ops_matrix *matrix) {
  free(matrix->packed);
  free(matrix->bias);
  *matrix = (ops_matrix){0, NULL, NULL};
}
