// SPDX-License-Identifier: Apache-2.0
//
// What happened in a run, as JSON: report.py turns it into a page. The fields are listed in README.md.
#pragma once

#include <stdint.h>

#include "contrast.h"
#include "csv.h"
#include "data.h"
#include "gather.h"
#include "options.h"
#include "scaling.h"
#include "trainer.h"

typedef struct {
  double train_loss, train_accuracy; /* of each batch before its step, so the epoch's mean */
  double test_loss, test_accuracy;
  double seconds; /* of the training, without the test */
} report_epoch;

/** Examples per second of training, without the tests. */
typedef struct {
  double training; /* all finished epochs together */
  double median_epoch;
  double best_epoch;
} report_speed;

/** Of `num_epochs`, at least one, of `rows` each. */
report_speed report_speed_of(const report_epoch *epochs, int32_t num_epochs, int64_t rows);

/** All that the report tells of. Pointers are borrowed; NULL means that there is none. */
typedef struct {
  const char *command;
  const options *chosen;
  const csv_table *table;
  const data_part *train, *test;
  const trainer *trained;
  const scaling *runs; /* the finished ones; all else here is of the last */
  const report_epoch *epochs;
  int32_t num_epochs; /* finished ones */
  int32_t interrupted;
  double test_accuracy;
  const char *digest;
  const char *failure; /* the report on the step that failed */
  dist_status failed_status;
  int32_t failed_replica;
  int64_t failed_step;
  const contrast_result *contrast;
  int32_t num_workers;
  const gather_clock *clocks;     /* of each worker */
  const gather_machine *machines; /* of each worker */
} report;

/** 0, or -1 with errno: the file could not be written. */
int report_write(const char *path, const report *r);
