// SPDX-License-Identifier: Apache-2.0
//
// The split and the scaling depend only on the rows and the seed, never on the number of replicas.
#include "data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

static int64_t num_micro_batches(const data_part *part) {
  return (part->rows + DATA_MICRO_BATCH_ROWS - 1) / DATA_MICRO_BATCH_ROWS;
}

static int allocate(data_part *part, int64_t rows, int64_t features) {
  part->rows = rows;
  const int64_t filled_up = num_micro_batches(part) * DATA_MICRO_BATCH_ROWS;
  part->features = calloc((size_t)(filled_up * features), sizeof *part->features);
  part->labels = malloc((size_t)filled_up * sizeof *part->labels);
  part->sources = calloc((size_t)filled_up, sizeof *part->sources);
  if (!part->features || !part->labels || !part->sources) return -1;
  for (int64_t i = rows; i < filled_up; i++) part->labels[i] = DATA_NO_LABEL;
  return 0;
}

static void fill(const csv_table *table, const int64_t *order, data_part *part) {
  for (int64_t i = 0; i < part->rows; i++) {
    memcpy(part->features + i * table->features, table->values + order[i] * table->features,
           (size_t)table->features * sizeof *part->features);
    part->labels[i] = table->labels[order[i]];
    part->sources[i] = (int32_t)order[i];
  }
}

static void scale(data_part *part, int64_t features, const float *largest) {
  for (int64_t i = 0; i < part->rows; i++)
    for (int64_t j = 0; j < features; j++)
      if (largest[j] > 0.0f) part->features[i * features + j] /= largest[j];
}

int data_split(const csv_table *table, uint64_t seed, data_part *train, data_part *test) {
  memset(train, 0, sizeof *train);
  memset(test, 0, sizeof *test);
  const int64_t held_out = table->rows / 5;
  const int64_t kept = table->rows - held_out;
  int64_t *order = malloc((size_t)table->rows * sizeof *order);
  float *largest = calloc((size_t)table->features, sizeof *largest);
  int status = -1;
  if (order && largest && !allocate(train, kept, table->features) &&
      !allocate(test, held_out, table->features)) {
    for (int64_t i = 0; i < table->rows; i++) order[i] = i;
    random_stream stream = {seed};
    random_shuffle(&stream, order, (size_t)table->rows);
    fill(table, order, train);
    fill(table, order + kept, test);
    for (int64_t i = 0; i < kept; i++)
      for (int64_t j = 0; j < table->features; j++)
        largest[j] = fmaxf(largest[j], fabsf(train->features[i * table->features + j]));
    scale(train, table->features, largest);
    scale(test, table->features, largest);
    status = 0;
  }
  free(order);
  free(largest);
  return status;
}

void data_free(data_part *part) {
  free(part->features);
  free(part->labels);
  free(part->sources);
  memset(part, 0, sizeof *part);
}

dist_status data_to_dataset(dist_strategy *strategy, const data_part *part, int64_t features,
                            data_order order, dist_dataset **out_dataset) {
  const int64_t rows_shape[] = {part->rows, features};
  const int64_t micro_batches_shape[] = {num_micro_batches(part), DATA_MICRO_BATCH_ROWS, features};
  const int64_t *shape = order.micro_batches ? micro_batches_shape : rows_shape;
  const int32_t ndim = order.micro_batches ? 3 : 2;
  // `labels` and `sources` have the shape of `features` without its last dimension.
  const dist_tensor tensors[] = {{part->features, DIST_F32, ndim, shape, NULL},
                                 {part->labels, DIST_I32, ndim - 1, shape, NULL},
                                 {part->sources, DIST_I32, ndim - 1, shape, NULL}};
  dist_dataset_options how = DIST_DATASET_OPTIONS_INIT;
  how.global_batch_size = order.micro_batches ? DATA_MICRO_BATCHES : DATA_BATCH_ROWS;
  how.shuffle = order.shuffle;
  how.seed = order.seed;
  how.as_one_process = 1;
  how.prefetch = order.one_core ? -1 : 0;
  return dist_dataset_create_from_tensors(strategy, tensors, 3, &how, out_dataset);
}
