// SPDX-License-Identifier: Apache-2.0
// AheadArena: the oneTBB arena in which a dataset prefetches batches. Only the two files that use it include
// this header, because oneTBB's own headers are large.
#pragma once

#include <mutex>
#include <utility>

#include "core/base/memory.hpp"
#include "core/base/start_arena.hpp"

namespace dist {

class AheadArena final : public Counted {
 public:
  explicit AheadArena(Memory& memory) : Counted(memory) {}

  // Lets a oneTBB thread run the task. Throws if memory is exhausted; the next call may succeed.
  template <class Task>
  void enqueue(Task&& task) {
    if (!tasks_.started()) start();
    tasks_.enqueue(std::forward<Task>(task));
  }

 private:
  void start() {
    const std::lock_guard lock(starting_);
    // Use oneTBB's own number of threads. If more are requested than oneTBB has, it writes a warning to
    // stderr, and it may have none if it was first called on a thread that could use only one CPU.
    if (!tasks_.started()) tasks_.start(tbb::task_arena::automatic);
  }

  std::mutex starting_;
  TbbArena tasks_;
};

}  // namespace dist
