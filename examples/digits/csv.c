// SPDX-License-Identifier: Apache-2.0
//
// The reader makes one pass over the lines; csv_labels.c then turns the labels into classes. csv.h lists all
// limits.
#include "csv.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csv_labels.h"

typedef struct {
  const char *path;
  const char *label;
  FILE *file;
  int64_t line_number;
  char line[CSV_MAX_LINE_BYTES + 1];
  char *fields[CSV_MAX_COLUMNS]; /* pointers into `line` */
  size_t num_fields;
  size_t expected_fields; /* 0 = no line has been read yet */
  size_t label_field;
  int64_t row_capacity;
  char **label_texts;
  csv_table *table;
  char *error;
} reader;

__attribute__((format(printf, 2, 3))) static int fail(reader *r, const char *format, ...) {
  int used = r->line_number > 0 ? snprintf(r->error, CSV_MAX_ERROR_BYTES, "%.200s:%lld: ", r->path,
                                           (long long)r->line_number)
                                : snprintf(r->error, CSV_MAX_ERROR_BYTES, "%.200s: ", r->path);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(r->error + used, (size_t)(CSV_MAX_ERROR_BYTES - used), format, arguments);
  va_end(arguments);
  // The message may quote the file. Replace control characters, which a terminal would interpret.
  for (char *c = r->error; *c; c++)
    if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
  return -1;
}

// Reads the next line without its line break, up to CSV_MAX_LINE_BYTES bytes. Returns 1 on success, 0 at the
// end of the file, -1 on error.
static int next_line(reader *r) {
  size_t length = 0;
  int c = getc(r->file);
  if (c != EOF) r->line_number++;
  for (; c != EOF && c != '\n'; c = getc(r->file)) {
    if (c == '\0') return fail(r, "not a text file: there is a zero byte");
    if (length == CSV_MAX_LINE_BYTES) return fail(r, "the line has more than %d bytes", CSV_MAX_LINE_BYTES);
    r->line[length++] = (char)c;
  }
  if (ferror(r->file)) return fail(r, "%s", strerror(errno));
  if (c == EOF && length == 0) return 0;
  if (length > 0 && r->line[length - 1] == '\r') length--;
  r->line[length] = '\0';
  static const char byte_order_mark[] = "\xef\xbb\xbf";
  if (r->line_number == 1 && strncmp(r->line, byte_order_mark, 3) == 0)
    memmove(r->line, r->line + 3, length - 3 + 1);
  return 1;
}

static int is_blank(char c) { return c == ' ' || c == '\t'; }

// Unquotes the field that begins at `in`, in place. Returns the position after the closing quote, or NULL if
// there is no closing quote.
static char *unquote(char *in) {
  char *out = in;
  for (char *c = in + 1; *c; c++) {
    if (*c == '"' && c[1] != '"') {
      *out = '\0';
      return c + 1;
    }
    if (*c == '"') c++;
    *out++ = *c;
  }
  return NULL;
}

static int split_line(reader *r) {
  r->num_fields = 0;
  for (char *c = r->line;;) {
    if (r->num_fields == CSV_MAX_COLUMNS) return fail(r, "more than %d columns", CSV_MAX_COLUMNS);
    while (is_blank(*c)) c++;
    char *field = c;
    r->fields[r->num_fields++] = field;
    if (*field == '"') {
      c = unquote(field);
      if (!c) return fail(r, "column %zu: the quote is not closed on this line", r->num_fields);
      while (is_blank(*c)) c++;
      if (*c && *c != ',') return fail(r, "column %zu: text after the closing quote", r->num_fields);
      if (!*c) return 0;
      c++;
      continue;
    }
    while (*c && *c != ',') c++;
    char *end = c;
    while (end > field && is_blank(end[-1])) end--;
    const char separator = *c;
    *end = '\0';
    if (!separator) return 0;
    c++;
  }
}

// Parses a decimal number. Rejects hexadecimal numbers, "inf" and "nan", which strtod() would accept.
static int parse_number(const char *text, double *out) {
  if (!*text || text[strspn(text, "0123456789+-.eE")]) return 0;
  char *end;
  *out = strtod(text, &end);
  return *end == '\0';
}

static int take_feature(reader *r, size_t field, float *out) {
  const char *text = r->fields[field];
  double number;
  if (!*text) return fail(r, "column %zu is empty, a number was expected", field + 1);
  if (!parse_number(text, &number))
    return fail(r, "column %zu: \"%.40s\" is not a finite decimal number", field + 1, text);
  if (!(fabs(number) <= 1e30))
    return fail(r, "column %zu: %.40s is too large, at most 1e30 was expected", field + 1, text);
  *out = (float)number;
  return 0;
}

