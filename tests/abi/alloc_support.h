/* SPDX-License-Identifier: Apache-2.0
 *
 * A host allocator that rejects one request and counts outstanding memory, and a loop that runs a piece of
 * work repeatedly and rejects each of its requests once.
 */
#ifndef TESTS_ABI_ALLOC_SUPPORT_H
#define TESTS_ABI_ALLOC_SUPPORT_H

#include "common.h"

typedef struct refusals {
  atomic_long requests, refuse_at, live_blocks, live_bytes;
} refusals;

static inline void *refusing_alloc(size_t size, size_t align, void *user_data) {
  refusals *a = user_data;
  if (atomic_fetch_add(&a->requests, 1) == atomic_load(&a->refuse_at)) return NULL;
  void *memory = NULL;
  if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, size) != 0) return NULL;
  atomic_fetch_add(&a->live_blocks, 1);
  atomic_fetch_add(&a->live_bytes, (long)size);
  return memory;
}

static inline void refusing_free(void *memory, size_t size, size_t align, void *user_data) {
  refusals *a = user_data;
  (void)align;
  atomic_fetch_sub(&a->live_blocks, 1);
  atomic_fetch_sub(&a->live_bytes, (long)size);
  free(memory);
}

static inline dist_allocator refusing(refusals *a) {
  return (dist_allocator){refusing_alloc, refusing_free, a};
}

typedef dist_status (*piece_of_work)(dist_strategy *strategy);

/* Rejects each request of `work` in turn. `work` must return RESOURCE_EXHAUSTED or OK, hold no more memory
 * than before, and succeed when it is called again. Returns the number of its requests. */
static inline long refuse_every_request(int32_t num_replicas, piece_of_work work) {
  static refusals a;
  a = (refusals){.refuse_at = -1};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = num_replicas;
  host.allocator = refusing(&a);
  dist_strategy *strategy = strategy_with(options);
  assert_ok(work(strategy)); /* allocates what is kept until the strategy is destroyed */
  const long held = atomic_load(&a.live_bytes);
  long k = 0;
  for (int refused = 1; refused; k++) {
    const long before = atomic_load(&a.requests);
    atomic_store(&a.refuse_at, before + k);
    const dist_status status = work(strategy);
    refused = atomic_load(&a.requests) > before + k;
    atomic_store(&a.refuse_at, -1);
    if (status != DIST_OK && !(refused && status == DIST_RESOURCE_EXHAUSTED)) {
      fail_msg("request %ld: %s: %s", k, dist_status_name(status), dist_last_error());
    }
    if (status != DIST_OK) assert_has(dist_last_error(), "out of memory");
    assert_int_equal(atomic_load(&a.live_bytes), held);
    assert_ok(work(strategy));
  }
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&a.live_bytes), 0);
  return k - 1;
}

#endif
