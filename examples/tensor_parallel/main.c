// SPDX-License-Identifier: Apache-2.0
//
// Runs a text through an encoder whose weights are split over logical devices. Prints the difference from the
// output of ONNX Runtime, and the time (see README.md).
//
//     tensor_parallel WEIGHTS REFERENCE [DEVICES | REPLICASxDEVICES ...]
#include <dist/dist.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "encoder.h"
#include "layout.h"
#include "ops.h"
#include "reference.h"

enum { PASSES = 5 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// The largest difference over all replicas' outputs.
static float difference_from(const reference *text, const dist_value *outputs, int32_t replicas) {
  if (replicas == 1) return reference_difference(text, outputs);
  float most = 0.0f;
  for (int32_t r = 0; r < replicas; r++)
    most = fmaxf(most, reference_difference(text, dist_value_item(outputs, (size_t)r)));
  return most;
}

typedef struct {
  float difference;
  double seconds;
  encoder_times times;
} result;

// Takes the fastest of a few passes, because other load on the machine only makes passes slower.
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
  dist_status status = layout_strategy(of, &strategy);
  if (!status) status = weights_load(strategy, paths[0], &w);
  if (!status) status = reference_load(strategy, paths[1], &text);
  if (!status) status = encoder_create(strategy, &w, text.heads, &e);
  weights_release(&w);  // the encoder has packed copies
  if (!status) status = measure(e, &text, of.replicas, &r);
  if (!status) {
    if (*alone == 0.0) *alone = r.seconds;
    print(of, e, &r, *alone);
    if (!(r.difference <= REFERENCE_MOST_DIFFERENCE))
      status = dist_fail(DIST_DATA_LOSS, "that is further than rounding explains");
  }
  if (status) fprintf(stderr, "tensor_parallel: %s\n", dist_last_error());
  reference_release(&text);
  encoder_destroy(e);
  if (dist_strategy_destroy(strategy)) status = DIST_INTERNAL;
  return status;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: tensor_parallel WEIGHTS REFERENCE [DEVICES | REPLICASxDEVICES ...]\n");
    return 2;
  }
  printf("computes by %s\n", ops_name());
  double alone = 0.0;  // time of the first layout: one device, unless the command line omits it
  char *standard[] = {"1", "2"};
  char **asked = argc > 3 ? argv + 3 : standard;
  const int n = argc > 3 ? argc - 3 : 2;
  for (int i = 0; i < n; i++) {
    const layout of = layout_parse(asked[i]);
    if (of.devices == 0) {
      fprintf(stderr, "tensor_parallel: %s: there may be 1 to %d devices\n", asked[i], LAYOUT_MOST_DEVICES);
      return 2;
    }
    if (run_on(of, argv + 1, &alone)) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
