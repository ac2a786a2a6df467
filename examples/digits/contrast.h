// SPDX-License-Identifier: Apache-2.0
//
// Compares the time of the gradients' all_reduce in libdist and in an implementation with std::barrier and
// loops (std_barrier.h). Both use the same threads and buffers and run alternately, so other load on the
// machine affects both alike.
#pragma once

#include <dist/dist.h>

#include "trainer.h"

enum { CONTRAST_ROUNDS = 101 };

typedef struct {
  double dist_ns; /* median over the rounds; a round ends when its last replica finishes */
  double std_barrier_ns;
  int32_t equal_bits; /* 1 = both produced the same sums */
} contrast_result;

/** Measures both implementations. Overwrites the gradients in t->replicas. */
dist_status contrast_measure(trainer *t, contrast_result *out);
