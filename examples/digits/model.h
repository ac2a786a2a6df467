// SPDX-License-Identifier: Apache-2.0
//
// The model's variables: a multilayer perceptron with layers of features, 256, 320 and classes units and ReLU
// between them (102,090 parameters for the digits). Each variable is mirrored: every replica has a copy, and
// all copies stay equal.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

enum {
  MODEL_LAYERS = 3,
  MODEL_TENSORS = 2 * MODEL_LAYERS, /* layer l: weights [in, out] at 2l, biases [out] at 2l + 1 */
  MODEL_DIGEST_BYTES = 65           /* 64 hexadecimal digits and the NUL */
};

typedef struct {
  int64_t sizes[MODEL_LAYERS + 1]; /* features, 256, 320, classes */
  dist_variable *variables[MODEL_TENSORS];
} model;

/**
 * Creates the variables. Initial weights are uniform in [-b, b) with b = sqrtf(6 / in) (He 2015). Each one is
 * b * random_signed_unit(), drawn from `seed` layer by layer and row by row (random.h). Biases start at 0.
 * Call model_destroy() even if this fails.
 */
dist_status model_create(dist_strategy *strategy, int64_t features, int64_t classes, uint64_t seed,
                         model *out);

void model_destroy(model *m);

/** The number of elements of variable t. */
int64_t model_count(const model *m, int t);

/** A tensor with the shape of variable t, [in, out] or [out], on `data`. The model owns the shape. */
dist_tensor model_tensor(const model *m, int t, float *data);

/** The number of elements of all variables. */
int64_t model_num_parameters(const model *m);

/** Sets *out to replica `replica_id`'s copy of variable t. */
dist_status model_copy(const model *m, int t, int32_t replica_id, float **out);

/**
 * The SHA-256 of all variables in order, as little-endian floats: equal digests mean equal bits. Fails with
 * INTERNAL if the copies of the `n` replicas from `first` on differ.
 */
dist_status model_digest(const model *m, int32_t first, int32_t n, char out_hex[MODEL_DIGEST_BYTES]);
