// SPDX-License-Identifier: Apache-2.0
// A oneTBB task arena for loops that never wait for a peer. It starts its threads when the first loop needs
// them. The calling thread always takes part and returns when the loop is complete. If the host supplies an
// executor, its threads help with the loops instead (executor.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/executor.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/affinity.hpp"
#include "core/base/status.hpp"

namespace dist {

class Arena {
 public:
  // `memory` must outlive the arena. Loops use at most `max_threads` threads, including the caller; with 1, a
  // loop is a plain loop without oneTBB. `cpus`, which must outlive the arena, are the CPUs to which oneTBB's
  // threads are bound, within `bounds`, while they do parts of a loop, or tasks; NULL: any. The calling
  // thread is not moved. With an executor, loops use its threads instead, and `max_threads` only limits
  // tasks.
  Arena(Memory& memory, int max_threads, const CpuSet* cpus = nullptr, Bounds bounds = Bounds::kOwn,
        const Executor& executor = {}) noexcept;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The maximum number of threads of a loop.
  int max_threads() const noexcept {
    return executor_.execute != nullptr ? executor_.num_threads + 1 : max_threads_;
  }

  // Calls body(first, last) for parts of [begin, end) of at least `grain` iterations, in any order and
  // concurrently. While the caller waits, it takes parts of this loop only. If oneTBB cannot start, the
  // caller runs the whole loop. If oneTBB has no memory for the loop, this fails with RESOURCE_EXHAUSTED;
  // then some parts may not have run.
  template <class Body>
  Status parallel_for(int64_t begin, int64_t end, int64_t grain, const Body& body) {
    return parallel_for(
        begin, end, grain,
        [](int64_t first, int64_t last, const void* context) {
          (*static_cast<const Body*>(context))(first, last);
        },
        static_cast<const void*>(&body));
  }

  // Runs task(context, number) `copies` times, now or later, on oneTBB threads or in wait_for_tasks(). If
  // this fails, fewer calls were submitted.
  using Task = void (*)(void* context, uint32_t number);
  Status submit(Task task, void* context, uint32_t number, int copies);
  // Returns when no task is left, so that objects used by tasks may be destroyed. Runs tasks that have not
  // started, because oneTBB may have no thread for them. Must not be called while holding a lock that a task
  // needs.
  void wait_for_tasks() const noexcept;

 private:
  using Part = void (*)(int64_t first, int64_t last, const void* context);
  class Tasks;
  class Started;

  bool start() noexcept;
  Status parallel_for(int64_t begin, int64_t end, int64_t grain, Part part, const void* context);

  Memory& memory_;
  const int max_threads_;
  const CpuSet* const cpus_;
  const Bounds bounds_;
  const Executor executor_;
  std::once_flag once_;
  Ref<Started> started_;
  std::atomic<bool> has_started_{false};  // started_ can be read without once_
};

}  // namespace dist
