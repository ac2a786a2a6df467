// SPDX-License-Identifier: Apache-2.0
// Executor: host threads that help libdist with parallel loops.
//
// Invariant: a loop never depends on the executor to make progress. Its caller takes parts until none are
// left and then waits only for helpers that are already running a part. A helper that starts late finds
// nothing to do.
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"

namespace dist {

struct Executor {
  // Has task(task_data) called once, on any thread and at any time. Not 0: it will not be.
  using Execute = int32_t (*)(void (*task)(void* task_data), void* task_data, void* user_data);
  Execute execute = nullptr;  // NULL: there is no executor
  void* user_data = nullptr;
  int num_threads = 0;  // most that help at a time, beside the calling one

  // Calls part(first, last, context) for parts of the `n` iterations from `begin` on, of `grain` or more, on the calling
  // thread and on those that help; `n` is `grain` or more. Throws std::bad_alloc before any part has run, and what a part
  // throws.
  using Part = void (*)(int64_t first, int64_t last, const void* context);
  void parallel_for(Memory& memory, int64_t begin, uint64_t n, uint64_t grain, Part part,
                    const void* context) const;
};

}  // namespace dist
