/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for most tests: strategies, a uniform way to run replicas on any kind of thread, and error reports
 * that are passed to the test's thread.
 */
#ifndef TESTS_ABI_COMMON_H
#define TESTS_ABI_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* affinity, POSIX threads in strict C11 */
#endif

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dist/dist.h>

#include "tests/enums.h"
#include "tests/skip.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
enum { MOST = 64 }; /* maximum number of replicas in a test */

#define assert_ok(call)                                                                     \
  do {                                                                                      \
    const dist_status assert_ok_status = (call);                                            \
    if (assert_ok_status != DIST_OK) {                                                      \
      fail_msg("%s: %s: %s", #call, dist_status_name(assert_ok_status), dist_last_error()); \
    }                                                                                       \
  } while (0)

/* Asserts that the call fails with `status` and that its message contains `words`. */
#define assert_fails(call, status, words) \
  do {                                    \
    assert_int_equal(call, status);       \
    assert_has(dist_last_error(), words); \
  } while (0)

#define assert_has(text, words)                                                \
  do {                                                                         \
    if (strstr(text, words) == NULL) fail_msg("no '%s' in '%s'", words, text); \
  } while (0)

/* A copy of a thread's latest error, so that another thread can read it. */
typedef struct report {
  dist_status code;
  int32_t replica;
  int32_t collective;
  int64_t sequence;
  char message[1024];
  char tag[64];
  char expected[192];
  char received[192];
  char hint[192];
} report;

static inline void read_report(report *out) {
  dist_error_info info = DIST_ERROR_INFO_INIT;
  memset(out, 0, sizeof *out);
  if (dist_last_error_info(&info) != DIST_OK) return;
  out->code = info.code;
  out->replica = info.replica;
  out->collective = info.collective;
  out->sequence = info.sequence;
  snprintf(out->message, sizeof out->message, "%s", info.message);
  snprintf(out->tag, sizeof out->tag, "%s", info.tag);
  snprintf(out->expected, sizeof out->expected, "%s", info.expected);
  snprintf(out->received, sizeof out->received, "%s", info.received);
  snprintf(out->hint, sizeof out->hint, "%s", info.hint);
}

static inline dist_strategy *strategy_with(dist_strategy_options options) {
  dist_strategy *strategy = NULL;
  assert_ok(dist_strategy_create(&options, &strategy));
  assert_non_null(strategy);
  return strategy;
}

static inline dist_strategy *strategy_of(int32_t num_replicas, int32_t threads) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = num_replicas;
  options.threads = threads;
  return strategy_with(options);
}

static inline const char *threads_name(int32_t threads) {
  static const char *const names[] = {"CALLER", "LIBRARY", "HOST"};
  return names[threads - DIST_THREADS_CALLER];
}

/* ---- A run on any kind of thread ---- */

typedef struct host_thread {
  dist_strategy *strategy;
  int32_t id;
  dist_replica_fn fn;
  void *user_data;
  dist_status status;
  report error;
  atomic_int came; /* its dist_replica_enter() has returned */
  int left;        /* 0 = the thread ended inside its run */
} host_thread;

static inline void *host_thread_main(void *argument) {
  host_thread *self = argument;
  dist_replica *replica = NULL;
  self->status = dist_replica_enter(self->strategy, self->id, &replica);
  atomic_store(&self->came, 1);
  if (self->status == DIST_OK) {
    const dist_status returned = self->fn(replica, self->user_data);
    self->status = dist_replica_leave(replica, returned);
  }
  read_report(&self->error);
  self->left = 1;
  return NULL;
}

/* Calls dist_run(), or runs the same function on host threads. Replica 0's thread enters first: if replica 0
   was in a run that was given up, entering ends that run. A replica that was not in it would enter it late
   and get its report. If the status is not OK, `out_error` receives the report. */
static inline dist_status run_on(int32_t threads, dist_strategy *strategy, dist_replica_fn fn,
                                 void *user_data, report *out_error) {
  if (threads != DIST_THREADS_HOST) {
    const dist_status status = dist_run(strategy, fn, user_data, NULL);
    read_report(out_error);
    return status;
  }
  static host_thread threads_of_run[MOST];
  pthread_t handles[MOST];
  const int32_t n = dist_strategy_num_replicas(strategy);
  for (int32_t i = 0; i < n; i++) {
    threads_of_run[i] = (host_thread){.strategy = strategy, .id = i, .fn = fn, .user_data = user_data};
    if (pthread_create(&handles[i], NULL, host_thread_main, &threads_of_run[i]) != 0) abort();
    while (!atomic_load(&threads_of_run[0].came)) sched_yield();
  }
  for (int32_t i = 0; i < n; i++) pthread_join(handles[i], NULL);
  const host_thread *first = NULL;
  for (int32_t i = 0; i < n; i++) {
    if (!threads_of_run[i].left) continue;
    if (first == NULL) first = &threads_of_run[i];
    assert_int_equal(threads_of_run[i].status, first->status);
  }
  assert_non_null(first);
  *out_error = first->error;
  return first->status;
}

/* ---- Tensors ---- */

static inline dist_tensor vector_of(void *data, dist_dtype dtype, const int64_t *length) {
  return (dist_tensor){data, dtype, 1, length, NULL};
}

/* A replica function that succeeds: a barrier, and a sum with the right result. */
static inline dist_status healthy(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t n = dist_replica_num_replicas(replica);
  int64_t length = 1;
  int32_t number = dist_replica_id(replica) + 1;
  dist_tensor tensor = vector_of(&number, DIST_I32, &length);
  dist_status status = dist_barrier(replica, NULL, NULL);
  if (status == DIST_OK) status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
  if (status != DIST_OK) return status;
  return number == n * (n + 1) / 2 ? DIST_OK : dist_fail(DIST_INTERNAL, "a wrong sum");
}

static inline void assert_healthy(int32_t threads, dist_strategy *strategy) {
  report error;
  if (run_on(threads, strategy, healthy, NULL, &error) != DIST_OK) {
    fail_msg("the next run fails: %s", error.message);
  }
}

/* ---- Threads of this process ---- */

static inline int count_threads(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

/* Whether replicas of a test may pass overlapping outputs. They may write to them before they detect the
 * overlap, which ThreadSanitizer reports. */
#if defined(__SANITIZE_THREAD__)
enum { MAY_OVERLAP = 0 };
#else
enum { MAY_OVERLAP = 1 };
#endif

/* A joined thread is still listed for a moment. If a thread is left behind, this never returns, and the
 * test's time limit ends it. */
static inline void await_threads(int count) {
#if defined(__SANITIZE_THREAD__)
  (void)count; /* the sanitizer has a thread of its own, and reports leaked threads itself */
#else
  while (count_threads() != count) sched_yield();
#endif
}

#endif
