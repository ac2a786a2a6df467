/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for the tests of datasets over several workers: a program that iterates over a dataset, and what
 * its replicas receive.
 */
#ifndef TESTS_ABI_WORKERS_INPUT_SUPPORT_H
#define TESTS_ABI_WORKERS_INPUT_SUPPORT_H

#include "../workers_support.h"

enum { MOST_REPLICAS = 6, MOST_STEPS = 64, MOST_ROWS = 32 };

typedef struct rows {
  int64_t n;
  int64_t numbers[MOST_ROWS];
} rows;

typedef struct source {
  dist_strategy *strategy; /* its elements take their memory from this strategy */
  const int64_t *sizes;    /* sizes of its files, or its own size */
  int32_t replicas;        /* of the strategy */
} source;

/* A program that iterates over a dataset, and what its replicas get. */
typedef struct passing {
  const workers *all; /* NULL = one process */
  dist_dataset_options options;
  enum { ROWS, CALLBACK, FILES, BATCHES } kind;
  int64_t total;
  int64_t totals[MOST_WORKERS]; /* if each worker has its own source */
  source sources[MOST_WORKERS];
  int passes;
  int32_t steps[MOST_WORKERS];
  rows got[MOST_STEPS][MOST_REPLICAS];
} passing;

static inline int32_t first_of(const workers *all, int worker) {
  int32_t first = 0;
  for (int w = 0; w < worker; ++w) first += all->replicas[w];
  return first;
}

static inline dist_status element(const source *from, size_t file, int64_t index, dist_value **out) {
  int64_t number = 10 * (int64_t)file + index;
  if (index >= from->sizes[file]) return DIST_OUT_OF_RANGE;
  return dist_value_create_tensor(from->strategy, &(dist_tensor){&number, DIST_I64, 0, NULL, NULL}, out);
}

static inline dist_status counted_element(dist_strategy *strategy, int64_t index, dist_value **out,
                                          void *user_data) {
  (void)strategy;
  return element(user_data, 0, index, out);
}

/* file f: 10 f, 10 f + 1, ... */
static inline dist_status file_element(dist_strategy *strategy, size_t file, const char *name, int64_t index,
                                       dist_value **out, void *user_data) {
  (void)strategy;
  (void)name;
  return element(user_data, file, index, out);
}

static inline dist_status make_dataset(dist_strategy *strategy, int worker, passing *p, dist_dataset **out) {
  static const char *const names[] = {"a", "b", "c", "d"};
  int64_t numbers[128];
  for (int64_t i = 0; i < 128; ++i) numbers[i] = i;
  const int64_t shape[] = {p->total, 3}; /* BATCHES has rows of three */
  const dist_tensor tensor = {numbers, DIST_I64, p->kind == BATCHES ? 2 : 1, shape, NULL};
  source *const own = &p->sources[worker];
  *own = (source){strategy, p->kind == FILES ? p->totals : &p->totals[worker],
                  dist_strategy_num_replicas(strategy)};
  switch (p->kind) {
    case CALLBACK:
      return dist_dataset_create_from_callback(strategy, counted_element, own, NULL, &p->options, out);
    case FILES:
      return dist_dataset_create_from_files(strategy, names, COUNT_OF(names), file_element, own, NULL,
                                            &p->options, out);
    default: return dist_dataset_create_from_tensors(strategy, &tensor, 1, &p->options, out);
  }
}

/* A failure that the test itself detects. */
__attribute__((format(printf, 1, 2))) static inline dist_status wrong(const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return dist_fail(DIST_INTERNAL, text);
}

static inline dist_status keep(const dist_value *batch, int32_t local, int32_t r, rows *out) {
  dist_tensor tensor;
  const dist_status status =
      dist_value_tensor(local == 1 ? batch : dist_value_item(batch, (size_t)r), &tensor);
  if (status != DIST_OK) return status;
  if (tensor.dtype != DIST_I64 || tensor.ndim != 1 || tensor.shape[0] > MOST_ROWS) {
    return wrong("a batch of dtype %d with %d dimensions", tensor.dtype, tensor.ndim);
  }
  out->n = tensor.shape[0];
  if (out->n != 0) memcpy(out->numbers, tensor.data, (size_t)out->n * sizeof *out->numbers);
  return DIST_OK;
}

static inline int32_t local_of(const passing *p, int worker) {
  return p->all != NULL ? p->all->replicas[worker] : p->sources[worker].replicas;
}

static inline dist_status pass_over(dist_dataset *dataset, int worker, passing *p) {
  const int32_t local = local_of(p, worker);
  dist_iterator *iterator = NULL;
  dist_status status = dist_iterator_create(dataset, &iterator);
  p->steps[worker] = 0;
  while (status == DIST_OK) {
    dist_value *batch = NULL;
    status = dist_iterator_next(iterator, &batch);
    if (status != DIST_OK || batch == NULL) break;
    if (p->steps[worker] == MOST_STEPS) status = wrong("it never ends");
    for (int32_t r = 0; r < local && status == DIST_OK; ++r) {
      const int32_t at = (p->all != NULL ? first_of(p->all, worker) : 0) + r;
      status = keep(batch, local, r, &p->got[p->steps[worker]][at]);
    }
    ++p->steps[worker];
    dist_value_release(batch);
  }
  dist_value *none = NULL;
  if (status == DIST_OK) status = dist_iterator_next(iterator, &none);
  if (status == DIST_OK && none != NULL) status = wrong("a batch after the end");
  dist_iterator_destroy(iterator);
  return status;
}

static inline dist_status play(dist_strategy *strategy, int worker, void *user_data) {
  passing *const p = user_data;
  dist_dataset *dataset = NULL;
  dist_status status = make_dataset(strategy, worker, p, &dataset);
  for (int pass = 0; pass < p->passes && status == DIST_OK; ++pass) status = pass_over(dataset, worker, p);
  dist_dataset_destroy(dataset);
  return status;
}

static inline void check_rows(const char *what, const rows *got, const rows *expected) {
  if (got->n == expected->n && memcmp(got->numbers, expected->numbers, (size_t)got->n * sizeof(int64_t)) == 0)
    return;
  char text[512];
  size_t used = 0;
  for (int64_t i = 0; i < got->n && used < 200; ++i)
    used += (size_t)snprintf(text + used, sizeof text - used, " %d", (int)got->numbers[i]);
  used += (size_t)snprintf(text + used, sizeof text - used, " for");
  for (int64_t i = 0; i < expected->n && used < 400; ++i)
    used += (size_t)snprintf(text + used, sizeof text - used, " %d", (int)expected->numbers[i]);
  fail_msg("%s:%s", what, text);
}

#endif
