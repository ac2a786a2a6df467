// SPDX-License-Identifier: Apache-2.0
//
// A training session: what its steps share, and the steps: load once, then prepare, train and end each run.
// They return the program's exit status, 0 to go on; else they have said on standard error what was wrong.
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
  job place;             /* is_there: the workers are processes; else they are of this one */
  int32_t num_workers;   /* of the run under way */
  int32_t worker;        /* which one this is */
  int32_t replicas;      /* of this worker */
  int32_t first_replica; /* of this worker */
  int32_t one_core;      /* the run under way has one thread, for the others to be compared with */
  dist_network *network; /* to the other workers of this process; NULL: there are none */
  int32_t stopped;       /* all workers stop before the next step */
  csv_table table;
  data_part train, test;
  int32_t
      *predictions; /* of held-out rows, by row of the table: its own, in the end worker 0 has all; else 0 */
  dist_strategy *strategy;
  dist_dataset *train_set, *test_set;
  trainer t;
  progress shown;
  report_epoch *epochs;
  int32_t num_epochs;               /* finished ones */
  double test_accuracy;             /* the latest */
  char failure[TRAINER_TEXT_BYTES]; /* the report of the all_reduce in the step that failed; "" */
  dist_status failed_status;        /* of that all_reduce */
  int32_t failed_replica;
  int64_t failed_step;
  gather_clock *clocks;     /* of each worker, where they are processes; NULL: all have this one's */
  gather_machine *machines; /* of each worker, over the training; in the end worker 0 has all */
} session;

/** Finds out what this process is: one of the workers of a job, or all there is. */
int session_find_job(session *s);

/** Reads the table and splits it. */
int session_load(session *s);

/** Begins a run: makes the strategy, the datasets and the model. s->one_core counts, and `replicas` is then 1. */
int session_prepare(session *s, int32_t replicas);

/** Trains for the epochs asked for, or until interrupted; then worker 0 has what the report tells of all workers. */
int session_train(session *s);

/** Whether the training has been stopped, or is to be. */
int session_is_stopping(const session *s);

/** Ends a run, however far it came; the table stays. */
void session_end_run(session *s);

/** Ends all of it, however far it came. */
void session_end(session *s);

/** Says what libdist's latest error was about; returns EXIT_FAILURE. */
int session_say(const char *what);
