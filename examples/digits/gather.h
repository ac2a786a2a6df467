// SPDX-License-Identifier: Apache-2.0
//
// Collects the results of all workers on worker 0 after the training. The workers may be processes, which do
// not share memory.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "machine.h"
#include "trainer.h"

/** The offset between a worker's steady clock and that of worker 0. */
typedef struct {
  int32_t is_same; /* 1 = both workers use the same clock, and the offset is exactly 0 */
  /* The worker's clock is ahead by offset_ns, plus or minus uncertainty_ns. These are hard bounds, not
     estimates, because a message is received after it was sent, in both directions. */
  int64_t offset_ns, uncertainty_ns;
} gather_clock;

/** How busy a worker's machine was during training. */
typedef struct {
  int64_t numbers[MACHINE_NUMBERS]; /* see machine.h */
} gather_machine;

/** A setting that must be the same on all workers. */
typedef struct {
  const char *name;
  int64_t value;
} gather_setting;

enum { GATHER_SETTINGS = 16 }; /* maximum number of settings */

/**
 * Compares `n` settings; all workers call it before training. If a worker's value differs from worker 0's, it
 * fails with INVALID_ARGUMENT on all workers. The message names both values.
 */
dist_status gather_compare(dist_strategy *strategy, int32_t num_workers, const gather_setting *settings,
                           size_t n);

/**
 * Gives worker 0 the results of all workers; all of them must call it. Worker 0 then has the predictions for the `rows` of
 * the table, the events of all replicas on its own clock, the clock of each worker in `clocks`, and each worker's machine in
 * `machines`. Before the call, each worker sets its own element of `machines`. `clocks` may be NULL if the workers share a
 * process. With one worker, only its clock is set.
 *
 * Fails with INTERNAL if the parameters of the workers differ.
 */
dist_status gather_results(trainer *t, int64_t rows, gather_clock *clocks, gather_machine *machines);
