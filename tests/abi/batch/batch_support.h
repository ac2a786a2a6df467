/* SPDX-License-Identifier: Apache-2.0
 *
 * Batchers, and a decoder whose items are sentences. Several tests of batches use them.
 */
#ifndef TESTS_ABI_BATCH_SUPPORT_H
#define TESTS_ABI_BATCH_SUPPORT_H

#include "tests/abi/serve/serve_support.h"

static inline dist_batcher *batcher_of(dist_strategy *strategy, dist_batch_fn step, void *user_data,
                                       const dist_batcher_options *options) {
  dist_batcher *batcher = NULL;
  assert_ok(dist_batcher_create(strategy, step, user_data, options, &batcher));
  assert_non_null(batcher);
  return batcher;
}

static inline dist_request *join(dist_batcher *batcher, void *user_data, const dist_item_options *options) {
  dist_request *work = NULL;
  assert_ok(dist_batcher_submit(batcher, user_data, options, &work));
  assert_non_null(work);
  return work;
}

static inline void assert_count(dist_batcher *batcher, int64_t waiting, int64_t active) {
  int64_t now_waiting = -1, now_active = -1;
  dist_batcher_count(batcher, &now_waiting, &now_active);
  assert_int_equal(now_waiting, waiting);
  assert_int_equal(now_active, active);
}

/* ---- A decoder ---- */

typedef struct sentence {
  int length; /* number of steps that it needs */
  int32_t instance;
  int done, wrong;
} sentence;

typedef struct decoder {
  atomic_int caches, wrong, steps, largest, under_way[16];
} decoder;

typedef struct cache {
  sentence *of;
  int32_t instance;
} cache;

static inline void free_cache(void *what, void *user_data) {
  atomic_fetch_sub(&((decoder *)user_data)->caches, 1);
  free(what);
}

static inline dist_status decode(dist_replica *replica, dist_batch *batch, void *user_data) {
  decoder *self = user_data;
  const int32_t id = dist_replica_id(replica);
  if (atomic_fetch_add(&self->under_way[id], 1) != 0) atomic_fetch_add(&self->wrong, 1);
  const int size = (int)dist_batch_size(batch);
  atomic_fetch_add(&self->steps, 1);
  int largest = atomic_load(&self->largest);
  while (largest < size && !atomic_compare_exchange_weak(&self->largest, &largest, size)) {
  }
  for (int i = 0; i < size; i++) {
    sentence *s = dist_batch_user_data(batch, (size_t)i);
    cache *c = dist_batch_state(batch, (size_t)i);
    if (c == NULL) {
      c = malloc(sizeof *c);
      *c = (cache){s, id};
      atomic_fetch_add(&self->caches, 1);
      dist_batch_set_state(batch, (size_t)i, c);
    }
    if (c->of != s || c->instance != id) s->wrong++;
    if (dist_batch_check(batch, (size_t)i) != DIST_OK) continue;
    if (++s->done >= s->length) dist_batch_end(batch, (size_t)i, s->length < 0 ? DIST_NOT_FOUND : DIST_OK);
  }
  atomic_fetch_sub(&self->under_way[id], 1);
  return DIST_OK;
}

/* ---- Steps that are recorded ---- */

enum { MOST_STEPS = 64, MOST_ITEMS = 64 };

typedef struct step_record {
  int32_t replica;
  int64_t bucket;
  size_t size;
  void *items[MOST_ITEMS];
} step_record;

typedef struct steps {
  pthread_mutex_t mutex;
  int count;
  step_record of[MOST_STEPS];
} steps;
#define STEPS_INIT                  \
  {                                 \
    PTHREAD_MUTEX_INITIALIZER, 0, { \
      {                             \
        0, 0, 0, { NULL }           \
      }                             \
    }                               \
  }

static inline dist_status note_step(dist_replica *replica, dist_batch *batch, void *user_data) {
  steps *all = user_data;
  pthread_mutex_lock(&all->mutex);
  step_record *one = &all->of[all->count++ % MOST_STEPS];
  one->replica = dist_replica_id(replica);
  one->bucket = dist_batch_bucket(batch);
  one->size = dist_batch_size(batch);
  for (size_t i = 0; i < one->size && i < MOST_ITEMS; i++) one->items[i] = dist_batch_user_data(batch, i);
  pthread_mutex_unlock(&all->mutex);
  return DIST_OK;
}

#endif
