// SPDX-License-Identifier: Apache-2.0
//
// Compares trainings with different numbers of replicas: how long each one took, and whether all of them
// produced the same bits.
#pragma once

#include <stdint.h>

#include "model.h"
#include "options.h"
#include "trainer.h"

typedef struct {
  int32_t replicas;
  int32_t one_core;            /* 1 = one replica without further threads */
  double seconds;              /* of the training, without the tests */
  double parts[TRAINER_KINDS]; /* seconds that a replica spent on each kind of work, averaged over replicas */
  double test_accuracy;
  char digest[MODEL_DIGEST_BYTES];
} scaling_run;

/** The finished runs. */
typedef struct {
  scaling_run runs[1 + OPTIONS_MAX_RUNS]; /* for a list, the first one is the one-core run */
  int32_t num_runs;
} scaling;

/** Returns whether all runs ended with the same parameters. */
int scaling_equal(const scaling *s);

/**
 * Prints a table with one line per run: the total time and its parts, the speed-up over one core, and the
 * first 16 digits of the parameters' hash. `rest` is the time between steps: fetching the batch, starting and
 * ending a run, and adding up the scores.
 */
void scaling_print(const scaling *s);
