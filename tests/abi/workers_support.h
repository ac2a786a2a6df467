/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers in one process: each has a strategy, a thread, and a connection to a common network.
 */
#ifndef TESTS_ABI_WORKERS_SUPPORT_H
#define TESTS_ABI_WORKERS_SUPPORT_H

#include "resolver_support.h"

enum { MOST_WORKERS = 16 };

typedef struct workers {
  int n;
  int32_t replicas[MOST_WORKERS]; /* of each worker */
  dist_network *network;
  dist_strategy *strategies[MOST_WORKERS];
} workers;

/* Makes a resolver for worker `me` of `n`, without a chief. */
static inline dist_cluster_resolver *resolver_of_worker(int n, int me) {
  char json[1024];
  size_t used = (size_t)snprintf(json, sizeof json, "{\"worker\": [");
  for (int w = 0; w < n; ++w) {
    used += (size_t)snprintf(json + used, sizeof json - used, "%s\"w%d:1\"", w == 0 ? "" : ", ", w);
  }
  snprintf(json + used, sizeof json - used, "]}");
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.task_type = "worker";
  options.has_task_id = 1;
  options.task_id = me;
  dist_cluster_spec *spec = spec_of(json);
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_simple(spec, &options, &resolver));
  dist_cluster_spec_destroy(spec);
  return resolver;
}

static inline dist_strategy *strategy_of_worker(const workers *all, int me, dist_strategy_options options) {
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  if (options.worker != NULL) worker = *options.worker;
  options.worker = &worker;
  dist_cluster_resolver *resolver = resolver_of_worker(all->n, me);
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  worker.cluster_resolver = resolver;
  worker.network = all->network;
  worker.replicas_of_workers = all->replicas;
  worker.num_workers = (size_t)all->n;
  dist_strategy *strategy = strategy_with(options);
  dist_cluster_resolver_destroy(resolver);
  return strategy;
}

/* "2+2" means two workers with two replicas each. */
static inline workers workers_of(const char *layout, dist_strategy_options options) {
  workers all = {0};
  for (const char *at = layout; at != NULL; at = strchr(at, '+') == NULL ? NULL : strchr(at, '+') + 1) {
    assert_in_range(all.n, 0, MOST_WORKERS - 1);
    all.replicas[all.n++] = (int32_t)strtol(at, NULL, 10);
  }
  assert_ok(dist_network_create(all.n, NULL, &all.network));
  for (int w = 0; w < all.n; ++w) all.strategies[w] = strategy_of_worker(&all, w, options);
  return all;
}

static inline void end_workers(workers *all) {
  for (int w = 0; w < all->n; ++w) assert_ok(dist_strategy_destroy(all->strategies[w]));
  dist_network_destroy(all->network);
}

/* ---- The same program on every worker ---- */

typedef dist_status (*worker_fn)(dist_strategy *strategy, int worker, void *user_data);

typedef struct worker_thread {
  dist_strategy *strategy;
  int worker;
  worker_fn fn;
  void *user_data;
  dist_status status;
  report error;
  pthread_t thread;
} worker_thread;

static inline void *worker_thread_main(void *argument) {
  worker_thread *self = argument;
  self->status = self->fn(self->strategy, self->worker, self->user_data);
  if (self->status != DIST_OK) read_report(&self->error);
  return NULL;
}

static inline void on_workers(const workers *all, worker_fn fn, void *user_data, worker_thread *threads) {
  for (int w = 0; w < all->n; ++w) {
    threads[w] =
        (worker_thread){.strategy = all->strategies[w], .worker = w, .fn = fn, .user_data = user_data};
    assert_int_equal(pthread_create(&threads[w].thread, NULL, worker_thread_main, &threads[w]), 0);
  }
  for (int w = 0; w < all->n; ++w) assert_int_equal(pthread_join(threads[w].thread, NULL), 0);
}

/* The same, and asserts that all succeed. */
static inline void all_workers(const workers *all, worker_fn fn, void *user_data) {
  worker_thread threads[MOST_WORKERS];
  on_workers(all, fn, user_data, threads);
  for (int w = 0; w < all->n; ++w) {
    if (threads[w].status != DIST_OK) {
      fail_msg("worker %d of %d: %s: %s", w, all->n, dist_status_name(threads[w].status),
               threads[w].error.message);
    }
  }
}

#endif
