// SPDX-License-Identifier: Apache-2.0
//
// Runs a text through an encoder whose weights are divided over logical devices, and says how far the result
// is from ONNX Runtime's, and how long it took (README.md).
//
//     tensor_parallel WEIGHTS REFERENCE [DEVICES ...]
#define DIST_EXPERIMENTAL
#include <dist/dist.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "encoder.h"

// Both round to 24 bits, in another order: ten times what was seen on six layers.
static const float most_difference = 5e-5f;
enum { PASSES = 5, MOST_DEVICES = 64 };

// One replica of `devices` logical devices.
static dist_status make_strategy(int32_t devices, dist_strategy **out_strategy) {
  const int32_t shape[] = {1, 1, 1, devices};
  int32_t coordinates[MOST_DEVICES][4] = {{0}};
  for (int32_t d = 0; d < devices; d++) coordinates[d][3] = d;
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  dist_status status = dist_topology_create(shape, 4, coordinates[0], 1, devices, NULL, &topology);
  if (!status)
    status = dist_device_assignment_build(topology, shape, NULL, 4, 1, DIST_DEVICE_ORDER_MESH, &assignment);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MESH;
  options.device_assignment = assignment;
  if (!status) status = dist_strategy_create(&options, out_strategy);
  dist_device_assignment_destroy(assignment);
  dist_topology_destroy(topology);
  return status;
}

typedef struct {
  dist_value *input, *output;  // [tokens, hidden size]
  int64_t heads;
} reference;

static dist_status load_reference(dist_strategy *strategy, const char *path, reference *out) {
  dist_checkpoint *file = NULL;
  dist_status status = dist_checkpoint_open(strategy, path, &file);
  if (!status) status = dist_checkpoint_read(file, "input", &out->input);
  if (!status) status = dist_checkpoint_read(file, "output", &out->output);
  const char *heads = status ? NULL : dist_checkpoint_metadata(file, "heads");
  if (heads != NULL) out->heads = strtoll(heads, NULL, 10);
  dist_checkpoint_destroy(file);
  return status;
}

static float largest_difference(const dist_value *a, const dist_value *b) {
  dist_tensor x, y;
  if (dist_value_tensor(a, &x) || dist_value_tensor(b, &y)) return INFINITY;
  if (x.shape[0] != y.shape[0] || x.shape[1] != y.shape[1]) return INFINITY;
  float most = 0.0f;
  for (int64_t i = 0; i < x.shape[0] * x.shape[1]; i++) {
    const float difference = fabsf(((const float *)x.data)[i] - ((const float *)y.data)[i]);
    if (!(difference <= most)) most = difference;  // not a number, too
  }
  return most;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// The shortest of a few passes: others are longer by what else the machine did.
static dist_status measure(dist_strategy *strategy, const weights *w, const reference *text,
                           float *out_difference, double *out_seconds) {
  *out_difference = 0.0f;
  *out_seconds = INFINITY;
  for (int pass = 0; pass < PASSES; pass++) {
    dist_value *output = NULL;
    const double begin = seconds();
    const dist_status status = encoder_run(strategy, w, text->heads, text->input, &output);
    *out_seconds = fmin(*out_seconds, seconds() - begin);
    if (!status) *out_difference = fmaxf(*out_difference, largest_difference(output, text->output));
    dist_value_release(output);
    if (status) return status;
  }
  return DIST_OK;
}

static dist_status run_on(int32_t devices, char **paths, double *alone) {
  dist_strategy *strategy = NULL;
  weights w = {NULL, NULL, NULL, NULL};
  reference text = {NULL, NULL, 0};
  float difference = 0.0f;
  double time = 0.0;
  dist_status status = make_strategy(devices, &strategy);
  if (!status) status = weights_load(strategy, paths[0], &w);
  if (!status) status = load_reference(strategy, paths[1], &text);
  if (!status) status = measure(strategy, &w, &text, &difference, &time);
  if (!status) {
    if (*alone == 0.0) *alone = time;
    printf("%2" PRId32 " logical device%s %.1e from ONNX Runtime, %8.2f ms, %.2f times as fast\n", devices,
           devices == 1 ? ": " : "s:", (double)difference, time * 1e3, *alone / time);
    if (!(difference <= most_difference))
      status = dist_fail(DIST_DATA_LOSS, "that is further than rounding explains");
  }
  if (status) fprintf(stderr, "tensor_parallel: %s\n", dist_last_error());
  dist_value_release(text.input);
  dist_value_release(text.output);
  weights_release(&w);
  if (dist_strategy_destroy(strategy)) status = DIST_INTERNAL;
  return status;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: tensor_parallel WEIGHTS REFERENCE [DEVICES ...]\n");
    return 2;
  }
  double alone = 0.0;  // the first one's time: that of one device, unless it is not asked for
  char *standard[] = {"1", "2"};
  char **asked = argc > 3 ? argv + 3 : standard;
  const int n = argc > 3 ? argc - 3 : 2;
  for (int i = 0; i < n; i++) {
    const long devices = strtol(asked[i], NULL, 10);
    if (devices < 1 || devices > MOST_DEVICES) {
      fprintf(stderr, "tensor_parallel: %s: there may be 1 to %d devices\n", asked[i], MOST_DEVICES);
      return 2;
    }
    if (run_on((int32_t)devices, argv + 1, &alone)) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
