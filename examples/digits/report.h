// SPDX-License-Identifier: Apache-2.0
//
// The results of a run as JSON, which report.py turns into a page. README.md lists the fields.
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
  double train_loss, train_accuracy; /* measured on each batch before its step, averaged over the epoch */
  double test_loss, test_accuracy;
  double seconds; /* of the training, without the test */
} report_epoch;

/** Training speed in examples per second, without the tests. */
typedef struct {
  double training; /* over all finished epochs */
  double median_epoch;
  double best_epoch;
} report_speed;

/** Computes the speed of `num_epochs` epochs (at least one) of `rows` rows each. */
report_speed report_speed_of(const report_epoch *epochs, int32_t num_epochs, int64_t rows);

/** Everything that the report contains. Pointers are borrowed; NULL means that the part is absent. */
typedef struct {
  const char *command;
  const options *chosen;
  const csv_table *table;
  const data_part *train, *test;
  const trainer *trained;
  const scaling *runs; /* the finished runs; all other members describe the last one */
  const report_epoch *epochs;
  int32_t num_epochs; /* number of finished epochs */
  int32_t interrupted;
  double test_accuracy;
  const char *digest;
  const char *failure; /* libdist's report on the failed step */
  dist_status failed_status;
  int32_t failed_replica;
  int64_t failed_step;
  const contrast_result *contrast;
  int32_t num_workers;
  const gather_clock *clocks;     /* [worker] */
  const gather_machine *machines; /* [worker] */
} report;

/** Returns 0, or -1 with errno if the file cannot be written. */
int report_write(const char *path, const report *r);
