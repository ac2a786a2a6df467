/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate at which threads wait until another one opens it, a counter that threads can wait for, and a check
 * whether a thread sleeps. Include it after common.h.
 */
#ifndef TESTS_ABI_GATE_H
#define TESTS_ABI_GATE_H

#include "common.h"

#include <sys/syscall.h>
#include <unistd.h>

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

/* Waits until gate_add() has been called `count` times. */
static inline void gate_await(gate *g, int count) {
  pthread_mutex_lock(&g->mutex);
  while (g->count < count) pthread_cond_wait(&g->changed, &g->mutex);
  pthread_mutex_unlock(&g->mutex);
}

/* Returns the system's number of the calling thread. */
static inline int this_thread(void) { return (int)syscall(SYS_gettid); }

/* Whether a thread sleeps. The caller must know what it can be sleeping for. */
static inline int sleeps(int thread) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  const char *read = fgets(line, sizeof line, file);
  fclose(file);
  const char *state = read == NULL ? NULL : strrchr(line, ')');
  return state != NULL && state[2] == 'S';
}

#endif
