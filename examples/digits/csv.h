// SPDX-License-Identifier: Apache-2.0
//
// Reads a table of numbers with one column of labels from a CSV file that nobody vouches for: whatever is
// wrong with it comes back as "file:line: what was wrong", and nothing is guessed.
//
// A line is a row; fields are parted by commas, may stand in double quotes ("" inside is one quote) and lose
// blanks around them. The first line names the columns if none of its fields is a number. Empty lines are
// skipped. Every row has as many fields as the first line; each but the label is a finite decimal number.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
  CSV_MAX_LINE_BYTES = 1 << 20,
  CSV_MAX_COLUMNS = 4096,
  CSV_MAX_VALUES = 1 << 26, /* rows * features: 256 MB of floats */
  CSV_MAX_CLASSES = 1000,
  CSV_MAX_LABEL_BYTES = 64,
  CSV_MAX_ERROR_BYTES = 512
};

typedef struct {
  int64_t rows;
  int64_t features;
  int64_t classes;
  float *values;      /* rows x features */
  int32_t *labels;    /* of each row: an index in class_names */
  int64_t *lines;     /* of each row: its line in the file, from 1 */
  char **class_names; /* whole numbers by value, then other texts by their bytes */
} csv_table;

/**
 * Reads `path`. `label` is a column's name or number (from 1); NULL: the last one. 0, or -1 with the reason
 * in `error`; then `out` is empty.
 */
int csv_read(const char *path, const char *label, csv_table *out, char error[CSV_MAX_ERROR_BYTES]);

void csv_free(csv_table *table);
