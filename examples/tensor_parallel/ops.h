// SPDX-License-Identifier: Apache-2.0
//
// What an encoder layer is made of, on the calling thread alone, for float matrices whose rows follow one
// another. By oneDNN (ops_onednn.c) where the build has it, else by plain loops (ops.c).
#ifndef EXAMPLES_TENSOR_PARALLEL_OPS_H
#define EXAMPLES_TENSOR_PARALLEL_OPS_H

#include <dist/dist.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// "oneDNN 2.6.3" or "plain loops".
const char *ops_name(void);

// A device's part of a layer. rows: of the input; width: of its heads, side by side; intermediate: its rows
// of the perceptron.
typedef struct {
  int64_t rows, hidden, width, intermediate, heads;
} ops_sizes;

// The matrix products of a layer.
typedef enum {
  OPS_QUERY_KEY_VALUE,  // three weights' outputs, side by side
  OPS_ATTENTION_OUTPUT,
  OPS_INTERMEDIATE,  // and gelu of it
  OPS_OUTPUT,
  OPS_NUM_PRODUCTS
} ops_product;
int64_t ops_inputs(const ops_sizes *sizes, ops_product product);
int64_t ops_outputs(const ops_sizes *sizes, ops_product product);

// A weight as the file has it: [outputs, inputs], and its bias; a NULL bias is zeros. A split weight is a
// view: row_stride floats from row to row.
typedef struct {
  const float *data, *bias;
  int64_t outputs, inputs, row_stride;
} ops_weight;

// Weights as the processor wants them. It is written once, and read by any number of threads at a time.
typedef struct {
  size_t bytes;
  float *packed, *bias;
} ops_matrix;
// Copies `n` weights, whose outputs lie side by side. ops_release() in any case.
dist_status ops_pack(const ops_sizes *sizes, ops_product product, const ops_weight *weights, size_t n,
                     ops_matrix *out);
void ops_release(ops_matrix *matrix);

// What one thread at a time computes layers with.
typedef struct ops_session ops_session;
// adds: OPS_ATTENTION_OUTPUT and OPS_OUTPUT are added to what is in `out` already.
dist_status ops_session_create(const ops_sizes *sizes, int adds, ops_session **out);
void ops_session_destroy(ops_session *session);

// out = weights · in + bias, for each row.
dist_status ops_linear(ops_session *session, ops_product product, const ops_matrix *matrix, const float *in,
                       float *out);
// qkv: what OPS_QUERY_KEY_VALUE gave. out: [rows, width].
dist_status ops_attention(ops_session *session, const float *qkv, float *out);
// Each row to mean 0 and variance 1, then times scale and plus shift, in place.
dist_status ops_norm(ops_session *session, float *state, const float *scale, const float *shift);

// Between these two the engine uses the calling thread and no other, whatever the process wants elsewhere.
int ops_enter(void);
void ops_leave(int entered);

// `bytes` at a multiple of a cache line; free(). NULL: no memory.
void *ops_memory(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
