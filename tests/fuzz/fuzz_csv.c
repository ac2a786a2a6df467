/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: the digits trainer's CSV reader. The first byte selects the label's column; the rest is the
 * file. In an accepted table, every number must be finite and every label a class. A rejected file must have
 * a printable reason.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "examples/digits/csv.h"
#include "tests/fuzz/bytes.h"

static void check_table(const csv_table* table) {
  assert_true(table->rows > 0 && table->features > 0);
  assert_true(table->rows <= CSV_MAX_VALUES / table->features);
  assert_true(table->classes >= 2 && table->classes <= CSV_MAX_CLASSES);
  for (int64_t i = 0; i < table->rows * table->features; i++) assert_true(isfinite(table->values[i]));
  for (int64_t i = 0; i < table->rows; i++) {
    assert_true(table->labels[i] >= 0 && table->labels[i] < table->classes);
    assert_true(table->lines[i] > (i > 0 ? table->lines[i - 1] : 0));
  }
  for (int64_t c = 0; c < table->classes; c++) {
    const size_t length = strlen(table->class_names[c]);
    assert_true(length > 0 && length <= CSV_MAX_LABEL_BYTES);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char* const labels[] = {NULL, "1", "2", "label", "-1", "99999999999999999999", ""};
  bytes in = {data, size};
  const char* label = labels[(size_t)take_below(&in, sizeof labels / sizeof labels[0])];
  const int file = memfd_create("table", 0);
  assert_true(file >= 0);
  assert_true(write(file, in.at, in.left) == (ssize_t)in.left);
  char path[64], error[CSV_MAX_ERROR_BYTES] = "";
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  csv_table table;
  if (csv_read(path, label, &table, error) == 0) {
    check_table(&table);
    csv_free(&table);
  } else {
    assert_true(error[0] != '\0');
    for (const char* c = error; *c != '\0'; c++) assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
    assert_true(table.rows == 0 && table.values == NULL && table.class_names == NULL);
  }
  close(file);
  return 0;
}
