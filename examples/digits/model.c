// SPDX-License-Identifier: Apache-2.0
//
// Creates the parameters and computes their digest. network.c computes with them.
#include "model.h"

#include <math.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

static const char *const kNames[MODEL_TENSORS] = {"layer1/weights", "layer1/biases",  "layer2/weights",
                                                  "layer2/biases",  "layer3/weights", "layer3/biases"};

int64_t model_count(const model *m, int t) {
  const int layer = t / 2;
  return t % 2 == 0 ? m->sizes[layer] * m->sizes[layer + 1] : m->sizes[layer + 1];
}

dist_tensor model_tensor(const model *m, int t, float *data) {
  // The shape of layer l's weights is sizes[l], sizes[l + 1]; the shape of its biases is the second of these.
  const int is_weights = t % 2 == 0;
  return (dist_tensor){data, DIST_F32, is_weights ? 2 : 1, &m->sizes[is_weights ? t / 2 : t / 2 + 1], NULL};
}

int64_t model_num_parameters(const model *m) {
  int64_t sum = 0;
  for (int t = 0; t < MODEL_TENSORS; t++) sum += model_count(m, t);
  return sum;
}

static dist_status create_variable(dist_strategy *strategy, int t, random_stream *stream, model *m) {
  const int64_t n = model_count(m, t);
  float *initial = calloc((size_t)n, sizeof *initial);
  if (!initial) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the initial weights");
  if (t % 2 == 0) {
    const int64_t in = m->sizes[t / 2];
    const float bound = sqrtf(6.0f / (float)in);
    for (int64_t i = 0; i < n; i++) initial[i] = bound * random_signed_unit(stream);
  }
  const dist_tensor tensor = model_tensor(m, t, initial);
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = kNames[t];
  const dist_status status = dist_variable_create(strategy, &tensor, &options, &m->variables[t]);
  free(initial);
  return status;
}

dist_status model_create(dist_strategy *strategy, int64_t features, int64_t classes, uint64_t seed,
                         model *out) {
  *out = (model){.sizes = {features, 256, 320, classes}};
  random_stream stream = {seed};
  dist_status status = DIST_OK;
  for (int t = 0; t < MODEL_TENSORS && !status; t++) status = create_variable(strategy, t, &stream, out);
  return status;
}

void model_destroy(model *m) {
  for (int t = 0; t < MODEL_TENSORS; t++) dist_variable_destroy(m->variables[t]);
  memset(m->variables, 0, sizeof m->variables);
}

dist_status model_copy(const model *m, int t, int32_t replica_id, float **out) {
  dist_tensor tensor;
  const dist_status status = dist_variable_component(m->variables[t], replica_id, &tensor);
  if (!status) *out = tensor.data;
  return status;
}

static void digest_floats(struct sha256_ctx *context, const float *values, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    const uint8_t bytes[] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                             (uint8_t)(bits >> 24)};
    sha256_update(context, sizeof bytes, bytes);
  }
}

dist_status model_digest(const model *m, int32_t first, int32_t n, char out_hex[MODEL_DIGEST_BYTES]) {
  struct sha256_ctx context;
  sha256_init(&context);
  for (int t = 0; t < MODEL_TENSORS; t++) {
    float *one, *other;
    dist_status status = model_copy(m, t, first, &one);
    for (int32_t r = first + 1; r < first + n && !status; r++) {
      status = model_copy(m, t, r, &other);
      if (!status && memcmp(one, other, (size_t)model_count(m, t) * sizeof *one) != 0)
        status = dist_fail(DIST_INTERNAL, "the replicas' copies of the parameters are not equal");
    }
    if (status) return status;
    digest_floats(&context, one, model_count(m, t));
  }
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&context, sizeof digest, digest);
  for (size_t i = 0; i < sizeof digest; i++) snprintf(out_hex + 2 * i, 3, "%02x", digest[i]);
  return DIST_OK;
}
