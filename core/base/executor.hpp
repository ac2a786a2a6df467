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
  // Schedules task(task_data) to run exactly once, on any thread and at any time. If it returns nonzero, the
  // task will not run.
  using Execute = int32_t (*)(void (*task)(void* task_data), void* task_data, void* user_data);
  Execute execute = nullptr;  // NULL: there is no executor
  void* user_data = nullptr;
  int num_threads = 0;  // maximum number of helpers at a time, besides the caller

  // Calls part(first, last, context) for parts of the `n` iterations that start at `begin`, on the calling
  // thread and on helpers. Each part has at least `grain` iterations; `n` must be at least `grain`. Throws
  // std::bad_alloc before any part has run, and rethrows what a part throws.
  using Part = void (*)(int64_t first, int64_t last, const void* context);
  void parallel_for(Memory& memory, int64_t begin, uint64_t n, uint64_t grain, Part part,
                    const void* context) const;
};

}  // namespace dist
