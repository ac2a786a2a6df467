// SPDX-License-Identifier: Apache-2.0
// AheadArena: the oneTBB arena in which a dataset prepares batches ahead. Only the two files that use it include this
// header, since oneTBB's own headers are large.
#pragma once

#include <mutex>
#include <utility>

#include "core/base/memory.hpp"
#include "core/base/start_arena.hpp"

namespace dist {

class AheadArena final : public Counted {
 public:
  explicit AheadArena(Memory& memory) : Counted(memory) {}

  // Lets a oneTBB thread run the task. Throws if there is no memory; the next call may succeed.
  template <class Task>
  void enqueue(Task&& task) {
    if (!tasks_.started()) start();
    tasks_.enqueue(std::forward<Task>(task));
  }

 private:
  void start() {
    const std::lock_guard lock(starting_);
    // oneTBB's own width: it writes a warning to stderr when it is asked for more workers than it has, which can be
    // none if its first caller ran on one CPU.
    if (!tasks_.started()) tasks_.start(tbb::task_arena::automatic);
  }

  std::mutex starting_;
  TbbArena tasks_;
};

}  // namespace dist
