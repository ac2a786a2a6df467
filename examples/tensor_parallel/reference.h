// SPDX-License-Identifier: Apache-2.0
//
// An example text: the encoder's input and the output of ONNX Runtime (make_reference.py).
#ifndef EXAMPLES_TENSOR_PARALLEL_REFERENCE_H
#define EXAMPLES_TENSOR_PARALLEL_REFERENCE_H

#include <dist/dist.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  dist_value *input, *output;  // [tokens, hidden size]
  int64_t heads;
} reference;

// Call reference_release() even if this fails.
dist_status reference_load(dist_strategy *strategy, const char *path, reference *out);
void reference_release(reference *text);

// Returns the largest difference from the reference output, or infinity if the sizes differ.
float reference_difference(const reference *text, const dist_value *output);
// Both implementations round to 24 bits but add in different orders. This is twice the largest difference
// seen on six layers.
#define REFERENCE_MOST_DIFFERENCE 1e-5f

#ifdef __cplusplus
}
#endif
#endif
