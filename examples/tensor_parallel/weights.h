// SPDX-License-Identifier: Apache-2.0
//
// A BERT encoder's weights out of a safetensors file, grouped by how a layer is divided over devices.
#ifndef EXAMPLES_TENSOR_PARALLEL_WEIGHTS_H
#define EXAMPLES_TENSOR_PARALLEL_WEIGHTS_H

#include <dist/dist.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of each group an item for every layer: a list of the tensors below.
typedef struct {
  dist_value *columns;  // weights whose outputs are divided: [outputs, inputs], by rows of the file's matrix
  dist_value *biases;   // of these outputs
  dist_value *rows;     // weights whose inputs are divided: they take what `columns` gave
  dist_value *whole;    // what every device has
} weights;

enum { WEIGHTS_QUERY, WEIGHTS_KEY, WEIGHTS_VALUE, WEIGHTS_INTERMEDIATE };  // of columns, biases
enum { WEIGHTS_ATTENTION, WEIGHTS_OUTPUT };                                // of rows
enum {                                                                     // of whole
  WEIGHTS_ATTENTION_BIAS,
  WEIGHTS_ATTENTION_SCALE,
  WEIGHTS_ATTENTION_SHIFT,
  WEIGHTS_OUTPUT_BIAS,
  WEIGHTS_OUTPUT_SCALE,
  WEIGHTS_OUTPUT_SHIFT
};

// All layers that the file has, in the file's own memory. weights_release() in any case.
dist_status weights_load(dist_strategy *strategy, const char *path, weights *out);
void weights_release(weights *w);

#ifdef __cplusplus
}
#endif
#endif
