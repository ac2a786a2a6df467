/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that are published as versions. Each stores its number in many places and knows whether it still
 * exists.
 */
#ifndef TESTS_ABI_VERSIONS_SUPPORT_H
#define TESTS_ABI_VERSIONS_SUPPORT_H

#include "tests/abi/common.h"
#include "tests/abi/gate.h"

enum { WORDS = 64, MODELS = 256 };

typedef struct model {
  int64_t words[WORDS]; /* its number in every word */
  atomic_int live;
} model;

/* A series and its models, which are reused after they have been released. */
typedef struct series {
  dist_versions *versions;
  model models[MODELS];
  int next;
  atomic_int published, released, bad; /* bad: released although it did not exist */
  _Atomic pthread_t last_release;      /* the thread of the latest release */
} series;

static inline series *series_with(const dist_allocator *allocator) {
  series *s = calloc(1, sizeof *s);
  assert_non_null(s);
  assert_ok(dist_versions_create(allocator, &s->versions));
  return s;
}

static inline void release_model(void *content, void *user_data) {
  model *m = content;
  series *s = user_data;
  for (int i = 0; i < WORDS; i++) m->words[i] = -1;
  if (atomic_exchange(&m->live, 0) != 1) atomic_fetch_add(&s->bad, 1);
  s->last_release = pthread_self();
  atomic_fetch_add(&s->released, 1);
}

/* Publishes a model and returns its number. Only one thread at a time may call this. */
static inline dist_status publish_next(series *s, int64_t *out_number) {
  while (atomic_load(&s->models[s->next % MODELS].live)) s->next++;
  model *m = &s->models[s->next++ % MODELS];
  for (int i = 0; i < WORDS; i++) m->words[i] = dist_versions_latest(s->versions) + 1;
  atomic_store(&m->live, 1);
  const dist_status status = dist_versions_publish(s->versions, m, release_model, s, out_number);
  if (status == DIST_OK) {
    atomic_fetch_add(&s->published, 1);
  } else {
    atomic_store(&m->live, 0);
  }
  return status;
}

static inline int64_t publish(series *s) {
  int64_t number = 0;
  assert_ok(publish_next(s, &number));
  return number;
}

/* Destroys the series, and asserts that all of its models have been released. */
static inline void end_series(series *s) {
  dist_versions_destroy(s->versions);
  assert_int_equal(atomic_load(&s->released), atomic_load(&s->published));
  assert_int_equal(atomic_load(&s->bad), 0);
  free(s);
}

#define SEE_TORN "a model that is torn, or gone"

/* Checks that a replica sees an intact model with its number. */
static inline dist_status see(dist_replica *replica, series *s, int64_t *out_number) {
  void *content = NULL;
  int64_t number = 0;
  const dist_status status = dist_replica_version(replica, s->versions, &content, &number);
  if (status != DIST_OK) return status;
  const model *m = content;
  if (!atomic_load(&m->live)) return dist_fail(DIST_DATA_LOSS, SEE_TORN);
  for (int i = 0; i < WORDS; i++) {
    if (m->words[i] != number) return dist_fail(DIST_DATA_LOSS, SEE_TORN);
  }
  *out_number = number;
  return DIST_OK;
}

static inline dist_status see_number(dist_replica *replica, series *s, int64_t expected) {
  int64_t number = 0;
  const dist_status status = see(replica, s, &number);
  if (status != DIST_OK || number == expected) return status;
  char text[64];
  snprintf(text, sizeof text, "version %lld, not %lld", (long long)number, (long long)expected);
  return dist_fail(DIST_INTERNAL, text);
}

/* Publishes continuously until it is stopped. */
typedef struct publisher {
  series *s;
  pthread_t thread;
  atomic_int stop, failed;
} publisher;

static inline void *publish_main(void *argument) {
  publisher *self = argument;
  while (!atomic_load(&self->stop)) {
    if (publish_next(self->s, NULL) != DIST_OK) atomic_fetch_add(&self->failed, 1);
    sched_yield();
  }
  return NULL;
}

static inline void begin_publishing(publisher *p, series *s) {
  *p = (publisher){.s = s};
  assert_int_equal(pthread_create(&p->thread, NULL, publish_main, p), 0);
}

static inline void end_publishing(publisher *p) {
  atomic_store(&p->stop, 1);
  pthread_join(p->thread, NULL);
  assert_int_equal(atomic_load(&p->failed), 0);
}

#endif
