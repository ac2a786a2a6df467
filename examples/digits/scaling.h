// SPDX-License-Identifier: Apache-2.0
//
// The same training with several numbers of replicas: how long each took, and whether they came to the same
// bits.
#pragma once

#include <stdint.h>

#include "model.h"
#include "options.h"
#include "trainer.h"

typedef struct {
  int32_t replicas;
  int32_t one_core; /* one replica, and no other thread */
  double seconds;   /* of the training, without the tests */
  double
      parts[TRAINER_KINDS]; /* of the seconds: what a replica took for each kind, in the mean over replicas */
  double test_accuracy;
  char digest[MODEL_DIGEST_BYTES];
} scaling_run;

/** The runs that were finished. */
typedef struct {
  scaling_run runs[1 + OPTIONS_MAX_RUNS]; /* of a list the first is that of one core */
  int32_t num_runs;
} scaling;

/** Whether all runs have the same parameters. */
int scaling_equal(const scaling *s);

/**
 * Prints a table, a line a run: the seconds and what they were for, the speed-up against one core, the first 16 digits of
 * the hash. `rest` is what replicas wait between two steps: the batch, beginning and ending a run, adding up the scores.
 */
void scaling_print(const scaling *s);
