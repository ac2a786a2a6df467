/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixture's instances, completions and batchers, created when a call needs them. hostile_support.h
 * includes this file.
 */
#ifndef TESTS_ABI_WHOLE_HOSTILE_SERVE_H
#define TESTS_ABI_WHOLE_HOSTILE_SERVE_H

static dist_status batch_fn(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)replica, (void)batch, (void)user_data;
  return DIST_OK;
}

/* A strategy with library threads whose instances are not open. */
static inline dist_strategy *unserved(struct fixture *f) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 1;
  options.threads = DIST_THREADS_LIBRARY;
  dist_strategy *strategy = NULL;
  NEED(dist_strategy_create(&options, &strategy));
  return strategy;
}
static inline dist_strategy *served(struct fixture *f) {
  dist_strategy *strategy = unserved(f);
  NEED(dist_instances_open(strategy, NULL));
  return strategy;
}
/* A completion queue with a request that has completed. */
static inline dist_completions *filled_completions(struct fixture *f) {
  dist_completions *completions = NULL;
  NEED(dist_completions_create(NULL, &completions));
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.completions = completions;
  dist_request *request = NULL;
  NEED(dist_submit(served(f), replica_fn, NULL, &options, &request));
  NEED(dist_request_wait(request, DIST_NO_TIMEOUT));
  return completions;
}
static inline dist_batcher *own_batcher(struct fixture *f) {
  dist_batcher *batcher = NULL;
  NEED(dist_batcher_create(served(f), batch_fn, NULL, NULL, &batcher));
  return batcher;
}
static inline dist_request *item_request(struct fixture *f) {
  dist_request *item = NULL;
  NEED(dist_batcher_submit(own_batcher(f), f, NULL, &item));
  NEED(dist_request_wait(item, DIST_NO_TIMEOUT));
  return item;
}
static inline dist_request *some_request(struct fixture *f) {
  dist_request *request = NULL;
  NEED(dist_submit(served(f), replica_fn, NULL, NULL, &request));
  NEED(dist_request_wait(request, DIST_NO_TIMEOUT));
  return request;
}
static inline dist_request *const *requests_of(struct fixture *f) {
  static dist_request *requests[1];
  requests[0] = some_request(f);
  return requests;
}

static _Atomic(dist_batch *) the_batch;

/* Lends its arguments to the test's call until the process ends. */
static dist_status held_step(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)replica, (void)user_data;
  the_batch = batch;
  for (;;) usleep(100000);
  return DIST_OK;
}
static inline dist_batch *held_batch(struct fixture *f) {
  dist_batcher *batcher = NULL;
  the_batch = NULL;
  NEED(dist_batcher_create(served(f), held_step, NULL, NULL, &batcher));
  NEED(dist_batcher_submit(batcher, f, NULL, NULL));
  while (the_batch == NULL) sched_yield();
  return the_batch;
}

#endif
