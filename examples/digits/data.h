// SPDX-License-Identifier: Apache-2.0
//
// From a table to what a model learns from: a training part and a held-out part, with features of about one.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "csv.h"

enum {
  DATA_MIN_ROWS = 10,
  DATA_BATCH_ROWS = 64, /* of a global batch */
  DATA_MICRO_BATCH_ROWS = 8,
  DATA_MICRO_BATCHES = DATA_BATCH_ROWS / DATA_MICRO_BATCH_ROWS, /* of a global batch */
  DATA_NO_LABEL = -1                                            /* of a row that is none */
};

/** Some rows of a table. Behind them, rows that are none (DATA_NO_LABEL) fill the last micro-batch up. */
typedef struct {
  int64_t rows;
  float *features;  /* rows x features, scaled */
  int32_t *labels;  /* rows */
  int32_t *sources; /* rows: which row of the table it is */
} data_part;

/**
 * Shuffles the rows by `seed` (random.h); the last fifth (rows / 5) of that order is `test`, the rest
 * `train`. Each feature is divided by the largest absolute value that it has in `train` (by 1 where that is
 * 0). 0, or -1: no memory.
 */
int data_split(const csv_table *table, uint64_t seed, data_part *train, data_part *test);

void data_free(data_part *part);

typedef struct {
  int32_t micro_batches; /* 1: the dataset's elements are micro-batches; 0: they are rows */
  int32_t shuffle;
  int32_t one_core; /* 1: who asks for a batch makes it; 0: it may have been made ahead */
  uint64_t seed;
} data_order;

/**
 * A dataset of {features, labels, sources}, in batches of DATA_BATCH_ROWS for all replicas together. Of rows
 * a replica gets tensors [rows, ...]. Of micro-batches it gets [micro-batches, DATA_MICRO_BATCH_ROWS, ...]:
 * the same ones are in a batch whatever the number of replicas, and none is split.
 */
dist_status data_to_dataset(dist_strategy *strategy, const data_part *part, int64_t features,
                            data_order order, dist_dataset **out_dataset);