// Finds the label's column by name, if the first line is a header, or by number.
static int choose_label(reader *r, int has_header) {
  if (!r->label) {
    r->label_field = r->num_fields - 1;
    return 0;
  }
  for (size_t i = 0; has_header && i < r->num_fields; i++)
    if (strcmp(r->fields[i], r->label) == 0) {
      r->label_field = i;
      return 0;
    }
  char *end;
  errno = 0;
  const long number = strtol(r->label, &end, 10);
  if (end == r->label || *end)
    return fail(r,
                has_header ? "no column is named \"%.40s\""
                           : "there is no column \"%.40s\": this line names no columns, use a number",
                r->label);
  if (errno || number < 1 || (size_t)number > r->num_fields)
    return fail(r, "there is no column %.20s, the line has %zu", r->label, r->num_fields);
  r->label_field = (size_t)number - 1;
  return 0;
}

// Determines the table's shape from the first line. Returns 1 if the line is a header, 0 if it is a row, -1
// on error.
static int take_first_line(reader *r) {
  if (r->num_fields < 2)
    return fail(r, "one column, at least a feature and a label were expected (separated by commas)");
  int has_header = 1;
  for (size_t i = 0; i < r->num_fields; i++) {
    double number;
    if (parse_number(r->fields[i], &number)) has_header = 0;
  }
  if (choose_label(r, has_header)) return -1;
  r->expected_fields = r->num_fields;
  r->table->features = (int64_t)r->num_fields - 1;
  return has_header;
}

static int grow(reader *r) {
  csv_table *t = r->table;
  if (t->rows < r->row_capacity) return 0;
  const int64_t max_rows = CSV_MAX_VALUES / t->features;
  if (t->rows == max_rows) return fail(r, "more than %lld rows of this width", (long long)max_rows);
  int64_t capacity = r->row_capacity ? 2 * r->row_capacity : 1024;
  if (capacity > max_rows) capacity = max_rows;
  const size_t n = (size_t)capacity;
  float *values = realloc(t->values, n * (size_t)t->features * sizeof *values);
  if (values) t->values = values;
  int64_t *lines = realloc(t->lines, n * sizeof *lines);
  if (lines) t->lines = lines;
  char **texts = realloc(r->label_texts, n * sizeof *texts);
  if (texts) r->label_texts = texts;
  if (!values || !lines || !texts) return fail(r, "no memory for %lld rows", (long long)capacity);
  r->row_capacity = capacity;
  return 0;
}

static int take_row(reader *r) {
  if (r->num_fields != r->expected_fields)
    return fail(r, "%zu columns, %zu were expected as on the first line%s", r->num_fields, r->expected_fields,
                r->num_fields < r->expected_fields ? " (is the file cut short?)" : "");
  if (grow(r)) return -1;
  csv_table *t = r->table;
  float *out = t->values + t->rows * t->features;
  for (size_t i = 0; i < r->num_fields; i++)
    if (i != r->label_field && take_feature(r, i, out++)) return -1;
  const char *label = r->fields[r->label_field];
  if (!*label) return fail(r, "column %zu, the label, is empty", r->label_field + 1);
  if (strlen(label) > CSV_MAX_LABEL_BYTES)
    return fail(r, "column %zu: a label has at most %d bytes", r->label_field + 1, CSV_MAX_LABEL_BYTES);
  char *copy = strdup(label);
  if (!copy) return fail(r, "no memory");
  r->label_texts[t->rows] = copy;
  t->lines[t->rows++] = r->line_number;
  return 0;
}

static int read_rows(reader *r) {
  int more;
  while ((more = next_line(r)) > 0) {
    if (!r->line[0]) continue;
    if (split_line(r)) return -1;
    const int header = r->expected_fields ? 0 : take_first_line(r);
    if (header < 0) return -1;
    if (!header && take_row(r)) return -1;
  }
  if (more < 0) return -1;
  r->line_number = 0;
  if (r->table->rows == 0) return fail(r, "the file has no rows");
  const char *trouble = csv_labels_to_classes(r->label_texts, r->table);
  return trouble ? fail(r, "%s", trouble) : 0;
}

int csv_read(const char *path, const char *label, csv_table *out, char error[CSV_MAX_ERROR_BYTES]) {
  memset(out, 0, sizeof *out);
  reader *r = calloc(1, sizeof *r);
  if (!r) {
    snprintf(error, CSV_MAX_ERROR_BYTES, "%.200s: no memory", path);
    return -1;
  }
  r->path = path;
  r->label = label;
  r->table = out;
  r->error = error;
  r->file = fopen(path, "rb");
  const int status = r->file ? read_rows(r) : fail(r, "%s", strerror(errno));
  if (r->file) fclose(r->file);
  for (int64_t i = 0; r->label_texts && i < out->rows; i++) free(r->label_texts[i]);
  free(r->label_texts);
  free(r);
  if (status) csv_free(out);
  return status;
}

void csv_free(csv_table *table) {
  for (int64_t i = 0; table->class_names && i < table->classes; i++) free(table->class_names[i]);
  free(table->class_names);
  free(table->values);
  free(table->labels);
  free(table->lines);
  memset(table, 0, sizeof *table);
}
