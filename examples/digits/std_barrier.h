// SPDX-License-Identifier: Apache-2.0
//
// An all_reduce without a library, for comparison: C++20's std::barrier and loops. Unlike libdist, it does
// not handle threads that fail to arrive or that arrive for a different operation.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct std_barrier_group std_barrier_group;

/** Creates a group of `num_members` threads. Returns NULL if memory is exhausted. */
std_barrier_group *std_barrier_create(int32_t num_members);

void std_barrier_destroy(std_barrier_group *group);

/**
 * Sums n tensors over all members in place. Every member receives the sums, folded from left to right in
 * member order like those of dist_all_reduce(). counts[t] is the number of elements of tensors[t]; all
 * members pass the same.
 */
void std_barrier_all_reduce(std_barrier_group *group, int32_t member, float *const *tensors,
                            const int64_t *counts, size_t n);

#ifdef __cplusplus
}
#endif
