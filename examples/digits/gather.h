// SPDX-License-Identifier: Apache-2.0
//
// What worker 0 learns of the others when all have trained: workers may be processes, so that none sees what another one
// has noted.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "trainer.h"

/** A worker's steady clock beside worker 0's. */
typedef struct {
  int32_t is_same; /* one machine, which has one such clock: the offset is 0 for sure */
  /* It shows so much more than worker 0's, give or take the uncertainty. These are bounds and no estimate: a reading
     that has come was made before it came, in both directions. */
  int64_t offset_ns, uncertainty_ns;
} gather_clock;

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
 * All workers call it. Worker 0 then has the predictions of the `rows` of the table and all replicas' events, with times
 * of its own clock, and `clocks` of each worker; NULL: all have one clock. Fails with INTERNAL if workers differ in
 * their parameters. One worker: nothing happens, but that its clock is its own.
 */
dist_status gather_results(trainer *t, int64_t rows, gather_clock *clocks);
