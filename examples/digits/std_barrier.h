// SPDX-License-Identifier: Apache-2.0
//
// The same all_reduce as people write it without a library: C++20's std::barrier and loops. It is here to be
// compared with; what it lacks is any answer to a thread that does not come, or comes for something else.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct std_barrier_group std_barrier_group;

/** A group of `num_members` threads. NULL: no memory. */
std_barrier_group *std_barrier_create(int32_t num_members);

void std_barrier_destroy(std_barrier_group *group);

/**
 * Adds n tensors up over all members, in place: every member gets the sums, folded from left to right by
 * member, as dist_all_reduce() does. counts[t] is the elements of tensors[t], the same for all.
 */
void std_barrier_all_reduce(std_barrier_group *group, int32_t member, float *const *tensors,
                            const int64_t *counts, size_t n);

#ifdef __cplusplus
}
#endif
