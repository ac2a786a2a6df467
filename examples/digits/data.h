// SPDX-License-Identifier: Apache-2.0
//
// From a table to what a model learns from: a training part and a held-out part, with features of about one.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

#include "csv.h"

enum { DATA_MIN_ROWS = 10 };

/** Some rows of a table. */
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

/** A dataset of {features, labels, sources}, in batches of `global_batch_size` for all replicas together. */
dist_status data_to_dataset(dist_strategy *strategy, const data_part *part, int64_t features,
                            int64_t global_batch_size, int32_t shuffle, uint64_t seed,
                            dist_dataset **out_dataset);
