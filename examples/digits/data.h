// SPDX-License-Identifier: Apache-2.0
//
// Prepares a table for training: a training part and a held-out part, with features scaled to about [-1, 1].
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "csv.h"

enum {
  DATA_MIN_ROWS = 10,
  DATA_BATCH_ROWS = 64, /* per global batch */
  DATA_MICRO_BATCH_ROWS = 8,
  DATA_MICRO_BATCHES = DATA_BATCH_ROWS / DATA_MICRO_BATCH_ROWS, /* per global batch */
  DATA_NO_LABEL = -1                                            /* the label of a padding row */
};

/** Some rows of a table. Padding rows (DATA_NO_LABEL) after the last row complete the last micro-batch. */
typedef struct {
  int64_t rows;
  float *features;  /* [rows, features], scaled */
  int32_t *labels;  /* [rows] */
  int32_t *sources; /* [rows], row numbers in the table */
} data_part;

/**
 * Shuffles the rows with `seed` (random.h). The last fifth of the shuffled rows (rows / 5) becomes `test`,
 * the rest `train`. Each feature is divided by its largest absolute value in `train`, or by 1 if that is 0.
 * Returns 0, or -1 if memory is exhausted.
 */
int data_split(const csv_table *table, uint64_t seed, data_part *train, data_part *test);

void data_free(data_part *part);

typedef struct {
  int32_t micro_batches; /* 1 = the dataset's elements are micro-batches; 0 = they are rows */
  int32_t shuffle;
  int32_t one_core; /* 1 = do not prefetch: the thread that asks for a batch makes it */
  uint64_t seed;
} data_order;

/**
 * Creates a dataset of {features, labels, sources} with global batches of DATA_BATCH_ROWS rows. If its
 * elements are rows, a replica receives tensors of shape [rows, ...]. If they are micro-batches, it receives
 * [micro-batches, DATA_MICRO_BATCH_ROWS, ...]. A batch then contains the same micro-batches for any number of
 * replicas, and none is split.
 */
dist_status data_to_dataset(dist_strategy *strategy, const data_part *part, int64_t features,
                            data_order order, dist_dataset **out_dataset);
