// SPDX-License-Identifier: Apache-2.0
#include "workers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  session *of;
  int32_t replicas;
  int status;
  pthread_t thread;
} worker;

static void *train(void *argument) {
  worker *self = argument;
  self->status = session_prepare(self->of, self->replicas);
  if (!self->status) self->status = session_train(self->of);
  return NULL;
}

int workers_train(session *s, int32_t replicas) {
  const int32_t n = s->num_workers;
  worker *all = calloc((size_t)n, sizeof *all);
  session *others = calloc((size_t)n, sizeof *others);
  int status = 0;
  int32_t started = 1;
  if (!all || !others || dist_network_create(n, NULL, &s->network)) status = session_say("network");
  for (int32_t w = 0; w < n && !status; w++) {
    if (w > 0) {
      others[w] = *s;
      others[w].worker = w;
    }
    all[w] = (worker){.of = w > 0 ? &others[w] : s, .replicas = replicas};
  }
  for (; started < n && !status; started++) {
    if (pthread_create(&all[started].thread, NULL, train, &all[started])) {
      fputs("train_digits: no further thread\n", stderr);
      status = EXIT_FAILURE;
      break;
    }
  }
  const int is_whole = !status;
  if (is_whole) {
    train(&all[0]);
    for (int32_t w = 1; w < n; w++) pthread_join(all[w].thread, NULL);
    for (int32_t w = 0; w < n && !status; w++) status = all[w].status;
    for (int32_t w = 1; w < n; w++) session_end_run(&others[w]);
  }
  // If a thread cannot be started, the earlier ones may be waiting for its worker. Keep the memory they use:
  // the program exits.
  if (is_whole || started == 1) {
    dist_network_destroy(s->network);
    s->network = NULL;
    free(others);
    free(all);
  }
  return status;
}
