// SPDX-License-Identifier: Apache-2.0
//
// The split and the scale depend on the rows and the seed alone, never on the number of replicas.
#include "data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

static int allocate(data_part *part, int64_t rows, int64_t features) {
  part->rows = rows;
  part->features = malloc((size_t)(rows * features) * sizeof *part->features);
  part->labels = malloc((size_t)rows * sizeof *part->labels);
  part->sources = malloc((size_t)rows * sizeof *part->sources);
  return part->features && part->labels && part->sources ? 0 : -1;
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
                            int64_t global_batch_size, int32_t shuffle, uint64_t seed,
                            dist_dataset **out_dataset) {
  const int64_t matrix_shape[] = {part->rows, features};
  const int64_t column_shape[] = {part->rows};
  const dist_tensor tensors[] = {{part->features, DIST_F32, 2, matrix_shape, NULL},
                                 {part->labels, DIST_I32, 1, column_shape, NULL},
                                 {part->sources, DIST_I32, 1, column_shape, NULL}};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = global_batch_size;
  options.shuffle = shuffle;
  options.seed = seed;
  return dist_dataset_create_from_tensors(strategy, tensors, 3, &options, out_dataset);
}
