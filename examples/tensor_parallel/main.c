// SPDX-License-Identifier: Apache-2.0
//
// Runs a text through an encoder whose weights are divided over logical devices, and says how far the result
// is from ONNX Runtime's, and how long it took (README.md).
//
//     tensor_parallel WEIGHTS REFERENCE [DEVICES | REPLICASxDEVICES ...]
#define DIST_EXPERIMENTAL
#include <dist/dist.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "encoder.h"
#include "ops.h"

// Both round to 24 bits, in another order: twice what was seen on six layers.
static const float most_difference = 1e-5f;
enum { PASSES = 5, MOST_DEVICES = 64 };

// What an argument says.
typedef struct {
  int32_t replicas, devices;  // devices: of each replica
} layout;

static dist_status make_strategy(layout of, dist_strategy **out_strategy) {
  const int32_t mesh[] = {of.replicas, 1, 1, of.devices}, block[] = {1, 1, 1, of.devices};
  int32_t coordinates[MOST_DEVICES][4] = {{0}};
  for (int32_t d = 0; d < of.replicas * of.devices; d++) {
    coordinates[d][0] = d / of.devices;
    coordinates[d][3] = d % of.devices;
  }
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  dist_status status =
      dist_topology_create(mesh, 4, coordinates[0], 1, of.replicas * of.devices, NULL, &topology);
  if (!status)
    status = dist_device_assignment_build(topology, block, NULL, 4, of.replicas, DIST_DEVICE_ORDER_MESH,
                                          &assignment);
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

// Of all replicas' outputs.
static float difference_from(const reference *text, const dist_value *outputs, int32_t replicas) {
  if (replicas == 1) return largest_difference(outputs, text->output);
  float most = 0.0f;
  for (int32_t r = 0; r < replicas; r++)
    most = fmaxf(most, largest_difference(dist_value_item(outputs, (size_t)r), text->output));
  return most;
}

typedef struct {
  float difference;
  double seconds;
  encoder_times times;
} result;

// The shortest of a few passes: others are longer by what else the machine did.
static dist_status measure(encoder *e, const reference *text, int32_t replicas, result *out) {
  *out = (result){0.0f, INFINITY, {0.0, 0.0}};
  for (int pass = 0; pass < PASSES; pass++) {
    dist_value *output = NULL;
    const double begin = seconds();
    const dist_status status = encoder_run(e, text->input, &output);
    const double took = seconds() - begin;
    if (!status && took < out->seconds) {
      out->seconds = took;
      out->times = encoder_last_times(e);
    }
    if (!status) out->difference = fmaxf(out->difference, difference_from(text, output, replicas));
    dist_value_release(output);
    if (status) return status;
  }
  return DIST_OK;
}

static void print(layout of, const encoder *e, const result *r, double alone) {
  if (of.replicas > 1) printf("%2" PRId32 " replicas of", of.replicas);
  printf("%2" PRId32 " logical device%s %.1e from ONNX Runtime, %8.2f ms, %.2f times as fast", of.devices,
         of.devices == 1 ? ": " : "s:", (double)r->difference, r->seconds * 1e3, alone / r->seconds);
  printf("; collectives %.2f ms, waiting %.2f ms; packed %.1f MB\n", r->times.own_seconds * 1e3,
         r->times.waiting_seconds * 1e3, (double)encoder_bytes(e) * 1e-6);
}

static dist_status run_on(layout of, char **paths, double *alone) {
  dist_strategy *strategy = NULL;
  weights w = {NULL, NULL, NULL, NULL};
  encoder *e = NULL;
  reference text = {NULL, NULL, 0};
  result r;
  dist_status status = make_strategy(of, &strategy);
  if (!status) status = weights_load(strategy, paths[0], &w);
  if (!status) status = load_reference(strategy, paths[1], &text);
  if (!status) status = encoder_create(strategy, &w, text.heads, &e);
  weights_release(&w);  // the encoder has packed ones
  if (!status) status = measure(e, &text, of.replicas, &r);
  if (!status) {
    if (*alone == 0.0) *alone = r.seconds;
    print(of, e, &r, *alone);
    if (!(r.difference <= most_difference))
      status = dist_fail(DIST_DATA_LOSS, "that is further than rounding explains");
  }
  if (status) fprintf(stderr, "tensor_parallel: %s\n", dist_last_error());
  dist_value_release(text.input);
  dist_value_release(text.output);
  encoder_destroy(e);
  if (dist_strategy_destroy(strategy)) status = DIST_INTERNAL;
  return status;
}

// "2": one replica of two devices; "2x1": two replicas of one device each.
static layout parse(const char *text) {
  char *end = NULL;
  long numbers[2] = {1, strtol(text, &end, 10)};
  if (*end == 'x') {
    numbers[0] = numbers[1];
    numbers[1] = strtol(end + 1, &end, 10);
  }
  const int wrong = *end != '\0' || numbers[0] < 1 || numbers[1] < 1 || numbers[0] > MOST_DEVICES ||
                    numbers[1] > MOST_DEVICES || numbers[0] * numbers[1] > MOST_DEVICES;
  return wrong ? (layout){0, 0} : (layout){(int32_t)numbers[0], (int32_t)numbers[1]};
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: tensor_parallel WEIGHTS REFERENCE [DEVICES | REPLICASxDEVICES ...]\n");
    return 2;
  }
  printf("computes by %s\n", ops_name());
  double alone = 0.0;  // the first one's time: that of one device, unless it is not asked for
  char *standard[] = {"1", "2"};
  char **asked = argc > 3 ? argv + 3 : standard;
  const int n = argc > 3 ? argc - 3 : 2;
  for (int i = 0; i < n; i++) {
    const layout of = parse(asked[i]);
    if (of.devices == 0) {
      fprintf(stderr, "tensor_parallel: %s: there may be 1 to %d devices\n", asked[i], MOST_DEVICES);
      return 2;
    }
    if (run_on(of, argv + 1, &alone)) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
