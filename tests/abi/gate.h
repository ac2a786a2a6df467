/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate that threads wait at until another one opens it, and a count that they wait for.
 */
#ifndef TESTS_ABI_GATE_H
#define TESTS_ABI_GATE_H

#include <pthread.h>

typedef struct gate {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int count;
} gate;
#define GATE_INIT \
  { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }

static inline void gate_add(gate *g) {
  pthread_mutex_lock(&g->mutex);
  g->count++;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->mutex);
}

/* Until gate_add() has been called `count` times. */
static inline void gate_await(gate *g, int count) {
  pthread_mutex_lock(&g->mutex);
  while (g->count < count) pthread_cond_wait(&g->changed, &g->mutex);
  pthread_mutex_unlock(&g->mutex);
}

#endif
