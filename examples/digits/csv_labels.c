// SPDX-License-Identifier: Apache-2.0
//
// Each distinct label text is a class. Classes are sorted (integers by value, then all other texts by their
// bytes), so the order of the rows in the file does not matter.
#include "csv_labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int whole_number(const char *text, long long *out) {
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  return end != text && *end == '\0' && errno == 0;
}

static int compare_labels(const void *left, const void *right) {
  const char *a = *(char *const *)left;
  const char *b = *(char *const *)right;
  long long x = 0, y = 0;
  const int a_is_number = whole_number(a, &x), b_is_number = whole_number(b, &y);
  if (a_is_number != b_is_number) return a_is_number ? -1 : 1;
  if (a_is_number && x != y) return x < y ? -1 : 1;
  return strcmp(a, b);
}

const char *csv_labels_to_classes(char *const *texts, csv_table *table) {
  static const char no_memory[] = "no memory for the labels";
  const size_t rows = (size_t)table->rows;
  table->labels = malloc(rows * sizeof *table->labels);
  table->class_names = calloc(CSV_MAX_CLASSES, sizeof *table->class_names);
  const char **sorted = malloc(rows * sizeof *sorted);
  if (!table->labels || !table->class_names || !sorted) {
    free(sorted);
    return no_memory;
  }
  memcpy(sorted, texts, rows * sizeof *sorted);
  qsort(sorted, rows, sizeof *sorted, compare_labels);
  const char *trouble = NULL;
  for (size_t i = 0; i < rows && !trouble; i++) {
    if (i > 0 && strcmp(sorted[i - 1], sorted[i]) == 0) continue;
    if (table->classes == CSV_MAX_CLASSES) {
      trouble = "more than 1000 different labels; is this the right column?";
    } else if ((table->class_names[table->classes] = strdup(sorted[i])) != NULL) {
      table->classes++;
    } else {
      trouble = no_memory;
    }
  }
  free(sorted);
  if (!trouble && table->classes < 2) trouble = "all labels are the same; two classes at least were expected";
  if (trouble) return trouble;
  for (size_t i = 0; i < rows; i++) {
    char *const *found = bsearch(&texts[i], table->class_names, (size_t)table->classes,
                                 sizeof *table->class_names, compare_labels);
    table->labels[i] = (int32_t)(found - table->class_names);
  }
  return NULL;
}
