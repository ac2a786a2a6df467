// SPDX-License-Identifier: Apache-2.0
//
// What worker 0 learns of the others when all have trained: workers may be processes, so that none sees what another one
// has noted.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "machine.h"
#include "trainer.h"

/** A worker's steady clock beside worker 0's. */
typedef struct {
  int32_t is_same; /* one machine, which has one such clock: the offset is 0 for sure */
  /* It shows so much more than worker 0's, give or take the uncertainty. These are bounds and no estimate: a reading
     that has come was made before it came, in both directions. */
  int64_t offset_ns, uncertainty_ns;
} gather_clock;

/** How busy a worker's machine was during the training. */
typedef struct {
  int64_t numbers[MACHINE_NUMBERS]; /* see machine.h */
} gather_machine;

/** What has to be the same on all workers. */
typedef struct {
  const char *name;
  int64_t value;
} gather_setting;

enum { GATHER_SETTINGS = 16 }; /* at most */

/**
 * All workers call it before they train. Fails with INVALID_ARGUMENT, on all of them, where a worker has another value
 * than worker 0 for one of the `n` settings, and names both.
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
