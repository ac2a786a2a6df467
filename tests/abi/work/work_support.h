/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives as works. The descriptions passed to a call are invalid after it returns, and the works are
 * completed in one of several ways.
 */
#ifndef TESTS_ABI_WORK_SUPPORT_H
#define TESTS_ABI_WORK_SUPPORT_H

#include "tests/abi/recipe.h"

/* How a member completes its works. */
enum ending { FIRST_FIRST, LAST_FIRST, ANY, ASKING, DESTROYING, LEAVING, ENDINGS };

/* The description of a work, in memory that is freed after the call. */
typedef struct brief_call {
  call call;
  int64_t shapes[LISTS * TENSORS + TENSORS][DIMS], strides[LISTS * TENSORS + TENSORS][DIMS];
  int64_t splits[MEMBERS];
  double weights[LISTS];
  char tag[64];
} brief_call;

static inline void make_brief(brief_call *c) {
  for (int k = 0; k < LISTS * TENSORS + TENSORS; k++) {
    dist_tensor *tensor = k < LISTS * TENSORS ? &c->call.in_list[k] : &c->call.out_list[k - LISTS * TENSORS];
    const size_t bytes = (size_t)tensor->ndim * sizeof(int64_t);
    if (tensor->shape != NULL) tensor->shape = memcpy(c->shapes[k], tensor->shape, bytes);
    if (tensor->strides != NULL) tensor->strides = memcpy(c->strides[k], tensor->strides, bytes);
  }
  dist_collective_options *options = &c->call.options;
  if (options->splits != NULL) options->splits = memcpy(c->splits, options->splits, sizeof c->splits);
  if (options->weights != NULL) options->weights = memcpy(c->weights, options->weights, sizeof c->weights);
  if (options->tag == NULL) return;
  snprintf(c->tag, sizeof c->tag, "%s", options->tag);
  options->tag = c->tag;
}

/* Issues or plans this member's part of an exchange. */
static inline dist_status issue_exchange(dist_replica *replica, const exchange *e, int32_t me,
                                         int32_t planned, int64_t bytes_per_pack, dist_work **out_work) {
  brief_call *c = malloc(sizeof *c);
  prepare_call(e, me, &c->call);
  make_brief(c);
  c->call.out_work = out_work;
  c->call.options.planned = planned;
  c->call.options.bytes_per_pack = bytes_per_pack;
  const dist_status status = make_call(replica, &c->call);
  memset(c, 0x77, sizeof *c);
  free(c);
  return status;
}

static inline dist_status wait_and_destroy(dist_work **work) {
  const dist_status status = dist_work_wait(*work, DIST_NO_TIMEOUT);
  dist_work_destroy(*work);
  *work = NULL;
  return status;
}

static inline dist_status end_any(dist_work **works, size_t n) {
  dist_status first = DIST_OK;
  while (n > 0) {
    size_t which = n;
    const dist_status status = dist_work_wait_any(works, n, DIST_NO_TIMEOUT, &which);
    if (which >= n) return dist_fail(DIST_INTERNAL, "wait_any() says nothing");
    if (first == DIST_OK) first = status;
    dist_work_destroy(works[which]);
    works[which] = works[--n];
    works[n] = NULL;
  }
  return first;
}

static inline dist_status end_asking(dist_work **works, size_t n) {
  dist_status first = DIST_OK;
  for (size_t k = 0; k < n; k++) {
    int32_t done = 0;
    dist_status status = DIST_OK;
    while (status == DIST_OK && !done) {
      status = dist_work_test(works[k], &done);
      if (!done) sched_yield();
    }
    if (first == DIST_OK) first = status;
    dist_work_destroy(works[k]);
    works[k] = NULL;
  }
  return first;
}

/* Completes n works, none of which is NULL. With LEAVING, they are left for the test to check after the
 * run. */
static inline dist_status end_works(dist_work **works, size_t n, enum ending how) {
  dist_status first = DIST_OK;
  switch (how) {
    case ANY: return end_any(works, n);
    case ASKING: return end_asking(works, n);
    case FIRST_FIRST:
    case LAST_FIRST:
      for (size_t k = 0; k < n; k++) {
        const dist_status status = wait_and_destroy(&works[how == FIRST_FIRST ? k : n - 1 - k]);
        if (first == DIST_OK) first = status;
      }
      return first;
    case DESTROYING:
      for (size_t k = 0; k < n; k++) dist_work_destroy(works[k]), works[k] = NULL;
      return DIST_OK;
    default: return DIST_OK;
  }
}

/* An allocator that counts, aligns exactly as requested and no more, and can reject one request. */
typedef struct ledger {
  atomic_long requests, refuse_at, live;
} ledger;

static inline void *ledger_alloc(size_t size, size_t align, void *user_data) {
  ledger *l = user_data;
  if (atomic_fetch_add(&l->requests, 1) == atomic_load(&l->refuse_at)) return NULL;
  const size_t ahead = align < sizeof(void *) ? sizeof(void *) : align;
  char *memory = NULL;
  if (posix_memalign((void **)&memory, 2 * ahead, size + 3 * ahead) != 0) return NULL;
  atomic_fetch_add(&l->live, 1);
  return memory + 2 * ahead + align;
}

static inline void ledger_free(void *memory, size_t size, size_t align, void *user_data) {
  ledger *l = user_data;
  (void)size;
  const size_t ahead = align < sizeof(void *) ? sizeof(void *) : align;
  atomic_fetch_sub(&l->live, 1);
  free((char *)memory - 2 * ahead - align);
}

static inline dist_strategy *strategy_on(ledger *l, int32_t num_replicas, int32_t threads) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = num_replicas;
  options.threads = threads;
  host.allocator = (dist_allocator){ledger_alloc, ledger_free, l};
  return strategy_with(options);
}

#endif
