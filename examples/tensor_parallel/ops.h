// SPDX-License-Identifier: Apache-2.0
//
// The operations of an encoder layer on row-major float matrices. They run on the calling thread only. The
// implementation uses oneDNN (ops_onednn.c) if the build finds it, otherwise plain loops (ops.c).
#ifndef EXAMPLES_TENSOR_PARALLEL_OPS_H
#define EXAMPLES_TENSOR_PARALLEL_OPS_H

#include <dist/dist.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Returns "oneDNN 2.6.3" or "plain loops".
const char *ops_name(void);

// The sizes of a device's part of a layer. `rows` is the number of input rows, `width` the total width of the
// device's heads, and `intermediate` the device's part of the perceptron.
typedef struct {
  int64_t rows, hidden, width, intermediate, heads;
} ops_sizes;

// The matrix products of a layer.
typedef enum {
  OPS_QUERY_KEY_VALUE,  // the outputs of three weights, side by side
  OPS_ATTENTION_OUTPUT,
  OPS_INTERMEDIATE,  // followed by gelu
  OPS_OUTPUT,
  OPS_NUM_PRODUCTS
} ops_product;
int64_t ops_inputs(const ops_sizes *sizes, ops_product product);
int64_t ops_outputs(const ops_sizes *sizes, ops_product product);

// A weight as stored in the file, [outputs, inputs], and its bias; a NULL bias means zeros. A shard of a
// weight is a view with a distance of row_stride floats between rows.
typedef struct {
  const float *data, *bias;
  int64_t outputs, inputs, row_stride;
} ops_weight;

// Weights in the layout that suits the processor. Written once; then any number of threads can read them.
typedef struct {
  size_t bytes;
  float *packed, *bias;
} ops_matrix;
// Packs copies of `n` weights whose outputs lie side by side. Call ops_release() even if this fails.
dist_status ops_pack(const ops_sizes *sizes, ops_product product, const ops_weight *weights, size_t n,
                     ops_matrix *out);
void ops_release(ops_matrix *matrix);

// The state for computing layers. Only one thread can use it at a time.
typedef struct ops_session ops_session;
// If `adds` is not 0, OPS_ATTENTION_OUTPUT and OPS_OUTPUT add to the contents of `out`.
dist_status ops_session_create(const ops_sizes *sizes, int adds, ops_session **out);
void ops_session_destroy(ops_session *session);

// Computes out = weights · in + bias for each row.
dist_status ops_linear(ops_session *session, ops_product product, const ops_matrix *matrix, const float *in,
                       float *out);
// `qkv` is the output of OPS_QUERY_KEY_VALUE. `out` is [rows, width].
dist_status ops_attention(ops_session *session, const float *qkv, float *out);
// Normalizes each row to mean 0 and variance 1, then multiplies by scale and adds shift, in place.
dist_status ops_norm(ops_session *session, float *state, const float *scale, const float *shift);

// Between these two calls, the implementation uses only the calling thread.
int ops_enter(void);
void ops_leave(int entered);

// Allocates `bytes`, aligned to a cache line. Release with free(). NULL if memory is exhausted.
void *ops_memory(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
