// SPDX-License-Identifier: Apache-2.0
//
// Each member sums its own slice of all members' tensors, copies the result to every member, and waits at the
// barrier. These are straightforward loops that the compiler vectorizes.
#include "std_barrier.h"

#include <algorithm>
#include <barrier>
#include <new>
#include <vector>

struct std_barrier_group {
  explicit std_barrier_group(int32_t num_members)
      : barrier(num_members), members(static_cast<std::size_t>(num_members)) {}

  std::barrier<> barrier;
  std::vector<float *const *> members;  // [member], the tensors it passed
};

std_barrier_group *std_barrier_create(int32_t num_members) {
  try {
    return new std_barrier_group(num_members);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

void std_barrier_destroy(std_barrier_group *group) { delete group; }

void std_barrier_all_reduce(std_barrier_group *group, int32_t member, float *const *tensors,
                            const int64_t *counts, size_t n) {
  const auto &members = group->members;
  const auto num_members = static_cast<int64_t>(members.size());
  group->members[static_cast<std::size_t>(member)] = tensors;
  group->barrier.arrive_and_wait();
  for (std::size_t t = 0; t < n; ++t) {
    const int64_t begin = counts[t] * member / num_members;
    const int64_t end = counts[t] * (member + 1) / num_members;
    float *const total = members[0][t];
    for (std::size_t p = 1; p < members.size(); ++p) {
      const float *const part = members[p][t];
      for (int64_t i = begin; i < end; ++i) total[i] += part[i];
    }
    for (std::size_t p = 1; p < members.size(); ++p)
      std::copy(total + begin, total + end, members[p][t] + begin);
  }
  group->barrier.arrive_and_wait();
}
