// SPDX-License-Identifier: Apache-2.0
//
// A training session: its state, and its steps. Call load once, then prepare, train and end_run for each run.
// The functions return 0 on success. Otherwise they print a message to standard error and return an exit
// status for the program.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "csv.h"
#include "data.h"
#include "gather.h"
#include "job.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "trainer.h"

typedef struct {
  options chosen;
  job place;             /* is_there: 1 = the workers are processes, 0 = they are threads */
  int32_t num_workers;   /* in the current run */
  int32_t worker;        /* number of this worker */
  int32_t replicas;      /* replicas of this worker */
  int32_t first_replica; /* first replica of this worker */
  int32_t one_core;      /* 1 = the current run uses a single thread, as a baseline for the others */
  dist_network *network; /* connects the workers of this process; NULL = there is only one */
  int32_t stopped;       /* 1 = all workers stop before the next step */
  csv_table table;
  data_part train, test;
  int32_t *predictions; /* by row of the table, 0 for training rows; after the training, worker 0 has all */
  dist_strategy *strategy;
  dist_dataset *train_set, *test_set;
  trainer t;
  progress shown;
  report_epoch *epochs;
  int32_t num_epochs;               /* number of finished epochs */
  double test_accuracy;             /* after the latest epoch */
  char failure[TRAINER_TEXT_BYTES]; /* the report of the all_reduce in the failed step, or "" */
  dist_status failed_status;        /* status of that all_reduce */
  int32_t failed_replica;
  int64_t failed_step;
  gather_clock *clocks;     /* [worker], if the workers are processes; NULL = all use this process's clock */
  gather_machine *machines; /* [worker], load during the training; complete only on worker 0 */
} session;

/** Finds out whether this process is one worker of a job or runs alone. */
int session_find_job(session *s);

/** Reads the table and splits it into a training and a held-out part. */
int session_load(session *s);

/** Starts a run: creates the strategy, the datasets and the model. With s->one_core, `replicas` must be 1. */
int session_prepare(session *s, int32_t replicas);

/**
 * Trains for the requested epochs or until interrupted. Afterwards, worker 0 has the results of all workers.
 */
int session_train(session *s);

/** Returns whether the training has been stopped or should stop. */
int session_is_stopping(const session *s);

/** Ends a run in any state. The table is kept. */
void session_end_run(session *s);

/** Ends the session in any state. */
void session_end(session *s);

/** Prints the last libdist error with the prefix `what`. Returns EXIT_FAILURE. */
int session_say(const char *what);
