/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves a model: each request runs on one idle replica, which has its own copy of the model.
 *
 *     cc serve.c $(pkg-config --cflags --libs dist) -o serve && ./serve
 */
#include <dist/dist.h>
#include <stdio.h>
#include <stdlib.h>

enum { REQUESTS = 4 };

typedef struct model {
  double weight;
} model;

typedef struct question {
  double input, answer;
} question;

/* Loads the model on each replica, before the first request. */
static dist_status load(dist_replica *replica, void **out_state, void *user_data) {
  (void)replica, (void)user_data;
  model *loaded = malloc(sizeof *loaded);
  if (loaded == NULL) return DIST_RESOURCE_EXHAUSTED;
  loaded->weight = 3;
  *out_state = loaded;
  return DIST_OK;
}

static void unload(void *state, void *user_data) {
  (void)user_data;
  free(state);
}

static dist_status answer(dist_replica *replica, void *user_data) {
  const model *loaded = dist_instance_state(replica);
  question *asked = user_data;
  asked->answer = asked->input * loaded->weight;
  return DIST_OK;
}

static dist_status serve(dist_strategy *strategy) {
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.create_state = load;
  options.destroy_state = unload;
  dist_status status = dist_instances_open(strategy, &options);
  question asked[REQUESTS];
  dist_request *requests[REQUESTS] = {NULL};
  for (int i = 0; i < REQUESTS && status == DIST_OK; i++) {
    asked[i].input = i;
    status = dist_submit(strategy, answer, &asked[i], NULL, &requests[i]); /* returns immediately */
  }
  for (int i = 0; i < REQUESTS && requests[i] != NULL; i++) {
    const dist_status one = dist_request_wait(requests[i], DIST_NO_TIMEOUT);
    if (one == DIST_OK) printf("%g -> %g\n", asked[i].input, asked[i].answer);
    if (status == DIST_OK) status = one;
    dist_request_destroy(requests[i]);
  }
  return status;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.threads = DIST_THREADS_LIBRARY; /* the replicas serve while this thread does something else */
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = serve(strategy);
  if (status != DIST_OK) fprintf(stderr, "serve: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK; /* also closes the instances */
}
