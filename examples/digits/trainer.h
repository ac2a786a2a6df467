// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel training on libdist: one step is one dist_run_values(), in which every replica computes
// gradients on its part of the batch, all-reduces them with its peers, and changes its own copy of the
// variables alike.
//
// With DIST_NUMERICS_ORDERED a replica's part is rows, whose gradients it adds up itself: the bits depend on
// how many rows that are, so on the number of replicas. With DIST_NUMERICS_REPRODUCIBLE its part is whole
// micro-batches, and it brings the gradients of each as a contribution of their own to the one sum, which is
// exact: the bits depend on the micro-batches alone.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "data.h"
#include "model.h"
#include "network.h"

enum { TRAINER_COMPUTE = 0, TRAINER_ALL_REDUCE = 1, TRAINER_UPDATE = 2, TRAINER_KINDS = 3 };

/** What a replica did between two moments of the steady clock. */
typedef struct {
  int64_t step; /* from 1 */
  int32_t kind; /* TRAINER_... */
  int64_t start_ns, end_ns;
  int64_t cpu_ns; /* for how long its thread was on a CPU meanwhile */
} trainer_event;

enum { TRAINER_EVENTS = 64 * TRAINER_KINDS }; /* the latest 64 steps */
enum { TRAINER_TEXT_BYTES = 2048 };

/** One replica's own: written by that replica alone. */
typedef struct {
  network net;
  network_gradients *gradients;         /* of each micro-batch of its part; [0] becomes the sum over all */
  trainer_event events[TRAINER_EVENTS]; /* a ring: event k is at k % TRAINER_EVENTS */
  int64_t num_events;                   /* since the start */
  int64_t total_ns[TRAINER_KINDS];      /* time since the start, by kind */
  int64_t cpu_ns[TRAINER_KINDS];        /* CPU time of its thread, by kind */
  dist_status told;                     /* how the latest all_reduce ended for it */
  char report[TRAINER_TEXT_BYTES];      /* where that is no DIST_OK: libdist's words */
} trainer_replica;

typedef struct {
  dist_strategy *strategy;
  int32_t num_replicas; /* of all workers */
  int32_t first, local; /* this worker's */
  int32_t numerics;     /* DIST_NUMERICS_... */
  int64_t most_parts;   /* micro-batches that a replica may have; ORDERED: 1, all its rows */
  model parameters;
  trainer_replica *replicas; /* of all workers; those of others are empty */
  float rate;
  int64_t step;          /* the one under way, from 1; 0 before the first */
  int64_t batch_rows;    /* of its global batch */
  int32_t fault_replica; /* this replica fails in fault_step; 0: none does */
  int64_t fault_step;
  int32_t *predictions; /* where trainer_evaluate() writes those of this worker's rows, by row of the table */
} trainer;

/** Of a worker with `local` replicas from `first` on. trainer_destroy() ends it, also after a failure. */
dist_status trainer_create(dist_strategy *strategy, int32_t first, int32_t local, int64_t features,
                           int64_t classes, uint64_t seed, int32_t numerics, trainer *out);

void trainer_destroy(trainer *t);

/**
 * Counts the rows of a batch, of all workers, for the steps on it. *stop says whether this worker wants to stop, and then
 * whether one of them does: all stop before the same step.
 */
dist_status trainer_open_batch(trainer *t, dist_value *batch, int32_t *stop);

/**
 * Step t->step on the batch that is open of a dataset, of micro-batches where the numerics are REPRODUCIBLE; adds to `score`
 * what the model made of it before the step. A replica that fails before its gradients are exchanged stops
 * its peers there: no parameter has changed, and the step may be taken again.
 */
dist_status trainer_step(trainer *t, dist_value *batch, network_score *score);

/** Scores the model on a whole dataset of rows. */
dist_status trainer_evaluate(trainer *t, dist_dataset *dataset, network_score *score);

/** Nanoseconds of the steady clock. */
int64_t trainer_now_ns(void);
