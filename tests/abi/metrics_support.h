/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the text of metrics into samples.
 */
#ifndef TESTS_ABI_METRICS_SUPPORT_H
#define TESTS_ABI_METRICS_SUPPORT_H

#include "tests/abi/common.h"

#include <time.h>

typedef struct page {
  char *text;
  size_t size;
} page;

static inline void append_page(const char *text, size_t size_bytes, void *user_data) {
  page *p = user_data;
  p->text = realloc(p->text, p->size + size_bytes + 1);
  if (p->text == NULL) abort();
  memcpy(p->text + p->size, text, size_bytes);
  p->size += size_bytes;
  p->text[p->size] = '\0';
}

static inline page metrics_of(dist_strategy *strategy) {
  page p = {NULL, 0};
  assert_ok(dist_strategy_write_metrics(strategy, NULL, append_page, &p));
  return p;
}

/* Returns the value of the sample with this name and these labels, or -1 if there is none. */
static inline double sample_of(const page *p, const char *name) {
  const size_t length = strlen(name);
  for (const char *line = p->text; line != NULL; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, name, length) == 0 && line[length] == ' ') return strtod(line + length, NULL);
  }
  return -1;
}

static inline void expect_sample(dist_strategy *strategy, const char *name, double value) {
  page p = metrics_of(strategy);
  const double is = sample_of(&p, name);
  if (is != value) fail_msg("%s is %g, not %g, in\n%s", name, is, value, p.text);
  free(p.text);
}

static inline int count_texts(const char *text, const char *what) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, what)) != NULL; at++) count++;
  return count;
}

static inline int64_t steady_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
