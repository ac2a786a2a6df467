// SPDX-License-Identifier: Apache-2.0
#include "weights.h"

#include <stdio.h>

enum { MOST_LAYERS = 64, MOST_NAMES = 6 };

// In the order of the enumerations in weights.h.
static const char *const columns[] = {"attention.self.query.weight", "attention.self.key.weight",
                                      "attention.self.value.weight", "intermediate.dense.weight", NULL};
static const char *const biases[] = {"attention.self.query.bias", "attention.self.key.bias",
                                     "attention.self.value.bias", "intermediate.dense.bias", NULL};
static const char *const rows[] = {"attention.output.dense.weight", "output.dense.weight", NULL};
static const char *const whole[] = {"attention.output.dense.bias",
                                    "attention.output.LayerNorm.weight",
                                    "attention.output.LayerNorm.bias",
                                    "output.dense.bias",
                                    "output.LayerNorm.weight",
                                    "output.LayerNorm.bias",
                                    NULL};

static void release_all(dist_value **values, size_t n) {
  for (size_t i = 0; i < n; i++) dist_value_release(values[i]);
}

static dist_status load_layer(dist_strategy *strategy, const dist_checkpoint *file, int layer,
                              const char *const *names, dist_value **out) {
  dist_value *tensors[MOST_NAMES] = {NULL};
  size_t n = 0;
  dist_status status = DIST_OK;
  for (; names[n] != NULL && !status; n++) {
    char name[96];
    snprintf(name, sizeof name, "encoder.layer.%d.%s", layer, names[n]);
    status = dist_checkpoint_map(file, name, NULL, &tensors[n]);
  }
  if (!status) status = dist_value_create_list(strategy, tensors, n, out);
  release_all(tensors, n);
  return status;
}

static dist_status load_group(dist_strategy *strategy, const dist_checkpoint *file, int layers,
                              const char *const *names, dist_value **out) {
  dist_value *items[MOST_LAYERS] = {NULL};
  dist_status status = DIST_OK;
  for (int i = 0; i < layers && !status; i++) status = load_layer(strategy, file, i, names, &items[i]);
  if (!status) status = dist_value_create_list(strategy, items, (size_t)layers, out);
  release_all(items, (size_t)layers);
  return status;
}

static int count_layers(const dist_checkpoint *file) {
  for (int layer = 0; layer < MOST_LAYERS; layer++) {
    char name[96];
    dist_tensor spec;
    snprintf(name, sizeof name, "encoder.layer.%d.%s", layer, columns[0]);
    if (dist_checkpoint_spec(file, name, &spec)) return layer;
  }
  return MOST_LAYERS;
}

dist_status weights_load(dist_strategy *strategy, const char *path, weights *out) {
  *out = (weights){NULL, NULL, NULL, NULL};
  dist_checkpoint *file = NULL;
  dist_status status = dist_checkpoint_open(strategy, path, &file);
  const int layers = status ? 0 : count_layers(file);
  if (!status && layers == 0) status = dist_fail(DIST_NOT_FOUND, "the file has no encoder.layer.0");
  if (!status) status = load_group(strategy, file, layers, columns, &out->columns);
  if (!status) status = load_group(strategy, file, layers, biases, &out->biases);
  if (!status) status = load_group(strategy, file, layers, rows, &out->rows);
  if (!status) status = load_group(strategy, file, layers, whole, &out->whole);
  dist_checkpoint_destroy(file);
  return status;
}

void weights_release(weights *w) {
  dist_value_release(w->columns);
  dist_value_release(w->biases);
  dist_value_release(w->rows);
  dist_value_release(w->whole);
}
