// SPDX-License-Identifier: Apache-2.0
#include "workers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  session *of;
  int32_t replicas;
  int status;
  char digest[MODEL_DIGEST_BYTES];
  pthread_t thread;
} worker;

static void *train(void *argument) {
  worker *self = argument;
  session *s = self->of;
  self->status = session_prepare(s, self->replicas);
  if (!self->status) self->status = session_train(s);
  if (!self->status && model_digest(&s->t.parameters, s->first_replica, self->replicas, self->digest))
    self->status = session_say("parameters");
  return NULL;
}

// Worker 0 gets what the others' replicas have noted, for the report.
static void hand_over(session *to, session *from) {
  const size_t first = (size_t)from->first_replica;
  const size_t bytes = (size_t)from->replicas * sizeof *from->t.replicas;
  memcpy(&to->t.replicas[first], &from->t.replicas[first], bytes);
  memset(&from->t.replicas[first], 0, bytes);
}

static int finish(worker *all, int32_t n) {
  for (int32_t w = 0; w < n; w++)
    if (all[w].status) return all[w].status;
  for (int32_t w = 1; w < n; w++) {
    if (strcmp(all[w].digest, all[0].digest) != 0) {
      fprintf(stderr, "train_digits: worker %d has other parameters than worker 0; this is a defect\n",
              (int)w);
      return EXIT_FAILURE;
    }
    hand_over(all[0].of, all[w].of);
  }
  return 0;
}

int workers_train(session *s, int32_t replicas) {
  const int32_t n = s->chosen.workers;
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
  if (!status) train(&all[0]);
  // Whoever waits for a worker that has not begun is not waited for: the program ends.
  if (!status) {
    for (int32_t w = 1; w < started; w++) pthread_join(all[w].thread, NULL);
    status = finish(all, n);
    for (int32_t w = 1; w < n; w++) {
      others[w].t.predictions = NULL; /* worker 0's */
      session_end_run(&others[w]);
    }
    dist_network_destroy(s->network);
    s->network = NULL;
    free(others);
    free(all);
  }
  return status;
}
