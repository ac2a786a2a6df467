// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel training with libdist. One step is one dist_run_values(): every replica computes gradients on
// its part of the batch, all-reduces them, and applies the same update to its own copy of the variables.
//
// With DIST_NUMERICS_ORDERED, a replica's part consists of rows, and the replica adds up their gradients
// itself. The bits depend on the number of these rows and therefore on the number of replicas. With
// DIST_NUMERICS_REPRODUCIBLE, its part consists of whole micro-batches, and it passes each micro-batch's
// gradients to the all-reduce as a separate contribution. That sum is exact, so the bits depend only on the
// micro-batches.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "data.h"
#include "model.h"
#include "network.h"

enum { TRAINER_COMPUTE = 0, TRAINER_ALL_REDUCE = 1, TRAINER_UPDATE = 2, TRAINER_KINDS = 3 };

/** An interval in which a replica did one kind of work, on the steady clock. */
typedef struct {
  int64_t step; /* counted from 1 */
  int32_t kind; /* TRAINER_COMPUTE, _ALL_REDUCE or _UPDATE */
  int64_t start_ns, end_ns;
  int64_t cpu_ns; /* CPU time of its thread in the interval */
} trainer_event;

enum { TRAINER_EVENTS = 64 * TRAINER_KINDS }; /* the latest 64 steps */
enum { TRAINER_TEXT_BYTES = 2048 };

/** The state of one replica. Only that replica writes it. */
typedef struct {
  network net;
  network_gradients *gradients;         /* [micro-batch]; [0] becomes the sum over all replicas */
  trainer_event events[TRAINER_EVENTS]; /* a ring buffer: event k is at k % TRAINER_EVENTS */
  int64_t num_events;                   /* since the start */
  int64_t total_ns[TRAINER_KINDS];      /* time since the start, by kind */
  int64_t cpu_ns[TRAINER_KINDS];        /* CPU time of its thread, by kind */
  dist_status told;                     /* result of its latest all_reduce */
  char report[TRAINER_TEXT_BYTES];      /* libdist's message if that failed */
} trainer_replica;

typedef struct {
  dist_strategy *strategy;
  int32_t num_replicas; /* over all workers */
  int32_t first, local; /* the replicas of this worker */
  dist_numerics numerics;
  int64_t most_parts; /* maximum number of micro-batches per replica; 1 (all its rows) if ORDERED */
  model parameters;
  trainer_replica *replicas; /* of all workers; other workers' entries are empty */
  float rate;
  int64_t step;          /* the current step, from 1; 0 before the first */
  int64_t batch_rows;    /* rows of the current global batch */
  int32_t fault_replica; /* this replica fails in fault_step, unless that is 0 */
  int64_t fault_step;
  int32_t *predictions; /* written by trainer_evaluate() for this worker's rows; by row of the table */
} trainer;

/**
 * Creates the trainer of a worker with `local` replicas from `first` on. Call trainer_destroy() even if this
 * fails.
 */
dist_status trainer_create(dist_strategy *strategy, int32_t first, int32_t local, int64_t features,
                           int64_t classes, uint64_t seed, dist_numerics numerics, trainer *out);

void trainer_destroy(trainer *t);

/**
 * Counts the rows of a batch over all workers; the following steps use this batch. On entry, *stop is whether
 * this worker wants to stop; on return, whether any worker does. All workers thus stop before the same step.
 */
dist_status trainer_open_batch(trainer *t, dist_value *batch, int32_t *stop);

/**
 * Takes step t->step on the open batch, which must consist of micro-batches if the numerics are REPRODUCIBLE.
 * Adds the model's score on the batch, measured before the update, to *score. If a replica fails before the
 * gradients are exchanged, the step fails on all replicas. No parameter has changed then, and the step can be
 * repeated.
 */
dist_status trainer_step(trainer *t, dist_value *batch, network_score *score);

/** Scores the model on a whole dataset of rows. */
dist_status trainer_evaluate(trainer *t, dist_dataset *dataset, network_score *score);

/** The steady clock, in nanoseconds. */
int64_t trainer_now_ns(void);
