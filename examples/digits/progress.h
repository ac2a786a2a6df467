// SPDX-License-Identifier: Apache-2.0
//
// Prints the progress of the training: on a terminal a single line that is redrawn, otherwise one line per
// epoch.
#pragma once

#include <stdint.h>

typedef struct {
  int32_t epochs;
  int32_t replicas;
  int32_t one_core; /* 1 = print that this is the one-core run */
  int64_t rows;     /* per epoch */
  int32_t is_terminal;
  int64_t drawn_ns;
} progress;

/** The values to show: the mean loss and the speed of the epoch so far. */
typedef struct {
  int32_t epoch; /* counted from 1 */
  int64_t rows;
  double loss;
  double examples_per_second;
} progress_state;

progress progress_create(int32_t epochs, int32_t replicas, int32_t one_core, int64_t rows);

/** Redraws the line after a step, at most a few times per second. */
void progress_step(progress *p, const progress_state *state, int64_t now_ns);

/** Prints the line of a finished epoch. */
void progress_epoch(progress *p, const progress_state *state, double test_accuracy);

/** Erases the redrawn line before other output. */
void progress_clear(const progress *p);

enum { PROGRESS_NUMBER_BYTES = 32 };

/** Formats 102090 as "102,090" and returns `out`. */
const char *progress_thousands(int64_t number, char out[PROGRESS_NUMBER_BYTES]);
