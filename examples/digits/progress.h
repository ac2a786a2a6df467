// SPDX-License-Identifier: Apache-2.0
//
// What the trainer prints while it runs: on a terminal one line that is redrawn, elsewhere a line an epoch.
#pragma once

#include <stdint.h>

typedef struct {
  int32_t epochs;
  int32_t replicas;
  int32_t one_core; /* to say so */
  int64_t rows;     /* of an epoch */
  int32_t is_terminal;
  int64_t drawn_ns;
} progress;

/** What there is to show: the mean loss and the speed of the epoch so far. */
typedef struct {
  int32_t epoch; /* from 1 */
  int64_t rows;
  double loss;
  double examples_per_second;
} progress_state;

progress progress_create(int32_t epochs, int32_t replicas, int32_t one_core, int64_t rows);

/** After a step: redraws the line, at most some times a second. */
void progress_step(progress *p, const progress_state *state, int64_t now_ns);

/** After an epoch. */
void progress_epoch(progress *p, const progress_state *state, double test_accuracy);

/** Wipes the redrawn line, so that something else may be printed. */
void progress_clear(const progress *p);

enum { PROGRESS_NUMBER_BYTES = 32 };

/** 102090 as "102,090"; returns `out`. */
const char *progress_thousands(int64_t number, char out[PROGRESS_NUMBER_BYTES]);
