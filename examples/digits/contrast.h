// SPDX-License-Identifier: Apache-2.0
//
// How long this run's all_reduce of the gradients takes with libdist, and with std::barrier and loops
// (std_barrier.h): on the same threads, in the same buffers, in turns, so that whatever else the machine does
// meets both alike.
#pragma once

#include <dist/dist.h>

#include "trainer.h"

enum { CONTRAST_ROUNDS = 101 };

typedef struct {
  double dist_ns; /* medians over the rounds; a round ends when its last replica is done */
  double std_barrier_ns;
  int32_t equal_bits; /* whether both gave the same sums */
} contrast_result;

/** Measures; the gradients in t->replicas are lost. */
dist_status contrast_measure(trainer *t, contrast_result *out);
