// SPDX-License-Identifier: Apache-2.0
//
// The model's variables: a multilayer perceptron, features - 256 - 320 - classes, ReLU between the layers;
// for the digits 102,090 parameters. Each variable is mirrored: every replica has a copy, and all copies stay
// equal.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

enum {
  MODEL_LAYERS = 3,
  MODEL_TENSORS = 2 * MODEL_LAYERS, /* of layer l: 2l is the weights [in, out], 2l + 1 the biases [out] */
  MODEL_DIGEST_BYTES = 65           /* 64 hexadecimal digits and the end */
};

typedef struct {
  int64_t sizes[MODEL_LAYERS + 1]; /* features, 256, 320, classes */
  dist_variable *variables[MODEL_TENSORS];
} model;

/**
 * Weights begin uniform in [-b, b), b = sqrtf(6 / in) (He 2015), drawn by random.h from `seed` layer by layer
 * and row by row: weight = b * random_signed_unit(). Biases begin at 0. model_destroy() ends it, also after a
 * failure.
 */
dist_status model_create(dist_strategy *strategy, int64_t features, int64_t classes, uint64_t seed,
                         model *out);

void model_destroy(model *m);

/** Elements of variable t. */
int64_t model_count(const model *m, int t);

/** `data` in the shape of variable t: [in, out] or [out]. The shape is borrowed from the model. */
dist_tensor model_tensor(const model *m, int t, float *data);

/** Elements of all variables. */
int64_t model_num_parameters(const model *m);

/** Replica `replica_id`'s copy of variable t. */
dist_status model_copy(const model *m, int t, int32_t replica_id, float **out);

/**
 * SHA-256 over all variables in order, as little-endian floats: the same text means the same bits. Fails with
 * INTERNAL if the copies of the `n` replicas from `first` on are not equal.
 */
dist_status model_digest(const model *m, int32_t first, int32_t n, char out_hex[MODEL_DIGEST_BYTES]);
