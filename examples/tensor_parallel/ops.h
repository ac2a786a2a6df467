// SPDX-License-Identifier: Apache-2.0
//
// What an encoder layer is made of, on one thread, for float matrices whose rows follow one another.
#ifndef EXAMPLES_TENSOR_PARALLEL_OPS_H
#define EXAMPLES_TENSOR_PARALLEL_OPS_H

#include <stdint.h>

// A weight as the file has it: [outputs, inputs]. A split one is a view: row_stride floats from row to row.
typedef struct {
  const float *data;
  int64_t outputs, inputs, row_stride;
} ops_weight;

// out[r] = weight · in[r] + bias for `rows` rows; a NULL bias is none. panel: room for OPS_PANEL · inputs.
enum { OPS_PANEL = 16 };
void ops_linear(const float *in, int64_t rows, ops_weight weight, const float *bias, float *panel,
                float *out);

// Attention of `heads` heads, side by side in the columns of query, key, value and out: [rows, heads ·
// head_size]. scores: room for `rows`.
void ops_attention(const float *query, const float *key, const float *value, int64_t rows, int64_t heads,
                   int64_t head_size, float *scores, float *out);

void ops_gelu(float *values, int64_t n);

// hidden = norm(hidden + change + bias), of each row, with scale and shift.
void ops_add_and_norm(float *hidden, const float *change, const float *bias, const float *scale,
                      const float *shift, int64_t rows, int64_t columns);

#endif
