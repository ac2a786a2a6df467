// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <math.h>
#include <stdlib.h>

dist_status reference_load(dist_strategy *strategy, const char *path, reference *out) {
  *out = (reference){NULL, NULL, 0};
  dist_checkpoint *file = NULL;
  dist_status status = dist_checkpoint_open(strategy, path, &file);
  if (!status) status = dist_checkpoint_read(file, "input", &out->input);
  if (!status) status = dist_checkpoint_read(file, "output", &out->output);
  const char *heads = status ? NULL : dist_checkpoint_metadata(file, "heads");
  if (heads != NULL) out->heads = strtoll(heads, NULL, 10);
  dist_checkpoint_destroy(file);
  return status;
}

float reference_difference(const reference *text, const dist_value *output) {
  dist_tensor x, y;
  if (dist_value_tensor(text->output, &x) || dist_value_tensor(output, &y)) return INFINITY;
  if (x.shape[0] != y.shape[0] || x.shape[1] != y.shape[1]) return INFINITY;
  float most = 0.0f;
  for (int64_t i = 0; i < x.shape[0] * x.shape[1]; i++) {
    const float difference = fabsf(((const float *)x.data)[i] - ((const float *)y.data)[i]);
    if (!(difference <= most)) most = difference;  // also true for NaN
  }
  return most;
}

void reference_release(reference *text) {
  dist_value_release(text->input);
  dist_value_release(text->output);
}
