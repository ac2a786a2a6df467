/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategies of several sizes, alternately on libdist threads and host threads, for all tests of a program.
 */
#ifndef TESTS_ABI_SIZES_H
#define TESTS_ABI_SIZES_H

#include "tests/abi/common.h"

static const int32_t sizes[] = {1, 2, 3, 5, 8};
static dist_strategy *strategies[COUNT_OF(sizes)];

static inline int make_strategies(int32_t threads, int32_t other_threads) {
  for (size_t s = 0; s < COUNT_OF(sizes); s++)
    strategies[s] = strategy_of(sizes[s], s % 2 == 0 ? threads : other_threads);
  return 0;
}

static inline int end_strategies(void **state) {
  (void)state;
  for (size_t s = 0; s < COUNT_OF(sizes); s++) assert_ok(dist_strategy_destroy(strategies[s]));
  return 0;
}

#endif
