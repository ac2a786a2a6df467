/* SPDX-License-Identifier: Apache-2.0
 *
 * A host clock that a test advances explicitly. Deadlines expire only when the test advances it, however busy
 * the machine is.
 */
#ifndef TESTS_ABI_CLOCK_H
#define TESTS_ABI_CLOCK_H

#include "common.h"

typedef struct stepping_clock {
  atomic_llong now_ns;
  atomic_llong step_ns; /* each reading advances the clock by this */
} stepping_clock;

static inline int64_t look_at(void *user_data) {
  stepping_clock *clock = user_data;
  return atomic_fetch_add(&clock->now_ns, atomic_load(&clock->step_ns));
}

static inline dist_strategy_options by_clock(stepping_clock *clock, int32_t num_replicas, int32_t threads) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  static dist_host_options host;
  host = (dist_host_options)DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = num_replicas;
  options.threads = threads;
  host.clock = look_at;
  host.clock_user_data = clock;
  return options;
}

#endif
