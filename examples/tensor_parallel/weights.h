// SPDX-License-Identifier: Apache-2.0
//
// The weights of a BERT encoder from a safetensors file, grouped by how a layer is split over devices.
#ifndef EXAMPLES_TENSOR_PARALLEL_WEIGHTS_H
#define EXAMPLES_TENSOR_PARALLEL_WEIGHTS_H

#include <dist/dist.h>

#ifdef __cplusplus
extern "C" {
#endif

// Each group has an item per layer, which is a list of the tensors enumerated below.
typedef struct {
  dist_value *columns;  // weights split by outputs, [outputs, inputs]: by rows of the file's matrix
  dist_value *biases;   // biases of these outputs
  dist_value *rows;     // weights split by inputs; their input is the output of `columns`
  dist_value *whole;    // tensors that every device has
} weights;

enum { WEIGHTS_QUERY, WEIGHTS_KEY, WEIGHTS_VALUE, WEIGHTS_INTERMEDIATE };  // indices into columns and biases
enum { WEIGHTS_ATTENTION, WEIGHTS_OUTPUT };                                // indices into rows
enum {                                                                     // indices into whole
  WEIGHTS_ATTENTION_BIAS,
  WEIGHTS_ATTENTION_SCALE,
  WEIGHTS_ATTENTION_SHIFT,
  WEIGHTS_OUTPUT_BIAS,
  WEIGHTS_OUTPUT_SCALE,
  WEIGHTS_OUTPUT_SHIFT
};

// Loads all layers in the file. The tensors are views of the mapped file. Call weights_release() even if this
// fails.
dist_status weights_load(dist_strategy *strategy, const char *path, weights *out);
void weights_release(weights *w);

#ifdef __cplusplus
}
#endif
#endif
