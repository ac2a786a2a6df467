// SPDX-License-Identifier: Apache-2.0
//
// What one replica computes on its part of a batch: predictions, their loss, and the gradients of the loss.
// Every sum has a stated order (matrix.h), so that a replica's gradients depend on its rows and parameters
// alone.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "model.h"

/** One replica's memory for batches of up to `max_rows` rows. */
typedef struct {
  int64_t max_rows;
  int32_t one_core;             /* 1: the replica's thread takes all loops alone; 0: its cores share them */
  float *outputs[MODEL_LAYERS]; /* of each layer; the last one's become probabilities */
  float *deltas[MODEL_LAYERS];  /* the loss by each layer's sums */
  float *room;                  /* for matrix_multiply_by_transposed() */
} network;

/** The loss by every variable, in the variables' shapes. */
typedef struct {
  float *of[MODEL_TENSORS];
} network_gradients;

/** A batch, or a part of one. */
typedef struct {
  int64_t rows;
  const float *features;
  const int32_t *labels;
} network_batch;

enum { NETWORK_LOSS_UNITS = 1 << 24 };

/** In whole numbers, so that scores add up to the same whichever way the rows were split. */
typedef struct {
  int64_t loss_sum; /* cross-entropy over the rows, each one's rounded to 1 / NETWORK_LOSS_UNITS */
  int64_t correct;  /* rows whose most probable class is their label */
} network_score;

/** 0, or -1: no memory. network_free() ends it, also then. */
int network_create(const model *m, int64_t max_rows, network *out);

void network_free(network *n);

/** 0, or -1: no memory. network_gradients_free() ends them, also then. */
int network_gradients_create(const model *m, network_gradients *out);

void network_gradients_free(network_gradients *gradients);

/**
 * outputs[l] = relu(input * weights[l] + biases[l]); the last layer's are softmaxed instead, each row by
 *     e[j] = matrix_exp(x[j] - max of x);   p[j] = e[j] / (((e[0] + e[1]) + e[2]) + ...)
 */
dist_status network_forward(dist_replica *replica, const model *m, network *n, const network_batch *batch);

/** Judges what network_forward() predicted. predicted[i], if not NULL, gets row i's class (the first of
 * equals). */
network_score network_judge(const model *m, const network *n, const network_batch *batch, int32_t *predicted);

/**
 * The gradients of (sum of the rows' losses) * scale, after network_forward(). With scale = 1 / (rows of the
 * global batch) the sum over all replicas is the gradient of the global batch's mean loss, whichever way it
 * was split.
 */
dist_status network_backward(dist_replica *replica, const model *m, network *n, const network_batch *batch,
                             float scale, network_gradients *out_gradients);

/** This replica's copy of every variable: v = v - rate * gradient. */
dist_status network_descend(dist_replica *replica, const model *m, const network_gradients *gradients,
                            float rate);
