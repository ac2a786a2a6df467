/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of host threads on painted stacks. Afterwards, the test measures how far below the calling frame the
 * paint has been overwritten. This includes stack used by code that libdist.so calls: the C library, oneTBB,
 * and the dynamic linker on a first call.
 */
#ifndef TESTS_ABI_STACK_SUPPORT_H
#define TESTS_ABI_STACK_SUPPORT_H

#include "tests/abi/common.h"

#include <sys/mman.h>

enum { MOST_NEEDED = 32 << 10, STACK = 128 << 10, PAINT = 0xA5 };

typedef struct painted {
  host_thread thread;
  unsigned char *stack;
  unsigned char *frame; /* the frame of the function that makes the calls */
} painted;

static inline void *painted_main(void *argument) {
  painted *self = argument;
  self->frame = __builtin_frame_address(0);
  return host_thread_main(&self->thread);
}

/* Returns the maximum stack use of a replica's calls. Asserts that their status is `wanted`, unless this is <
 * 0. */
static inline size_t needed(dist_strategy *strategy, dist_replica_fn fn, void *user_data, int wanted) {
  static painted replicas[MOST];
  pthread_t handles[MOST];
  const int32_t n = dist_strategy_num_replicas(strategy);
  unsigned char *stacks =
      mmap(NULL, (size_t)n * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stacks == MAP_FAILED) abort();
  memset(stacks, PAINT, (size_t)n * STACK);
  for (int32_t i = 0; i < n; i++) {
    painted *p = &replicas[i];
    *p = (painted){.thread = {.strategy = strategy, .id = i, .fn = fn, .user_data = user_data}};
    p->stack = stacks + (size_t)i * STACK;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, p->stack, STACK);
    if (pthread_create(&handles[i], &attributes, painted_main, p) != 0) abort();
    pthread_attr_destroy(&attributes);
  }
  for (int32_t i = 0; i < n; i++) pthread_join(handles[i], NULL);
  size_t most = 0;
  for (int32_t i = 0; i < n; i++) {
    const unsigned char *lowest = replicas[i].stack;
    while (memcmp(lowest, lowest + 1, 255) == 0) lowest += 128; /* finds 256 equal bytes */
    while (*lowest == PAINT) lowest++;
    const size_t used = (size_t)(replicas[i].frame - lowest);
    if (used > most) most = used;
    if (wanted >= 0 && (int)replicas[i].thread.status != wanted)
      fail_msg("%s", replicas[i].thread.error.message);
  }
  munmap(stacks, (size_t)n * STACK);
  return most;
}

static inline void assert_needs_little(const char *what, dist_strategy *strategy, dist_replica_fn fn,
                                       void *user_data, int wanted) {
  const int32_t replicas = dist_strategy_num_replicas(strategy);
  const size_t most = needed(strategy, fn, user_data, wanted);
  if (getenv("DIST_TEST_STACK") != NULL) print_message("# %6zu bytes: %s, R = %d\n", most, what, replicas);
  if (most > MOST_NEEDED) fail_msg("%s with %d replicas needs %zu bytes", what, replicas, most);
}

/* Numbers of replicas: that of a small machine's CPUs, and more. */
static const int counts[] = {2, 8};

/* The main() of a program. Frames are larger without optimization, or with a sanitizer. */
#if MEASURABLE
#define STACK_TESTS(name, tests) cmocka_run_group_tests_name(name, tests, NULL, NULL)
#else
#define STACK_TESTS(name, tests) \
  ((void)(tests),                \
   puts("1..0 # SKIP frames are not as they are delivered: not optimised, or with a sanitizer"), 0)
#endif

#endif
