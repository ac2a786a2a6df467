// SPDX-License-Identifier: Apache-2.0
//
// The same training with several numbers of replicas: how long each took, and whether they came to the same
// bits.
#pragma once

#include <stdint.h>

#include "model.h"
#include "options.h"

typedef struct {
  int32_t replicas;
  double seconds; /* of the training, without the tests */
  double test_accuracy;
  char digest[MODEL_DIGEST_BYTES];
} scaling_run;

/** The runs that were finished. */
typedef struct {
  scaling_run runs[OPTIONS_MAX_RUNS];
  int32_t num_runs;
} scaling;

/** Whether all runs have the same parameters. */
int scaling_equal(const scaling *s);

/** Prints a table: a line a run, the speed-up against the first, the first 16 digits of the hash. */
void scaling_print(const scaling *s);
