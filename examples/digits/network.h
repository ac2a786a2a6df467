// SPDX-License-Identifier: Apache-2.0
//
// The computation of one replica on its part of a batch: predictions, loss and gradients. Every sum has a
// fixed order (matrix.h), so a replica's gradients depend only on its rows and parameters.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "model.h"

/** The buffers of one replica for batches of up to `max_rows` rows. */
typedef struct {
  int64_t max_rows;
  int32_t one_core;             /* 1 = all loops run on the replica's thread; 0 = its cores share them */
  float *outputs[MODEL_LAYERS]; /* [layer]; the last layer's outputs become probabilities */
  float *deltas[MODEL_LAYERS];  /* [layer], gradients of the loss with respect to the layer's sums */
  float *room;                  /* for matrix_multiply_by_transposed() */
} network;

/** Gradients of the loss with respect to every variable, in the variables' shapes. */
typedef struct {
  float *of[MODEL_TENSORS];
} network_gradients;

/** A batch or a part of one. */
typedef struct {
  int64_t rows;
  const float *features;
  const int32_t *labels;
} network_batch;

enum { NETWORK_LOSS_UNITS = 1 << 24 };

/** Integers, so that the sum of scores does not depend on how the rows were split. */
typedef struct {
  int64_t loss_sum; /* sum of the rows' cross-entropies, each rounded to 1 / NETWORK_LOSS_UNITS */
  int64_t correct;  /* number of rows whose most probable class is their label */
} network_score;

/** Returns 0, or -1 if memory is exhausted. Call network_free() in both cases. */
int network_create(const model *m, int64_t max_rows, network *out);

void network_free(network *n);

/** Returns 0, or -1 if memory is exhausted. Call network_gradients_free() in both cases. */
int network_gradients_create(const model *m, network_gradients *out);

void network_gradients_free(network_gradients *gradients);

/**
 * outputs[l] = relu(input * weights[l] + biases[l]). The last layer uses softmax instead of ReLU, row by row:
 *     e[j] = matrix_exp(x[j] - max of x);   p[j] = e[j] / (((e[0] + e[1]) + e[2]) + ...)
 */
dist_status network_forward(dist_replica *replica, const model *m, network *n, const network_batch *batch);

/**
 * Scores the predictions of network_forward(). If `predicted` is not NULL, predicted[i] receives row i's
 * class, the first one in case of a tie.
 */
network_score network_judge(const model *m, const network *n, const network_batch *batch, int32_t *predicted);

/**
 * Computes the gradients of (sum of the rows' losses) * scale, after network_forward(). With scale = 1 /
 * (rows of the global batch), the sum over all replicas is the gradient of the global batch's mean loss,
 * however it was split.
 */
dist_status network_backward(dist_replica *replica, const model *m, network *n, const network_batch *batch,
                             float scale, network_gradients *out_gradients);

/** Updates this replica's copy of every variable: v = v - rate * gradient. */
dist_status network_descend(dist_replica *replica, const model *m, const network_gradients *gradients,
                            float rate);
