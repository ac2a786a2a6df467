// SPDX-License-Identifier: Apache-2.0
//
// The forward and backward pass through the layers, built on the loops of matrix.h.
#include "network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

static float *new_floats(int64_t n) { return calloc((size_t)(n > 0 ? n : 1), sizeof(float)); }

int network_create(const model *m, int64_t max_rows, network *out) {
  *out = (network){.max_rows = max_rows};
  int64_t room = 0;
  for (int l = 0; l < MODEL_LAYERS; l++) {
    out->outputs[l] = new_floats(max_rows * m->sizes[l + 1]);
    out->deltas[l] = new_floats(max_rows * m->sizes[l + 1]);
    if (!out->outputs[l] || !out->deltas[l]) return -1;
    const int64_t wanted = matrix_room(max_rows, m->sizes[l + 1]);
    if (wanted > room) room = wanted;
  }
  out->room = new_floats(room);
  return out->room ? 0 : -1;
}

void network_free(network *n) {
  for (int l = 0; l < MODEL_LAYERS; l++) {
    free(n->outputs[l]);
    free(n->deltas[l]);
  }
  free(n->room);
  memset(n, 0, sizeof *n);
}

int network_gradients_create(const model *m, network_gradients *out) {
  memset(out, 0, sizeof *out);
  for (int t = 0; t < MODEL_TENSORS; t++)
    if (!(out->of[t] = new_floats(model_count(m, t)))) return -1;
  return 0;
}

void network_gradients_free(network_gradients *gradients) {
  for (int t = 0; t < MODEL_TENSORS; t++) free(gradients->of[t]);
  memset(gradients, 0, sizeof *gradients);
}

static dist_replica *sharing(dist_replica *replica, const network *n) { return n->one_core ? NULL : replica; }

static void softmax_row(float *x, int64_t classes) {
  float largest = x[0];
  for (int64_t j = 1; j < classes; j++)
    if (x[j] > largest) largest = x[j];
  float sum = 0.0f;
  for (int64_t j = 0; j < classes; j++) sum += x[j] = matrix_exp(x[j] - largest);
  for (int64_t j = 0; j < classes; j++) x[j] /= sum;
}

dist_status network_forward(dist_replica *replica, const model *m, network *n, const network_batch *batch) {
  if (batch->rows > n->max_rows) return dist_fail(DIST_INVALID_ARGUMENT, "a batch larger than the network's");
  const float *input = batch->features;
  for (int l = 0; l < MODEL_LAYERS; l++) {
    const int64_t in = m->sizes[l], out = m->sizes[l + 1];
    float *weights, *biases, *output = n->outputs[l];
    dist_status status = model_copy(m, 2 * l, dist_replica_id(replica), &weights);
    if (!status) status = model_copy(m, 2 * l + 1, dist_replica_id(replica), &biases);
    if (!status)
      status = matrix_multiply(sharing(replica, n), batch->rows, in, out, (matrix_view){input, in, 1},
                               weights, biases, output);
    if (status) return status;
    if (l + 1 < MODEL_LAYERS)
      for (int64_t i = 0; i < batch->rows * out; i++) output[i] = output[i] > 0.0f ? output[i] : 0.0f;
    input = output;
  }
  const int64_t classes = m->sizes[MODEL_LAYERS];
  for (int64_t i = 0; i < batch->rows; i++) softmax_row(n->outputs[MODEL_LAYERS - 1] + i * classes, classes);
  return DIST_OK;
}

network_score network_judge(const model *m, const network *n, const network_batch *batch,
                            int32_t *predicted) {
  const int64_t classes = m->sizes[MODEL_LAYERS];
  network_score score = {0, 0};
  for (int64_t i = 0; i < batch->rows; i++) {
    const float *p = n->outputs[MODEL_LAYERS - 1] + i * classes;
    int32_t best = 0;
    for (int32_t j = 1; j < classes; j++)
      if (p[j] > p[best]) best = j;
    // The loss is only displayed and does not affect the parameters. Its bits depend on libm's log().
    score.loss_sum -= llround(log(fmax((double)p[batch->labels[i]], 1e-37)) * NETWORK_LOSS_UNITS);
    score.correct += best == batch->labels[i];
    if (predicted) predicted[i] = best;
  }
  return score;
}

// The gradient of the loss with respect to the last layer's sums: (p - [j is the label]) * scale.
static void last_delta(const model *m, network *n, const network_batch *batch, float scale) {
  const int64_t classes = m->sizes[MODEL_LAYERS];
  for (int64_t i = 0; i < batch->rows; i++)
    for (int64_t j = 0; j < classes; j++) {
      const float p = n->outputs[MODEL_LAYERS - 1][i * classes + j];
      n->deltas[MODEL_LAYERS - 1][i * classes + j] = (p - (j == batch->labels[i] ? 1.0f : 0.0f)) * scale;
    }
}

// Propagates layer l's delta to the previous layer: through the weights, then through the ReLU.
static dist_status previous_delta(dist_replica *replica, const model *m, network *n, int64_t rows, int l) {
  const int64_t in = m->sizes[l], out = m->sizes[l + 1];
  float *weights;
  dist_status status = model_copy(m, 2 * l, dist_replica_id(replica), &weights);
  if (status) return status;
  status = matrix_multiply_by_transposed(sharing(replica, n), rows, out, in, n->deltas[l], weights, n->room,
                                         n->deltas[l - 1]);
  if (status) return status;
  // Written without branches so that compilers vectorize it: the signs of the outputs are unpredictable.
  const float *output = n->outputs[l - 1];
  float *delta = n->deltas[l - 1];
  for (int64_t i = 0; i < rows * in; i++) delta[i] = output[i] > 0.0f ? delta[i] : 0.0f;
  return DIST_OK;
}

dist_status network_backward(dist_replica *replica, const model *m, network *n, const network_batch *batch,
                             float scale, network_gradients *out_gradients) {
  last_delta(m, n, batch, scale);
  for (int l = MODEL_LAYERS - 1; l >= 0; l--) {
    const int64_t in = m->sizes[l], out = m->sizes[l + 1];
    const float *input = l > 0 ? n->outputs[l - 1] : batch->features;
    dist_status status =
        matrix_multiply(sharing(replica, n), in, batch->rows, out, (matrix_view){input, 1, in}, n->deltas[l],
                        NULL, out_gradients->of[2 * l]);
    if (status) return status;
    matrix_sum_rows(batch->rows, out, n->deltas[l], out_gradients->of[2 * l + 1]);
    if (l > 0 && (status = previous_delta(replica, m, n, batch->rows, l))) return status;
  }
  return DIST_OK;
}

dist_status network_descend(dist_replica *replica, const model *m, const network_gradients *gradients,
                            float rate) {
  for (int t = 0; t < MODEL_TENSORS; t++) {
    float *values;
    const dist_status status = model_copy(m, t, dist_replica_id(replica), &values);
    if (status) return status;
    const float *gradient = gradients->of[t];
    const int64_t count = model_count(m, t);
    for (int64_t i = 0; i < count; i++) values[i] -= rate * gradient[i];
  }
  return DIST_OK;
}
