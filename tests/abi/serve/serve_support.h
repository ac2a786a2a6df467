/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that wait at a gate, and hosts that wait for requests.
 */
#ifndef TESTS_ABI_SERVE_SUPPORT_H
#define TESTS_ABI_SERVE_SUPPORT_H

#include "tests/abi/common.h"
#include "tests/abi/gate.h"

/* A function that reports that it is running, and waits until it is released. */
typedef struct held {
  gate inside, released;
  atomic_int calls;
} held;
#define HELD_INIT \
  { GATE_INIT, GATE_INIT, 0 }

static inline dist_status hold_here(dist_replica *replica, void *user_data) {
  (void)replica;
  held *self = user_data;
  atomic_fetch_add(&self->calls, 1);
  gate_add(&self->inside);
  gate_await(&self->released, 1);
  return DIST_OK;
}

/* Runs until it is asked to end. */
static inline dist_status until_told(dist_replica *replica, void *user_data) {
  held *self = user_data;
  gate_add(&self->inside);
  for (;;) {
    const dist_status status = dist_replica_check(replica);
    if (status != DIST_OK) return status;
    sched_yield();
  }
}

static inline dist_status count_here(dist_replica *replica, void *user_data) {
  (void)replica;
  atomic_fetch_add((atomic_int *)user_data, 1);
  return DIST_OK;
}

static inline dist_request *submit(dist_strategy *strategy, dist_replica_fn fn, void *user_data,
                                   const dist_submit_options *options) {
  dist_request *work = NULL;
  assert_ok(dist_submit(strategy, fn, user_data, options, &work));
  assert_non_null(work);
  return work;
}

/* Waits for a request, and returns its result. */
static inline dist_status end_of(dist_request *work) {
  const dist_status status = dist_request_wait(work, -1);
  dist_request_destroy(work);
  return status;
}

/* Returns a request that occupies the only instance of a strategy until `h` is released. */
static inline dist_request *hold_only(dist_strategy *strategy, held *h) {
  dist_request *work = submit(strategy, hold_here, h, NULL);
  gate_await(&h->inside, 1);
  return work;
}

/* Two requests wait for each other, which never ends if they do not run at the same time. */
typedef struct pair {
  gate came;
} pair;

static inline dist_status meet(dist_replica *replica, void *user_data) {
  (void)replica;
  pair *self = user_data;
  gate_add(&self->came);
  gate_await(&self->came, 2);
  return DIST_OK;
}

#endif
