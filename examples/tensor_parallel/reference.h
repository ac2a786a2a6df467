// SPDX-License-Identifier: Apache-2.0
//
// A text as the encoder's input, and ONNX Runtime's output of it (make_reference.py).
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

// reference_release() in any case.
dist_status reference_load(dist_strategy *strategy, const char *path, reference *out);
void reference_release(reference *text);

// The most by which a number of `output` differs; infinity where the sizes do.
float reference_difference(const reference *text, const dist_value *output);
// Both round to 24 bits, in another order: this is twice what was seen on six layers.
#define REFERENCE_MOST_DIFFERENCE 1e-5f

#ifdef __cplusplus
}
#endif
#endif
