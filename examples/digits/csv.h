// SPDX-License-Identifier: Apache-2.0
//
// Reads a table of numbers with one label column from an untrusted CSV file. Every error is reported as
// "file:line: message"; the reader never guesses.
//
// Each line is a row. Fields are separated by commas and may be enclosed in double quotes, inside which ""
// stands for one quote. Blanks around a field are ignored. The first line is a header if none of its fields
// is a number. Empty lines are skipped. Every row must have as many fields as the first line, and every field
// except the label must be a finite decimal number.
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
  int32_t *labels;    /* [rows], indices into class_names */
  int64_t *lines;     /* [rows], line numbers in the file, from 1 */
  char **class_names; /* sorted: integers by value, then other texts by their bytes */
} csv_table;

/**
 * Reads the file `path`. `label` is the name or number (from 1) of the label column; NULL selects the last
 * column. Returns 0, or -1 with a message in `error`, in which case `out` is empty.
 */
int csv_read(const char *path, const char *label, csv_table *out, char error[CSV_MAX_ERROR_BYTES]);

void csv_free(csv_table *table);
